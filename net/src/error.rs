//! `OperationError`: the payload of an `io::Error` that names the failed operation and its object.
//!
//! Made by `failed`, which all code calls that sets something up: `addr`, `tcp`, `udp`, `unix`, `call` (to accept) and
//! the options here; files, processes, signals and the runtime itself in `mini`. Code that moves data returns the
//! errors of the system unchanged.
//!
//! The hard part is that an `io::Error` has either a number or a payload, never both. So the number moves into the
//! payload, and `raw_os_error` finds it wherever it is; the kind stays where it was.
//!
//! Rejected: the operation in the text alone. The number would be lost.
//! Rejected: a result type of our own. `?` in a function that returns `io::Result` is what everybody writes.
//! Rejected: the errors of the system unchanged. They keep `io::Error::raw_os_error`, which few programs ask and none
//! has to. But a program that opens fifty files is only told "No such file or directory".

use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use socket2::SockAddr;

use crate::sys;

/// The payload of an [`io::Error`] that names what failed: the operation, its object, and the system's error.
///
/// Errors of calls that set something up carry this payload: connecting, binding, listening, accepting, looking up a
/// host, setting a socket option, making a pipe, all of `fs`, starting, killing and awaiting a process, listening to a
/// signal, starting a runtime. Their text names operation and object: "failed to connect to 127.0.0.1:80: Connection
/// refused (os error 111)". If the process has too many open files (`EMFILE`), the text also names the limit,
/// `RLIMIT_NOFILE`.
///
/// Calls that move data on a socket or a pipe, or wait for readiness, return the error of the system unchanged: the
/// caller has the object at hand, the calls are frequent, and `WouldBlock` is one of their results. The error of a copy
/// names the end, and has the error of the system as its [`source`](Error::source).
///
/// # Kind and number
///
/// [`io::Error::kind`] is that of the system's error, so a `match` on it works as with the standard library and tokio.
/// [`io::Error::raw_os_error`] is `None` for every error that has a payload. For the number, use [`raw_os_error`],
/// which looks into both. It is the only way to find a number without a kind of its own (`ENXIO`, `ECHILD`).
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// use mini::io::{Object, OperationError, raw_os_error};
/// use mini::net::TcpStream;
///
/// # let addr = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
/// let error = TcpStream::connect(addr).await.unwrap_err(); // nobody listens there
/// assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
/// assert!(error.to_string().starts_with(&format!("failed to connect to {addr}: ")));
///
/// let details = OperationError::of(&error).unwrap();
/// assert_eq!(details.operation(), "connect to");
/// assert!(matches!(details.object(), Object::Address(to) if *to == addr));
/// assert_eq!(raw_os_error(&error), details.raw_os_error());
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub struct OperationError {
    operation: &'static str,
    object: Object,
    error: io::Error,
    /// The limit of open descriptors, if the error is that it is reached.
    limit: Option<u64>,
}

/// The object of an operation.
///
/// # Examples
///
/// See [`OperationError`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Object {
    /// An object without a name: a new socket, for example.
    Nothing,
    /// A file, a directory, or the path of a Unix socket, as it was given.
    Path(PathBuf),
    /// The file to be renamed, copied or linked to, and the new name.
    Paths {
        /// The first path.
        from: PathBuf,
        /// The second path.
        to: PathBuf,
    },
    /// An address of the internet.
    Address(SocketAddr),
    /// A host that was looked up, as it was given.
    Host(String),
    /// The name of a Unix socket that is no path (unix(7), "abstract").
    AbstractName(Vec<u8>),
    /// The address of a Unix socket that has none (unix(7), "unnamed").
    Unnamed,
    /// A descriptor: of a file that came without a path, or of a socket.
    Fd(RawFd),
    /// A program that was to be started.
    Program {
        /// Its name or path, as it was given.
        name: PathBuf,
        /// Its working directory, if one was set.
        directory: Option<PathBuf>,
    },
    /// A process, by its id.
    Process(u32),
    /// A signal, by its number.
    Signal(i32),
}

/// A type that becomes an `Object` when there is an error, and not before.
#[doc(hidden)]
pub trait IntoObject {
    fn into_object(self) -> Object;
}

impl OperationError {
    /// Returns the details of `error`, if it has any.
    ///
    /// # Examples
    ///
    /// See [`OperationError`].
    pub fn of(error: &io::Error) -> Option<&OperationError> {
        error.get_ref()?.downcast_ref()
    }

    /// Returns the operation that failed, as the text names it: "open", "connect to".
    ///
    /// # Examples
    ///
    /// See [`OperationError`].
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Returns the object of the operation.
    ///
    /// # Examples
    ///
    /// See [`OperationError`].
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Returns the path of the object, the first one if there are two.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::io::OperationError;
    /// use mini::net::UnixListener;
    ///
    /// let error = UnixListener::bind("/no/such/directory/socket").unwrap_err();
    /// let path = OperationError::of(&error).unwrap().path();
    /// assert_eq!(path.unwrap().to_str(), Some("/no/such/directory/socket"));
    /// ```
    pub fn path(&self) -> Option<&Path> {
        match &self.object {
            Object::Path(path) | Object::Paths { from: path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the underlying error, without the operation and its object.
    ///
    /// # Examples
    ///
    /// See [`path`](OperationError::path).
    pub fn io_error(&self) -> &io::Error {
        &self.error
    }

    /// Returns the number of the system's error (errno(3)), if the system refused the operation.
    ///
    /// # Examples
    ///
    /// See [`OperationError`].
    pub fn raw_os_error(&self) -> Option<i32> {
        raw_os_error(&self.error)
    }
}

/// Returns the operating system's error number (errno(3)) in `error`: its own, or the one in its payload.
///
/// The payload is an [`OperationError`], or one whose [`source`](Error::source) is an [`io::Error`], as from a copy.
///
/// # Examples
///
/// ```
/// use std::io;
/// use mini::io::raw_os_error;
/// use mini::net::UnixListener;
///
/// assert_eq!(raw_os_error(&io::Error::from_raw_os_error(11)), Some(11));
///
/// let error = UnixListener::bind("/no/such/directory/socket").unwrap_err();
/// assert_eq!(raw_os_error(&error), Some(2)); // ENOENT
/// assert_eq!(error.raw_os_error(), None, "it has a payload");
/// ```
pub fn raw_os_error(error: &io::Error) -> Option<i32> {
    if let Some(details) = OperationError::of(error) {
        return details.raw_os_error();
    }
    error.raw_os_error().or_else(|| raw_os_error(error.get_ref()?.source()?.downcast_ref()?))
}

/// Adds operation and object to an error: an argument of `map_err`, which costs nothing until there is an error.
///
/// # Examples
///
/// ```
/// use std::io;
/// use mini_net::{Object, failed};
///
/// let refused: io::Result<()> = Err(io::ErrorKind::TimedOut.into());
/// let error = refused.map_err(failed("knock at", Object::Host("home".to_owned()))).unwrap_err();
/// assert_eq!(error.to_string(), "failed to knock at `home`: timed out");
/// ```
pub fn failed<O: IntoObject>(operation: &'static str, object: O) -> impl FnOnce(io::Error) -> io::Error {
    #[cold]
    fn wrap(operation: &'static str, object: Object, error: io::Error) -> io::Error {
        let limit = if error.raw_os_error() == Some(libc::EMFILE) { sys::limit::open_files() } else { None };
        io::Error::new(error.kind(), OperationError { operation, object, error, limit })
    }
    move |error| wrap(operation, object.into_object(), error)
}

/// Returns `true` if the process or the system has run out of descriptors or memory. A later try may succeed.
#[doc(hidden)]
#[cold]
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(raw_os_error(error), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// Wraps the error of a thread that could not be started.
///
/// The number is usually `EAGAIN`, whose kind is `WouldBlock`; a caller would wait for a wake that never comes. So the
/// kind is `ResourceBusy`.
#[doc(hidden)]
#[cold]
pub fn no_thread(error: io::Error) -> io::Error {
    let details = OperationError { operation: "start a thread", object: Object::Nothing, error, limit: None };
    io::Error::new(io::ErrorKind::ResourceBusy, details)
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OperationError { operation, object, error, limit } = self;
        write!(f, "failed to {operation}")?;
        if *object != Object::Nothing {
            write!(f, " {object}")?;
        }
        write!(f, ": {error}")?;
        match limit {
            Some(limit) => write!(f, "; the limit is RLIMIT_NOFILE = {limit}"),
            None => Ok(()),
        }
    }
}

/// The text: a program that unwraps the error, or returns it from `main`, shows this.
impl fmt::Debug for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl Error for OperationError {
    /// The text already contains the cause, so this is the source of the cause.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::Nothing => f.write_str("nothing"),
            Object::Path(path) => write!(f, "`{}`", path.display()),
            Object::Paths { from, to } => write!(f, "`{}` to `{}`", from.display(), to.display()),
            Object::Address(addr) => write!(f, "{addr}"),
            Object::Host(host) => write!(f, "`{host}`"),
            Object::AbstractName(name) => write!(f, "the abstract name `{}`", OsStr::from_bytes(name).display()),
            Object::Unnamed => f.write_str("an unnamed address"),
            Object::Fd(fd) => write!(f, "descriptor {fd}"),
            Object::Program { name, directory: None } => write!(f, "`{}`", name.display()),
            Object::Program { name, directory: Some(at) } => write!(f, "`{}` in `{}`", name.display(), at.display()),
            Object::Process(id) => write!(f, "process {id}"),
            Object::Signal(number) => write!(f, "signal {number}"),
        }
    }
}

impl IntoObject for Object {
    fn into_object(self) -> Object {
        self
    }
}

impl IntoObject for &Path {
    fn into_object(self) -> Object {
        Object::Path(self.to_owned())
    }
}

impl IntoObject for SocketAddr {
    fn into_object(self) -> Object {
        Object::Address(self)
    }
}

impl IntoObject for &SockAddr {
    fn into_object(self) -> Object {
        if let Some(addr) = self.as_socket() {
            return Object::Address(addr);
        }
        match (self.as_pathname(), self.as_abstract_namespace()) {
            (Some(path), _) => path.into_object(),
            (None, Some(name)) => Object::AbstractName(name.to_owned()),
            (None, None) => Object::Unnamed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_operation_object_and_cause() {
        let path = || PathBuf::from("/a");
        let texts = [
            (Object::Nothing, "failed to try: x"),
            (Object::Path(path()), "failed to try `/a`: x"),
            (Object::Paths { from: path(), to: "b".into() }, "failed to try `/a` to `b`: x"),
            (Object::Address("[::1]:80".parse().unwrap()), "failed to try [::1]:80: x"),
            (Object::Host("a.example:80".to_owned()), "failed to try `a.example:80`: x"),
            (Object::AbstractName(b"a".to_vec()), "failed to try the abstract name `a`: x"),
            (Object::Unnamed, "failed to try an unnamed address: x"),
            (Object::Fd(7), "failed to try descriptor 7: x"),
            (Object::Program { name: path(), directory: None }, "failed to try `/a`: x"),
            (Object::Program { name: path(), directory: Some("b".into()) }, "failed to try `/a` in `b`: x"),
            (Object::Process(7), "failed to try process 7: x"),
            (Object::Signal(15), "failed to try signal 15: x"),
        ];
        for (object, text) in texts {
            let error = failed("try", object.clone())(io::Error::new(io::ErrorKind::TimedOut, "x"));
            assert_eq!((error.kind(), &*error.to_string()), (io::ErrorKind::TimedOut, text));
            let details = OperationError::of(&error).unwrap();
            assert_eq!((details.operation(), details.object(), details.raw_os_error()), ("try", &object, None));
        }
    }

    #[test]
    fn the_limit_is_told_where_it_has_been_reached() {
        let error = |number| failed("open", Path::new("/a"))(io::Error::from_raw_os_error(number));
        let limit = sys::limit::open_files().expect("no test has an endless number of files");
        let (plain, full) = (io::Error::from_raw_os_error(libc::EMFILE), error(libc::EMFILE));
        assert_eq!(full.to_string(), format!("failed to open `/a`: {plain}; the limit is RLIMIT_NOFILE = {limit}"));
        let outer = failed("start", Object::Nothing)(full);
        assert_eq!(outer.to_string().matches("RLIMIT_NOFILE").count(), 1, "{outer}");
        assert_eq!(raw_os_error(&outer), Some(libc::EMFILE));
        assert!(!error(libc::ENFILE).to_string().contains("RLIMIT"), "that is the limit of the system");
    }

    #[test]
    fn a_shortage_is_known_through_its_words() {
        for number in [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM] {
            let error = io::Error::from_raw_os_error(number);
            assert!(is_shortage(&error) && is_shortage(&failed("try", Object::Nothing)(error)));
        }
        assert!(!is_shortage(&io::Error::from_raw_os_error(libc::EBADF)) && !is_shortage(&io::Error::other("x")));
    }

    #[test]
    fn a_number_without_a_kind_is_kept() {
        let plain = io::Error::from_raw_os_error(libc::ENXIO);
        let error = failed("open", Path::new("/a"))(io::Error::from_raw_os_error(libc::ENXIO));
        assert_eq!(error.kind(), plain.kind());
        assert_eq!((error.raw_os_error(), raw_os_error(&error)), (None, Some(libc::ENXIO)));
        let twice = failed("start", Object::Nothing)(error);
        assert_eq!(raw_os_error(&twice), Some(libc::ENXIO));
        assert_eq!(raw_os_error(&io::Error::other("x")), None);
    }

    #[test]
    fn an_address_of_the_kernel_is_named_as_it_was_given() {
        let unix = |name: &str| SockAddr::unix(name).unwrap().into_object();
        assert_eq!(unix("/a/b"), Object::Path("/a/b".into()));
        #[cfg(any(target_os = "linux", target_os = "android"))]
        assert_eq!(unix("\0name"), Object::AbstractName(b"name".to_vec()));
        let addr: SocketAddr = "127.0.0.1:80".parse().unwrap();
        assert_eq!(SockAddr::from(addr).into_object(), Object::Address(addr));
    }
}
