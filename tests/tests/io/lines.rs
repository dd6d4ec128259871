//! Lines and other parts out of a buffered reader: whole, cut off, broken, and given up half-way.

use std::io::ErrorKind;
use std::time::Duration;

use mini::io::{AsyncBufReadExt, AsyncReadExt, BufReader, StreamExt};
use mini::net::{TcpListener, TcpStream, UnixStream};
use mini_tests::net_support::in_each_world;
use mini_tests::{Counts, poll_with};

/// Two ends of a connection over which the text came, and then a reset.
async fn cut_off(text: &[u8]) -> BufReader<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    client.write_all(text).await.unwrap();
    let mut reader = BufReader::new(server);
    while reader.buffer().len() < text.len() {
        assert_eq!(reader.buffer().len(), 0, "so few bytes come at once");
        reader.fill_buf().await.unwrap();
        if reader.buffer().len() < text.len() {
            return Box::pin(cut_off(text)).await; // they came in pieces: a simulation does that
        }
    }
    client.set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    reader
}

#[test]
fn a_reset_in_the_middle_of_a_line_is_an_error_and_no_line() {
    in_each_world(|| async {
        let mut text = String::from("before ");
        let error = cut_off(b"partial").await.read_line(&mut text).await.unwrap_err();
        assert_eq!((error.kind(), &text[..]), (ErrorKind::ConnectionReset, "before "));

        let mut lines = cut_off(b"whole\npartial").await.lines();
        assert_eq!(lines.next().await.unwrap().unwrap(), "whole");
        assert_eq!(lines.next().await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(lines.next().await.is_none());

        let mut parts = cut_off(b"whole,partial").await.split(b',');
        assert_eq!(parts.next().await.unwrap().unwrap(), b"whole");
        assert_eq!(parts.next().await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(parts.next().await.is_none());

        let mut bytes = b"before ".to_vec();
        cut_off(b"partial").await.read_until(b'\n', &mut bytes).await.unwrap_err();
        assert_eq!(bytes, b"before partial");
    });
}

#[mini::test]
async fn lines_are_appended_and_counted() {
    let mut reader = BufReader::with_capacity(2, &b"one\r\n\n\xc3\xa9\nend"[..]);
    let mut text = String::from("> ");
    for count in [5, 1, 3, 3, 0] {
        assert_eq!(reader.read_line(&mut text).await.unwrap(), count);
    }
    assert_eq!(text, "> one\r\n\n\u{e9}\nend");

    let lines = BufReader::with_capacity(2, &b"one\r\n\r\n\n\xc3\xa9\nend\r"[..]).lines();
    let lines: Vec<String> = lines.try_collect().await.unwrap();
    assert_eq!(lines, ["one", "", "", "\u{e9}", "end\r"]);

    let parts = BufReader::with_capacity(3, &b"a,,b,"[..]).split(b',');
    let parts: Vec<Vec<u8>> = parts.try_collect().await.unwrap();
    assert_eq!(parts, [&b"a"[..], b"", b"b"]);
}

#[mini::test]
async fn a_line_that_is_no_text_is_an_error_and_the_next_one_comes() {
    let bytes = &b"one\n\xff\xfe\nthree\n"[..];
    let mut lines = BufReader::new(bytes).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "one");
    assert_eq!(lines.next_line().await.unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "three");
    assert!(lines.next_line().await.unwrap().is_none());

    let (mut reader, mut text) = (BufReader::new(bytes), String::new());
    reader.read_line(&mut text).await.unwrap();
    assert_eq!(reader.read_line(&mut text).await.unwrap_err().kind(), ErrorKind::InvalidData);
    reader.read_line(&mut text).await.unwrap();
    assert_eq!(text, "one\nthree\n");
}

#[test]
fn a_line_that_is_given_up_goes_on() {
    in_each_world(|| async {
        let (client, server) = UnixStream::pair().unwrap();
        let mut lines = BufReader::new(server).lines();
        client.write_all(b"hel").await.unwrap();
        let counts = Counts::new();
        assert!(poll_with(&mut lines.next_line(), &counts).is_pending());
        client.write_all(b"lo\n").await.unwrap();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "hello");

        let (client, server) = UnixStream::pair().unwrap();
        let (mut reader, mut line) = (BufReader::new(server), Vec::new());
        client.write_all(b"hel").await.unwrap();
        assert!(poll_with(&mut reader.read_until(b'\n', &mut line), &counts).is_pending());
        client.write_all(b"lo\n").await.unwrap();
        reader.read_until(b'\n', &mut line).await.unwrap();
        assert_eq!(line, b"hello\n");
    });
}

#[mini::test]
async fn who_reads_from_a_part_is_bounded() {
    let mut line = Vec::new();
    let mut reader = BufReader::new(&b"a line without an end"[..]);
    assert_eq!((&mut reader).take(6).read_until(b'\n', &mut line).await.unwrap(), 6);
    assert_eq!(line, b"a line");
    assert_eq!(reader.fill_buf().await.unwrap(), b" without an end");
    AsyncBufReadExt::consume(&mut reader, 15);
    assert_eq!(reader.fill_buf().await.unwrap(), b"");
}
