//! Unix sockets: their addresses, and the methods that only they have.
//!
//! Reading, writing, sending, accepting and readiness are in `socket`. An address is the standard library's
//! `std::os::unix::net::SocketAddr`: a path, an abstract name (Linux and Android), or nothing.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{self, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use socket2::{Domain, SockAddr, Type};

use crate::kind::{SocketKind, listener};
use crate::socket::methods::*;
use crate::socket::socket;
use crate::split::{self, split_methods};

mod connect;
mod cred;
mod datagram;
pub(crate) mod fds;
mod listener;
pub mod pipe;
mod stream;

use fds::{RecvFds, SendFds, fds_methods};
use listener::unix_listener_methods;
use stream::unix_connection_methods;

pub use connect::ConnectUnix;
pub use cred::UCred;

socket! {
    /// A Unix stream socket that waits for connections.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use mini::net::{UnixListener, UnixStream};
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
    UnixListener: unix -> SocketAddr, STREAM, Whole
}

socket! {
    /// A connection between two processes of one machine, or within one process.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (a, b) = mini::net::UnixStream::pair()?;
    /// a.write_all(b"ping").await?;
    /// let mut buf = [0; 4];
    /// b.read_exact(&mut buf).await?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    UnixStream: unix -> SocketAddr, STREAM, StreamWithAncillary
}

socket! {
    /// A socket for messages between processes of one machine. No message is lost or overtakes another.
    ///
    /// While the receiver's queue is full, a sender waits. Apple's systems and the BSDs do not report room in a queue:
    /// sending fails there with `ENOBUFS`, and may be tried again later.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let (a, b) = mini::net::UnixDatagram::pair()?;
    /// a.send(b"ping").await?;
    /// let mut buf = [0; 16];
    /// assert_eq!(b.recv(&mut buf).await?, 4);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    UnixDatagram: unix -> SocketAddr, DGRAM, Whole
}

socket! {
    /// A connection between two processes of one machine that carries messages, in order, each whole (`SOCK_SEQPACKET`
    /// in unix(7)).
    ///
    /// A peer that has closed looks like an empty message: [`recv`](UnixSeqpacket::recv) returns 0. A message longer
    /// than the buffer is truncated. Apple systems have no such sockets: creating one fails there.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] mini::block_on(async {
    /// let (a, b) = mini::net::UnixSeqpacket::pair()?;
    /// a.send(b"ping").await?;
    /// a.send(b"pong").await?;
    /// drop(a);
    /// let mut buf = [0; 16];
    /// assert_eq!(b.recv(&mut buf).await?, 4);
    /// assert_eq!(b.recv(&mut buf).await?, 4);
    /// assert_eq!(b.recv(&mut buf).await?, 0);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    UnixSeqpacket: unix -> SocketAddr, SEQPACKET, Whole
}

socket! {
    /// A socket that waits for connections of the type [`UnixSeqpacket`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] mini::block_on(async {
    /// use mini::net::{UnixSeqpacket, UnixSeqpacketListener};
    ///
    /// # let path = std::env::temp_dir().join(format!("mini-doc-seqpacket-{}", std::process::id()));
    /// # let _ = std::fs::remove_file(&path);
    /// let listener = UnixSeqpacketListener::bind(&path)?;
    /// let client = UnixSeqpacket::connect(&path).await?;
    /// let (server, _from) = listener.accept().await?;
    /// client.send(b"ping").await?;
    /// assert_eq!(server.recv(&mut [0; 16]).await?, 4);
    /// std::fs::remove_file(&path)?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    UnixSeqpacketListener: unix -> SocketAddr, SEQPACKET, Whole
}

split::halves!(UnixStream, SocketAddr);
listener!(UnixListener: UnixStream, AcceptUnix);
listener!(UnixSeqpacketListener: UnixSeqpacket, AcceptSeqpacket);
std_conversions!(UnixStream, net::UnixStream);
std_conversions!(UnixListener, net::UnixListener);
std_conversions!(UnixDatagram, net::UnixDatagram);

impl UnixStream {
    unix_connection_methods!();
    stream_methods!();
    split_methods!();
    connection_methods!();
    address_methods!(SocketAddr);
    data_methods!(SocketAddr);
    fds_methods!();
    std_methods!(UnixStream, net::UnixStream);
}

impl UnixListener {
    unix_listener_methods!();
    listener_methods!(UnixStream, SocketAddr, AcceptUnix);
    address_methods!(SocketAddr);
    std_methods!(UnixListener, net::UnixListener);
}

impl UnixSeqpacket {
    unix_connection_methods!();
    datagram_methods!(SocketAddr, RecvFromUnix, UnixDatagram);
    connection_methods!();
    address_methods!(SocketAddr);
    data_methods!(SocketAddr);
    fds_methods!();
    std_methods!(UnixSeqpacket, OwnedFd);
}

impl UnixSeqpacketListener {
    unix_listener_methods!();
    listener_methods!(UnixSeqpacket, SocketAddr, AcceptSeqpacket);
    address_methods!(SocketAddr);
    std_methods!(UnixSeqpacketListener, OwnedFd);
}

fn pair<K: SocketKind>() -> io::Result<(K, K)> {
    let (a, b) = sys::socket::pair(K::TYPE)?;
    Ok((K::adopt(a), K::adopt(b)))
}

fn open(kind: Type) -> io::Result<socket2::Socket> {
    sys::socket::open(Domain::UNIX, kind)
}

fn open_bound(kind: Type, addr: &SockAddr) -> io::Result<socket2::Socket> {
    let bound = open(kind).and_then(|socket| sys::socket::bind(socket.as_fd(), addr).map(|()| socket));
    bound.map_err(failed(BIND, Shown(addr)))
}

/// Shows an address in an error.
struct Shown<'a>(&'a SockAddr);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.as_pathname(), self.0.as_abstract_namespace()) {
            (Some(path), _) => write!(f, "{path:?}"),
            (None, name) => write!(f, "the abstract name {:?}", OsStr::from_bytes(name.unwrap_or_default())),
        }
    }
}

/// The kernel's form of a path. An error names the path.
fn raw_path(path: &Path) -> io::Result<SockAddr> {
    encode_path(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{path:?} is not the address of a socket: {error}")))
}

/// The kernel would silently cut a path at a zero byte, so there must be none, and Linux would bind to an abstract name
/// of its own choice if the path is empty (unix(7), "autobind"). A path that begins with a zero byte is an abstract
/// name.
fn encode_path(path: &Path) -> io::Result<SockAddr> {
    if path.as_os_str().is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a socket path must not be empty"));
    }
    if let [0, name @ ..] = path.as_os_str().as_bytes()
        && !name.is_empty()
    {
        sys::abstract_address(name)?; // not everywhere
        return SockAddr::unix(path);
    }
    if path.as_os_str().as_bytes().contains(&0) {
        let text = "a socket path must not contain a zero byte, except the first one of an abstract name";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    SockAddr::unix(path)
}

/// The kernel's form of an address.
fn raw_addr(addr: &SocketAddr) -> io::Result<SockAddr> {
    if let Some(path) = addr.as_pathname() {
        return raw_path(path);
    }
    let Some(name) = sys::abstract_name(addr) else {
        let text = "an unnamed socket cannot be reached by its address";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    let zero_and_name = [b"\0", name].concat();
    SockAddr::unix(Path::new(OsStr::from_bytes(&zero_and_name)))
}
