//! The `redis` example, from outside: what the RESP specification and the documentation of Redis 7 say, in each style,
//! and that a client that misbehaves harms only itself.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use async_channel::Sender;
use mini::net::TcpListener;
use mini::runtime::Builder;

#[path = "../redis/server.rs"]
mod server;

#[path = "redis/clients.rs"]
mod clients;

use server::Style;

/// A test that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// A server on a thread of its own, until it is dropped.
struct Server {
    address: SocketAddr,
    style: Style,
    _stop: Sender<()>,
    _thread: JoinHandle<()>,
}

impl Server {
    fn start(style: Style) -> Self {
        let (stop, stopped) = async_channel::bounded::<()>(1);
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            let builder = match style {
                Style::Workers => Builder::new_multi_thread().worker_threads(2).clone(),
                _ => Builder::new_current_thread(),
            };
            builder.build().unwrap().block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                server::start(listener, style).unwrap();
                let _ = stopped.recv().await;
            });
        });
        Self { address: told.recv_timeout(LIMIT).unwrap(), style, _stop: stop, _thread: thread }
    }

    fn client(&self) -> Client {
        Client::connect(self.address)
    }
}

/// Runs a test with a server of each style.
fn on_each(test: impl Fn(&Server)) {
    for style in [Style::Raw, Style::Actor, Style::Workers, Style::Local] {
        println!("style {style}");
        test(&Server::start(style));
    }
}

struct Client(TcpStream);

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// Expects these bytes next.
    #[track_caller]
    fn expect(&mut self, wanted: impl AsRef<[u8]>) {
        let wanted = wanted.as_ref();
        let mut reply = vec![0; wanted.len()];
        let mut got = 0;
        while got < wanted.len() && reply[..got] == wanted[..got] {
            match self.0.read(&mut reply[got..]) {
                Ok(count @ 1..) => got += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {} // stopped and continued: signal(7)
                end => panic!("{end:?} after {:?}, wanted {:?}", text(&reply[..got]), text(wanted)),
            }
        }
        assert_eq!(text(&reply[..got]), text(wanted));
    }

    #[track_caller]
    fn ask(&mut self, sent: impl AsRef<[u8]>, wanted: impl AsRef<[u8]>) {
        self.send(sent);
        self.expect(wanted);
    }

    /// The next line, without its end.
    fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        text(&line[..line.len() - 2])
    }

    /// Expects that a key has so many seconds left, or somewhat fewer.
    #[track_caller]
    fn ask_ttl(&mut self, key: &str, wanted: i64) {
        self.send(format!("TTL {key}\r\n"));
        let left: i64 = self.line()[1..].parse().unwrap();
        assert!((wanted - 1000..=wanted).contains(&left), "{left} seconds left of {wanted}");
    }

    /// Expects that nothing more comes.
    #[track_caller]
    fn expect_end(&mut self) {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).unwrap();
        assert_eq!(text(&rest), "");
    }
}

/// A long text cut short, for messages.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(500)]).into_owned()
}

/// A command as clients send it: an array of bulk strings.
fn array(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(bulk(arg));
    }
    bytes
}

fn bulk(text: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
}

#[test]
fn every_command_answers_as_documented() {
    let number = "-ERR value is not an integer or out of range\r\n";
    let talk = [
        ("PING", "+PONG\r\n"),
        ("ping", "+PONG\r\n"),
        ("PING hello", "$5\r\nhello\r\n"),
        ("ECHO hello", "$5\r\nhello\r\n"),
        ("SELECT 0", "+OK\r\n"),
        ("SELECT 7", "-ERR DB index is out of range\r\n"),
        ("SELECT x", number),
        ("GET k", "$-1\r\n"),
        ("SET k v", "+OK\r\n"),
        ("GeT k", "$1\r\nv\r\n"),
        ("SET k longer", "+OK\r\n"),
        ("GET k", "$6\r\nlonger\r\n"),
        ("SET empty \"\"", "+OK\r\n"),
        ("GET empty", "$0\r\n\r\n"),
        ("EXISTS k k none", ":2\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("DEL k none", ":1\r\n"),
        ("DEL k", ":0\r\n"),
        ("MSET a 1 b 2 a 3", "+OK\r\n"),
        ("MGET a b none", "*3\r\n$1\r\n3\r\n$1\r\n2\r\n$-1\r\n"),
        ("INCR a", ":4\r\n"),
        ("DECR n", ":-1\r\n"),
        ("GET n", "$2\r\n-1\r\n"),
        ("SET max 9223372036854775807", "+OK\r\n"),
        ("INCR max", "-ERR increment or decrement would overflow\r\n"),
        ("SET min -9223372036854775808", "+OK\r\n"),
        ("DECR min", "-ERR increment or decrement would overflow\r\n"),
        ("INCR min", ":-9223372036854775807\r\n"),
        ("SET word 01", "+OK\r\n"),
        ("INCR word", number),
        ("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        ("CONFIG GET app*ONLY none", "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n"),
        ("CONFIG GET none", "*0\r\n"),
        ("COMMAND DOCS", "*0\r\n"),
        ("FLUSHALL", "+OK\r\n"),
        ("DBSIZE", ":0\r\n"),
        ("FLUSHALL ASYNC", "+OK\r\n"),
        ("FLUSHALL now", "-ERR syntax error\r\n"),
    ];
    on_each(|server| {
        let mut client = server.client();
        talk.iter().for_each(|(command, reply)| client.ask(format!("{command}\r\n"), reply));
    });
}

#[test]
fn commands_that_are_wrong_are_told_so_and_the_connection_goes_on() {
    let talk = [
        ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("get a b", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("SET a", "-ERR wrong number of arguments for 'set' command\r\n"),
        ("MSET a 1 b", "-ERR wrong number of arguments for 'mset' command\r\n"),
        ("PING a b", "-ERR wrong number of arguments for 'ping' command\r\n"),
        ("CONFIG GET", "-ERR wrong number of arguments for 'config|get' command\r\n"),
        ("CONFIG what", "-ERR unknown subcommand 'what'. Try CONFIG HELP.\r\n"),
        ("fly me", "-ERR unknown command 'fly', with args beginning with: 'me' \r\n"),
        ("\"a\\r\\nb\"", "-ERR unknown command 'a  b', with args beginning with: \r\n"),
        ("PING", "+PONG\r\n"),
    ];
    on_each(|server| {
        let mut client = server.client();
        talk.iter().for_each(|(command, reply)| client.ask(format!("{command}\r\n"), reply));
        let name = "x".repeat(200);
        let shown = format!("-ERR unknown command '{}', with args beginning with: '", &name[..128]);
        client.ask(format!("{name} {name} y\r\n"), format!("{shown}{}' \r\n", &name[..128]));
    });
}

#[test]
fn set_takes_its_options_in_any_order_and_case() {
    let (syntax, time) = ("-ERR syntax error\r\n", "-ERR invalid expire time in 'set' command\r\n");
    let talk = [
        ("SET k v NX XX", syntax),
        ("SET k v EX", syntax),
        ("SET k v EX 1 PX 1", syntax),
        ("SET k v what", syntax),
        ("SET k v EX 0", time),
        ("SET k v PX -1", time),
        ("SET k v EX 9223372036854775807", time),
        ("SET k v PX 9223372036854775807", time),
        ("EXPIRE k 9223372036854775", "-ERR invalid expire time in 'expire' command\r\n"),
        ("EXPIRE k -9223372036854775808", "-ERR invalid expire time in 'expire' command\r\n"),
        ("SET k v EX soon", "-ERR value is not an integer or out of range\r\n"),
        ("GET k", "$1\r\n5\r\n"),
    ];
    on_each(|server| {
        let mut client = server.client();
        client.ask("SET k 1 XX\r\nSET k 1 nx ex 9000\r\nSET k 2 NX\r\n", "$-1\r\n+OK\r\n$-1\r\n");
        client.ask_ttl("k", 9000);
        client.ask("SET k 3 PX 5000000 xx\r\n", "+OK\r\n");
        client.ask_ttl("k", 5000);
        client.ask("INCR k\r\n", ":4\r\n");
        client.ask_ttl("k", 5000);
        client.ask("SET k 5\r\nTTL k\r\n", "+OK\r\n:-1\r\n");
        talk.iter().for_each(|(command, reply)| client.ask(format!("{command}\r\n"), reply));
    });
}

#[test]
fn keys_expire_when_they_are_looked_for_and_when_nobody_does() {
    on_each(|server| {
        let mut client = server.client();
        client.ask("EXPIRE none 5\r\nTTL none\r\n", ":0\r\n:-2\r\n");
        client.ask("SET late v EX 9000\r\nSET k v\r\nEXPIRE k 5000\r\n", "+OK\r\n+OK\r\n:1\r\n");
        client.ask_ttl("k", 5000);
        client.ask("EXPIRE k -1\r\nGET k\r\n", ":1\r\n$-1\r\n");
        client.ask("EXPIRE late x\r\n", "-ERR value is not an integer or out of range\r\n");

        // A key that expires is gone for each command that asks; a time that is set again counts from then.
        loop {
            client.ask("SET k v PX 5\r\n", "+OK\r\n");
            client.send("EXPIRE k 9000\r\n");
            if client.line() == ":1" {
                break;
            }
        }
        client.ask("SET gone v PX 5\r\n", "+OK\r\n");
        thread::sleep(Duration::from_millis(6));
        client.ask("GET gone\r\nEXISTS gone\r\nDEL gone\r\nEXPIRE gone 9\r\n", "$-1\r\n:0\r\n:0\r\n:0\r\n");
        client.ask("SET gone 2 NX PX 1\r\nGET k\r\n", "+OK\r\n$1\r\nv\r\n");
        client.ask("FLUSHALL\r\n", "+OK\r\n");

        // Keys expire although no client asks, and also when the earlier time is set later.
        client.ask("SET late v EX 9000\r\n", "+OK\r\n");
        (0..3000).for_each(|number| client.send(format!("SET k{number} v PX {}\r\n", 1 + number % 20)));
        client.expect("+OK\r\n".repeat(3000));
        let begin = Instant::now();
        loop {
            client.send("DBSIZE\r\n");
            if client.line() == ":1" {
                break;
            }
            assert!(begin.elapsed() < LIMIT, "keys stay");
            thread::sleep(Duration::from_millis(1));
        }
        client.ask("GET late\r\n", "$1\r\nv\r\n");
    });
}

#[test]
fn arguments_are_bytes_and_empty_commands_are_passed_over() {
    on_each(|server| {
        let mut client = server.client();
        let (key, value) = (&b"\0\r\n*\xff"[..], (0..=255).collect::<Vec<u8>>());
        client.ask(array(&[b"SET", key, &value]), "+OK\r\n");
        client.ask(array(&[b"GET", key]), bulk(&value));
        client.ask(array(&[b"SET", b"", b""]), "+OK\r\n");
        client.ask(array(&[b"GET", b""]), "$0\r\n\r\n");
        client.ask("\r\n  \n*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n");
        client.ask(array(&[b""]), "-ERR unknown command '', with args beginning with: \r\n");
        client.ask(array(&[b"GET\0", b"a"]), "-ERR unknown command 'GET\0', with args beginning with: 'a' \r\n");
    });
}

#[test]
fn inline_commands_have_quotes_and_escapes() {
    let echoes: [(&str, &[u8]); 7] = [
        (r#"ECHO "a b""#, b"a b"),
        (r#"ECHO a"b c"#, b""),
        (r#"ECHO "\x41\n\r\t\a\b\\\"\q""#, b"A\n\r\t\x07\x08\\\"q"),
        (r#"ECHO "\xZZ""#, b"xZZ"),
        (r"ECHO 'a\n\'b'", b"a\\n'b"),
        ("ECHO \t  x  ", b"x"),
        (r#"ECHO a"b c""#, b"ab c"),
    ];
    on_each(|server| {
        for (line, echo) in echoes {
            let mut client = server.client();
            match echo {
                b"" => client.ask(format!("{line}\r\n"), "-ERR Protocol error: unbalanced quotes in request\r\n"),
                echo => client.ask(format!("{line}\n"), bulk(echo)),
            }
        }
    });
}

#[test]
fn requests_may_come_in_any_pieces() {
    let requests = [
        array(&[b"SET", b"key", b"a\r\nvalue"]),
        b"PING\r\n".to_vec(),
        array(&[b"GET", b"key"]),
        array(&[b"MGET", b"key", b"none"]),
        b"*0\r\nECHO 'x y'\r\n".to_vec(),
    ];
    let requests = requests.concat();
    let replies = "+OK\r\n+PONG\r\n$8\r\na\r\nvalue\r\n*2\r\n$8\r\na\r\nvalue\r\n$-1\r\n$3\r\nx y\r\n";
    on_each(|server| {
        let mut client = server.client();
        for size in [1, 2, 3, 7, 50] {
            requests.chunks(size).for_each(|piece| client.send(piece));
            client.expect(replies);
        }
        // The requests are cut where it is certain that the server has seen the first part: it answers the command
        // before.
        for cut in 0..requests.len() {
            client.ask([b"PING\r\n", &requests[..cut]].concat(), "+PONG\r\n");
            client.send(&requests[cut..]);
            client.expect(replies);
        }
    });
}

#[test]
fn a_pipeline_is_answered_in_order_however_long() {
    on_each(|server| {
        let mut client = server.client();
        let count = 20_000;
        let mut writer = Client(client.0.try_clone().unwrap());
        let sending = thread::spawn(move || (0..count).for_each(|_| writer.send("INCR n\r\n")));
        (1..=count).for_each(|number| client.expect(format!(":{number}\r\n")));
        sending.join().unwrap();
        // All at once.
        client.ask("PING\r\n".repeat(5000), "+PONG\r\n".repeat(5000));
        client.ask("PING\r\n".repeat(1024), "+PONG\r\n".repeat(1024));
    });
}

#[test]
fn clients_see_each_others_writes_and_their_own_in_order() {
    on_each(|server| {
        let mut clients: Vec<_> = (0..20).map(|_| server.client()).collect();
        for round in 0..50 {
            clients.iter_mut().for_each(|client| client.send("INCR n\r\nINCR n\r\n"));
            let mut seen = Vec::new();
            for client in &mut clients {
                seen.extend((0..2).map(|_| client.line()[1..].parse::<usize>().unwrap()));
            }
            assert!(seen.chunks(2).all(|own| own[0] < own[1]));
            seen.sort_unstable();
            assert!(seen.into_iter().eq(40 * round + 1..=40 * (round + 1)));
        }
    });
}

#[test]
fn a_protocol_error_ends_that_connection_alone_after_its_replies() {
    let long = "x".repeat(70_000);
    let cases = [
        ("*1048577\r\n".to_owned(), "invalid multibulk length"),
        ("*9999999999999999999999\r\n".to_owned(), "invalid multibulk length"),
        ("*two\r\n".to_owned(), "invalid multibulk length"),
        ("*1\r\n$536870913\r\n".to_owned(), "invalid bulk length"),
        ("*1\r\n$-1\r\n".to_owned(), "invalid bulk length"),
        ("*1\r\n$\r\n".to_owned(), "invalid bulk length"),
        ("*1\r\n:5\r\n".to_owned(), "expected '$', got ':'"),
        ("*2\r\n$3\r\nGET\r\nkey\r\n".to_owned(), "expected '$', got 'k'"),
        ("GET 'a\r\n".to_owned(), "unbalanced quotes in request"),
        ("GET 'a'b\r\n".to_owned(), "unbalanced quotes in request"),
        (long.clone(), "too big inline request"),
        (format!("*{long}"), "too big mbulk count string"),
        (format!("*1\r\n${long}"), "too big bulk count string"),
    ];
    on_each(|server| {
        let mut other = server.client();
        for (number, (sent, error)) in (1..).zip(&cases) {
            let mut client = server.client();
            client.send(format!("INCR n\r\n{sent}"));
            client.expect(format!(":{number}\r\n-ERR Protocol error: {error}\r\n"));
            client.expect_end();
            other.ask("PING\r\n", "+PONG\r\n");
        }
    });
}

#[test]
fn quit_ends_the_connection_and_what_follows_is_not_run() {
    on_each(|server| {
        let mut client = server.client();
        client.ask("SET k 1\r\nQUIT\r\nSET k 2\r\n", "+OK\r\n+OK\r\n");
        client.expect_end();
        server.client().ask("GET k\r\n", "$1\r\n1\r\n");
        // However much follows. What the server has not read resets the connection behind its last reply.
        let mut client = server.client();
        client.send(format!("PING\r\nQUIT\r\n{}", "PING\r\n".repeat(3000)));
        let mut replies = Vec::new();
        let _ = client.0.read_to_end(&mut replies);
        assert_eq!(replies, b"+PONG\r\n+OK\r\n");
        // The client has closed its side: requests that it has sent are answered.
        let mut client = server.client();
        client.send("GET k\r\nPING\r\nGE");
        client.0.shutdown(Shutdown::Write).unwrap();
        client.expect("$1\r\n1\r\n+PONG\r\n");
        client.expect_end();
    });
}

#[test]
fn long_values_come_back_whole() {
    on_each(|server| {
        let mut client = server.client();
        let value: Vec<u8> = (0..5_000_011u32).map(|number| (number % 251) as u8).collect();
        client.ask(array(&[b"SET", b"long", &value]), "+OK\r\n");
        client.ask(array(&[b"SET", b"short", b"s"]), "+OK\r\n");
        client.send(b"GET short\r\nGET long\r\nMGET long short long none long\r\nPING\r\n");
        client.expect([bulk(b"s"), bulk(&value)].concat());
        let nothing = b"$-1\r\n".to_vec();
        client.expect([b"*5\r\n".to_vec(), bulk(&value), bulk(b"s"), bulk(&value), nothing, bulk(&value)].concat());
        client.expect("+PONG\r\n");
        // A reply that waits keeps the value from the time of its request.
        client.send(b"GET long\r\nSET long other\r\nGET long\r\n");
        client.expect([bulk(&value), b"+OK\r\n".to_vec(), bulk(b"other")].concat());
    });
}

#[test]
fn values_of_every_length_come_back_whole() {
    on_each(|server| {
        let mut client = server.client();
        for length in (0..200).chain([4095, 4096, 4097, 16_383, 16_384, 16_385, 65_537]) {
            let value = vec![b'v'; length];
            client.ask(
                [array(&[b"SET", b"k", &value]), b"GET k\r\n".to_vec()].concat(),
                [b"+OK\r\n".to_vec(), bulk(&value)].concat(),
            );
        }
        // More than is copied, in one batch.
        let value = vec![b'w'; 3000];
        client.ask(array(&[b"SET", b"k", &value]), "+OK\r\n");
        client.ask("GET k\r\n".repeat(200), bulk(&value).repeat(200));
    });
}
