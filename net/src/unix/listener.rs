//! Binding a `UnixListener` or a `UnixSeqpacketListener`.

use std::io;
use std::os::unix::net::SocketAddr;
use std::path::Path;

use socket2::SockAddr;

use super::{BIND, open_bound, raw_addr, raw_path};
use crate::error::failed;
use crate::kind::{ListenerKind, SocketKind, UnixKind};
use crate::socket::Socket;
use crate::tcp::BACKLOG;

impl<K: ListenerKind + UnixKind> Socket<K> {
    /// Listens at `path`, which must not exist, and which stays when the listener is dropped.
    ///
    /// # Examples
    ///
    /// See [`UnixListener`](crate::UnixListener).
    ///
    /// # Errors
    ///
    /// Those of bind(2): `AddrInUse` if there is something at `path`. `InvalidInput` if `path` is empty or too long
    /// (about 100 bytes, unix(7)).
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Socket<K>> {
        bind(raw_path(BIND, path.as_ref())?)
    }

    /// Listens at an address, which may be an abstract name.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] mini::block_on(async {
    /// use std::os::linux::net::SocketAddrExt;
    /// use std::os::unix::net::SocketAddr;
    /// use mini::net::{UnixListener, UnixStream};
    ///
    /// let name = format!("mini-doc-{}", std::process::id());
    /// let addr = SocketAddr::from_abstract_name(name)?;
    /// let listener = UnixListener::bind_addr(&addr)?;
    /// let stream = UnixStream::connect_addr(&addr).await?;
    /// # drop((listener, stream));
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`bind`](crate::UnixListener::bind).
    pub fn bind_addr(addr: &SocketAddr) -> io::Result<Socket<K>> {
        bind(raw_addr(BIND, addr)?)
    }
}

fn bind<K: SocketKind>(addr: SockAddr) -> io::Result<Socket<K>> {
    let socket = open_bound(K::TYPE, &addr)?;
    socket.listen(BACKLOG as i32).map_err(failed("listen on", &addr))?;
    Ok(Socket::adopt(socket.into()))
}
