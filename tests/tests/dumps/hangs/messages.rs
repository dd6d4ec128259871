//! Tasks that wait for messages which nobody sends, or for room that nobody makes.

use std::future::pending;
use std::sync::Arc;

use mini::net::UnixStream;
use mini::runtime::Handle;
use mini::sync::{Notify, broadcast, mpsc, oneshot, watch};
use mini::task::yield_now;
use mini_tests::on_each_flavour;

use super::{End, at, hang, hang_in, has_line, task, until};

#[test]
fn a_sender_that_somebody_has_forgotten() {
    async fn program(_: End) {
        let (jobs, mut next) = mpsc::channel::<u8>(4);
        let config = jobs.clone(); // of which nobody thinks
        let worker = async move {
            while next.recv().await.is_some() {} // waits for the end
        };
        task("worker", worker);
        while !has_line(&Handle::current().dump().to_string(), &["\"worker\"", "2 senders are left"]) {
            yield_now().await;
        }
        jobs.send(1).await.unwrap();
        drop(jobs);
        pending::<()>().await;
        drop(config);
    }
    on_each_flavour(|builder| {
        let (end, forgotten) = (at!("// waits for the end"), at!("// of which nobody thinks"));
        hang(&builder, program, &[&["\"worker\"", "Receive", &end, "1 sender is left, last made at", &forgotten]]);
    });
}

#[test]
fn a_full_channel_whose_receiver_is_busy() {
    async fn program(_: End) {
        let (lines, mut to_write) = mpsc::channel::<u8>(2);
        let (stream, _peer) = UnixStream::pair().unwrap();
        let writer = async move {
            loop {
                to_write.recv().await.unwrap(); // receives
                let _ = stream.read(&mut [0]).await; // is busy
            }
        };
        task("writer", writer);
        let producer = async move {
            loop {
                lines.send(0).await.unwrap(); // is too fast
            }
        };
        task("producer", producer);
        pending().await
    }
    on_each_flavour(|builder| {
        let (fast, receives, busy) = (at!("// is too fast"), at!("// receives"), at!("// is busy"));
        let shown: &[&[&str]] = &[
            &["\"producer\"", "Send", &fast, "full: 2 of 2", "last received by task", &receives],
            &["\"writer\"", "Read", &busy],
        ];
        hang(&builder, program, shown);
    });
}

/// They share a line of the dump, which tells what is the same for all.
#[test]
fn many_full_channels() {
    async fn program(_: End) {
        for n in 0..10 {
            let (lines, mut to_write) = mpsc::channel::<u8>(2);
            if n % 2 == 0 {
                lines.send(n).await.unwrap(); // then the receiver never waits
            }
            let writer = async move {
                to_write.recv().await.unwrap(); // each receives once
                pending::<()>().await;
                drop(to_write);
            };
            mini::spawn(writer);
            let producer = async move {
                loop {
                    lines.send(n).await.unwrap(); // each sends
                }
            };
            task("producer", producer);
        }
        pending().await
    }
    on_each_flavour(|builder| {
        let (sends, receives) = (at!("// each sends"), at!("// each receives once"));
        let shown: &[&[&str]] =
            &[&["10 tasks \"producer\"", "Send at", &sends, ", last received at", &receives, "; full: 2 of 2"]];
        hang(&builder, program, shown);
    });
}

/// Each has a sender of its own: the line that they share names none.
#[test]
fn many_receivers_of_different_senders() {
    const READERS: usize = 10;
    on_each_flavour(|builder| {
        builder.build().unwrap().block_on(async {
            for n in 0..READERS as u8 {
                let (lines, mut to_read) = mpsc::unbounded_channel::<u8>();
                task("writer", async move {
                    lines.send(n).unwrap();
                    pending::<()>().await;
                    drop(lines);
                });
                task("reader", async move { while to_read.recv().await.is_some() {} });
            }
            let names_one = |waits: Option<String>| {
                waits.is_some_and(|waits| waits.contains("Receive at ") && waits.contains("last sent by task"))
            };
            let mut dump = Handle::current().dump();
            while dump.tasks().iter().filter(|task| names_one(task.waits_for())).count() < READERS {
                yield_now().await;
                dump = Handle::current().dump();
            }
            let text = dump.to_string();
            let line = text.lines().find(|line| line.contains("10 tasks \"reader\"")).unwrap();
            assert!(line.contains("; 1 sender is left") && !line.contains("last sent"), "{text}");
            let json = dump.groups_to_json(READERS);
            assert!(json.contains(r#""name":"reader""#) && !json.contains("last_sent_by"), "{json}");
        });
    });
}

/// Nobody waits for an unbounded channel that grows, so it tells of itself.
#[test]
fn a_queue_that_grows_and_grows() {
    async fn program(end: End, catches_up: End) {
        let (events, mut incoming) = mpsc::unbounded_channel::<u64>(); // has no bound
        let slow = async move {
            while incoming.recv().await.is_some() {
                let _ = catches_up.recv().await; // is slow
            }
        };
        task("slow", slow); // receives events
        while Handle::current().dump().tasks().iter().all(|task| task.waits_for().is_none()) {
            yield_now().await;
        }
        for n in 0..5000 {
            events.send(n).unwrap();
        }
        let _ = end.recv().await;
        drop(events);
    }
    on_each_flavour(|builder| {
        let (made, receives) = (at!("// has no bound"), at!("// receives events"));
        let (catch_up, catches_up) = async_channel::bounded(1);
        hang_in(
            builder.build().unwrap(),
            |end| program(end, catches_up),
            |handle| {
                until(handle, &[&["has grown to 4,0", &made, "last received by task", "\"slow\"", &receives]]);
                drop(catch_up);
                while has_line(&handle.dump().to_string(), &["has grown", &made]) {
                    std::thread::yield_now();
                }
            },
        );
    });
}

/// Each has a bounded channel to the other, and sends before it receives.
async fn fill_each_other(have_talked: bool) {
    let (to_left, mut left) = mpsc::channel::<u8>(1);
    let (to_right, mut right) = mpsc::channel::<u8>(1);
    let first = async move {
        if have_talked {
            to_right.send(0).await.unwrap();
            left.recv().await.unwrap();
        }
        loop {
            to_right.send(0).await.unwrap(); // the left one sends
            to_right.send(0).await.unwrap();
            to_right.send(0).await.unwrap();
            left.recv().await.unwrap();
        }
    };
    let second = async move {
        if have_talked {
            to_left.send(0).await.unwrap();
            right.recv().await.unwrap();
        }
        loop {
            to_left.send(0).await.unwrap();
            to_left.send(0).await.unwrap(); // the right one sends
            right.recv().await.unwrap();
        }
    };
    task("left", first);
    task("right", second);
    pending().await
}

#[test]
fn two_tasks_that_fill_each_others_channels() {
    on_each_flavour(|builder| {
        let right = at!("// the right one sends");
        let shown: &[&[&str]] =
            &[&["\"left\"", "Send", "full: 1 of 1"], &["\"right\"", "Send", &right, "full: 1 of 1"]];
        hang(&builder, |_| fill_each_other(false), shown);
    });
}

/// What each waits for is what the other one has received from.
#[test]
fn two_tasks_that_fill_each_others_channels_after_they_have_talked() {
    on_each_flavour(|builder| {
        let shown: &[&[&str]] = &[
            &["  MAYBE A CIRCLE"],
            &["    task ", "\"left\"", " waits for Send at ", "last received by task ", "full: 1 of 1"],
            &["    task ", "\"right\"", " waits for Send at ", "last received by task ", "full: 1 of 1"],
        ];
        let dump = hang(&builder, |_| fill_each_other(true), shown);
        assert!(dump.circles().is_empty(), "{dump}");
        let json = dump.to_json();
        assert!(json.contains(r#""circles":[],"possible_circles":[{"tasks":["#), "{json}");
    });
}

#[test]
fn two_tasks_that_wait_for_each_others_answer() {
    async fn program(_: End) {
        let (to_bank, mut for_bank) = mpsc::unbounded_channel::<u8>();
        let (to_shop, mut for_shop) = mpsc::channel::<u8>(4);
        let bank = async move {
            for_bank.recv().await.unwrap();
            to_shop.send(1).await.unwrap();
            for_bank.recv().await // asks the shop
        };
        task("bank", bank);
        let shop = async move {
            to_bank.send(1).unwrap();
            for_shop.recv().await.unwrap();
            for_shop.recv().await // asks the bank
        };
        task("shop", shop);
        pending::<()>().await;
    }
    on_each_flavour(|builder| {
        let (bank, shop) = (at!("// asks the shop"), at!("// asks the bank"));
        let lines: [&[&str]; 3] = [
            &["MAYBE A CIRCLE"],
            &["\"bank\"", "Receive", &bank, "last sent by task", "1 sender is left"],
            &["\"shop\"", "Receive", &shop, "last sent by task", "1 sender is left"],
        ];
        hang(&builder, program, &lines);
    });
}

/// Two tasks that have something else to wait for are no circle, however they answer each other.
#[test]
fn two_tasks_that_serve_each_other_and_somebody_else() {
    async fn program(_: End) {
        let (to_bank, mut for_bank) = mpsc::unbounded_channel::<u8>();
        let (to_shop, mut for_shop) = mpsc::unbounded_channel::<u8>();
        let (asks, asked) = oneshot::channel::<u8>();
        let bank = async move {
            to_shop.send(1).unwrap();
            for_bank.recv().await.unwrap();
            mini::race!(for_bank.recv(), async { asked.await.ok() }) // waits for two
        };
        task("bank", bank);
        let shop = async move {
            to_bank.send(1).unwrap();
            for_shop.recv().await.unwrap();
            for_shop.recv().await
        };
        task("shop", shop);
        pending::<()>().await;
        drop(asks);
    }
    on_each_flavour(|builder| {
        let bank = at!("// waits for two");
        let lines: [&[&str]; 2] =
            [&["\"bank\"", &bank, "last sent by task"], &["\"shop\"", "Receive", "last sent by task"]];
        let dump = hang(&builder, program, &lines);
        assert!(!dump.to_string().contains("CIRCLE"), "{dump}");
    });
}

#[test]
fn a_notification_that_came_too_early() {
    async fn program(_: End) {
        let changed = Arc::new(Notify::new());
        changed.notify_waiters(); // of whom there are none yet
        task("watcher", async move { changed.notified().await }); // comes too late
        pending().await
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] =
            &[&["\"watcher\"", "Notify", &at!("// comes too late"), "unchanged since the dump before"]];
        hang(&builder, program, shown);
    });
}

#[test]
fn a_condition_that_nobody_makes_true() {
    async fn program(_: End) {
        let (is_ready, mut ready) = watch::channel(false);
        let waits = async move {
            let _ = ready.wait_for(|is_ready| *is_ready).await; // waits for true
        };
        task("waits", waits);
        let (news, mut heard) = broadcast::channel::<u8>(4);
        let listens = async move {
            let _ = heard.recv().await; // listens
        };
        task("listens", listens);
        pending::<()>().await;
        drop((is_ready, news));
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] = &[
            &["\"waits\"", &at!("// waits for true"), "unchanged"],
            &["\"listens\"", "Receive", &at!("// listens"), "unchanged"],
        ];
        hang(&builder, program, shown);
    });
}

#[test]
fn an_answer_that_does_not_come() {
    async fn program(_: End) {
        let (answer, answered) = oneshot::channel::<u8>(); // asks
        let asks = async move {
            let _ = answered.await;
        };
        task("asks", asks); // waits for the answer
        pending::<()>().await;
        drop(answer);
    }
    on_each_flavour(|builder| {
        let shown: &[&[&str]] =
            &[&["\"asks\"", &at!("// waits for the answer"), "Receive", &at!("// asks"), "unchanged"]];
        hang(&builder, program, shown);
    });
}
