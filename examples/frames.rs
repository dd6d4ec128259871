//! mini inside a loop of frames, as a game or a window has one: sixty pictures a second, none of them late.
//!
//! A frame has 16 ms. The host draws first; in what is left of the frame tasks of mini run: twenty clients and a server
//! that echoes, and one task that computes without end and yields each millisecond. `Runtime::turn` gives the host its
//! turn after half a millisecond of tasks and the poll in progress, and waits for no longer than the host allows. So no
//! frame waits for tasks, and tasks get all the time that no frame needs.
//!
//! ```text
//! frames [--frames N]           N frames with mini inside, and as many without
//! ```

use std::cell::Cell;
use std::io;
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use mini::net::{TcpListener, TcpStream};
use mini::runtime::{Builder, Runtime};
use mini::task::yield_now;
use mini_examples::{Latencies, bad_usage, number_option, refuse_more, run_with_args};

const USAGE: &str = "usage: frames [--frames N]";

const FRAME: Duration = Duration::from_millis(16);

/// How long the host draws.
const DRAWING: Duration = Duration::from_millis(3);

/// What the task that computes does between two yields.
const STEP: Duration = Duration::from_millis(1);

/// A frame that begins later than this shows.
const LATE: Duration = Duration::from_millis(4);

const CLIENTS: usize = 20;

fn main() -> ExitCode {
    run_with_args("frames", run)
}

fn run(mut args: Vec<String>) -> io::Result<()> {
    let bad = |text| bad_usage(text, USAGE);
    let frames = number_option(&mut args, "--frames", 60).map_err(bad)?;
    refuse_more(&args, USAGE)?;

    println!("{frames} frames of {FRAME:?}; the host draws for {DRAWING:?} of each");
    let alone = show(frames, thread::sleep);
    alone.print("without mini");

    let runtime = Builder::new_current_thread().build()?;
    let counts = Rc::new(Counts::default());
    runtime.block_on(start(counts.clone()))?;
    let inside = show(frames, |left| use_up(&runtime, left));
    inside.print("with mini inside");
    println!("meanwhile {} messages were echoed, and {} ms computed", counts.messages.get(), counts.steps.get());
    Ok(())
}

/// Lets tasks run until a frame is over. Each call returns when it has run some, or when the time is over.
fn use_up(runtime: &Runtime, left: Duration) {
    let end = Instant::now() + left;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left <= STEP {
            thread::sleep(left); // a step that begins now would end in the next frame
            return;
        }
        runtime.turn(left - STEP);
    }
}

/// When the frames began.
struct Shown {
    lateness: Latencies,
    late: u64,
}

/// The loop of the host: draws, and has `spend` use up what is left of each frame.
fn show(frames: u64, mut spend: impl FnMut(Duration)) -> Shown {
    let mut shown = Shown { lateness: Latencies::default(), late: 0 };
    let mut due = Instant::now();
    for _ in 0..frames {
        let late_by = due.elapsed();
        shown.lateness.record(late_by);
        shown.late += u64::from(late_by > LATE);
        draw();
        // The next frame has its own time, whatever this one did.
        due += FRAME;
        spend(due.saturating_duration_since(Instant::now()));
    }
    shown
}

fn draw() {
    let begin = Instant::now();
    while begin.elapsed() < DRAWING {
        std::hint::spin_loop();
    }
}

impl Shown {
    fn print(&self, host: &str) {
        let ms = |share| self.lateness.quantile(share).as_secs_f64() * 1000.0;
        println!("{host:<18} late by p50 {:.3} ms, max {:.3} ms; too late: {}", ms(0.5), ms(1.0), self.late);
    }
}

#[derive(Default)]
struct Counts {
    messages: Cell<u64>,
    steps: Cell<u64>,
}

/// Starts the tasks. They go on whenever the host gives them a turn.
async fn start(counts: Rc<Counts>) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    for _ in 0..CLIENTS {
        let client = TcpStream::connect(listener.local_addr()?).await?;
        let (server, _) = listener.accept().await?;
        mini::spawn_local(echo(server));
        mini::spawn_local(talk(client, counts.clone()));
    }
    mini::spawn_local(async move {
        loop {
            let begin = Instant::now();
            while begin.elapsed() < STEP {
                std::hint::spin_loop();
            }
            counts.steps.set(counts.steps.get() + 1);
            yield_now().await;
        }
    });
    Ok(())
}

async fn talk(stream: TcpStream, counts: Rc<Counts>) -> io::Result<()> {
    let mut answer = [0; 8];
    loop {
        stream.write_all(b"message!").await?;
        stream.read_exact(&mut answer).await?;
        counts.messages.set(counts.messages.get() + 1);
    }
}

async fn echo(stream: TcpStream) -> io::Result<()> {
    let mut buf = [0; 64];
    while let n @ 1.. = stream.read(&mut buf).await? {
        stream.write_all(&buf[..n]).await?;
    }
    Ok(())
}
