//! Channels of several libraries behind one trait, and the loads on them.
//!
//! Rejected: boxing the futures of a channel (an allocation that no user would have).

use std::future::{self, Future};
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use super::{Cell, Sample, cell, measure};
use crate::clock::Stopwatch;
use crate::rt::Rt;
use crate::rt::mini::Mini;
use crate::rt::tokio::Tokio;

/// The bound of a bounded channel.
const BOUND: usize = 64;

/// The futures of a channel are the library's own, as in a program.
trait Channel: 'static {
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    fn make() -> (Self::Sender, Self::Receiver);
    fn send(sender: &Self::Sender, message: u32) -> impl Future<Output: Delivered> + Send;
    fn receive(receiver: &mut Self::Receiver) -> impl Future<Output: IntoIterator<Item = u32>> + Send;
}

/// What a send ends with.
trait Delivered {
    fn is_delivered(&self) -> bool;
}

impl<E> Delivered for Result<(), E> {
    fn is_delivered(&self) -> bool {
        self.is_ok()
    }
}

/// The message that a receive has ended with.
fn message(received: impl IntoIterator<Item = u32>) -> u32 {
    received.into_iter().next().expect("the sender is alive")
}

macro_rules! channel {
    ($name:ident, $make:expr, $sender:ty, $receiver:ty, $send:ident $($wait:ident)?, $receive:ident) => {
        struct $name;

        impl Channel for $name {
            type Sender = $sender;
            type Receiver = $receiver;

            fn make() -> ($sender, $receiver) {
                $make
            }

            fn send(sender: &$sender, message: u32) -> impl Future<Output: Delivered> + Send {
                channel!(@future sender.$send(message) $(, $wait)?)
            }

            fn receive(receiver: &mut $receiver) -> impl Future<Output: IntoIterator<Item = u32>> + Send {
                receiver.$receive()
            }
        }
    };
    (@future $send:expr) => { future::ready($send) };
    (@future $send:expr, await) => { $send };
}

use {async_channel as a, flume as f, kanal as k, mini::sync::mpsc as m, tokio::sync::mpsc as t};

channel!(MiniBounded, m::channel(BOUND), m::Sender<u32>, m::Receiver<u32>, send await, recv);
channel!(MiniUnbounded, m::unbounded_channel(), m::UnboundedSender<u32>, m::UnboundedReceiver<u32>, send, recv);
channel!(TokioBounded, t::channel(BOUND), t::Sender<u32>, t::Receiver<u32>, send await, recv);
channel!(TokioUnbounded, t::unbounded_channel(), t::UnboundedSender<u32>, t::UnboundedReceiver<u32>, send, recv);
channel!(AsyncBounded, a::bounded(BOUND), a::Sender<u32>, a::Receiver<u32>, send await, recv);
channel!(AsyncUnbounded, a::unbounded(), a::Sender<u32>, a::Receiver<u32>, send await, recv);
channel!(FlumeBounded, f::bounded(BOUND), f::Sender<u32>, f::Receiver<u32>, send_async await, recv_async);
channel!(FlumeUnbounded, f::unbounded(), f::Sender<u32>, f::Receiver<u32>, send_async await, recv_async);
channel!(KanalBounded, k::bounded_async(BOUND), k::AsyncSender<u32>, k::AsyncReceiver<u32>, send await, recv);
channel!(KanalUnbounded, k::unbounded_async(), k::AsyncSender<u32>, k::AsyncReceiver<u32>, send await, recv);

/// No channel: a word, and the waker of its one reader, without a locked instruction for a message. What a round takes
/// over it is the runtime's own, and below any channel.
struct Bare;

struct Word {
    /// The message and 1 more, or 0.
    message: AtomicU32,
    /// The reader's: it stays in one task.
    reader: OnceLock<Waker>,
}

struct Reader(Arc<Word>);

impl Channel for Bare {
    type Sender = Arc<Word>;
    type Receiver = Reader;

    fn make() -> (Arc<Word>, Reader) {
        let word = Arc::new(Word { message: AtomicU32::new(0), reader: OnceLock::new() });
        (word.clone(), Reader(word))
    }

    /// One message at a time: the load waits for the answer.
    fn send(word: &Arc<Word>, message: u32) -> impl Future<Output: Delivered> + Send {
        word.message.store(message + 1, Release);
        let reader = word.reader.get().or_else(|| {
            fence(SeqCst); // with the one in `look`: it sees the message, or this its waker
            word.reader.get()
        });
        reader.into_iter().for_each(Waker::wake_by_ref);
        future::ready(Ok::<(), ()>(()))
    }

    fn receive(reader: &mut Reader) -> impl Future<Output: IntoIterator<Item = u32>> + Send {
        future::poll_fn(|cx| reader.look(cx))
    }
}

impl Reader {
    fn look(&self, cx: &Context<'_>) -> Poll<Option<u32>> {
        let word = &self.0;
        if word.reader.get().is_none() {
            let _is_new = word.reader.set(cx.waker().clone());
            fence(SeqCst);
        }
        match word.message.load(Acquire) {
            0 => Poll::Pending,
            above => {
                word.message.store(0, Relaxed);
                Poll::Ready(Some(above - 1))
            }
        }
    }
}

/// The cells of a load over channels, each on mini and on tokio.
macro_rules! cells {
    ($load:ident: $($name:literal $channel:ty),+) => {
        vec![$(
            cell($name, |flavour| measure::<Mini, _>(flavour, $load::<Mini, $channel>)),
            cell($name, |flavour| measure::<Tokio, _>(flavour, $load::<Tokio, $channel>)),
        )+]
    };
}

macro_rules! both {
    ($bounded:ident, $unbounded:ident, $load:ident $(, $name:literal $channel:ty)?) => {
        pub(super) fn $bounded() -> Vec<Cell> {
            cells!($load: "mini" MiniBounded, "tokio" TokioBounded, "async-channel" AsyncBounded,
                "flume" FlumeBounded, "kanal" KanalBounded $(, $name $channel)?)
        }

        pub(super) fn $unbounded() -> Vec<Cell> {
            cells!($load: "mini" MiniUnbounded, "tokio" TokioUnbounded, "async-channel" AsyncUnbounded,
                "flume" FlumeUnbounded, "kanal" KanalUnbounded $(, $name $channel)?)
        }
    };
}

both!(ping_pong_bounded, ping_pong_unbounded, ping_pong, "no channel: a word and a waker" Bare);
both!(stream_bounded, stream_unbounded, stream);

async fn ping_pong<R: Rt, C: Channel>(rounds: u32) -> Sample {
    let (there, mut far) = C::make();
    let (back, mut near) = C::make();
    let watch = Stopwatch::start();
    let echo = R::spawn(async move {
        for _ in 0..rounds {
            let message = message(C::receive(&mut far).await);
            assert!(C::send(&back, message).await.is_delivered());
        }
    });
    let caller = R::spawn(async move {
        for round in 0..rounds {
            assert!(C::send(&there, round).await.is_delivered());
            assert_eq!(message(C::receive(&mut near).await), round);
        }
    });
    caller.await;
    echo.await;
    Sample { took: watch.stop().wall, ..Sample::default() }
}

async fn stream<R: Rt, C: Channel>(messages: u32) -> Sample {
    let (sender, mut receiver) = C::make();
    let watch = Stopwatch::start();
    let sink = R::spawn(async move {
        for message in 0..messages {
            assert_eq!(self::message(C::receive(&mut receiver).await), message);
        }
    });
    let source = R::spawn(async move {
        for message in 0..messages {
            assert!(C::send(&sender, message).await.is_delivered());
        }
    });
    source.await;
    sink.await;
    Sample { took: watch.stop().wall, ..Sample::default() }
}

/// Requests go through a channel of mini's, which is the same for all.
macro_rules! reply {
    ($name:ident, $($oneshot:ident)::+) => {
        async fn $name<R: Rt>(requests: u32) -> Sample {
            let (ask, mut asked) = m::unbounded_channel::<(u32, $($oneshot)::+::Sender<u32>)>();
            let watch = Stopwatch::start();
            let server = R::spawn(async move {
                while let Some((number, answer)) = asked.recv().await {
                    answer.send(number).expect("the client waits");
                }
            });
            let client = R::spawn(async move {
                for number in 0..requests {
                    let (answer, answered) = $($oneshot)::+::channel();
                    assert!(ask.send((number, answer)).is_ok(), "the server is alive");
                    assert_eq!(answered.await, Ok(number));
                }
            });
            client.await;
            server.await;
            Sample { took: watch.stop().wall, ..Sample::default() }
        }
    };
}

reply!(reply_mini, mini::sync::oneshot);
reply!(reply_tokio, tokio::sync::oneshot);
reply!(reply_futures, futures_channel::oneshot);

pub(super) fn reply() -> Vec<Cell> {
    vec![
        cell("mini", |flavour| measure::<Mini, _>(flavour, reply_mini::<Mini>)),
        cell("mini", |flavour| measure::<Tokio, _>(flavour, reply_mini::<Tokio>)),
        cell("tokio", |flavour| measure::<Mini, _>(flavour, reply_tokio::<Mini>)),
        cell("tokio", |flavour| measure::<Tokio, _>(flavour, reply_tokio::<Tokio>)),
        cell("futures", |flavour| measure::<Mini, _>(flavour, reply_futures::<Mini>)),
        cell("futures", |flavour| measure::<Tokio, _>(flavour, reply_futures::<Tokio>)),
    ]
}
