//! A client that reads one answer at a time, and clients that don't behave.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use httparse::Status::Complete;
use mini::net::TcpStream;

/// A connection to the server.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    /// Received, and not yet given out.
    buf: Vec<u8>,
}

/// What the server has said.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The value of a header; the empty string if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }
}

impl Client {
    pub(crate) async fn connect(server: SocketAddr) -> io::Result<Client> {
        Ok(Client { stream: TcpStream::connect(server).await?, buf: Vec::new() })
    }

    pub(crate) async fn send(&self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref()).await
    }

    /// Asks for a file, and goes on with the connection.
    pub(crate) async fn get(&mut self, target: &str) -> io::Result<Answer> {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n")).await?;
        self.answer().await
    }

    pub(crate) async fn answer(&mut self) -> io::Result<Answer> {
        self.answer_to("GET").await
    }

    /// The next answer; to `HEAD` it has no body. `UnexpectedEof` if the server has closed instead.
    pub(crate) async fn answer_to(&mut self, method: &str) -> io::Result<Answer> {
        let (length, mut answer) = loop {
            if let Some(found) = parse(&self.buf)? {
                break found;
            }
            self.receive().await?;
        };
        self.buf.drain(..length);
        let length =
            if method == "HEAD" { 0 } else { answer.header("content-length").parse().map_err(io::Error::other)? };
        while self.buf.len() < length {
            self.receive().await?;
        }
        answer.body = self.buf.drain(..length).collect();
        Ok(answer)
    }

    /// Waits until the server closes.
    pub(crate) async fn closed(&mut self) -> io::Result<()> {
        match self.receive().await {
            Ok(()) => Err(io::Error::other("the server said something instead of closing")),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn receive(&mut self) -> io::Result<()> {
        let mut part = [0; 16 << 10];
        match self.stream.read(&mut part).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            received => {
                self.buf.extend_from_slice(&part[..received]);
                Ok(())
            }
        }
    }
}

fn parse(bytes: &[u8]) -> io::Result<Option<(usize, Answer)>> {
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut parsed = httparse::Response::new(&mut headers);
    let Complete(length) = parsed.parse(bytes).map_err(io::Error::other)? else { return Ok(None) };
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers = parsed.headers.iter().map(|header| (header.name.to_owned(), text(header.value))).collect();
    Ok(Some((length, Answer { status: parsed.code.unwrap_or(0), headers, body: Vec::new() })))
}

/// The ways in which [`misbehave`] does.
pub(crate) const MISDEEDS: usize = 8;

/// One client that does something a server has to survive. How it ends does not matter.
///
/// `big` is the target of a file that doesn't fit into the buffers of a socket.
pub(crate) async fn misbehave(server: SocketAddr, way: usize, big: &str) -> io::Result<()> {
    let mut client = Client::connect(server).await?;
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n");
    match way % MISDEEDS {
        0 => client.send("\x16\x03\x01 this is no HTTP\r\n\r\n").await?,
        1 => client.send(format!("GET / HTTP/1.1\r\nHost: test\r\nCookie: {}\r\n\r\n", "x".repeat(20_000))).await?,
        2 => client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 99999999999999999999\r\n\r\n").await?,
        3 => client.send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n").await?,
        4 => client.send("GET / HTTP/1.1\r\nHo").await?, // and then nothing: slow beyond measure
        5 => return client.send("GET / HTTP/1.1\r\nHo").await, // abandoned
        6 => return client.send(get("/").repeat(20)).await, // pipelined, then closed
        _ => return client.send(get(big)).await,         // a large answer that nobody reads
    }
    while client.receive().await.is_ok() {} // what the others are told, up to the end
    Ok(())
}
