//! Many runtimes, many tasks, many shutdowns.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use mini::net::{TcpListener, TcpStream};
use mini::runtime::Builder;
use mini::task::yield_now;
use mini::time::sleep;

use crate::gauge::Gauge;
use crate::world::Dice;

/// How much memory may stay behind, in kB.
const SLACK: u64 = 16 << 10;

/// What a shutdown may take. Jobs are shorter than that by far.
const GRACE: Duration = Duration::from_secs(2);

/// What it may take beyond that, on a busy machine.
const LATE: Duration = Duration::from_secs(1);

/// Makes and drops `count` runtimes, of both flavours.
pub(crate) fn runtimes(count: u64) -> bool {
    let warm_up = (count / 10).clamp(1, 100);
    (0..warm_up).for_each(use_runtime);
    let (begin, before) = (Instant::now(), Gauge::read());
    (0..count).for_each(use_runtime);
    let (time, after) = (begin.elapsed(), Gauge::settled(&before));
    println!("runtimes: {count} made, used and dropped in {time:.1?}\n  before {before}\n  after  {after}");
    after.holds_no_more_than(&before) && after.memory <= before.memory + SLACK
}

fn use_runtime(number: u64) {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1 + (number / 2 % 4) as usize);
    if number.is_multiple_of(2) {
        builder = Builder::new_current_thread();
    }
    let runtime = builder.build().expect("a runtime");
    let task = runtime.spawn(async { yield_now().await });
    let output = runtime.block_on(async move {
        task.await?;
        let (mine, other) = mini::net::UnixStream::pair()?;
        let echo = mini::spawn(async move {
            let mut byte = [0];
            other.read_exact(&mut byte).await?;
            other.write_all(&byte).await
        });
        mine.write_all(b"!").await?;
        mine.read_exact(&mut [0]).await?;
        echo.await??;
        sleep(Duration::from_micros(20)).await;
        mini::spawn_blocking(|| ()).await?;
        io::Result::Ok(())
    });
    output.expect("an echo");
    drop(runtime.spawn(std::future::pending::<()>()));
}

/// Holds `count` tasks at once, on each flavour: half of them in a sleep, half in a channel.
pub(crate) fn tasks(count: u64) -> bool {
    let builders = [
        ("current_thread", Builder::new_current_thread()),
        ("multi_thread", Builder::new_multi_thread().worker_threads(2).clone()),
    ];
    // The allocator keeps what it had for the first flavour, and gives it out again for the second.
    let start = Gauge::read();
    builders.into_iter().all(|(name, builder)| {
        let before = Gauge::read();
        let runtime = builder.build().expect("a runtime");
        let begin = Instant::now();
        let ended = Arc::new(AtomicU64::new(0));
        let (full, spawned, joined) = runtime.block_on(async {
            let (open, gate) = async_channel::bounded::<()>(1);
            let tasks: Vec<_> = (0..count)
                .map(|number| {
                    let (gate, ended) = (gate.clone(), ended.clone());
                    mini::spawn(async move {
                        if number % 2 == 0 {
                            let _ = gate.recv().await;
                        } else {
                            // Not before the last one has been spawned.
                            sleep(Duration::from_secs(3) + Duration::from_micros(number)).await;
                            let _ = gate.recv().await;
                        }
                        ended.fetch_add(1, Relaxed);
                    })
                })
                .collect();
            yield_now().await;
            let (alive, spawned) = (mini::runtime::Handle::current().metrics().num_alive_tasks(), begin.elapsed());
            assert_eq!(alive as u64, count, "all are alive at once");
            sleep(Duration::from_secs(4) + Duration::from_micros(count)).await;
            let full = Gauge::read();
            let begin = Instant::now();
            open.close();
            for task in tasks {
                task.await.expect("a task that ends well");
            }
            (full, spawned, begin.elapsed())
        });
        drop(runtime);
        let after = Gauge::settled(&before);
        let each = (full.memory.saturating_sub(start.memory)) * 1024 / count.max(1);
        println!("tasks: {count} alive at once on {name}: spawned in {spawned:.1?}, ended in {joined:.1?}");
        println!("  {each} bytes each, with what they wait for\n  full   {full}\n  after  {after}");
        ended.load(Relaxed) == count && after.holds_no_more_than(&before)
    })
}

/// Shuts `count` runtimes down in the middle of their work.
pub(crate) fn shutdowns(count: u64) -> bool {
    crate::mix::hush();
    let before = Gauge::read();
    let (mut longest, mut times, mut left_behind) = (Duration::ZERO, Vec::new(), 0);
    let mut dice = Dice::new(count);
    for number in 0..count {
        let (time, is_empty) = shutdown_under_load(number, dice.time(Duration::from_millis(20)));
        longest = longest.max(time);
        left_behind += u64::from(!is_empty);
        times.push(time);
    }
    times.sort();
    let (middle, after) = (times[times.len() / 2], Gauge::settled(&before));
    println!(
        "shutdowns: {count} under load; {middle:.1?} in the middle, {longest:.1?} at most, \
         {left_behind} left something behind"
    );
    println!("  before {before}\n  after  {after}");
    longest <= GRACE + LATE && left_behind == 0 && after.holds_no_more_than(&before)
}

/// Lets work flow for `time`, and then ends the runtime; returns how long that took, and whether it left nothing
/// behind.
fn shutdown_under_load(number: u64, time: Duration) -> (Duration, bool) {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1 + (number / 2 % 4) as usize);
    if number.is_multiple_of(2) {
        builder = Builder::new_current_thread();
    }
    let runtime = builder.build().expect("a runtime");
    let over = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        // A thread outside goes on waking and spawning, until after the end.
        let (handle, is_over) = (runtime.handle().clone(), over.clone());
        scope.spawn(move || {
            while !is_over.load(Relaxed) {
                drop(handle.spawn(yield_now()));
                drop(handle.spawn_blocking(thread::yield_now));
                thread::sleep(Duration::from_micros(100)); // a load, not a flood
            }
        });
        runtime.block_on(async {
            load(number).await;
            sleep(time).await;
        });
        let begin = Instant::now();
        let left = runtime.shutdown_timeout(GRACE);
        let took = begin.elapsed();
        over.store(true, Relaxed);
        (took, left.is_empty())
    })
}

async fn load(number: u64) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(mini::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(mini::spawn(async move {
                let mut buf = [0; 1024];
                while let Ok(read @ 1..) = stream.read(&mut buf).await {
                    if stream.write_all(&buf[..read]).await.is_err() {
                        break;
                    }
                }
            }));
        }
    }));
    for seed in 0..8 {
        drop(mini::spawn(async move {
            let Ok(stream) = TcpStream::connect(address).await else { return };
            let mut buf = [0; 512];
            while stream.write_all(&buf).await.is_ok() && stream.read_exact(&mut buf).await.is_ok() {}
        }));
        drop(mini::spawn(async move {
            let mut dice = Dice::new(number * 100 + seed);
            loop {
                dice.pause().await;
                // A job that blocks, as they do.
                mini::spawn_blocking(|| thread::sleep(Duration::from_micros(300))).await.ok();
            }
        }));
        drop(mini::spawn(async {
            loop {
                yield_now().await;
            }
        }));
    }
}
