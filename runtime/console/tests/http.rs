//! The console's server against clients that ask for the page, for events, for something else, too much, too slowly,
//! too many of them; and with runtimes that are stuck or have ended.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

use mini::runtime::{Builder, Runtime};
use mini_console::Console;
use mini_tests::{LIMIT, within};
use serde_json::Value;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

fn console(runtime: &Runtime) -> Console {
    Console::of(runtime.handle()).serve("127.0.0.1:0").unwrap()
}

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Sends a request and reads until the server closes.
fn ask(console: &Console, request: &str) -> String {
    let mut stream = connect(console.local_addr());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(console: &Console, path: &str) -> String {
    ask(console, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

/// The body, of which the head must tell the length.
fn body(answer: &str) -> &str {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    body
}

/// A client of the events.
struct Listener {
    stream: TcpStream,
    text: String,
}

impl Listener {
    fn new(console: &Console) -> Self {
        let mut stream = connect(console.local_addr());
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").unwrap();
        let mut this = Self { stream, text: String::new() };
        let head = this.until("\r\n\r\n").expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream"), "{head}");
        this
    }

    /// The text up to `end`; `None` at the end of the stream.
    fn until(&mut self, end: &str) -> Option<String> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.text[searched..].find(end) {
                let rest = self.text.split_off(searched + at + end.len());
                return Some(std::mem::replace(&mut self.text, rest));
            }
            searched = self.text.len().saturating_sub(end.len() - 1);
            let mut buf = [0; 1 << 16];
            match self.stream.read(&mut buf) {
                Ok(0) => return None,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
                Ok(read) => self.text.push_str(std::str::from_utf8(&buf[..read]).unwrap()),
            }
        }
    }

    fn next(&mut self) -> Option<Value> {
        let event = self.until("\n\n")?;
        Some(serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
    }
}

#[test]
fn the_page_is_one_file_that_needs_nothing_else() {
    within(LIMIT, || {
        let runtime = runtime();
        let console = console(&runtime);
        let answer = get(&console, "/");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"), "{answer:.300}");
        assert!(answer.contains("\r\nContent-Security-Policy: default-src 'none'; "));
        let page = body(&answer);
        assert!(page.starts_with("<!doctype html>"));
        for other in [" src=", "@import", "innerHTML", "insertAdjacentHTML", "document.write", "https://"] {
            assert!(!page.contains(other), "the page has {other}");
        }
    });
}

#[test]
fn what_is_refused_is_said() {
    within(LIMIT, || {
        let runtime = runtime();
        let console = console(&runtime);
        for (request, status, text) in [
            ("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n", "404 Not Found", "the paths are / (the page), /events"),
            ("GET /trace HTTP/1.1\r\nHost: localhost\r\n\r\n", "404 Not Found", "the flight recorder is off: set"),
            ("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405 Method Not Allowed", "POST is not supported"),
            ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request", "there is no Host header"),
            ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403 Forbidden", "open this page as localhost"),
            ("\r\n\r\n\r\n", "400 Bad Request", "the request line is not METHOD TARGET HTTP/1.1"),
        ] {
            let answer = ask(&console, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {answer}");
            assert!(body(&answer).starts_with(text), "{request}: {answer}");
        }
        assert!(ask(&console, "PUT / HTTP/1.1\r\n\r\n").contains("\r\nAllow: GET\r\n"));
    });
}

#[test]
fn a_head_that_is_too_long_is_refused_and_the_client_hears_why() {
    within(LIMIT, || {
        let runtime = runtime();
        let console = console(&runtime);
        let mut stream = connect(console.local_addr());
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ").unwrap();
        stream.write_all(&[b'x'; 8 << 10]).unwrap();
        stream.peek(&mut [0]).unwrap(); // it is answered, and sends the rest of what it has begun
        for _ in 0..30 {
            stream.write_all(&[b'x'; 1 << 10]).unwrap();
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        assert!(body(&answer).starts_with("the head of a request may have 8192 bytes"));
    });
}

#[test]
fn the_content_of_the_page_is_sent_as_json() {
    within(LIMIT, || {
        let runtime = runtime();
        let console = Console::of(runtime.handle()).source_links("editor:{file}\"").serve("127.0.0.1:0").unwrap();
        let json = || {
            let answer = get(&console, "/json");
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"), "{answer:.300}");
            let event: Value = serde_json::from_str(body(&answer)).unwrap();
            assert_eq!(event["source_links"], "editor:{file}\"");
            event["dump"]["up_seconds"].as_f64().unwrap()
        };
        assert!(json() < json()); // no page is open: each answer is new
        let shown = Listener::new(&console).next().unwrap()["dump"]["up_seconds"].as_f64().unwrap();
        assert!(json() >= shown);
    });
}

#[test]
fn a_trace_is_sent_if_the_runtime_records() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().flight_recorder(64 << 10).build().unwrap();
        runtime.block_on(async { mini::spawn(async {}).await.unwrap() });
        let console = console(&runtime);
        let mut stream = connect(console.local_addr());
        stream.write_all(b"GET /trace HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
        let (head, trace) = (String::from_utf8_lossy(&answer[..end]), &answer[end + 4..]);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", trace.len())), "{head}");
        let source = file!().as_bytes();
        assert!(trace.windows(source.len()).any(|part| part == source), "the line of the spawn is in it");
        assert!(Listener::new(&console).next().unwrap()["dump"]["records"] == true);
    });
}

/// A client that does not read its trace, which is larger than what the system keeps for it.
#[test]
fn one_trace_is_made_at_a_time() {
    within(LIMIT, || {
        const TRACE: &[u8] = b"GET /trace HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let runtime = Builder::new_current_thread().flight_recorder(4 << 20).build().unwrap();
        runtime.block_on(async {
            for _ in 0..100_000 {
                mini::task::yield_now().await;
            }
        });
        let console = console(&runtime);
        let answer = |stream: &mut TcpStream| {
            stream.write_all(TRACE).unwrap();
            let mut status = [0; 12];
            stream.read_exact(&mut status).unwrap();
            String::from_utf8(status.to_vec()).unwrap()
        };
        let mut first = connect(console.local_addr());
        assert_eq!(answer(&mut first), "HTTP/1.1 200");
        assert_eq!(answer(&mut connect(console.local_addr())), "HTTP/1.1 503");
        drop(first);
        while answer(&mut connect(console.local_addr())) != "HTTP/1.1 200" {}
    });
}

#[test]
fn a_request_may_come_in_pieces() {
    within(LIMIT, || {
        let runtime = runtime();
        let console = console(&runtime);
        let mut stream = connect(console.local_addr());
        for byte in b"GET /trace HTTP/1.1\r\nHost: localhost\r\n\r\n" {
            stream.write_all(&[*byte]).unwrap();
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    });
}

#[test]
fn events_tell_of_tasks_while_every_worker_is_stuck() {
    within(LIMIT, || {
        let runtime = runtime();
        let console = console(&runtime);
        let (stuck, are_stuck) = channel();
        let mut ends = Vec::new();
        for _ in 0..2 {
            let (go_on, ended) = channel::<()>();
            let stuck = stuck.clone();
            ends.push(go_on);
            runtime.spawn(async move {
                stuck.send(()).unwrap();
                let _ = ended.recv(); // blocks
            });
        }
        are_stuck.iter().take(2).for_each(drop);
        let mut listener = Listener::new(&console);
        for _ in 0..2 {
            let event = listener.next().unwrap();
            assert_eq!(event["dump"]["tasks"].as_array().unwrap().len(), 2);
            let workers = event["dump"]["workers"].as_array().unwrap();
            assert!(workers.iter().all(|worker| ["running", "stalled"].contains(&worker["state"].as_str().unwrap())));
        }
        drop(ends);
    });
}

#[test]
fn all_clients_get_the_events_and_the_end_of_the_runtime_is_told() {
    within(LIMIT, || {
        let runtime = runtime();
        let console = console(&runtime);
        let mut listeners = [(); 3].map(|()| Listener::new(&console));
        for listener in &mut listeners {
            assert_eq!(listener.next().unwrap()["dump"]["has_ended"], false);
        }
        drop(runtime);
        for listener in &mut listeners {
            while listener.next().unwrap()["dump"]["has_ended"] == false {}
        }
    });
}

#[test]
fn no_dump_is_made_before_somebody_listens() {
    within(LIMIT, || {
        let runtime = runtime();
        runtime.spawn(std::future::pending::<()>());
        let console = console(&runtime);
        assert!(get(&console, "/").starts_with("HTTP/1.1 200 ")); // the server is at work
        drop(console); // a dump in progress would be awaited
        let dump = runtime.handle().dump();
        assert!(dump.tasks()[0].unchanged_for().is_none(), "there was a dump before: {dump}");
    });
}

#[test]
fn warnings_are_in_the_events() {
    within(LIMIT, || {
        let runtime = Builder::new_current_thread().on_warning(|_| {}).build().unwrap();
        let console = console(&runtime);
        runtime.spawn(std::future::pending::<()>());
        runtime.block_on(async {
            // In the runtime somebody waits, so that its task runs; the client is another thread.
            let events = mini::spawn_blocking(move || {
                let mut listener = Listener::new(&console);
                loop {
                    let event = listener.next().unwrap();
                    if let Some(warning) = event["warnings"].get(0) {
                        return warning.clone();
                    }
                }
            });
            let warning = events.await.unwrap();
            assert_eq!(warning["kind"], "lost task");
            assert!(warning["text"].as_str().unwrap().starts_with("lost task: task "), "{warning}");
        });
    });
}

#[test]
fn a_client_that_does_not_read_costs_the_others_nothing() {
    within(LIMIT, || {
        let runtime = runtime();
        let name = "x".repeat(8 << 10); // so that an event is larger than the buffers of a socket
        for _ in 0..900 {
            mini::task::Builder::new().name(&name).spawn_on(std::future::pending::<()>(), runtime.handle());
        }
        let console = console(&runtime);
        let mut slow = Listener::new(&console);
        let mut listener = Listener::new(&console);
        while listener.next().unwrap()["dump"]["tasks"][899].is_null() {}
        // Once it is cut off, the answer to what it sends is that nobody is there.
        while slow.stream.write_all(b"x").is_ok() {
            listener.next().unwrap();
        }
    });
}

#[test]
fn one_client_too_many_is_told_so_and_a_place_is_free_again() {
    within(LIMIT, || {
        let runtime = runtime();
        let console = console(&runtime);
        let mut listeners: Vec<Listener> = (0..16).map(|_| Listener::new(&console)).collect();
        let mut refused = connect(console.local_addr());
        let mut answer = String::new();
        refused.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(body(&answer).starts_with("16 clients are connected already"));
        listeners.pop();
        while !get(&console, "/").starts_with("HTTP/1.1 200 ") {}
    });
}

#[test]
fn a_client_that_asks_for_nothing_is_told_so() {
    within(LIMIT, || {
        let runtime = runtime();
        let console = console(&runtime);
        let mut stream = connect(console.local_addr());
        stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    });
}

#[test]
fn dropping_the_console_ends_its_connections_and_frees_the_address() {
    within(LIMIT, || {
        let runtime = runtime();
        let console = console(&runtime);
        let addr = console.local_addr();
        let mut listener = Listener::new(&console);
        listener.next().unwrap();
        drop(console);
        while listener.next().is_some() {}
        assert!(TcpStream::connect(addr).is_err());
        drop(listener);
        let again = Console::of(runtime.handle()).serve(addr).unwrap();
        assert!(get(&again, "/").starts_with("HTTP/1.1 200 "));
    });
}

#[test]
fn what_cannot_be_served_is_an_error() {
    let error = mini_console::serve("127.0.0.1:0").unwrap_err();
    assert!(error.to_string().contains("not inside a mini runtime; Console::of takes the handle"), "{error}");

    let runtime = runtime();
    let builder = Console::of(runtime.handle());
    let error = builder.serve("0.0.0.0:0").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("other computers could reach 0.0.0.0:0"), "{error}");
    assert!(builder.serve(&[SocketAddr::from(([127, 0, 0, 1], 0)), SocketAddr::from(([10, 0, 0, 1], 0))][..]).is_err());

    let error = builder.serve("127.0.0.1:6669").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("browsers refuse to open port 6669"), "{error}");

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = builder.serve(taken.local_addr().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&taken.local_addr().unwrap().to_string()), "{error}");
}

#[test]
fn a_console_may_be_made_and_dropped_inside_of_the_runtime_that_it_watches() {
    within(LIMIT, || {
        for builder in [&mut Builder::new_current_thread(), &mut Builder::new_multi_thread()] {
            builder.build().unwrap().block_on(async {
                let console = mini_console::serve("localhost:0").unwrap();
                assert!(get(&console, "/").starts_with("HTTP/1.1 200 "));
                let task = mini::spawn(async move { drop(console) });
                task.await.unwrap();
            });
        }
    });
}

#[test]
fn the_page_may_be_asked_for_by_address_if_remote_clients_are_allowed() {
    within(Duration::from_secs(60), || {
        let runtime = runtime();
        let console = Console::of(runtime.handle()).allow_remote(true).serve("0.0.0.0:0").unwrap();
        let addr = SocketAddr::from(([127, 0, 0, 1], console.local_addr().port()));
        for (host, status) in [("10.1.2.3:7669", "200"), ("evil.example", "403")] {
            let mut stream = connect(addr);
            stream.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer:.100}");
        }
    });
}
