//! Rows whose server and client must be processes of their own, or whose memory is counted.
//!
//! Called by [`run`](crate::run): [`rows`] for the parent's side, [`child()`] where the program started itself again.
//! A sample starts a child (`child.rs`), which is a server of a peer (`server.rs`) or measures itself (`memory.rs`,
//! `quic.rs`); warms it up with the load client (`load.rs`); measures; and kills it. The rows are in `echo.rs`,
//! `accept.rs`, `proxy.rs`, `stall.rs`, `http.rs`, `quic.rs`, `memory.rs`, `syscalls.rs` and `build.rs`.
//!
//! A server with one worker has CPU 0, its client CPU 1; a server with two workers shares CPUs 0 and 1 with the client.
//!
//! Rejected: a server that lives through all rounds. Its heap and its tables would remember the rounds before, and six
//! of them at once would share the CPU whenever one does not rest.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use crate::measured::{Figure, Group};
use crate::options::Options;
use crate::peer::Peer;

mod accept;
mod build;
mod child;
mod echo;
mod http;
mod load;
mod machine;
mod memory;
mod proxy;
mod quic;
mod server;
mod stall;
mod syscalls;

use child::Child;
use server::{Layout, Plan};

/// Takes one sample of a peer: a value per figure of the row, or why the peer cannot run here.
pub(crate) type Sampler = Box<dyn Fn(Peer, &Options) -> Result<Vec<f64>, String>>;

/// A row that starts processes for each sample.
pub(crate) struct ProcessRow {
    pub(crate) group: Group,
    pub(crate) name: String,
    pub(crate) figures: Vec<Figure>,
    /// The peers that take part, in the order of the rounds.
    pub(crate) peers: Vec<Peer>,
    /// Rounds at most; the options may ask for fewer.
    pub(crate) rounds: usize,
    pub(crate) sample: Sampler,
}

/// Rounds of a row that depends on the load of the machine.
const ROUNDS: usize = 7;

/// All rows, in the order of the table.
pub(crate) fn rows(options: &Options) -> Vec<ProcessRow> {
    let mut rows = echo::rows(options);
    rows.extend(accept::rows());
    rows.extend(proxy::rows());
    rows.extend(stall::rows());
    rows.extend(http::rows());
    rows.extend(quic::rows());
    rows.extend(memory::rows());
    if options.quick {
        rows.iter_mut().for_each(|row| row.rounds = 1); // a process per sample is slow enough
    } else {
        rows.push(syscalls::row());
        rows.push(build::row());
    }
    rows
}

/// What the program does when its first argument is `--child`; `args` are those after it.
pub(crate) fn child(mut args: impl Iterator<Item = String>) -> ExitCode {
    let ended = match args.next().as_deref() {
        Some("server") => server::main(args),
        Some("memory") => memory::main(args),
        Some("quic") => quic::main(args),
        other => Err(format!("no child is called `{}`", other.unwrap_or_default())),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            child::say_error(&reason);
            ExitCode::FAILURE
        }
    }
}

/// A server in its own process.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(plan: Plan) -> Result<Self, String> {
        let mut child = Child::start("server", plan.to_args())?;
        let [port] = child.numbers()?;
        Ok(Self { child, port: port as u16 })
    }
}

/// Runs `client` on a thread that has only the CPUs of a client of `layout`.
fn beside<T: Send>(layout: Layout, client: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    let pinned = || {
        machine::pin(layout.client_cpus()).map_err(|error| error.to_string())?;
        machine::raise_descriptors();
        client()
    };
    thread::scope(|scope| scope.spawn(pinned).join().expect("a client does not panic"))
}

/// How long a server is under load for one sample.
fn window(options: &Options) -> Duration {
    Duration::from_millis(if options.quick { 40 } else { 400 })
}

/// The `plan` of a server for a row of `layout`. The limit has no tasks to share: with two workers it is two loops.
fn plan(peer: Peer, layout: Layout, kind: server::Kind) -> Plan {
    let alone = peer == Peer::Limit && layout == Layout::Shared;
    Plan { peer, layout: if alone { Layout::PerCore } else { layout }, kind }
}

/// The peers that have a server of this layout.
fn peers(layout: Layout) -> Vec<Peer> {
    let has_one = |peer: &Peer| match layout {
        Layout::One => true,
        Layout::Shared => !matches!(peer, Peer::Monoio | Peer::MonoioUring),
        Layout::PerCore => *peer != Peer::Smol, // its reactor is one for all threads
    };
    Peer::ALL.into_iter().filter(has_one).collect()
}
