//! Actors without sockets: channels, blocking jobs, children, files, timers, tasks.

use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use mini::process::Command;
use mini::task::{JoinSet, yield_now};
use mini::time::{Instant, interval, sleep, timeout};

use crate::ledger::{Kind, Ticket};
use crate::world::{Dice, World};

/// The message of panics on purpose.
pub(crate) const ON_PURPOSE: &str = "a panic of the soak test, on purpose";

/// Two producers and two consumers; waits to send and to receive are dropped at times.
pub(crate) async fn channel(world: Arc<World>, mut dice: Dice) {
    while !world.is_over() {
        let (sender, receiver) = async_channel::bounded::<Ticket>(8);
        let mut all = JoinSet::new();
        for _ in 0..2 {
            let (world, sender, mut own) = (world.clone(), sender.clone(), Dice::new(dice.below(1 << 40)));
            all.spawn(async move {
                for _ in 0..100 {
                    let ticket = world.begin(Kind::Channel);
                    if own.one_in(10) {
                        let sent = sender.send(ticket.expendable());
                        let _ = timeout(own.time(Duration::from_micros(50)), sent).await;
                    } else {
                        // A shutdown may end the consumers first.
                        let sent = sender.send(ticket).await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe));
                        if world.check("a channel", sent).is_none() {
                            return;
                        }
                    }
                }
            });
            let (receiver, mut own) = (receiver.clone(), Dice::new(dice.below(1 << 40)));
            all.spawn(async move {
                loop {
                    match timeout(own.time(Duration::from_micros(200)), receiver.recv()).await {
                        Ok(Ok(ticket)) => ticket.receive(),
                        Ok(Err(_)) => return,
                        Err(_) => yield_now().await,
                    }
                }
            });
        }
        drop((sender, receiver));
        while let Some(done) = all.join_next().await {
            world.check("channel", done.map_err(io::Error::other));
        }
        dice.pause().await;
    }
}

/// Jobs that take up to a millisecond; some handles are dropped, some jobs aborted before they begin.
pub(crate) async fn jobs(world: Arc<World>, mut dice: Dice) {
    while !world.is_over() {
        let (time, ticket) = (dice.time(Duration::from_millis(1)), world.begin(Kind::Job));
        let is_aborted = dice.one_in(10);
        let ticket = if is_aborted { ticket.expendable() } else { ticket };
        let job = mini::spawn_blocking(move || {
            std::thread::sleep(time); // what it does is to block
            ticket.receive();
        });
        match dice.below(5) {
            _ if is_aborted => drop(job.cancel().await),
            0 => drop(job),
            _ => drop(world.check("job", job.await.map_err(io::Error::other))),
        }
        dice.pause().await;
    }
}

/// Children that echo, fail, are killed, or are forgotten.
pub(crate) async fn children(world: Arc<World>, mut dice: Dice) {
    while !world.is_over() {
        let ticket = world.begin(Kind::Child);
        let done = match dice.below(4) {
            0 => echo(&dice.message()).await,
            1 => status(Command::new("sh").args(["-c", "exit 3"]), 3).await,
            2 => killed().await,
            // Reaped by a thread of its own.
            _ => Command::new("true").spawn().map(drop),
        };
        if world.check("child", done).is_none() {
            return;
        }
        ticket.receive();
        sleep(dice.time(Duration::from_millis(60))).await;
    }
}

async fn echo(message: &[u8]) -> io::Result<()> {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let (stdin, sent) = (child.stdin.take().expect("piped"), message.to_owned());
    let writer = mini::spawn(async move { stdin.write_all(&sent).await });
    let output = child.wait_with_output().await?;
    writer.await??;
    if output.stdout == message { Ok(()) } else { Err(io::Error::other("cat has changed the message")) }
}

async fn status(command: &mut Command, wanted: i32) -> io::Result<()> {
    let status = command.status().await?;
    if status.code() == Some(wanted) { Ok(()) } else { Err(io::Error::other(format!("a child ended with {status}"))) }
}

async fn killed() -> io::Result<()> {
    let mut child = Command::new("sleep").arg("1000").kill_on_drop(true).spawn()?;
    if timeout(Duration::from_millis(2), child.wait()).await.is_ok() {
        return Err(io::Error::other("a sleep of 1000 seconds was short"));
    }
    child.kill().await
}

/// Writes, reads and removes a file.
pub(crate) async fn files(world: Arc<World>, mut dice: Dice) {
    while !world.is_over() {
        let (path, message, ticket) = (world.new_path(), dice.message(), world.begin(Kind::File));
        let work = async {
            mini::fs::write(&path, &message).await?;
            if dice.one_in(5) {
                let _ = timeout(Duration::from_micros(10), mini::fs::read(&path)).await;
            }
            let read = mini::fs::read(&path).await?;
            mini::fs::remove_file(&path).await?;
            if read == message { Ok(()) } else { Err(io::Error::other("the file differs")) }
        };
        if world.check("file", work.await).is_none() {
            return;
        }
        ticket.receive();
        dice.pause().await;
    }
}

/// Sleeps, timeouts that fire and that don't, and intervals: none of them early.
pub(crate) async fn timers(world: Arc<World>, mut dice: Dice) {
    while !world.is_over() {
        let (begin, ticket) = (Instant::now(), world.begin(Kind::Timer));
        let (nap, limit) = (dice.time(Duration::from_millis(3)), dice.time(Duration::from_millis(3)));
        let result = timeout(limit, sleep(nap)).await;
        let least = if result.is_ok() { nap } else { limit };
        if begin.elapsed() < least {
            world.ledger.fail(format_args!("a timer of {least:?} was early: {:?}", begin.elapsed()));
        }
        let mut beat = interval(Duration::from_micros(300));
        for _ in 0..3 {
            beat.tick().await;
        }
        ticket.receive();
    }
}

/// Tasks that end, are aborted, cancelled, panic, or stay on their worker.
pub(crate) async fn tasks(world: Arc<World>, mut dice: Dice) {
    while !world.is_over() {
        let (time, ticket) = (dice.time(Duration::from_millis(1)), world.begin(Kind::Task));
        match dice.below(5) {
            0 => {
                let ticket = ticket.expendable();
                let task = mini::spawn(async move {
                    sleep(time).await;
                    ticket.receive();
                });
                sleep(dice.time(Duration::from_millis(1))).await;
                drop(task.cancel().await);
            }
            1 => {
                let task = mini::spawn(async move {
                    sleep(time).await;
                    ticket.receive();
                    panic!("{ON_PURPOSE}");
                });
                if task.await.is_ok() {
                    world.ledger.fail("a panic got lost");
                }
            }
            2 => {
                let mut all = JoinSet::new();
                let tickets: Vec<Ticket> = (0..20).map(|_| world.begin(Kind::Task).expendable()).collect();
                for ticket in tickets {
                    let nap = dice.time(Duration::from_micros(500));
                    all.spawn(async move {
                        sleep(nap).await;
                        ticket.receive();
                    });
                }
                while all.len() > 5 {
                    all.join_next().await;
                }
                ticket.receive(); // the rest is aborted
            }
            3 => {
                let burst: Vec<_> = (0..100).map(|number| mini::spawn(async move { number })).collect();
                let mut sum = 0;
                for task in burst {
                    sum += task.await.unwrap_or(0);
                }
                if sum == 4950 || world.ledger.is_ending() {
                    ticket.receive();
                }
            }
            _ => {
                let task = mini::spawn(async move {
                    let local = mini::spawn_local(async move {
                        let here = std::thread::current().id();
                        yield_now().await;
                        here == std::thread::current().id()
                    });
                    // Cancelled if its worker leaves.
                    local.await.unwrap_or(true)
                });
                match task.await {
                    Ok(true) => ticket.receive(),
                    Ok(false) => world.ledger.fail("a local task has moved"),
                    Err(_) => {}
                }
            }
        }
    }
}
