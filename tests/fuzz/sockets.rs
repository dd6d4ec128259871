//! Streams, pipes and foreign descriptors with several waiters each, on two reactors, beside queues of bytes.
//!
//! Each step changes something (writes, reads, closes, ends a reactor), starts, polls or drops a wait, or lets the
//! reactors tell what they know. All goes on in one thread, so the answers are exact: bytes come in order, a wait ends
//! only for a reason, and once the reactors have told all, no wait goes on that is over.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as StdStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mini_net::{AsyncFd, Blocking, Delay, Events, Interest, Reactor, UnixStream, enter, pipe};

mod end;

use crate::Choices;
use end::{Boxed, End, Got, Kind, keyless, read, ready, write};

/// Pairs at a time.
const PAIRS: usize = 4;

/// Waits at a time.
const WAITS: usize = 24;

/// What goes from one end to the other.
#[derive(Default)]
struct Line {
    queue: VecDeque<u8>,
    /// No more bytes will come.
    is_ended: bool,
    /// No end will read.
    is_deaf: bool,
}

/// `lines[0]` leads from `ends[0]` to `ends[1]`.
struct Pair {
    /// The one that its ends belong to.
    reactor: usize,
    ends: [Option<Rc<End>>; 2],
    lines: [Line; 2],
}

/// Counts wakes.
#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

struct Wait {
    pair: usize,
    end: usize,
    kind: Kind,
    future: Boxed,
    task: Arc<Task>,
    /// The last poll said `Pending`.
    is_pending: bool,
}

/// No Unix listener is connected to.
const NO_DELAY: Delay = |_, _| unreachable!("nothing here is tried again");

struct Model {
    reactors: [Reactor; 2],
    blocking: Blocking,
    events: Events,
    pairs: [Option<Pair>; PAIRS],
    waits: Vec<Wait>,
    /// The reactor that has shut down.
    ending: Option<usize>,
    /// The reactors have told all there is.
    is_settled: bool,
    written: u8,
}

/// Runs the model.
///
/// # Panics
///
/// If the sockets do something else.
pub fn run(choices: &mut Choices) {
    let mut model = Model {
        reactors: [(); 2].map(|()| Reactor::new().expect("a reactor")),
        blocking: Arc::new(|_| unreachable!("nothing here blocks")),
        events: Events::with_capacity(3),
        pairs: [const { None }; PAIRS],
        waits: Vec::new(),
        ending: None,
        is_settled: true,
        written: 0,
    };
    while choices.step() {
        model.act(choices);
    }
    model.end();
}

impl Model {
    fn act(&mut self, choices: &mut Choices) {
        let reactor = choices.below(2) as usize;
        let _entered = enter(&self.reactors[reactor], &self.blocking, NO_DELAY);
        let (pair, end) = (choices.below(PAIRS as u64) as usize, choices.below(2) as usize);
        if self.pairs[pair].is_none() {
            self.pairs[pair] = Some(open(choices, reactor));
            self.is_settled = false;
        }
        match choices.below(32) {
            0..=4 => self.write(choices, pair, end),
            5..=8 => self.read(choices, pair, end),
            9..=14 => self.start(choices, pair, end),
            15..=20 => self.poll(choices),
            21..=22 => {
                if let Some(at) = choices.place(self.waits.len()) {
                    self.drop_wait(at);
                }
            }
            23..=27 => self.settle(),
            28 => self.fill_or_drain(choices, pair, end),
            29 => self.shut(pair, end),
            30 => self.close(choices, pair, end),
            _ if choices.one_in(4) => self.end_reactor(1 - reactor),
            _ => self.settle(),
        }
    }

    /// What is written without waiting.
    fn write(&mut self, choices: &mut Choices, pair: usize, end: usize) {
        let data = self.data(1 + choices.below(2000) as usize);
        self.write_now(pair, end, &data);
    }

    /// Says whether there was room.
    fn write_now(&mut self, pair: usize, end: usize, data: &[u8]) -> bool {
        let it = self.pairs[pair].as_mut().unwrap();
        let Some(writer) = it.ends[end].as_ref().filter(|end| end.writes()) else { return false };
        let line = &mut it.lines[end];
        self.is_settled = false;
        match writer.try_write(data) {
            Ok(written) => {
                assert!((1..=data.len()).contains(&written) && !line.is_ended && !line.is_deaf);
                line.queue.extend(&data[..written]);
                true
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                assert!(!line.queue.is_empty() && !line.is_deaf, "no room in an empty line");
                false
            }
            Err(e) => {
                assert!(line.is_ended || line.is_deaf, "{e}");
                false
            }
        }
    }

    /// What is read without waiting.
    fn read(&mut self, choices: &mut Choices, pair: usize, end: usize) {
        let most = 1 + choices.below(3000) as usize;
        self.read_now(pair, end, most);
    }

    /// Says whether there was something.
    fn read_now(&mut self, pair: usize, end: usize, most: usize) -> bool {
        let it = self.pairs[pair].as_mut().unwrap();
        let Some(reader) = it.ends[end].as_ref().filter(|end| end.reads()) else { return false };
        let mut buf = vec![0; most];
        self.is_settled = false;
        match reader.try_read(&mut buf) {
            Ok(read) => {
                it.lines[1 - end].take(&buf[..read], most);
                read > 0
            }
            Err(e) => {
                it.lines[1 - end].refuse(&e);
                false
            }
        }
    }

    fn fill_or_drain(&mut self, choices: &mut Choices, pair: usize, end: usize) {
        if choices.one_in(2) {
            while self.read_now(pair, end, 1 << 16) {}
        } else {
            let data = self.data(1 << 14);
            while self.write_now(pair, end, &data) {}
        }
    }

    fn start(&mut self, choices: &mut Choices, pair: usize, end: usize) {
        let Some(it) = self.pairs[pair].as_ref().unwrap().ends[end].clone() else { return };
        if self.waits.len() == WAITS {
            return;
        }
        let kinds = [Kind::Read, Kind::Write, Kind::Readable, Kind::Writable, Kind::KeylessRead, Kind::KeylessWrite];
        let kind = kinds[choices.below(6) as usize];
        if !(if kind.is_read() { it.reads() } else { it.writes() }) {
            return;
        }
        let future = match kind {
            Kind::Read => read(it, 1 + choices.below(3000) as usize),
            Kind::Write => write(it, self.data(1 + choices.below(30_000) as usize)),
            Kind::Readable => ready(it, Interest::READABLE),
            Kind::Writable => ready(it, Interest::WRITABLE),
            Kind::KeylessRead | Kind::KeylessWrite => keyless(it, kind),
        };
        self.waits.push(Wait { pair, end, kind, future, task: Arc::default(), is_pending: false });
        self.poll_at(self.waits.len() - 1);
    }

    fn poll(&mut self, choices: &mut Choices) {
        let Some(at) = choices.place(self.waits.len()) else { return };
        if choices.one_in(2) {
            // The waker changes, as that of a future that moves to another task does.
            let before = std::mem::take(&mut self.waits[at].task);
            self.poll_at(at);
            drop(before);
        } else {
            self.poll_at(at);
        }
    }

    fn poll_at(&mut self, at: usize) {
        let wait = &mut self.waits[at];
        let waker = Waker::from(Arc::clone(&wait.task));
        wait.task.0.store(0, Relaxed);
        let registered = || self.reactors.iter().map(Reactor::registrations).sum::<usize>();
        let before = registered();
        let polled = wait.future.as_mut().poll(&mut Context::from_waker(&waker));
        drop(waker);
        wait.is_pending = polled.is_pending();
        // The events of a new registration come at the next turn.
        self.is_settled &= registered() == before;
        self.displace_keyless(at);
        let wait = &self.waits[at];
        let it = self.pairs[wait.pair].as_mut().unwrap();
        let (line, peer_is_gone) = match wait.kind.is_read() {
            true => (&mut it.lines[1 - wait.end], it.ends[1 - wait.end].is_none()),
            false => (&mut it.lines[wait.end], it.ends[1 - wait.end].is_none()),
        };
        match polled {
            Poll::Pending if self.is_settled => {
                assert!(!line.is_over(wait.kind), "{:?} waits for what is there", wait.kind);
                return;
            }
            Poll::Pending => return,
            Poll::Ready(Ok(Got::Data(data))) => line.take(&data, usize::MAX),
            Poll::Ready(Ok(Got::Wrote(data))) => line.queue.extend(data),
            Poll::Ready(Ok(Got::Ready)) => {}
            Poll::Ready(Err(e)) => {
                let is_refused = line.is_ended || line.is_deaf || peer_is_gone;
                assert!(is_refused || Some(it.reactor) == self.ending && is_shut_down(&e), "{:?}: {e}", wait.kind);
            }
        }
        if !matches!(wait.kind, Kind::Readable | Kind::Writable | Kind::KeylessRead | Kind::KeylessWrite) {
            self.is_settled = false;
        }
        self.drop_wait(at);
    }

    /// Of those that wait by the same `poll_` method the last one to poll is woken, and none of the others.
    fn displace_keyless(&mut self, at: usize) {
        let Wait { pair, end, kind, is_pending, .. } = self.waits[at];
        if kind.is_keyless() && is_pending {
            for (other, wait) in self.waits.iter_mut().enumerate() {
                wait.is_pending &= other == at || (wait.pair, wait.end, wait.kind) != (pair, end, kind);
            }
        }
    }

    /// A wait that is over, or no longer wanted, leaves no waker behind.
    fn drop_wait(&mut self, at: usize) {
        let Wait { future, task, kind, .. } = self.waits.swap_remove(at);
        drop(future);
        assert!(kind.is_keyless() || Arc::strong_count(&task) == 1, "{kind:?} has left a waker");
    }

    /// The reactors tell all they know. After that no task sleeps whose wait is over.
    fn settle(&mut self) {
        for reactor in &self.reactors {
            while reactor.turn(&mut self.events, Some(Duration::ZERO)).unwrap() > 0 {}
        }
        self.is_settled = true;
        for wait in self.waits.iter().filter(|wait| wait.is_pending && wait.task.0.load(Relaxed) == 0) {
            let it = self.pairs[wait.pair].as_ref().unwrap();
            let line = &it.lines[if wait.kind.is_read() { 1 - wait.end } else { wait.end }];
            assert!(!line.is_over(wait.kind), "{:?} was not woken", wait.kind);
        }
        let open = self.pairs.iter().flatten().flat_map(|pair| &pair.ends).flatten().count();
        assert!(self.reactors.iter().map(Reactor::registrations).sum::<usize>() <= open);
    }

    /// Half of a stream ends.
    fn shut(&mut self, pair: usize, end: usize) {
        let it = self.pairs[pair].as_mut().unwrap();
        let Some(writer) = it.ends[end].as_ref() else { return };
        let shut = match &**writer {
            End::Stream(stream) => stream.shutdown(Shutdown::Write),
            End::Foreign(fd) => fd.get_ref().shutdown(Shutdown::Write),
            End::Sender(_) | End::Receiver(_) => return,
        };
        shut.expect("shutdown(2) of a Unix socket");
        it.lines[end].is_ended = true;
        self.is_settled = false;
    }

    /// One end is dropped, with the waits on it. If the other end is gone too, the pair is gone, and its numbers are
    /// free.
    fn close(&mut self, choices: &mut Choices, pair: usize, end: usize) {
        while let Some(at) = self.waits.iter().position(|wait| (wait.pair, wait.end) == (pair, end)) {
            self.drop_wait(at);
        }
        let it = self.pairs[pair].as_mut().unwrap();
        it.ends[end] = None;
        it.lines[end].is_ended = true;
        it.lines[1 - end].is_deaf = true;
        it.lines[1 - end].queue.clear();
        self.is_settled = false;
        if choices.one_in(2) && it.ends[1 - end].is_some() {
            return self.close(choices, pair, 1 - end);
        }
        if it.ends[1 - end].is_none() {
            self.pairs[pair] = None;
        }
    }

    /// A runtime ends, and all waits for its sockets end with it. Then the sockets are dropped.
    fn end_reactor(&mut self, reactor: usize) {
        self.reactors[reactor].shutdown();
        self.ending = Some(reactor);
        let is_its = |it: &Option<Pair>| it.as_ref().is_some_and(|pair| pair.reactor == reactor);
        for at in (0..self.waits.len()).rev() {
            let Wait { pair, kind, is_pending, ref task, .. } = self.waits[at];
            if is_its(&self.pairs[pair]) {
                assert!(!is_pending || task.0.load(Relaxed) > 0, "{kind:?} was not woken at the end");
                self.poll_at(at);
            }
        }
        assert!(!self.waits.iter().any(|wait| is_its(&self.pairs[wait.pair])), "a wait goes on");
        self.pairs.iter_mut().filter(|pair| is_its(pair)).for_each(|pair| *pair = None);
        self.ending = None;
        assert_eq!(self.reactors[reactor].registrations(), 0);
        self.reactors[reactor] = Reactor::new().expect("a reactor");
        self.is_settled = false;
    }

    fn end(mut self) {
        {
            let _entered = enter(&self.reactors[0], &self.blocking, NO_DELAY);
            self.settle();
            while !self.waits.is_empty() {
                self.drop_wait(0);
            }
        }
        self.pairs = [const { None }; PAIRS];
        assert_eq!(self.reactors.each_ref().map(Reactor::registrations), [0, 0]);
        assert_eq!(Arc::strong_count(&self.blocking), 1);
    }

    /// Bytes that tell their place.
    fn data(&mut self, len: usize) -> Vec<u8> {
        self.written = self.written.wrapping_add(101);
        (0..len).map(|at| self.written.wrapping_add(at as u8)).collect()
    }
}

impl Line {
    /// Checks that these bytes came out.
    fn take(&mut self, data: &[u8], most: usize) {
        assert!(data.len() <= most);
        assert!(!data.is_empty() || self.queue.is_empty() && self.is_ended, "an end before the end");
        let expected: Vec<u8> = self.queue.drain(..data.len().min(self.queue.len())).collect();
        assert!(data == expected, "other bytes than were written");
    }

    /// Checks that nothing came out.
    fn refuse(&self, error: &io::Error) {
        match error.kind() {
            ErrorKind::WouldBlock => assert!(self.queue.is_empty() && !self.is_ended, "there was something to read"),
            // The peer has closed without reading all that it had: unix(7).
            ErrorKind::ConnectionReset => assert!(self.is_ended),
            _ => panic!("{error}"),
        }
    }

    /// Whether a wait of this kind is over for certain.
    fn is_over(&self, kind: Kind) -> bool {
        match kind.is_read() {
            true => !self.queue.is_empty() || self.is_ended,
            // A Unix socket that was full when its own half was shut says nothing before there is room.
            false => self.queue.is_empty() || self.is_deaf,
        }
    }
}

fn is_shut_down(error: &io::Error) -> bool {
    error.to_string().contains("has shut down")
}

/// A pair of the reactor that is entered.
fn open(choices: &mut Choices, reactor: usize) -> Pair {
    let ends = match choices.below(4) {
        0 | 1 => {
            let (a, b) = UnixStream::pair().expect("a pair");
            [End::Stream(a), End::Stream(b)]
        }
        2 => {
            let (sender, receiver) = pipe::pipe().expect("a pipe");
            [End::Sender(sender), End::Receiver(receiver)]
        }
        _ => {
            let (a, b) = StdStream::pair().expect("a pair");
            a.set_nonblocking(true).expect("a socket");
            b.set_nonblocking(true).expect("a socket");
            let foreign = |fd| End::Foreign(AsyncFd::new(fd).expect("a registration"));
            if choices.one_in(2) {
                [foreign(a), foreign(b)]
            } else {
                [foreign(a), End::Stream(UnixStream::from_std(b).expect("a socket"))]
            }
        }
    };
    Pair { reactor, ends: ends.map(|end| Some(Rc::new(end))), lines: Default::default() }
}
