//! Overload: a server of axum that is asked for more than it can do, with and without a layer of ten lines that sheds
//! load by `mini::task::queue_delay`.
//!
//! An answer takes the server a millisecond, and its clients wait for a tenth of a second. They come at their own rate,
//! whether or not the server keeps up (an open loop): half, once, one and a half times, twice and three times what it
//! can do, which is measured first. Each takes a connection that is idle or opens one, and closes it after ten answers,
//! or when it gives up. An answer that comes too late is worth nothing; what counts is goodput, the answers in time.
//!
//! Server and clients are two processes, and where there is taskset(1), each has a CPU of its own.
//!
//! ```text
//! overload [--runs N] [--milliseconds N]
//! ```

use std::cell::{Cell, RefCell};
use std::env;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use mini::net::{TcpListener, TcpStream};
use mini::time::{sleep, sleep_until, timeout, timeout_at};
use mini_hyper::Failure;

/// How long an answer keeps the server busy.
const WORK: Duration = Duration::from_millis(1);
/// How long a client waits.
const PATIENCE: Duration = Duration::from_millis(100);
/// How much of that may be spent in the queue. The rest is for what the queue does not show, and for errors of the estimate.
const BUDGET: Duration = Duration::from_millis(20);
/// After so many answers a client closes its connection.
const ANSWERS: u32 = 10;
/// Offered load, in percent of what the server can do.
const LOADS: [u32; 5] = [50, 100, 150, 200, 300];

async fn work() -> &'static str {
    let begin = Instant::now();
    while begin.elapsed() < WORK {
        std::hint::spin_loop();
    }
    "done"
}

/// The layer.
async fn shed(request: Request, next: Next) -> Response {
    if mini::task::queue_delay() > BUDGET {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    next.run(request).await
}

/// Tells its address, and serves until it is killed.
async fn serve(sheds: bool) -> Result<(), Failure> {
    let router = Router::new().route("/", get(work));
    let router = if sheds { router.layer(from_fn(shed)) } else { router };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    mini_hyper::serve(listener, router).await?;
    Ok(())
}

/// A server in a process of its own, on the first CPU.
struct Server {
    process: Child,
    at: SocketAddr,
}

impl Server {
    fn start(sheds: bool, pins: bool) -> Result<Self, Failure> {
        let program = env::current_exe()?;
        let mut command = if pins { Command::new("taskset") } else { Command::new(&program) };
        if pins {
            command.args(["-c", "0"]).arg(&program);
        }
        let mut process = command.args(["serve", if sheds { "shed" } else { "all" }]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut line)?;
        Ok(Self { process, at: line.trim().parse()? })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A connection, and how many answers it has brought.
struct Connection {
    stream: TcpStream,
    answers: u32,
}

impl Connection {
    async fn open(at: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(at).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, answers: 0 })
    }

    /// Asks once; the status.
    async fn ask(&mut self) -> io::Result<u16> {
        self.stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        let (mut answer, mut read) = ([0; 1024], 0);
        loop {
            read += match self.stream.read(&mut answer[read..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => more,
            };
            if let Some(status) = whole_answer(&answer[..read]) {
                self.answers += 1;
                return Ok(status);
            }
        }
    }
}

/// The status of an answer that has come to its end.
fn whole_answer(answer: &[u8]) -> Option<u16> {
    let (head, body) = str::from_utf8(answer).ok()?.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    (body.len() >= length.parse().ok()?).then(|| head.get(9..12)?.parse().ok()).flatten()
}

/// What became of the requests.
#[derive(Default)]
struct Tally {
    offered: Cell<u32>,
    good: Cell<u32>,
    shed: Cell<u32>,
    late: Cell<u32>,
}

/// The clients of one server.
struct Clients {
    at: SocketAddr,
    idle: RefCell<Vec<Connection>>,
    tally: Tally,
}

impl Clients {
    fn new(at: SocketAddr) -> Rc<Self> {
        Rc::new(Self { at, idle: RefCell::default(), tally: Tally::default() })
    }

    /// Asks by an idle connection or a new one.
    async fn ask(&self) -> io::Result<u16> {
        let idle = self.idle.borrow_mut().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(self.at).await?,
        };
        let status = connection.ask().await?;
        if connection.answers < ANSWERS {
            self.idle.borrow_mut().push(connection);
        }
        Ok(status)
    }

    /// A request that is due at `due`. A client that has waited for too long closes its connection.
    async fn request(self: Rc<Self>, due: mini::time::Instant, counts: bool) {
        let answer = timeout_at(due + PATIENCE, self.ask()).await;
        let count = match answer {
            Ok(Ok(200)) => &self.tally.good,
            Ok(Ok(503)) => &self.tally.shed,
            _ => &self.tally.late,
        };
        count.set(count.get() + u32::from(counts));
    }

    /// Asks `rate` times in a second on average, at random times. The first third of the time does not count.
    async fn load(self: Rc<Self>, rate: f64, span: Duration) {
        let begin = mini::time::Instant::now();
        let (mut due, mut seed) = (Duration::ZERO, 0x9E37_79B9_7F4A_7C15_u64);
        while due < span * 3 / 2 {
            sleep_until(begin + due).await;
            let counts = due >= span / 2;
            self.tally.offered.set(self.tally.offered.get() + u32::from(counts));
            mini::spawn_local(self.clone().request(begin + due, counts));
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let uniform = (seed >> 11) as f64 / (1_u64 << 53) as f64;
            due += Duration::from_secs_f64(-(1.0 - uniform).ln() / rate);
        }
        sleep(PATIENCE * 3 / 2).await;
    }
}

/// How many answers the server gives in a second if it is never without a request.
async fn capacity(pins: bool, span: Duration) -> Result<f64, Failure> {
    let server = Server::start(false, pins)?;
    let clients = Clients::new(server.at);
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let clients = clients.clone();
            mini::spawn_local(async move {
                let asked = timeout(span, async {
                    while clients.ask().await.is_ok() {
                        clients.tally.good.set(clients.tally.good.get() + 1)
                    }
                });
                asked.await.is_err()
            })
        })
        .collect();
    for client in busy {
        if !client.await? {
            return Err("a client has lost its connection".into());
        }
    }
    Ok(f64::from(clients.tally.good.get()) / span.as_secs_f64())
}

/// What one run at one load brings: answers in time, told to come back, and too late, in a second.
async fn run(sheds: bool, pins: bool, rate: f64, span: Duration) -> Result<[f64; 4], Failure> {
    let server = Server::start(sheds, pins)?;
    let clients = Clients::new(server.at);
    clients.clone().load(rate, span).await;
    let Tally { offered, good, shed, late } = &clients.tally;
    Ok([offered, good, shed, late].map(|count| f64::from(count.get()) / span.as_secs_f64()))
}

/// The smallest, the median, the largest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [0, values.len() / 2, values.len() - 1].map(|at| values[at])
}

async fn compare(runs: u32, span: Duration) -> Result<(), Failure> {
    let pins = pin_clients();
    let can = capacity(pins, span).await?;
    println!(
        "the server can answer {can:.0} requests/s; medians of {runs} runs of {span:?}, smallest and largest goodput"
    );
    println!("{:<8} {:>6} {:>9} {:>8} {:>13} {:>6} {:>6}", "", "load", "offered/s", "in time", "", "503", "late");
    let mut peaks = [0.0_f64; 2];
    let mut doubled = [0.0; 2];
    for (mode, sheds) in [false, true].into_iter().enumerate() {
        for load in LOADS {
            let mut columns = [const { Vec::new() }; 4];
            for _ in 0..runs {
                let row = run(sheds, pins, can * f64::from(load) / 100.0, span).await?;
                columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
            }
            let [offered, good, shed, late] = columns.map(spread);
            peaks[mode] = peaks[mode].max(good[1]);
            if load == 200 {
                doubled[mode] = good[1];
            }
            let (name, range) = (if sheds { "sheds" } else { "serves" }, format!("({:.0}-{:.0})", good[0], good[2]));
            println!(
                "{name:<8} {load:>4} % {:>9.0} {:>8.0} {range:>13} {:>6.0} {:>6.0}",
                offered[1], good[1], shed[1], late[1]
            );
        }
    }
    let [without, with] = [0, 1].map(|mode| 100.0 * doubled[mode] / peaks[1].max(1.0));
    println!("at twice what it can do: {with:.0} % of the peak with the layer, {without:.0} % without");
    Ok(())
}

/// Leaves the first CPU to the server. False if that cannot be done.
fn pin_clients() -> bool {
    let id = std::process::id().to_string();
    let pinned =
        Command::new("taskset").args(["-p", "-c", "1", &id]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    pinned.is_ok_and(|status| status.success())
}

#[mini::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let args: Vec<_> = env::args().skip(1).collect();
    let (mut runs, mut span) = (1, 300);
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", what] => return serve(*what == "shed").await,
        options => {
            for option in options.chunks(2) {
                match option {
                    ["--runs", number] => runs = number.parse()?,
                    ["--milliseconds", number] => span = number.parse()?,
                    _ => return Err("usage: overload [--runs N] [--milliseconds N]".into()),
                }
            }
        }
    }
    if runs == 0 || span == 0 {
        return Err("--runs and --milliseconds take a number from 1".into());
    }
    compare(runs, Duration::from_millis(span)).await
}
