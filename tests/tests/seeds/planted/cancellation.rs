//! Bugs that need a future to be dropped at one of its awaits.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use mini::net::{TcpListener, TcpStream};
use mini::sim::current;
use mini::sync::mpsc;
use mini::task::spawn_local;
use mini::time::{Duration, interval, sleep};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A connection goes back to the pool when it is dropped, also if its request was cancelled: then the next request
/// reads the answer to that one.
///
/// Published: the outage of ChatGPT of March 20, 2023, where users saw data of others. redis-py left a connection whose
/// request was cancelled among those in use (<https://openai.com/index/march-20-chatgpt-outage/>,
/// <https://github.com/redis/redis-py/issues/2624>).
pub(super) async fn pooled_connection(is_mended: bool) {
    async fn cache() -> io::Result<()> {
        let listener = TcpListener::bind("0.0.0.0:6379").await?;
        loop {
            let (stream, _) = listener.accept().await?;
            drop(spawn_local(async move {
                let mut key = [0];
                while stream.read_exact(&mut key).await.is_ok() && stream.write_all(&key).await.is_ok() {}
            }));
        }
    }
    type Pool = RefCell<Vec<TcpStream>>;
    struct Pooled<'a> {
        pool: &'a Pool,
        stream: Option<TcpStream>,
        is_clean: bool,
    }
    impl Drop for Pooled<'_> {
        fn drop(&mut self) {
            if self.is_clean {
                self.pool.borrow_mut().extend(self.stream.take());
            }
        }
    }
    let get = async |pool: &Pool, key: u8| {
        let idle = pool.borrow_mut().pop();
        let stream = match idle {
            Some(stream) => stream,
            None => TcpStream::connect("cache:6379").await?,
        };
        let mut pooled = Pooled { pool, stream: Some(stream), is_clean: !is_mended };
        let (stream, mut value) = (pooled.stream.as_ref().expect("just put there"), [0]);
        stream.write_all(&[key]).await?;
        stream.read_exact(&mut value).await?;
        pooled.is_clean = true;
        io::Result::Ok(value[0])
    };
    let sim = current();
    sim.host("cache", cache);
    sim.settle().await;
    let pool = Pool::default();
    for key in 0..30 {
        if let Some(value) = sim.cancel_at_random(0.05, get(&pool, key)).await {
            assert_eq!(value.unwrap(), key, "the value of another key");
        }
    }
}

/// Frames are read in a loop beside a tick. Where the tick comes first, the part of a frame that was read is lost.
///
/// Published: iroh-gossip 0.22, whose connections ended with errors of framing
/// (<https://github.com/n0-computer/iroh/pull/2572>).
pub(super) async fn half_a_frame(is_mended: bool) {
    const FRAMES: u8 = 20;
    let sim = current();
    sim.host("peer", || async {
        let listener = TcpListener::bind("0.0.0.0:1").await?;
        let (stream, _) = listener.accept().await?;
        for number in 0..FRAMES {
            stream.write_all(&[4, 0]).await?; // the length
            stream.write_all(&[number; 4]).await?;
            sleep(ms(24)).await;
        }
        io::Result::Ok(())
    });
    sim.settle().await;
    let stream = TcpStream::connect("peer:1").await.unwrap();
    let frame = async || {
        let mut length = [0; 2];
        stream.read_exact(&mut length).await?;
        assert_eq!(length, [4, 0], "a length that nobody sent");
        let mut payload = [0; 4];
        stream.read_exact(&mut payload).await?;
        io::Result::Ok(payload[0])
    };
    let (mut ticks, mut received) = (interval(ms(50)), 0);
    let mut next = Box::pin(frame());
    while received < FRAMES {
        let number = mini::race! {
            frame = &mut next => Some(frame.unwrap()),
            _ = ticks.tick() => None,
        };
        if let Some(number) = number {
            assert_eq!(number, received);
            received += 1;
        }
        if number.is_some() || !is_mended {
            next.set(frame());
        }
    }
}

/// A writer gathers records to a batch, and loses the batch if it is dropped where it writes.
pub(super) async fn lost_batch(is_mended: bool) {
    let (send, mut records) = mpsc::channel(16);
    let source = spawn_local(async move {
        for record in 0..24 {
            send.send(record).await.unwrap();
            sleep(ms(1)).await;
        }
    });
    let (kept, written) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let write = async |records: &mut mpsc::Receiver<u32>| {
        let mut batch = if is_mended { kept.take() } else { Vec::new() };
        loop {
            while let Ok(record) = records.try_recv() {
                batch.push(record);
            }
            if batch.is_empty() {
                let Some(record) = records.recv().await else { return };
                batch.push(record);
            }
            if is_mended {
                kept.borrow_mut().clone_from(&batch);
            }
            sleep(ms(3)).await; // writes the batch
            written.borrow_mut().append(&mut batch);
            kept.borrow_mut().clear();
        }
    };
    while current().cancel_at_random(0.1, write(&mut records)).await.is_none() {}
    source.await.unwrap();
    assert_eq!(*written.borrow(), (0..24).collect::<Vec<_>>(), "some records are lost");
}

/// A limiter counts the requests that are under way, and never learns of those that are dropped.
pub(super) async fn leaked_permit(is_mended: bool) {
    const MOST: u32 = 3;
    struct Leave<'a>(Option<&'a Cell<u32>>);
    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            if let Some(count) = self.0 {
                count.set(count.get() - 1);
            }
        }
    }
    let count = Rc::new(Cell::new(0));
    let request = async || {
        if count.get() == MOST {
            return Err("busy");
        }
        count.set(count.get() + 1);
        let leave = Leave(is_mended.then_some(&*count));
        sleep(ms(5)).await;
        if !is_mended {
            count.set(count.get() - 1);
        }
        drop(leave);
        Ok(())
    };
    for _ in 0..20 {
        if let Some(result) = current().cancel_at_random(0.1, request()).await {
            assert_eq!(result, Ok(()), "nobody is at work, and no request is let in");
        }
    }
}
