//! The style `actor`: one task owns the store, and the connections send it their batches over a channel.
//!
//! A whole pipeline is one message there and one back, with its buffers. Connections and actor may run on several
//! workers, as goroutines do: then a message goes from one processor to another and back.

use std::io;

use async_channel::{Receiver, Sender};
use mini::task::yield_now;
use mini::time::timeout_at;

use super::batch::Batch;
use super::commands;
use super::connection::Database;
use super::store::Store;

/// Batches that may wait for the actor; further ones wait in their connections.
const WAITING: usize = 256;
/// Keys that are taken out before others run.
const AT_ONCE: usize = 1000;

/// A batch, and where its replies go.
struct Message {
    batch: Box<Batch>,
    answer: Sender<Box<Batch>>,
}

/// Starts connections to the actor.
#[derive(Clone)]
pub(crate) struct Actor(Sender<Message>);

/// A connection to the actor.
pub(crate) struct ActorDatabase {
    messages: Sender<Message>,
    answer: Sender<Box<Batch>>,
    answers: Receiver<Box<Batch>>,
}

impl Actor {
    /// An actor with an empty store.
    pub(crate) fn start() -> Self {
        let (sender, messages) = async_channel::bounded(WAITING);
        drop(mini::spawn(act(messages)));
        Self(sender)
    }

    pub(crate) fn connect(&self) -> ActorDatabase {
        let (answer, answers) = async_channel::bounded(1);
        ActorDatabase { messages: self.0.clone(), answer, answers }
    }
}

impl Database for ActorDatabase {
    async fn run(&self, batch: Box<Batch>) -> io::Result<Box<Batch>> {
        let gone = |_| io::Error::other("the actor has gone");
        let message = Message { batch, answer: self.answer.clone() };
        self.messages.send(message).await.map_err(|_| gone(()))?;
        self.answers.recv().await.map_err(|_| gone(()))
    }
}

/// Answers until no connection is left, and takes keys out when they are due.
async fn act(messages: Receiver<Message>) {
    let mut store = Store::default();
    loop {
        let message = match store.next_deadline() {
            None => messages.recv().await,
            Some(next) => match timeout_at(next, messages.recv()).await {
                Ok(message) => message,
                Err(_) => {
                    store.remove_due(AT_ONCE);
                    yield_now().await;
                    continue;
                }
            },
        };
        let Ok(Message { mut batch, answer }) = message else { return };
        commands::run(&mut store, &mut batch);
        let _ = answer.try_send(batch); // the connection may be gone
    }
}
