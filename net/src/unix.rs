//! Unix sockets: their addresses, and what only they can do.
//!
//! Reading, writing, sending, accepting and readiness are in `socket`. An address is the standard library's
//! `std::os::unix::net::SocketAddr`: a path, an abstract name (Linux and Android), or nothing.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::path::Path;

use socket2::{Domain, SockAddr, Type};

use crate::kind;
use crate::kind::SocketKind;
use crate::socket::Socket;
use crate::sys;

mod connect;
mod datagram;
mod listener;
mod stream;

pub use connect::ConnectUnix;

/// A Unix stream socket that waits for connections.
///
/// # Examples
///
/// ```
/// # mini_net::doc::block_on(async {
/// use mini_net::{UnixListener, UnixStream};
///
/// # let path = std::env::temp_dir().join(format!("mini-doc-listener-{}", std::process::id()));
/// # let _ = std::fs::remove_file(&path);
/// let listener = UnixListener::bind(&path)?;
/// let client = UnixStream::connect(&path).await?;
/// let (server, _from) = listener.accept().await?;
/// client.write_all(b"ping").await?;
/// let mut buf = [0; 4];
/// server.read_exact(&mut buf).await?;
/// assert_eq!(&buf, b"ping");
/// std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub type UnixListener = Socket<kind::UnixListener>;

/// A connection between two processes of one machine, or within one.
///
/// # Examples
///
/// ```
/// # mini_net::doc::block_on(async {
/// let (a, b) = mini_net::UnixStream::pair()?;
/// a.write_all(b"ping").await?;
/// let mut buf = [0; 4];
/// b.read_exact(&mut buf).await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub type UnixStream = Socket<kind::UnixStream>;

/// A socket for messages between processes of one machine; none gets lost, and none overtakes another.
///
/// # Examples
///
/// ```
/// # mini_net::doc::block_on(async {
/// let (a, b) = mini_net::UnixDatagram::pair()?;
/// a.send(b"ping").await?;
/// let mut buf = [0; 16];
/// assert_eq!(b.recv(&mut buf).await?, 4);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub type UnixDatagram = Socket<kind::UnixDatagram>;

fn pair<K: SocketKind>(kind: Type) -> io::Result<(Socket<K>, Socket<K>)> {
    let (a, b) = sys::socket::pair(kind)?;
    Ok((Socket::adopt(a), Socket::adopt(b)))
}

/// A new socket, bound unless there is nothing to bind it to.
fn open(kind: Type, bound_to: Option<SockAddr>) -> io::Result<socket2::Socket> {
    let socket = sys::socket::open(Domain::UNIX, kind)?;
    if let Some(addr) = bound_to {
        socket.bind(&addr)?;
    }
    Ok(socket)
}

/// The kernel would silently cut a path at a zero byte, so there must be none.
fn raw_path(path: &Path) -> io::Result<SockAddr> {
    if path.as_os_str().as_bytes().contains(&0) {
        let text = "a socket path has no zero bytes; for an abstract name, use the method that takes an address";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    SockAddr::unix(path)
}

fn raw_addr(addr: &SocketAddr) -> io::Result<SockAddr> {
    if let Some(path) = addr.as_pathname() {
        return SockAddr::unix(path);
    }
    let Some(name) = sys::abstract_name(addr) else {
        let text = "an unnamed address is nobody's";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    let zero_and_name = [b"\0", name].concat();
    SockAddr::unix(Path::new(std::ffi::OsStr::from_bytes(&zero_and_name)))
}
