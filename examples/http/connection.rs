//! One connection: requests in, answers out, until either side has had enough.
//!
//! The hard part is that nothing a client says is trusted. Every wait for it has a limit, and the memory for it has an
//! upper bound: 16 KiB of what it sent, 64 KiB and a head of what is sent to it. So a client can hold up only itself.
//!
//! Answers gather in `out` while there are complete requests, and leave together: that is one write for a pipelined
//! batch, and one for a head with a small file behind it.
//!
//! Rejected: sendfile(2). It saves a copy for large files, and costs small ones a second packet.

use std::convert::Infallible;
use std::io;
use std::net::Shutdown;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use async_channel::Recv;
use futures_lite::future::or;
use httparse::Status::{Complete, Partial};
use mini::fs::File;
use mini::net::TcpStream;
use mini::time::{Duration, Instant, timeout, timeout_at};

use super::input::Input;
use super::request::{self, Body, Method, Request};
use super::response::{self, Status, Then};
use super::response::{BAD_REQUEST, CONTENT_TOO_LARGE, HEADERS_TOO_LARGE, METHOD_NOT_ALLOWED, OK, REQUEST_TIMEOUT};
use super::{Server, Stop, files};

/// This much of a file is in memory at once; so many bytes of answers wait for more answers.
const CHUNK: usize = 64 << 10;

/// The longest line in front of a chunk of a body.
const CHUNK_LINE: usize = 256;

/// How long, and for how many bytes, the server reads from a client that gets no further answer.
const LINGER: (Duration, usize) = (Duration::from_secs(1), 1 << 20);

pub(crate) struct Connection {
    stream: TcpStream,
    server: Arc<Server>,
    input: Input,
    /// What has to be sent.
    out: Vec<u8>,
}

/// Why a connection ends early.
enum End {
    /// The client has gone, or takes nothing, or the file became shorter.
    Broken(io::Error),
    /// With a last answer.
    Refused(Status),
}

type Stopped<'a, 'b> = Pin<&'a mut Recv<'b, Infallible>>;

impl Connection {
    pub(crate) fn new(stream: TcpStream, server: Arc<Server>) -> Connection {
        Connection { stream, server, input: Input::default(), out: Vec::new() }
    }

    /// Serves until the end. An error means that the client did not get all of its answers.
    pub(crate) async fn run(mut self, stop: Stop) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        match self.serve(&stop).await {
            Ok(()) => {}
            Err(End::Broken(error)) => return Err(error),
            Err(End::Refused(status)) => response::refusal(&mut self.out, status, Then::Close, false),
        }
        self.flush().await?;
        self.close().await
    }

    async fn serve(&mut self, stop: &Stop) -> Result<(), End> {
        let mut stopped = pin!(stop.recv());
        while let Some(request) = self.next(stopped.as_mut()).await? {
            let then = self.answer(&request, stop).await?;
            self.server.requests.fetch_add(1, Relaxed);
            if then == Then::Close {
                break;
            }
            if self.out.len() >= CHUNK {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// The next request; `None` if the client has ended, was silent for too long, or the server stops.
    async fn next(&mut self, mut stopped: Stopped<'_, '_>) -> Result<Option<Request>, End> {
        let limits = self.server.limits;
        // The deadline of the wait for a request. Blank lines do not restart it: else a client could do so for ever.
        let mut silence = None;
        let mut deadline = None; // of the head, from its first bytes on
        let mut seen = 0;
        loop {
            // A head that comes byte by byte is not parsed for each.
            if self.input.bytes()[seen..].contains(&b'\n') {
                if let Some((request, length)) = request::parse(self.input.bytes()).map_err(End::Refused)? {
                    self.input.consume(length);
                    return Ok(Some(request));
                }
                let blank = self.input.bytes().iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                self.input.consume(blank); // RFC 9112, section 2.2
            }
            if self.input.is_full() {
                return Err(End::Refused(HEADERS_TOO_LARGE));
            }
            seen = self.input.bytes().len();
            self.flush().await?;

            let received = if self.input.is_empty() {
                self.rest();
                deadline = None;
                let silence = *silence.get_or_insert_with(|| Instant::now() + limits.idle);
                let more = async { Some(self.input.fill(&self.stream).await) };
                let ended = async {
                    let _ = stopped.as_mut().await;
                    None
                };
                match timeout_at(silence, or(more, ended)).await {
                    Ok(Some(received)) => received?,
                    Ok(None) | Err(_) => return Ok(None),
                }
            } else {
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + limits.header);
                match timeout_at(deadline, self.input.fill(&self.stream)).await {
                    Ok(received) => received?,
                    Err(_) => return Err(End::Refused(REQUEST_TIMEOUT)),
                }
            };
            if received == 0 {
                return if self.input.is_empty() { Ok(None) } else { Err(End::Refused(BAD_REQUEST)) };
            }
        }
    }

    /// Answers one request, as far as it fits into `out`; longer files are sent on the way.
    async fn answer(&mut self, request: &Request, stop: &Stop) -> Result<Then, End> {
        let has_body = request.body != Body::Length(0);
        let skips_body = has_body && request.expects_continue; // it is told to keep it
        if has_body && !skips_body {
            self.flush().await?;
            let limit = self.server.limits.body;
            timeout(limit, self.drain(request.body)).await.unwrap_or(Err(End::Refused(REQUEST_TIMEOUT)))?;
        }
        let stops = stop.is_closed() && self.input.is_empty();
        let then = match request.keeps_alive && !skips_body && !stops {
            false => Then::Close,
            true if request.is_http_10 => Then::KeepAlive10,
            true => Then::KeepAlive,
        };
        let is_head = request.method == Method::Head;
        let found = match request.method {
            Method::Other => Err(METHOD_NOT_ALLOWED),
            _ => files::open(&self.server.root, &request.target).await,
        };
        match found {
            Err(status) => response::refusal(&mut self.out, status, then, is_head),
            Ok((file, length, kind)) => {
                response::head(&mut self.out, OK, kind, length, then);
                if !is_head {
                    self.send(file, length).await?;
                }
            }
        }
        Ok(then)
    }

    /// Sends `length` bytes of a file. The last ones stay in `out`.
    async fn send(&mut self, mut file: File, mut length: u64) -> Result<(), End> {
        while length > 0 {
            if self.out.len() >= CHUNK {
                self.flush().await?;
            }
            let begin = self.out.len();
            let room = (CHUNK - begin.min(CHUNK / 2)).min(usize::try_from(length).unwrap_or(CHUNK));
            self.out.resize(begin + room, 0);
            let read = file.read(&mut self.out[begin..]).await?;
            self.out.truncate(begin + read);
            if read == 0 {
                // The length was sent already: the only way left to say that it was wrong is to break off.
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter").into());
            }
            length -= read as u64;
        }
        Ok(())
    }

    /// Receives the body of a request and forgets it.
    async fn drain(&mut self, body: Body) -> Result<(), End> {
        let limit = self.server.limits.body_bytes;
        let Body::Length(length) = body else { return self.drain_chunks(limit).await };
        if length > limit {
            return Err(End::Refused(CONTENT_TOO_LARGE));
        }
        self.skip(length).await
    }

    /// RFC 9112, section 7.1. The framing of the chunks counts as well.
    async fn drain_chunks(&mut self, mut limit: u64) -> Result<(), End> {
        loop {
            let (line, size) = match httparse::parse_chunk_size(self.input.bytes()) {
                Ok(Complete(found)) => found,
                Ok(Partial) if self.input.bytes().len() < CHUNK_LINE => {
                    self.more().await?;
                    continue;
                }
                _ => return Err(End::Refused(BAD_REQUEST)),
            };
            self.input.consume(line);
            if size == 0 {
                return self.drain_trailers().await;
            }
            limit = limit.checked_sub(size.saturating_add(line as u64 + 2)).ok_or(End::Refused(CONTENT_TOO_LARGE))?;
            self.skip(size).await?;
            while self.input.bytes().len() < 2 {
                self.more().await?;
            }
            if !self.input.bytes().starts_with(b"\r\n") {
                return Err(End::Refused(BAD_REQUEST));
            }
            self.input.consume(2);
        }
    }

    async fn drain_trailers(&mut self) -> Result<(), End> {
        loop {
            let mut trailers = [httparse::EMPTY_HEADER; 16];
            match httparse::parse_headers(self.input.bytes(), &mut trailers) {
                Ok(Complete((length, _))) => {
                    self.input.consume(length);
                    return Ok(());
                }
                Ok(Partial) if !self.input.is_full() => self.more().await?,
                Ok(Partial) | Err(httparse::Error::TooManyHeaders) => return Err(End::Refused(HEADERS_TOO_LARGE)),
                Err(_) => return Err(End::Refused(BAD_REQUEST)),
            }
        }
    }

    async fn skip(&mut self, mut bytes: u64) -> Result<(), End> {
        loop {
            let here = self.input.bytes().len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
            self.input.consume(here);
            bytes -= here as u64;
            if bytes == 0 {
                return Ok(());
            }
            self.more().await?;
        }
    }

    /// Receives some more of a body.
    async fn more(&mut self) -> Result<(), End> {
        match self.input.fill(&self.stream).await? {
            0 => Err(End::Refused(BAD_REQUEST)),
            _ => Ok(()),
        }
    }

    /// Sends what has gathered. A client that doesn't take it in time is cut off, and its memory in the kernel freed.
    async fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let Ok(sent) = timeout(self.server.limits.write, self.stream.write_all(&self.out)).await else {
            self.stream.set_linger(Some(Duration::ZERO))?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not take its answer"));
        };
        self.out.clear();
        sent
    }

    /// Gives memory back: an idle connection should hold little.
    fn rest(&mut self) {
        self.input.shrink();
        if self.out.capacity() > 4 << 10 {
            self.out = Vec::new();
        }
    }

    /// Says that this was all, and waits until the client says so too: closing while the client sends would destroy the
    /// last answer on its way (RFC 9112, section 9.6).
    async fn close(self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        let (limit, mut bytes) = LINGER;
        let mut buf = [0; 1024];
        let listen = async {
            while let Ok(received @ 1..) = self.stream.read(&mut buf).await {
                bytes = bytes.saturating_sub(received);
                if bytes == 0 {
                    break;
                }
            }
        };
        let _ = timeout(limit, listen).await;
        Ok(())
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Broken(error)
    }
}
