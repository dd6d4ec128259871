//! The same clients by threads: as short as with `async`, and each costs a stack and the kernel's part of a thread.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use super::{CLIENTS, Ends, LONGEST, Object, balance_line, field, understood};

/// Starts all clients, and waits for all of them.
pub(super) fn ask_all(server: SocketAddr) -> io::Result<Ends> {
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|id| thread::Builder::new().name(format!("client {id}")).spawn(move || client(id, server)))
        .collect::<io::Result<_>>()?;
    let mut ends = Ends::default();
    for client in clients {
        match client.join() {
            Ok(end) => ends.note(end),
            Err(_panic) => ends.note_panic("a thread has panicked, and has said why"),
        }
    }
    Ok(ends)
}

/// One client, from top to bottom. Each step blocks its thread.
fn client(id: u64, server: SocketAddr) -> io::Result<String> {
    let random = RandomState::new().hash_one(id);
    thread::sleep(Duration::from_millis(random % 1000));
    let user = ask(server, &format!("GET user {id}\n"))?;
    assert!(!id.is_multiple_of(5), "{id} is a multiple of five");
    let account = ask(server, &format!("GET account {}\n", field(&user, "account_id")?))?;
    balance_line(&user, &account)
}

fn ask(server: SocketAddr, question: &str) -> io::Result<Object> {
    let mut stream = TcpStream::connect(server)?;
    stream.write_all(question.as_bytes())?;
    let mut answer = Vec::new();
    BufReader::new(stream.take(LONGEST as u64)).read_until(b'\n', &mut answer)?;
    understood(&answer, question)
}
