//! Every future of mini, dropped half-way: nothing is left behind, and what its docs promise to keep is kept.
//!
//! `net`, `io`, `fs`, `process`, `sync`, `task` and `time` list the futures, by rows; `sources` looks through the
//! crates for those that are missing here. A row is made and dropped several times: unpolled, after one poll and after
//! two. Each time, all that this file counts must soon be what it was before, and nothing may hold the waker. After its
//! rows each list checks what must still be there.
//!
//! Rejected: a test for each row (open files and children are counted for the whole process).

#![cfg(any(target_os = "linux", target_os = "android"))]

use std::any::type_name;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use mini::runtime::{Builder, Handle};
use mini::task::unconstrained;
use mini::time::timeout;
use mini_tests::child_support::children;
use mini_tests::net_support::open_files;
use mini_tests::{Counts, LIMIT, multi_thread, until, within};

/// A row of futures that have to wait: dropped unpolled, after one poll and after two.
///
/// Those that are `kept` leave the waker of their last poll with what they work on, until that is used again: a stream
/// that is polled by its traits, a handle or a set of tasks is not told when no task waits any more, and a file goes on
/// with what it has begun.
macro_rules! waits {
    ($list:expr, $future:expr $(, $kept:ident)?) => {
        row!($list, $future, 0..=2, true, stringify!($($kept)?))
    };
}

/// A row of futures whose first poll may be the last: dropped unpolled, and after it. Tells whether that was ready.
macro_rules! begins {
    ($list:expr, $future:expr $(, $kept:ident)?) => {
        row!($list, $future, 0..=1, false, stringify!($($kept)?))
    };
}

macro_rules! row {
    ($list:expr, $future:expr, $polls:expr, $waits:expr, $kept:expr) => {{
        let row = crate::Row { call: stringify!($future), waits: $waits, kept: !$kept.is_empty() };
        let mut was_ready = false;
        for polls in $polls {
            was_ready = $list.give_up(row, polls, crate::Census::take(), $future).await;
        }
        was_ready
    }};
}

#[path = "dropped/fs.rs"]
mod fs;
#[path = "dropped/io.rs"]
mod io;
#[path = "dropped/net.rs"]
mod net;
#[path = "dropped/process.rs"]
mod process;
#[path = "dropped/sources.rs"]
mod sources;
#[path = "dropped/sync.rs"]
mod sync;
#[path = "dropped/task.rs"]
mod task;
#[path = "dropped/time.rs"]
mod time;

/// How many there are of all that a future could leave behind.
#[derive(Debug)]
struct Census {
    files: usize,
    tasks: usize,
    children: usize,
}

impl Census {
    fn take() -> Census {
        let tasks = Handle::current().metrics().num_alive_tasks();
        Census { files: open_files(), tasks, children: children().len() }
    }

    /// Whether there are no more of anything. Less is fine: a thread that was ending may be gone.
    fn is_back_to(&self, before: &Census) -> bool {
        self.files <= before.files && self.tasks <= before.tasks && self.children <= before.children
    }
}

/// A future, and what is expected of it; see the macros.
#[derive(Clone, Copy)]
struct Row {
    call: &'static str,
    waits: bool,
    kept: bool,
}

/// What has been dropped.
#[derive(Default)]
struct List {
    /// The names of the futures' types.
    types: BTreeSet<&'static str>,
    /// The expressions that have made them.
    calls: BTreeSet<&'static str>,
}

impl List {
    /// Drops `future` after so many polls, and waits until all is as it was `before` it was made. Returns whether it
    /// was ready.
    async fn give_up<F: Future>(&mut self, row: Row, polls: usize, before: Census, future: F) -> bool {
        let Row { call, waits, kept } = row;
        self.types.insert(type_name::<F>());
        self.calls.insert(call);
        let (counts, mut is_ready) = (Counts::new(), false);
        {
            // A spent budget is no reason to wait.
            let (mut future, waker) = (pin!(unconstrained(future)), Waker::from(counts.clone()));
            for _ in 0..polls {
                is_ready = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
                assert!(!(is_ready && waits), "{call} does not wait");
            }
        }
        let wakers = || Arc::strong_count(&counts) - 1;
        let is_gone = || (kept || wakers() == 0) && Census::take().is_back_to(&before);
        let gone = timeout(LIMIT / 2, until(is_gone)).await;
        let (now, left) = (Census::take(), wakers());
        assert!(gone.is_ok(), "{call}, dropped after {polls} polls: {before:?} is now {now:?}, with {left} wakers");
        is_ready
    }
}

#[test]
fn no_future_leaves_anything_behind() {
    within(LIMIT, || {
        let list = dropped_on(Builder::new_current_thread());
        sources::check(&list);
    });
    within(LIMIT, || drop(dropped_on(multi_thread(2))));
}

/// All rows but one, which needs a clock that can be paused, run on every flavour.
fn dropped_on(builder: Builder) -> List {
    let runtime = builder.build().unwrap();
    let mut list = List::default();
    runtime.block_on(async {
        let before = Census::take();
        net::rows(&mut list).await;
        io::rows(&mut list).await;
        fs::rows(&mut list).await;
        process::rows(&mut list).await;
        sync::rows(&mut list).await;
        task::rows(&mut list).await;
        time::rows(&mut list).await;
        until(|| Census::take().is_back_to(&before)).await;
    });
    list
}
