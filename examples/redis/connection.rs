//! One client: bytes in, commands to the database, replies out.
//!
//! Run as a task by `server`, in all styles with tasks: they differ only in the `Database`. Requests that come together
//! are answered together, by one write. Nothing is read before the replies are written, so a client that takes no
//! replies can send no more requests either.
//!
//! Rejected: one task that reads and one that writes for each client (the replies that wait between the two need a
//! bound of their own).

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use mini::net::TcpStream;
use mini::task::yield_now;
use mini::time::timeout;

use super::batch::{Batch, BatchPool};

/// How long, and for how many bytes, a connection that the server ends goes on taking what the client sends.
const FAREWELL: Duration = Duration::from_secs(1);
const FAREWELL_BYTES: usize = 1 << 20;

/// Where the commands are run.
pub(crate) trait Database {
    /// Runs the commands of a batch and returns it with the replies.
    async fn run(&self, batch: Box<Batch>) -> io::Result<Box<Batch>>;
}

/// Serves a client until it closes, breaks the protocol, or says QUIT. Calls `answered` after each write.
pub(crate) async fn serve(
    stream: TcpStream,
    database: impl Database,
    pool: Arc<BatchPool>,
    answered: impl Fn(),
) -> io::Result<()> {
    let mut kept = None;
    loop {
        let mut batch = match wait(&stream, kept.take(), &pool).await? {
            Some(batch) => batch,
            None => return Ok(()),
        };
        let mut has_more = true;
        while has_more {
            let parsed = batch.requests.parse();
            batch = database.run(batch).await?;
            has_more = match parsed {
                Ok(has_more) => has_more,
                Err(malformed) => {
                    if !batch.is_last {
                        batch.replies.error(malformed);
                    }
                    batch.is_last = true;
                    false
                }
            };
            if !batch.replies.is_empty() {
                // First all clients that have sent something are read, then all are answered: a client that is woken
                // finds more to do.
                yield_now().await;
                batch.replies.write_to(&stream).await?;
                answered();
            }
            if batch.is_last {
                return part(stream, batch).await;
            }
            batch.requests.finish();
            if has_more {
                yield_now().await;
            }
        }
        match batch.requests.is_empty() {
            true => pool.give_back(batch),
            false => kept = Some(batch),
        }
    }
}

/// Waits for bytes of the client, and appends them to the bytes before; `None` if the client has closed.
///
/// A request that is too long is returned as refused. `kept` has the beginning of a command. While the client sends
/// nothing, `kept` takes little memory, and without `kept` no batch is held.
async fn wait(stream: &TcpStream, mut kept: Option<Box<Batch>>, pool: &BatchPool) -> io::Result<Option<Box<Batch>>> {
    loop {
        // The rest of a command that came in part has probably arrived.
        if kept.is_none() {
            stream.readable().await?;
        }
        let mut batch = kept.take().unwrap_or_else(|| pool.take());
        let room = match batch.requests.room() {
            Ok(room) => room,
            Err(malformed) => {
                batch.replies.error(malformed);
                batch.is_last = true;
                return Ok(Some(batch));
            }
        };
        match stream.try_read(room) {
            Ok(0) => return Ok(None),
            Ok(count) => {
                batch.requests.filled(count);
                return Ok(Some(batch));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if batch.requests.is_empty() {
                    pool.give_back(batch);
                } else {
                    batch.requests.shrink();
                    stream.readable().await?;
                    kept = Some(batch);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => kept = Some(batch),
            Err(error) => return Err(error),
        }
    }
}

/// Ends a connection so that the client gets its last replies: closing it with unread bytes would reset it.
async fn part(stream: TcpStream, mut batch: Box<Batch>) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    batch.requests = Default::default();
    let mut left = FAREWELL_BYTES;
    let drain = async {
        while let Ok(room) = batch.requests.room()
            && let Ok(count @ 1..) = stream.read(room).await
            && count < left
        {
            left -= count;
        }
    };
    let _ = timeout(FAREWELL, drain).await;
    Ok(())
}
