//! The example `balance`: the clients, and a server that survives clients that ask something else.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use mini::runtime::Builder;
use mini_tests::net_support::refusing_port;
use mini_tests::{LIMIT, within};

#[path = "../balance.rs"]
#[allow(dead_code)]
mod balance;

use balance::Ends;

fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || balance::serve(&listener));
    address
}

fn ask(server: SocketAddr, question: impl AsRef<[u8]>) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(question.as_ref()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_runs_and_ends() {
    within(LIMIT, || balance::run(Vec::new()).unwrap());
}

#[test]
fn users_are_made_up_as_they_are_asked_for_and_always_the_same() {
    within(LIMIT, || {
        let server = server();
        let answer = ask(server, "GET user 7\n");
        assert!(answer.starts_with(r#"{"id":7,"name":"#) && answer.contains(r#""account_id":"#), "{answer}");
        assert!(answer.ends_with("}\n"), "{answer}");
        assert_eq!(answer, ask(server, "GET user 7\n"));
        assert!(ask(server, "GET account 12\n").starts_with(r#"{"id":12,"balance":"#));
    });
}

#[test]
fn what_is_no_question_gets_an_error_line_and_the_server_goes_on() {
    within(LIMIT, || {
        let server = server();
        let long = [b"GET user ".as_slice(), &[b'1'; 2000], b"\n"].concat();
        let huge = vec![b'x'; 300_000];
        let bad: [&[u8]; 9] = [
            b"PUT user 1\n",
            b"GET house 1\n",
            b"GET user x\n",
            b"GET user -1\n",
            b"GET user\n",
            b"\n",
            b"GET user 1",
            &long,
            &huge,
        ];
        for question in bad {
            let answer = ask(server, question);
            assert!(answer.starts_with("error: ") && answer.ends_with('\n'), "{answer:?}");
        }
        drop(TcpStream::connect(server).unwrap());
        assert!(ask(server, [0xff, 0xfe, b'\n']).starts_with("error: "));
        let exactly = format!("GET user {:>width$}\n", 1, width = 1024 - "GET user \n".len());
        assert_eq!(exactly.len(), 1024);
        assert!(ask(server, exactly).starts_with('{'));
    });
}

/// A server that gives the closure's answer for every user and account, on a line or up to the end.
fn server_that_says(answer: impl Fn(&str) -> String + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut question = String::new();
            BufReader::new(&stream).read_line(&mut question).unwrap();
            stream.write_all(answer(&question).as_bytes()).unwrap();
        }
    });
    address
}

/// The result of client 1 with that server. The clock is paused, so that it does not hesitate.
fn first_client(server: SocketAddr) -> io::Result<String> {
    let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
    runtime.block_on(balance::client(1, server.to_string()))
}

#[test]
fn json_is_understood_however_it_is_written() {
    within(LIMIT, || {
        for (user, account) in [
            (r#"{"id": 1, "name": "Ann", "account_id": 7}"#, r#"{"id": 7, "balance": 12}"#),
            (r#" { "account_id" : "7" , "name" : "Ann" } "#, "\t{\"balance\"\t:\t12}\r"),
            (r#"{"name":"\u0041nn","tags":["a","b"],"account":{"account_id":8},"account_id":7}"#, r#"{"balance":12}"#),
        ] {
            let server = server_that_says(move |question| match question {
                "GET account 7\n" => format!("{account}\n"),
                question if question.starts_with("GET user ") => format!("{user}\n"),
                other => panic!("asked for {other:?}"),
            });
            assert_eq!(first_client(server).unwrap(), "User Ann has 12 USD");
        }
    });
}

#[test]
fn a_name_may_have_whatever_a_string_may_have() {
    within(LIMIT, || {
        let server = server_that_says(|_| r#"{"name":"O\"Neil, {Ann}: x","account_id":7,"balance":0.5}"#.to_owned());
        let line = first_client(server).unwrap();
        assert_eq!(line, "User O\"Neil, {Ann}: x has 0.5 USD");
    });
}

#[test]
fn what_is_no_answer_is_an_error_that_shows_it() {
    within(LIMIT, || {
        for (answer, kind) in [
            ("error: no such user", ErrorKind::Other),
            ("{\"name\":\"Ann\"", ErrorKind::Other),
            ("[1, 2]", ErrorKind::Other),
            ("{\"name\":\"Ann\"}", ErrorKind::InvalidData),
            ("", ErrorKind::UnexpectedEof),
        ] {
            let server = server_that_says(move |_| format!("{answer}\n"));
            let error = first_client(server).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            let shown = if answer.starts_with('{') { "Ann" } else { answer };
            assert!(error.to_string().contains(shown), "{error}");
        }
    });
}

/// The panic comes between two answers: the first question was asked, the second never is.
#[test]
fn a_client_that_panics_has_asked_once() {
    within(LIMIT, || {
        let (asked, questions) = std::sync::mpsc::channel();
        let server = server_that_says(move |question| {
            asked.send(question.to_owned()).unwrap();
            r#"{"name":"Ann","account_id":7}"#.to_owned()
        });
        let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
        let end = runtime.block_on(async { mini::spawn(balance::client(5, server.to_string())).await });
        assert!(end.unwrap_err().to_string().contains("5 is a multiple of five"));
        assert_eq!(questions.try_iter().collect::<Vec<_>>(), ["GET user 5\n"]);
    });
}

#[test]
fn who_sends_a_byte_at_a_time_gets_no_more_time() {
    within(LIMIT, || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        thread::spawn(move || balance::serve_with(&listener, Duration::from_millis(100)));
        for question in ["GET user ", "GET user 1\n"] {
            let mut stream = TcpStream::connect(server).unwrap();
            stream.write_all(question.as_bytes()).unwrap();
            // Slow, and never silent. All of it would be less than the longest line.
            let taken = (0..900).take_while(|_| {
                thread::sleep(Duration::from_millis(10));
                stream.write_all(b"1").is_ok()
            });
            assert!(taken.count() < 900, "{question:?}: the server bears it");
        }
    });
}

#[test]
fn where_nobody_listens_each_client_has_an_error() {
    within(LIMIT, || {
        let (_keeps, nobody) = refusing_port();
        let ends = mini::block_on(balance::ask_all(nobody.to_string()));
        assert_eq!(ends, Ends { balances: 0, panics: 0, errors: 10 });
    });
}

#[test]
fn bad_arguments_are_errors() {
    for args in [&["dance"][..], &["serve"], &["ask", "a", "b"]] {
        let error = balance::run(args.iter().map(|&arg| arg.to_owned()).collect()).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("usage: "), "{error}");
    }
}
