//! The example `balance`: the clients, and a server that survives those who ask something else.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

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

#[test]
fn where_nobody_listens_each_client_has_an_error_or_its_panic() {
    within(LIMIT, || {
        let (_keeps, nobody) = refusing_port();
        let ends = mini::block_on(balance::ask_all(nobody.to_string()));
        assert_eq!(ends, Ends { balances: 0, panics: 2, errors: 8 });
    });
}

#[test]
fn bad_arguments_are_errors() {
    for args in [&["dance"][..], &["serve"], &["ask", "a", "b"]] {
        let error = balance::run(args.iter().map(|&arg| arg.to_owned()).collect()).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("usage: "), "{error}");
    }
}
