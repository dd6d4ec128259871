//! Overload: a server of axum that is asked for more than it can do, with and without a layer that sheds load by how
//! late a task of the runtime was lately.
//!
//! An answer takes the server a millisecond, and its clients wait for a tenth of a second. They come at their own rate,
//! whether or not the server keeps up (an open loop): half, once, one and a half times, twice and three times what it
//! can do, which is measured first. Each takes a connection that is idle or opens one, and closes it after ten answers.
//! An answer that comes too late is worth nothing; what counts is goodput, the answers in time. A client reads a late
//! answer and throws it away, as proxies do. With `--hang-up` it closes the connection when its time is over.
//!
//! Server and clients are two processes, and where there is taskset(1), each has a CPU of its own.
//!
//! ```text
//! overload [--runs N] [--milliseconds N] [--hang-up]
//! ```

use std::cell::{Cell, RefCell};
use std::env;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
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

const USAGE: &str = "usage: overload [--runs N] [--milliseconds N] [--hang-up]; numbers from 1";

/// How long an answer keeps the server busy.
const WORK: Duration = Duration::from_millis(1);
/// How long a client waits.
const PATIENCE: Duration = Duration::from_millis(100);
/// How much of that may be spent in the queue. The rest is for what the queue does not show, and for errors of the
/// estimate.
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

/// How late [`watch`] was lately, in microseconds: as long would a new task wait.
static LATE: AtomicU64 = AtomicU64::new(0);

async fn watch() {
    loop {
        let due = mini::time::Instant::now() + Duration::from_millis(1);
        sleep_until(due).await;
        LATE.store(due.elapsed().as_micros() as u64, Relaxed);
    }
}

/// The layer.
async fn shed(request: Request, next: Next) -> Response {
    if Duration::from_micros(LATE.load(Relaxed)) > BUDGET {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    next.run(request).await
}

/// Tells its address, and serves until it is killed.
async fn serve(sheds: bool) -> Result<(), Failure> {
    let router = Router::new().route("/", get(work));
    let router = if sheds { router.layer(from_fn(shed)) } else { router };
    mini::spawn(watch());
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
}

/// The clients of one server.
struct Clients {
    at: SocketAddr,
    hangs_up: bool,
    idle: RefCell<Vec<Connection>>,
    tally: Tally,
}

impl Clients {
    fn new(at: SocketAddr, hangs_up: bool) -> Rc<Self> {
        Rc::new(Self { at, hangs_up, idle: RefCell::default(), tally: Tally::default() })
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

    /// A request that is due at `due`. What is not answered by then is late, or never answered.
    async fn request(self: Rc<Self>, due: mini::time::Instant, counts: bool) {
        let deadline = due + PATIENCE;
        let answer = if self.hangs_up { timeout_at(deadline, self.ask()).await } else { Ok(self.ask().await) };
        let is_late = mini::time::Instant::now() > deadline;
        match answer {
            Ok(Ok(200)) if counts && !is_late => self.tally.good.set(self.tally.good.get() + 1),
            Ok(Ok(503)) if counts && !is_late => self.tally.shed.set(self.tally.shed.get() + 1),
            _ => {}
        }
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

/// How a comparison is made.
struct Plan {
    runs: u32,
    span: Duration,
    hangs_up: bool,
    pins: bool,
}

impl Plan {
    fn parse(args: &[String]) -> Result<Self, Failure> {
        let mut plan = Self { runs: 1, span: Duration::from_millis(300), hangs_up: false, pins: false };
        let mut args = args.iter().map(String::as_str);
        while let Some(option) = args.next() {
            let mut number = || args.next().and_then(|text| text.parse::<u32>().ok()).filter(|&number| number > 0);
            match option {
                "--hang-up" => plan.hangs_up = true,
                "--runs" => plan.runs = number().ok_or(USAGE)?,
                "--milliseconds" => plan.span = Duration::from_millis(number().ok_or(USAGE)?.into()),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(plan)
    }

    /// How many answers the server gives in a second if it is never without a request.
    async fn capacity(&self) -> Result<f64, Failure> {
        let server = Server::start(false, self.pins)?;
        let clients = Clients::new(server.at, false);
        let ask = async |clients: Rc<Clients>| {
            while clients.ask().await.is_ok() {
                clients.tally.good.set(clients.tally.good.get() + 1);
            }
        };
        let all: Vec<_> = (0..4).map(|_| mini::spawn_local(timeout(self.span, ask(clients.clone())))).collect();
        for client in all {
            if client.await?.is_ok() {
                return Err("a client has lost its connection".into());
            }
        }
        Ok(f64::from(clients.tally.good.get()) / self.span.as_secs_f64())
    }

    /// What one run at one load brings in a second: requests, answers in time, requests that were shed, and others.
    async fn run(&self, sheds: bool, rate: f64) -> Result<[f64; 4], Failure> {
        let server = Server::start(sheds, self.pins)?;
        let clients = Clients::new(server.at, self.hangs_up);
        clients.clone().load(rate, self.span).await;
        let [offered, good, shed] = [&clients.tally.offered, &clients.tally.good, &clients.tally.shed].map(Cell::get);
        Ok([offered, good, shed, offered - good - shed].map(|count| f64::from(count) / self.span.as_secs_f64()))
    }

    /// All runs at one load, as a line; the median of the answers in time.
    async fn row(&self, sheds: bool, load: u32, capacity: f64) -> Result<f64, Failure> {
        let mut columns = [const { Vec::new() }; 4];
        for _ in 0..self.runs {
            let row = self.run(sheds, capacity * f64::from(load) / 100.0).await?;
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        let [offered, good, shed, late] = columns.map(spread);
        let range = format!("({:.0}-{:.0})", good[0], good[2]);
        let (name, [offered, median, shed, late]) =
            (if sheds { "sheds" } else { "" }, [offered, good, shed, late].map(|of| of[1]));
        println!("{name:<6} {load:>4} % {offered:>9.0} {median:>8.0} {range:>12} {shed:>7.0} {late:>7.0}");
        Ok(median)
    }

    async fn compare(&self) -> Result<(), Failure> {
        let capacity = self.capacity().await?;
        let Self { runs, span, .. } = self;
        println!("the server can answer {capacity:.0} requests/s; per second, medians of {runs} runs of {span:?}:");
        println!(
            "{:<6} {:>6} {:>9} {:>8} {:>12} {:>7} {:>7}",
            "", "load", "offered", "in time", "(range)", "503", "late"
        );
        let (mut peak, mut doubled) = (1.0_f64, [0.0; 2]);
        for (sheds, at_double) in [false, true].into_iter().zip(&mut doubled) {
            for load in LOADS {
                let good = self.row(sheds, load, capacity).await?;
                peak = peak.max(good);
                if load == 200 {
                    *at_double = good;
                }
            }
        }
        let [without, with] = doubled.map(|good| 100.0 * good / peak);
        println!("at twice what it can do: {with:.0} % of the peak with the layer, {without:.0} % without");
        Ok(())
    }
}

/// The smallest, the median, the largest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [0, values.len() / 2, values.len() - 1].map(|at| values[at])
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
    if let [first, what] = &args[..]
        && first == "serve"
    {
        return serve(what == "shed").await;
    }
    let mut plan = Plan::parse(&args)?;
    plan.pins = pin_clients();
    plan.compare().await
}
