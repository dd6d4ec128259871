//! One event loop and several threads: is it worth it?
//!
//! The same echo server in six ways, with the same client: each message is answered after some work, in the order in
//! which the messages of a connection came. The client sends two at a time, and looks at that order.
//!
//! ```text
//! threads_of_a_loop [--threads N] [--connections N] [--work MICROSECONDS] [--milliseconds N]
//! ```
//!
//! - *one loop*: one thread, one epoll.
//! - *a mutex*: several threads take turns at it. One at a time waits and works.
//! - *one epoll*: several threads wait in it. Hazard: while one thread works for a connection, the next message of that
//!   connection wakes another, and the answers come in any order.
//! - *one epoll, one-shot*: the cure. `EPOLLONESHOT` disarms a connection with its event, and the thread arms it again
//!   when it is done (epoll(7), "Questions and answers"). That costs a system call per message.
//! - *a loop per thread*: each has its own epoll and its own connections. Nothing is shared.
//! - *mini*: tasks on as many workers, which take them from one another.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mini::runtime::Builder;
use mini::task::JoinSet;
use mini_examples::{bad_usage, number_option, refuse_more, run_with_args};
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;

const USAGE: &str = "usage: threads_of_a_loop [--threads N] [--connections N] [--work MICROSECONDS] [--milliseconds N]";

/// Bytes in a message: its number.
const MESSAGE: usize = 8;

/// How often a thread that waits looks whether it shall stop.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// A way to serve.
type Serve = fn(&[TcpStream], &Setting);

const WAYS: [(&str, Serve); 6] = [
    ("one loop", one_loop),
    ("a mutex", with_a_mutex),
    ("one epoll", one_epoll_armed),
    ("one epoll, one-shot", one_epoll_one_shot),
    ("a loop per thread", loop_per_thread),
    ("mini", with_mini),
];

struct Setting {
    threads: usize,
    work: Duration,
    is_over: AtomicBool,
}

fn main() -> ExitCode {
    run_with_args("threads_of_a_loop", run)
}

fn run(mut args: Vec<String>) -> io::Result<()> {
    let bad = |text| bad_usage(text, USAGE);
    let threads = number_option(&mut args, "--threads", 2).map_err(bad)? as usize;
    let connections = number_option(&mut args, "--connections", 16).map_err(bad)?;
    let work = Duration::from_micros(number_option(&mut args, "--work", 20).map_err(bad)?);
    let span = Duration::from_millis(number_option(&mut args, "--milliseconds", 500).map_err(bad)?);
    refuse_more(&args, USAGE)?;

    println!("{connections} connections, {threads} threads; messages a second, and answers in the wrong order");
    println!("{:<22}{:>12}{:>8}{:>16}{:>8}", "", "no work", "wrong", format!("{work:?} each"), "wrong");
    let mut rates = Vec::new();
    for (name, serve) in WAYS {
        let measured: [Measured; 2] = [
            measure(serve, threads, Duration::ZERO, connections, span)?,
            measure(serve, threads, work, connections, span)?,
        ];
        let [idle, busy] = &measured;
        println!("{name:<22}{:>12.0}{:>8}{:>16.0}{:>8}", idle.rate, idle.wrong, busy.rate, busy.wrong);
        rates.push([idle.rate, busy.rate]);
    }
    let best = |column: usize| {
        let of = |way: usize| rates[way][column] / rates[0][column];
        let best = (1..WAYS.len()).filter(|way| *way != 2).max_by(|a, b| of(*a).total_cmp(&of(*b))).expect("some");
        format!("{} has {:.2} times the messages of one loop", WAYS[best].0, of(best))
    };
    println!("without work, {};", best(0));
    println!("with {work:?} of work for each message, {}.", best(1));
    Ok(())
}

struct Measured {
    rate: f64,
    wrong: u64,
}

/// Lets a way serve for a while, with the client on a thread of its own.
fn measure(serve: Serve, threads: usize, work: Duration, connections: u64, span: Duration) -> io::Result<Measured> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for _ in 0..connections {
        near.push(TcpStream::connect(listener.local_addr()?)?);
        far.push(listener.accept()?.0);
    }
    for stream in near.iter().chain(&far) {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
    }
    let setting = Setting { threads, work, is_over: AtomicBool::new(false) };
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(&far, &setting));
        let measured = ask(near, span);
        setting.is_over.store(true, Relaxed);
        server.join().expect("the server does not panic");
        measured
    })
}

/// The client: each connection sends two messages, waits for both answers, and begins anew.
fn ask(streams: Vec<TcpStream>, span: Duration) -> io::Result<Measured> {
    let (begin, counts) = (Instant::now(), Arc::new(Counts::default()));
    Builder::new_current_thread().build()?.block_on(async {
        let mut talks = JoinSet::new();
        for stream in streams {
            talks.spawn(talk(mini::net::TcpStream::from_std(stream)?, begin + span, counts.clone()));
        }
        while let Some(ended) = talks.join_next().await {
            ended.map_err(io::Error::other)??;
        }
        io::Result::Ok(())
    })?;
    let (answers, wrong) = (counts.answers.load(Relaxed), counts.wrong.load(Relaxed));
    Ok(Measured { rate: answers as f64 / begin.elapsed().as_secs_f64(), wrong })
}

#[derive(Default)]
struct Counts {
    answers: AtomicU64,
    wrong: AtomicU64,
}

async fn talk(stream: mini::net::TcpStream, end: Instant, counts: Arc<Counts>) -> io::Result<()> {
    let mut number = 0_u64;
    while Instant::now() < end {
        let pair = [number.to_le_bytes(), (number + 1).to_le_bytes()];
        for message in &pair {
            stream.write_all(message).await?; // two packets, so that two threads may hear of them
        }
        let mut answer = [0; 2 * MESSAGE];
        stream.read_exact(&mut answer).await?;
        counts.wrong.fetch_add(u64::from(answer != *pair.as_flattened()), Relaxed);
        counts.answers.fetch_add(2, Relaxed);
        number += 2;
    }
    Ok(())
}

impl Setting {
    fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Answers one message. `false` if there is none, or never will be.
    fn answer_one(&self, mut stream: &TcpStream) -> bool {
        let mut message = [0; MESSAGE];
        match stream.read(&mut message) {
            Ok(MESSAGE) => {
                let begin = Instant::now();
                while begin.elapsed() < self.work {}
                stream.write_all(&message).is_ok() // a few bytes, for which there is room
            }
            Ok(_) => false,
            Err(error) => error.kind() == ErrorKind::Interrupted,
        }
    }
}

/// An epoll that watches these, each under its place in the list.
fn watch<'a>(streams: impl Iterator<Item = (usize, &'a TcpStream)>, how: epoll::EventFlags) -> io::Result<OwnedFd> {
    let watched = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (place, stream) in streams {
        epoll::add(&watched, stream, epoll::EventData::new_u64(place as u64), epoll::EventFlags::IN | how)?;
    }
    Ok(watched)
}

/// Waits for at most `most` events. Returns the places of those that are ready.
fn wait(watched: &OwnedFd, most: usize) -> Vec<usize> {
    let mut events = Vec::with_capacity(most);
    match epoll::wait(watched, rustix::buffer::spare_capacity(&mut events), Some(&LOOK)) {
        Ok(_) => events.iter().map(|event| event.data.u64() as usize).collect(),
        Err(_interrupted) => Vec::new(),
    }
}

fn own_loop(streams: &[&TcpStream], setting: &Setting) {
    let watched = watch(streams.iter().copied().enumerate(), epoll::EventFlags::empty()).expect("an epoll");
    while !setting.is_over() {
        for place in wait(&watched, 64) {
            while setting.answer_one(streams[place]) {}
        }
    }
}

fn one_loop(streams: &[TcpStream], setting: &Setting) {
    own_loop(&streams.iter().collect::<Vec<_>>(), setting);
}

fn with_a_mutex(streams: &[TcpStream], setting: &Setting) {
    let watched = watch(streams.iter().enumerate(), epoll::EventFlags::empty()).expect("an epoll");
    let the_loop = Mutex::new(watched);
    on_threads(setting, || {
        while !setting.is_over() {
            let watched = the_loop.lock().expect("nobody panics");
            for place in wait(&watched, 1) {
                setting.answer_one(&streams[place]);
            }
        }
    });
}

fn one_epoll(streams: &[TcpStream], setting: &Setting, how: epoll::EventFlags) {
    let watched = watch(streams.iter().enumerate(), how).expect("an epoll");
    on_threads(setting, || {
        while !setting.is_over() {
            for place in wait(&watched, 1) {
                let stream = &streams[place];
                setting.answer_one(stream);
                if how.contains(epoll::EventFlags::ONESHOT) {
                    let again = epoll::EventData::new_u64(place as u64);
                    epoll::modify(&watched, stream, again, epoll::EventFlags::IN | how).expect("it is watched");
                }
            }
        }
    });
}

fn one_epoll_armed(streams: &[TcpStream], setting: &Setting) {
    one_epoll(streams, setting, epoll::EventFlags::empty());
}

fn one_epoll_one_shot(streams: &[TcpStream], setting: &Setting) {
    one_epoll(streams, setting, epoll::EventFlags::ONESHOT);
}

fn loop_per_thread(streams: &[TcpStream], setting: &Setting) {
    thread::scope(|scope| {
        for first in 0..setting.threads {
            let own: Vec<_> = streams.iter().skip(first).step_by(setting.threads).collect();
            scope.spawn(move || own_loop(&own, setting));
        }
    });
}

fn on_threads(setting: &Setting, body: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 0..setting.threads {
            scope.spawn(&body);
        }
    });
}

fn with_mini(streams: &[TcpStream], setting: &Setting) {
    let runtime = Builder::new_multi_thread().worker_threads(setting.threads).build().expect("threads");
    let work = setting.work;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for stream in streams {
            let stream = stream.try_clone().and_then(mini::net::TcpStream::from_std).expect("a descriptor");
            tasks.spawn(async move {
                let mut message = [0; MESSAGE];
                while stream.read_exact(&mut message).await.is_ok() {
                    let begin = Instant::now();
                    while begin.elapsed() < work {}
                    if stream.write_all(&message).await.is_err() {
                        break;
                    }
                }
            });
        }
        while tasks.join_next().await.is_some() {} // the client closes
    });
}
