//! Clients that misbehave: slow, deaf, greedy, gone. The server is another process, whose memory and descriptors the
//! tests check.

use super::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Set in the process that serves, to its style.
const SERVE: &str = "REDIS_TEST_SERVE";

/// A server in a process of its own.
struct Process {
    child: Child,
    address: SocketAddr,
    /// Open, so that it may go on printing.
    _stdout: BufReader<ChildStdout>,
}

impl Process {
    fn start(style: Style) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["clients::serves_for_another_process", "--exact", "--nocapture", "--test-threads=1"])
            .env(SERVE, style.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut lines = stdout.by_ref().lines();
        let address = lines.find_map(|line| line.unwrap().split("serves on ").nth(1)?.parse().ok()).unwrap();
        Self { child, address, _stdout: stdout }
    }

    fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Open descriptors.
    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Resident memory, in bytes.
    fn memory(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    /// Waits until only `count` descriptors are open.
    fn wait_for_descriptors(&self, count: usize) {
        let begin = Instant::now();
        while self.descriptors() > count {
            assert!(begin.elapsed() < LIMIT, "{} descriptors are open instead of {count}", self.descriptors());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn on_both_processes(test: impl Fn(&Process)) {
    for style in [Style::Actor, Style::Local] {
        println!("style {style}");
        test(&Process::start(style));
    }
}

/// Not a test by itself: what [`Process`] runs. It ends with its standard input.
#[test]
fn serves_for_another_process() {
    let Ok(style) = std::env::var(SERVE) else { return };
    let server = Server::start(style.parse().unwrap());
    println!("{} serves on {}", server.style, server.address);
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// What a client can do wrong.
fn misbehave(process: &Process, number: usize, kept: &mut Vec<Client>) {
    let mut client = process.client();
    match number % 8 {
        0 => {
            client.ask("*1\r\n:5\r\n", "-ERR Protocol error: expected '$', got ':'\r\n");
            client.expect_end();
        }
        1 => client.ask("*1048577\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        2 => client.send("*2\r\n$3\r\nGET\r\n$536870912\r\nabandoned"),
        3 => client.send("GET value\r\n".repeat(200)),
        4 => {
            client.ask("GET none\r\n*2\r\n$3\r\nGET", "$-1\r\n");
            kept.push(client);
        }
        5 => {
            client.send("*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$100000\r\n");
            client.send(vec![b'x'; 50_000]);
        }
        6 => drop(client),
        _ => {
            client.send("*1048576\r\n");
            kept.push(client);
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn ten_thousand_bad_clients_leave_nothing_behind() {
    on_both_processes(|process| {
        let mut good = process.client();
        good.ask(array(&[b"SET", b"value", &[b'v'; 1000]]), "+OK\r\n");
        let open = process.descriptors();
        let mut memory = 0;
        let mut kept = Vec::new();
        for number in 0..10_000 {
            misbehave(process, number, &mut kept);
            if number % 100 == 0 {
                good.ask("PING\r\n", "+PONG\r\n");
            }
            if number % 1000 == 999 {
                kept.clear();
                process.wait_for_descriptors(open);
                // Memory that the first thousands need is kept for the next ones.
                if number == 1999 {
                    memory = process.memory();
                }
            }
        }
        let grown = process.memory().saturating_sub(memory);
        assert!(grown < 4 << 20, "{grown} bytes more after 10,000 clients than after 2,000");
        good.ask("GET half\r\nDBSIZE\r\n", "$-1\r\n:1\r\n");
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_length_takes_no_memory_until_the_bytes_come() {
    on_both_processes(|process| {
        process.client().ask("PING\r\n", "+PONG\r\n");
        let before = process.memory();
        let mut clients: Vec<_> = (0..50).map(|_| process.client()).collect();
        for client in &mut clients {
            client.ask("PING\r\n*1048576\r\n$536870912\r\nbegin", "+PONG\r\n");
        }
        let grown = process.memory().saturating_sub(before);
        assert!(grown < 8 << 20, "{grown} bytes for 50 lengths");
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_client_that_reads_nothing_is_read_no_more_and_costs_little() {
    on_both_processes(|process| {
        let mut other = process.client();
        other.ask(array(&[b"SET", b"long", &vec![b'x'; 1 << 20]]), "+OK\r\n");
        other.ask(array(&[b"SET", b"middle", &vec![b'x'; 3000]]), "+OK\r\n");
        let before = process.memory();
        let mut deaf = process.client();
        deaf.0.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        // Sends as much as the server takes, which is no more than fits into the buffers of the kernel and one batch.
        let requests = "GET long\r\nGET middle\r\n".repeat(1000);
        let mut sent = 0;
        let refused = loop {
            match deaf.0.write(&requests.as_bytes()[sent % requests.len()..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
            assert!(sent < 64 << 20, "the server goes on reading");
            other.ask("PING\r\n", "+PONG\r\n");
        };
        assert!(matches!(refused.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{refused}");
        let grown = process.memory().saturating_sub(before);
        assert!(grown < 16 << 20, "{grown} bytes for a client that reads nothing");
        other.ask("GET middle\r\n", bulk(&vec![b'x'; 3000]));
        // The client reads after all.
        deaf.expect(bulk(&vec![b'x'; 1 << 20]));
        deaf.expect(bulk(&vec![b'x'; 3000]));
    });
}

#[test]
#[cfg(target_os = "linux")]
fn idle_connections_hold_no_buffers() {
    on_both_processes(|process| {
        let mut first = process.client();
        first.ask("PING\r\n", "+PONG\r\n");
        let before = process.memory();
        let mut clients: Vec<_> = (0..400).map(|_| process.client()).collect();
        clients.iter_mut().for_each(|client| client.ask(array(&[b"SET", b"k", &[b'v'; 10_000]]), "+OK\r\n"));
        let each = process.memory().saturating_sub(before) / 400;
        assert!(each < 4096, "{each} bytes for an idle connection");
    });
}
