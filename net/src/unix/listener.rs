//! Binding a `UnixListener` or a `UnixSeqpacketListener`.

use std::io;
use std::os::fd::AsFd;

use socket2::SockAddr;

use super::{Shown, open_bound};
use crate::error::{BIND, failed};
use crate::kind::SocketKind;
use crate::sys;
use crate::tcp::BACKLOG;

/// Listening at a path or an address.
macro_rules! unix_listener_methods {
    () => {
        /// Listens at `path`, which must not exist. The file remains when the listener is dropped. On Linux a path that
        /// begins with a zero byte, such as `"\0name"`, is an abstract name (unix(7)), which is no file.
        ///
        /// # Examples
        ///
        /// See [`UnixListener`](crate::UnixListener).
        ///
        /// # Errors
        ///
        /// Returns the errors of bind(2), such as `AddrInUse` if `path` exists, and `InvalidInput` if `path` is empty
        /// or too long (about 100 bytes, unix(7)).
        pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
            listener::bind(raw_path(path.as_ref())?)
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
        /// Same as [`bind`](Self::bind).
        pub fn bind_addr(addr: &SocketAddr) -> io::Result<Self> {
            listener::bind(raw_addr(addr)?)
        }
    };
}
pub(crate) use unix_listener_methods;

pub(super) fn bind<K: SocketKind>(addr: SockAddr) -> io::Result<K> {
    let socket = open_bound(K::TYPE, &addr)?;
    sys::socket::listen(socket.as_fd(), BACKLOG).map_err(failed(BIND, Shown(&addr)))?;
    Ok(K::adopt(socket.into()))
}
