//! The server: a line asks, a line answers.
//!
//! ```text
//! lock NAME REQUEST MILLIS    held TOKEN MILLIS, or busy MILLIS
//! renew NAME TOKEN            held TOKEN MILLIS, or lost
//! unlock NAME TOKEN           free, or lost
//! ```
//!
//! Anything else is answered by `error` and a text. So is a disk that fails; then the server ends, as nobody knows what
//! is on it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mini::net::{TcpListener, TcpStream, next_connection};
use mini::sync::{Mutex, Notify};
use mini::time::Duration;

use leases::{Answer, Leases};
use lines::Lines;
pub(crate) use log::Durability;

mod leases;
pub(crate) mod lines;
mod log;

/// Serves until the disk fails.
pub(crate) async fn serve(listener: TcpListener, folder: PathBuf, durability: Durability) -> io::Result<()> {
    let leases = Arc::new(Mutex::new(Leases::open(&folder, durability).await?));
    let failed = Arc::new(Notify::new());
    loop {
        mini::race! {
            _ = failed.notified() => return Err(io::Error::other("the log cannot be written")),
            accepted = next_connection(&listener) => {
                let (stream, _) = accepted?;
                let (leases, failed) = (leases.clone(), failed.clone());
                mini::spawn(async move {
                    if let Err(Trouble::Disk) = answer_all(stream, &leases).await {
                        failed.notify_one();
                    }
                });
            }
        }
    }
}

enum Trouble {
    Disk,
    Peer,
}

async fn answer_all(stream: TcpStream, leases: &Mutex<Leases>) -> Result<(), Trouble> {
    let mut lines = Lines::new(&stream);
    while let Some(line) = lines.next().await.map_err(|_| Trouble::Peer)? {
        let (text, is_over) = match answer(&line, leases).await {
            Some(Ok(answer)) => (shown(answer), false),
            Some(Err(error)) => (format!("error {error}"), true),
            None => (format!("error cannot read `{line}`"), false),
        };
        let sent = stream.write_all(format!("{text}\n").as_bytes()).await;
        if is_over {
            return Err(Trouble::Disk);
        }
        sent.map_err(|_| Trouble::Peer)?;
    }
    Ok(())
}

/// `None` if the line is none of the protocol's.
async fn answer(line: &str, leases: &Mutex<Leases>) -> Option<io::Result<Answer>> {
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    Some(match words[..] {
        ["lock", name, request, millis] => {
            let length = Duration::from_millis(millis.parse().ok()?);
            leases.lock().await.lock(name, request, length).await
        }
        ["renew", name, token] => leases.lock().await.renew(name, token.parse().ok()?).await,
        ["unlock", name, token] => leases.lock().await.unlock(name, token.parse().ok()?).await,
        _ => return None,
    })
}

fn shown(answer: Answer) -> String {
    match answer {
        Answer::Held(token, left) => format!("held {token} {}", left.as_millis()),
        Answer::Busy(left) => format!("busy {}", left.as_millis()),
        Answer::Free => "free".to_owned(),
        Answer::Lost => "lost".to_owned(),
    }
}
