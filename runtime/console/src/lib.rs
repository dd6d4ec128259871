//! A live web page that shows what a program on the runtime [mini](https://docs.rs/mini-rt) does, and what hangs in it.
//!
//! ```no_run
//! #[mini::main]
//! async fn main() -> std::io::Result<()> {
//!     let _console = mini_console::serve("127.0.0.1:7669")?;
//!     // the program
//!     # Ok(())
//! }
//! ```
//!
//! Open <http://127.0.0.1:7669/> in a browser. The page first shows what is stuck: circles of tasks that wait for each
//! other, tasks that nothing can wake any more, and workers that are stuck in a poll. Below are the workers and their
//! last minute, the tasks by the line that spawned them and by what they wait for, the history of one task, a graph of
//! which tasks wait for which, and the blocking threads. The page shows lines of code and names of tasks, and no data
//! of the program.
//!
//! The page also shows data that a runtime keeps only on request: [warnings](mini::runtime::Builder::warnings),
//! [histograms](mini::runtime::Builder::histograms), and the trace of the
//! [flight recorder](mini::runtime::Builder::flight_recorder). If one of them is off, the page names the setting.
//! One client at a time may download the trace, as it takes much [memory](mini::runtime::Handle::snapshot).
//!
//! The page has a link to its content as JSON, which `curl http://127.0.0.1:7669/json` prints too. Lines of code are
//! plain text, or links to an editor or a repository; see [`Builder::source_links`].
//!
//! A separate thread serves the page, so it works even while every worker of the program is stuck. While no page is
//! open, the thread sleeps. Otherwise it makes a [dump](mini::runtime::Dump) once a second, or less often if that would
//! take more than a twentieth of a CPU. The program needs no special build. Waiting times count from the first dump.
//!
//! A console shows one runtime. Each core of a [`PerCore`](mini::runtime::PerCore) is a runtime of its own.

mod connection;
mod event;
mod page;
mod request;
mod server;

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::process;
use std::thread::JoinHandle;

use mini::runtime::Handle;
use mini::sync::oneshot;
use server::Server;

/// Serves a page about the current runtime at `addr`, until the [`Console`] is dropped.
///
/// `addr` must be a loopback address, such as `127.0.0.1:7669` or `localhost:7669`. With port 0 the system chooses a
/// port; see [`Console::local_addr`]. For another runtime, or for clients on other computers, see [`Console::of`].
///
/// # Examples
///
/// ```
/// use mini::net::TcpStream;
///
/// # mini::block_on(async {
/// let console = mini_console::serve("127.0.0.1:0")?;
/// println!("see http://{}/", console.local_addr());
///
/// let client = TcpStream::connect(console.local_addr()).await?;
/// client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
/// let mut answer = [0; 15];
/// client.read_exact(&mut answer).await?;
/// assert_eq!(&answer, b"HTTP/1.1 200 OK");
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
///
/// # Errors
///
/// - The calling thread is not inside a runtime.
/// - `addr` is not a loopback address.
/// - Browsers refuse to open the port of `addr`: it is on the list of
///   [blocked ports](https://fetch.spec.whatwg.org/#port-blocking), as 6000 and 6665 to 6669 are.
/// - Binding fails, for example because the address is in use.
/// - The process has no descriptor or thread left.
pub fn serve(addr: impl ToSocketAddrs) -> io::Result<Console> {
    let handle = Handle::try_current().map_err(|error| {
        let text = format!("mini_console::serve: {error}; Console::of takes the handle of a runtime");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })?;
    Console::of(&handle).serve(addr)
}

/// Serves a page about a runtime until it is dropped; returned by [`serve`] and [`Builder::serve`].
///
/// Dropping it closes the connections and waits for the thread that serves them. The console does not keep the runtime
/// running; when the runtime has ended, the page says so.
///
/// # Examples
///
/// See [`serve`].
#[must_use = "the page is there until the console is dropped"]
pub struct Console {
    addr: SocketAddr,
    /// Dropped, it stops the server. `None` once it is.
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    /// The process that has the thread.
    process: u32,
}

/// Configures a [`Console`]; returned by [`Console::of`].
///
/// # Examples
///
/// See [`Console::of`].
#[derive(Clone, Debug)]
#[must_use = "nothing is served before `serve` is called"]
pub struct Builder {
    watched: Handle,
    allows_remote: bool,
    source_links: Option<String>,
}

impl Console {
    /// Returns a builder for a console of the runtime of `handle`.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::runtime::Runtime;
    /// use mini_console::Console;
    ///
    /// let runtime = Runtime::new()?;
    /// let console = Console::of(runtime.handle()).serve("127.0.0.1:0")?;
    /// assert!(console.local_addr().ip().is_loopback());
    /// # std::io::Result::Ok(())
    /// ```
    pub fn of(handle: &Handle) -> Builder {
        Builder { watched: handle.clone(), allows_remote: false, source_links: None }
    }

    /// Returns the address of the page.
    ///
    /// # Examples
    ///
    /// See [`serve`].
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Builder {
    /// Allows or forbids an address that other computers can reach. Forbidden by default.
    ///
    /// Clients see the names of tasks, the lines of the program and what it is doing; there is no password and no
    /// encryption. A tunnel, such as `ssh -L 7669:127.0.0.1:7669 host`, does not need this setting.
    ///
    /// Clients must use the address: a request with a name other than `localhost` in its `Host` header is refused,
    /// since it may come from a page of another server.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini_console::Console;
    ///
    /// let runtime = mini::runtime::Runtime::new()?;
    /// assert!(Console::of(runtime.handle()).serve("0.0.0.0:0").is_err());
    /// let console = Console::of(runtime.handle()).allow_remote(true).serve("0.0.0.0:0")?;
    /// # drop(console);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn allow_remote(mut self, allows: bool) -> Self {
        self.allows_remote = allows;
        self
    }

    /// Turns the lines of code on the page into links, which open an editor or the page of a repository. Without a
    /// template they are plain text.
    ///
    /// A link is `template` with `{file}`, `{line}` and `{column}` replaced. The path of the file is the one that the
    /// compiler knows: for the program's own code it is relative to the root of its workspace. A line with an absolute
    /// path, such as one of a dependency, is not a link.
    ///
    /// # Examples
    ///
    /// Editors register a URL scheme with the system. This template is for VS Code, on the computer where the package
    /// was compiled:
    ///
    /// ```
    /// use mini_console::Console;
    ///
    /// let runtime = mini::runtime::Runtime::new()?;
    /// let template = concat!("vscode://file", env!("CARGO_MANIFEST_DIR"), "/{file}:{line}:{column}");
    /// let console = Console::of(runtime.handle()).source_links(template).serve("127.0.0.1:0")?;
    /// # drop(console);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// In a workspace, the root is some folders up: `"/../{file}:{line}:{column}"`. A template for a repository on the
    /// web is `"https://github.com/owner/name/blob/main/{file}#L{line}"`.
    pub fn source_links(mut self, template: impl Into<String>) -> Self {
        self.source_links = Some(template.into());
        self
    }

    /// Serves the page, like [`serve`]. Blocks the thread to resolve a name in `addr`.
    ///
    /// # Examples
    ///
    /// See [`Console::of`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`serve`], except that the calling thread need not be inside a runtime.
    pub fn serve(&self, addr: impl ToSocketAddrs) -> io::Result<Console> {
        let addrs: Vec<SocketAddr> = addr.to_socket_addrs()?.collect();
        self.check(&addrs)?;
        let listener = TcpListener::bind(&addrs[..]).map_err(|error| {
            let at: Vec<String> = addrs.iter().map(SocketAddr::to_string).collect();
            io::Error::new(error.kind(), format!("mini-console: failed to listen on {}: {error}", at.join(", ")))
        })?;
        let addr = listener.local_addr()?;
        let server = Server::new(listener, self.clone())?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("mini-console".to_owned()).spawn(move || server.run(stopped));
        let thread = thread.map_err(|error| {
            io::Error::new(error.kind(), format!("mini-console: no thread could be started for the page: {error}"))
        })?;
        Ok(Console { addr, running: Some((stop, thread)), process: process::id() })
    }

    /// Refuses an address that others reach, unless they may, and a port that browsers do not open.
    fn check(&self, addrs: &[SocketAddr]) -> io::Result<()> {
        let refused = |text| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if let Some(addr) = addrs.iter().find(|addr| BLOCKED_PORTS.contains(&addr.port())) {
            return refused(format!(
                "mini-console: browsers refuse to open port {}, which another protocol uses; choose another port, \
                 such as 7669",
                addr.port()
            ));
        }
        match addrs.iter().find(|addr| !addr.ip().to_canonical().is_loopback()) {
            Some(addr) if !self.allows_remote => refused(format!(
                "mini-console: other computers could reach {addr}: use 127.0.0.1, or allow them with \
                 Builder::allow_remote(true)"
            )),
            _ => Ok(()),
        }
    }
}

/// The ports that browsers refuse ("bad ports" of the Fetch standard). Its 0 is missing: the system replaces that.
const BLOCKED_PORTS: [u16; 82] = [
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
    111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
    540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
    6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

impl Drop for Console {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.running.take() else { return };
        // The child of a fork(2) has no such thread: there is nobody to tell, nor to wait for.
        if process::id() != self.process {
            return std::mem::forget((stop, thread));
        }
        drop(stop);
        let _ = thread.join(); // its panic has been printed
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("addr", &self.addr).finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync>() {}
    assert::<(Console, Builder)>();
};
