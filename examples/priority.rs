//! New clients wait while connected ones are served.
//!
//! A server with a queue of new clients chooses which clients wait. This one awaits `idle()` before each `accept()`: it
//! takes one more connection when all its connections have been served. Clients that it cannot take yet wait in the
//! kernel's backlog, and costs the server nothing.
//!
//! The program measures the answers to clients that are connected already, and how many newcomers get one before they
//! give up: without newcomers; with as many as the server can just take, and with more than it can, 150 % of its time
//! in all; each at a server that accepts when idle, and at one that accepts whenever it can.
//!
//! ```text
//! priority [--rounds N]          N half seconds for each of the five
//! ```

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::or;
use mini::net::{TcpListener, TcpStream, next_connection};
use mini::task::{JoinSet, idle};
use mini::time::{sleep, timeout};
use mini_examples::{Latencies, bad_usage, number_option, refuse_more, run_with_args};

const USAGE: &str = "usage: priority [--rounds N]";

/// How long a request holds the server up, as if it computed or blocked. It sleeps, so that a busy machine measures the
/// same.
const WORK: Duration = Duration::from_micros(400);

/// Connected clients, each of which pauses for `THINKING` on the average between two requests: 60 % of the server's
/// time.
const CONNECTED: u64 = 20;
const CONNECTED_LOAD: u32 = 60;
const THINKING: Duration = Duration::from_millis(13);

/// What connected clients and newcomers ask for together, in percent of the server's time.
const LOADS: [u32; 2] = [100, 150];

/// How long a newcomer waits for its answer.
const PATIENCE: Duration = Duration::from_millis(100);

/// The time of one measurement. The servers take turns, so that other work of the machine affects them alike.
const ROUND: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    run_with_args("priority", run)
}

fn run(mut args: Vec<String>) -> io::Result<()> {
    let bad = |text| bad_usage(text, USAGE);
    let rounds = number_option(&mut args, "--rounds", 4).map_err(bad)?;
    refuse_more(&args, USAGE)?;

    println!("{CONNECTED} connected clients keep the server busy for {CONNECTED_LOAD} % of its time;");
    println!("each newcomer asks once, and gives up after {PATIENCE:?}");
    let mut alone = Answers::default();
    let mut beside = LOADS.map(|load| (load, Answers::default(), Answers::default()));
    for _ in 0..rounds {
        alone.merge(&measure(true, CONNECTED_LOAD)?);
        for (load, patient, greedy) in &mut beside {
            patient.merge(&measure(true, *load)?);
            greedy.merge(&measure(false, *load)?);
        }
    }
    alone.print("no newcomers", &alone);
    for (load, patient, greedy) in &beside {
        patient.print(&format!("{load} %, accept when idle"), &alone);
        greedy.print(&format!("{load} %, accept at once"), &alone);
    }
    Ok(())
}

/// A server on a thread of its own, and its clients on this one.
fn measure(is_patient: bool, load: u32) -> io::Result<Answers> {
    let listener = StdListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (running, over) = async_channel::bounded::<()>(1);
    let server = thread::spawn(move || {
        mini::block_on(or(serve(listener, is_patient), async {
            let _closed = over.recv().await;
            Ok(())
        }))
    });
    let answers = mini::block_on(clients(address, load));
    drop(running);
    server.join().map_err(|_| io::Error::other("the server has panicked"))??;
    answers
}

/// Accepts for ever: at once, or only when every connection has been served.
async fn serve(listener: StdListener, is_patient: bool) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        if is_patient {
            idle().await;
        }
        let (stream, _) = next_connection(&listener).await?;
        drop(mini::spawn_local(answer(stream)));
    }
}

/// Each byte is a request; the answer is the same byte.
async fn answer(stream: TcpStream) -> io::Result<()> {
    let mut request = [0; 1];
    while stream.read(&mut request).await? > 0 {
        thread::sleep(WORK);
        stream.write_all(&request).await?;
    }
    Ok(())
}

/// How long the answers took.
#[derive(Default)]
struct Answers {
    connected: Latencies,
    newcomers: Latencies,
    gave_up: usize,
}

impl Answers {
    fn merge(&mut self, other: &Answers) {
        self.connected.merge(&other.connected);
        self.newcomers.merge(&other.newcomers);
        self.gave_up += other.gave_up;
    }

    fn print(&self, name: &str, alone: &Answers) {
        let ms = |latencies: &Latencies, share| latencies.quantile(share).as_secs_f64() * 1000.0;
        let p99 = ms(&self.connected, 0.99);
        let ratio = p99 / ms(&alone.connected, 0.99);
        print!("{name:<23} connected: p50 {:>5.2} ms, p99 {p99:>6.2} ms = {ratio:.2} x", ms(&self.connected, 0.5));
        let served = self.newcomers.count();
        match served as usize + self.gave_up {
            0 => println!(),
            _ => println!("; newcomers: {served} served, {} gave up", self.gave_up),
        }
    }
}

/// First the connected clients, then the newcomers beside them.
async fn clients(address: SocketAddr, load: u32) -> io::Result<Answers> {
    let mut connected = JoinSet::new();
    for number in 1..=CONNECTED {
        let stream = TcpStream::connect(address).await?;
        request(&stream).await?;
        connected.spawn(stay(stream, Random(number)));
    }
    let mut answers = Answers::default();
    if load > CONNECTED_LOAD {
        come(address, WORK * 100 / (load - CONNECTED_LOAD), &mut answers).await?;
    }
    while let Some(client) = connected.join_next().await {
        answers.connected.merge(&client??);
    }
    Ok(answers)
}

/// One connection for all requests.
async fn stay(stream: TcpStream, mut random: Random) -> io::Result<Latencies> {
    let (mut answers, end) = (Latencies::default(), Instant::now() + ROUND);
    while Instant::now() < end {
        sleep(random.around(THINKING)).await;
        let begin = Instant::now();
        request(&stream).await?;
        answers.record(begin.elapsed());
    }
    Ok(answers)
}

/// Newcomers, one after `interval` on the average, however long those before them wait.
async fn come(address: SocketAddr, interval: Duration, answers: &mut Answers) -> io::Result<()> {
    let (mut newcomers, mut random, end) = (JoinSet::new(), Random(99), Instant::now() + ROUND);
    let mut next = mini::time::Instant::now();
    while Instant::now() < end {
        next += random.around(interval);
        mini::time::sleep_until(next).await;
        newcomers.spawn(async move {
            let begin = Instant::now();
            let asked = async { request(&TcpStream::connect(address).await?).await };
            timeout(PATIENCE, asked).await.ok().map(|answer| answer.map(|()| begin.elapsed()))
        });
    }
    while let Some(newcomer) = newcomers.join_next().await {
        match newcomer?.transpose()? {
            Some(latency) => answers.newcomers.record(latency),
            None => answers.gave_up += 1,
        }
    }
    Ok(())
}

async fn request(stream: &TcpStream) -> io::Result<()> {
    stream.write_all(b"?").await?;
    stream.read_exact(&mut [0; 1]).await?;
    Ok(())
}

/// Random numbers, the same in each run (xorshift; Marsaglia, "Xorshift RNGs", 2003).
struct Random(u64);

impl Random {
    /// A time with an exponential distribution, as between requests of independent clients.
    fn around(&mut self, mean: Duration) -> Duration {
        for _ in 0..2 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
        }
        let share = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        mean.mul_f64(-(1.0 - share).ln())
    }
}
