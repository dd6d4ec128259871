//! The style `local`: all connections share the store in an `Rc<RefCell<..>>`. Everything runs on one thread, and no
//! task holds the borrow across an `await`, so no command gets in the way of another.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use async_channel::{Receiver, Sender};
use mini::task::yield_now;
use mini::time::{Instant, timeout_at};

use super::batch::Batch;
use super::commands;
use super::connection::Database;
use super::store::Store;

/// Keys that the expiry task takes out before it lets others run.
const AT_ONCE: usize = 1000;

#[derive(Clone)]
pub(crate) struct LocalDatabase(Rc<Shared>);

struct Shared {
    store: RefCell<Store>,
    /// When the expiry task looks next.
    alarm: Cell<Option<Instant>>,
    earlier: Sender<()>,
}

impl LocalDatabase {
    /// An empty database, and the task that takes out what expires.
    pub(crate) fn start() -> Self {
        let (earlier, is_earlier) = async_channel::bounded(1);
        let shared = Rc::new(Shared { store: RefCell::default(), alarm: Cell::new(None), earlier });
        mini::spawn_local(expire(shared.clone(), is_earlier));
        Self(shared)
    }
}

impl Database for LocalDatabase {
    async fn run(&self, mut batch: Box<Batch>) -> io::Result<Box<Batch>> {
        let mut store = self.0.store.borrow_mut();
        commands::run(&mut store, &mut batch);
        let next = store.next_deadline();
        if next.is_some_and(|next| self.0.alarm.get().is_none_or(|alarm| next < alarm)) {
            self.0.alarm.set(next);
            let _ = self.0.earlier.try_send(()); // full: it is going to look anyway
        }
        Ok(batch)
    }
}

/// Takes keys out when they are due.
async fn expire(shared: Rc<Shared>, is_earlier: Receiver<()>) {
    loop {
        shared.store.borrow_mut().remove_due(AT_ONCE);
        let next = shared.store.borrow().next_deadline();
        shared.alarm.set(next);
        match next {
            Some(next) if next <= Instant::now() => yield_now().await,
            Some(next) => drop(timeout_at(next, is_earlier.recv()).await),
            None => drop(is_earlier.recv().await),
        }
    }
}
