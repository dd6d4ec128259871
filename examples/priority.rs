//! New clients wait while connected ones are served.
//!
//! A server with a queue of new clients chooses which clients wait. This one awaits `idle()` before each `accept()`: it
//! takes one more connection when all its connections have been served. Clients that it cannot take yet wait in the
//! kernel's backlog, and costs the server nothing.
//!
//! The program measures the answers to clients that are connected already: without newcomers, with newcomers who always
//! queue up, and with the same newcomers at a server that accepts whenever it can.
//!
//! ```text
//! priority [--seconds N] [--newcomers N]          N seconds for each of the three
//! ```

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::or;
use mini::net::{TcpListener, TcpStream, next_connection};
use mini::task::{JoinSet, idle};
use mini::time::sleep;
use mini_examples::{Latencies, bad_usage, number_option, refuse_more, run_with_args};

const USAGE: &str = "usage: priority [--seconds N] [--newcomers N]";

/// How long a request holds the server up, as if it computed or blocked. It sleeps, so that a busy machine measures the
/// same.
const WORK: Duration = Duration::from_micros(400);

/// Connected clients, each of which pauses for `THINKING` on the average between two requests: 60 % of the server's
/// time.
const CONNECTED: u64 = 20;
const THINKING: Duration = Duration::from_millis(13);

/// The time of one measurement. The three servers take turns, so that other work of the machine affects them alike.
const ROUND: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    run_with_args("priority", run)
}

fn run(mut args: Vec<String>) -> io::Result<()> {
    let bad = |text| bad_usage(text, USAGE);
    let seconds = number_option(&mut args, "--seconds", 4).map_err(bad)?;
    let newcomers = number_option(&mut args, "--newcomers", 50).map_err(bad)?;
    refuse_more(&args, USAGE)?;

    println!(
        "{CONNECTED} connected clients keep the server busy for 60 % of its time; \
         {newcomers} newcomers take what they get"
    );
    let [mut alone, mut patient, mut greedy] = <[Answers; 3]>::default();
    for _ in 0..seconds {
        alone.merge(&measure(true, 0)?);
        patient.merge(&measure(true, newcomers)?);
        greedy.merge(&measure(false, newcomers)?);
    }
    alone.print("no newcomers", &alone);
    patient.print("accept when idle", &alone);
    greedy.print("accept at once", &alone);
    Ok(())
}

/// A server on a thread of its own, and its clients on this one.
fn measure(is_patient: bool, newcomers: u64) -> io::Result<Answers> {
    let listener = mini::block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let (running, over) = async_channel::bounded::<()>(1);
    let server = thread::spawn(move || {
        mini::block_on(or(serve(&listener, is_patient), async {
            let _closed = over.recv().await;
            Ok(())
        }))
    });
    let answers = mini::block_on(clients(address, newcomers));
    drop(running);
    server.join().map_err(|_| io::Error::other("the server has panicked"))??;
    answers
}

/// Accepts for ever: at once, or only when every connection has been served.
async fn serve(listener: &TcpListener, is_patient: bool) -> io::Result<()> {
    loop {
        if is_patient {
            idle().await;
        }
        let (stream, _) = next_connection(listener).await?;
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
}

impl Answers {
    fn merge(&mut self, other: &Answers) {
        self.connected.merge(&other.connected);
        self.newcomers.merge(&other.newcomers);
    }

    fn print(&self, name: &str, alone: &Answers) {
        let ms = |latencies: &Latencies, share| latencies.quantile(share).as_secs_f64() * 1000.0;
        let p99 = ms(&self.connected, 0.99);
        let ratio = p99 / ms(&alone.connected, 0.99);
        print!("{name:<17} connected: p50 {:>5.2} ms, p99 {p99:>6.2} ms = {ratio:.2} x", ms(&self.connected, 0.5));
        match self.newcomers.count() {
            0 => println!(),
            served => println!("; newcomers: {served} served, p50 {:.1} ms", ms(&self.newcomers, 0.5)),
        }
    }
}

/// First the connected clients, then the newcomers beside them.
async fn clients(address: SocketAddr, newcomers: u64) -> io::Result<Answers> {
    let (mut connected, mut coming) = (JoinSet::new(), JoinSet::new());
    for number in 1..=CONNECTED {
        let stream = TcpStream::connect(address).await?;
        request(&stream).await?;
        connected.spawn(stay(stream, Random(number)));
    }
    for _ in 0..newcomers {
        coming.spawn(come(address));
    }
    Ok(Answers { connected: all(connected).await?, newcomers: all(coming).await? })
}

async fn all(mut clients: JoinSet<io::Result<Latencies>>) -> io::Result<Latencies> {
    let mut answers = Latencies::default();
    while let Some(client) = clients.join_next().await {
        answers.merge(&client??);
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

/// A new connection for each request.
async fn come(address: SocketAddr) -> io::Result<Latencies> {
    let (mut answers, end) = (Latencies::default(), Instant::now() + ROUND);
    while Instant::now() < end {
        let begin = Instant::now();
        let stream = TcpStream::connect(address).await?;
        request(&stream).await?;
        answers.record(begin.elapsed());
    }
    Ok(answers)
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
