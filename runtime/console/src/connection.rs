//! `Connection`: one request and its answer, or events until the client goes.
//!
//! Each step has a limit in time and bytes: a client that sends its request slowly, reads its answer slowly or has gone
//! without a word loses its place to the next.

use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::time::Duration;

use mini::net::TcpStream;
use mini::time::timeout;

use crate::page::PAGE;
use crate::request::{Refusal, Request};
use crate::server::Site;

/// The head of a request is no longer than this: a browser's has less than 2 KiB.
const HEAD: usize = 8 << 10;

/// How long a client may take to send the head of its request.
const HEAD_TIME: Duration = Duration::from_secs(5);

/// How long a client may take to receive an answer, or an event.
const SEND_TIME: Duration = Duration::from_secs(10);

/// A trace is sent in parts of so many bytes, each with that time: it may have many megabytes.
const PART: usize = 256 << 10;

/// How long a connection is read from once it has its answer. To close it with something unread could cost the client
/// the answer (RFC 9112, section 9.6).
const LINGER: Duration = Duration::from_secs(1);

/// What comes behind the head is read, up to here, and ignored.
const IGNORED: usize = 64 << 10;

/// Only this page's own style and script, and nothing from elsewhere; in no frame of another page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) struct Connection<'a> {
    stream: &'a TcpStream,
    site: &'a Site,
}

impl<'a> Connection<'a> {
    pub(crate) fn new(stream: &'a TcpStream, site: &'a Site) -> Self {
        Self { stream, site }
    }

    /// Reads a request and answers it. If the client goes, there is nobody to tell.
    pub(crate) async fn serve(self) {
        let request = match timeout(HEAD_TIME, self.head()).await {
            Ok(Ok(Some(head))) => Request::parse(&head, self.site.settings.allows_remote),
            Ok(Ok(None)) => Err(Refusal::new(
                "431 Request Header Fields Too Large",
                format!("the head of a request may have {HEAD} bytes"),
            )),
            Ok(Err(_)) => return, // the client has gone
            Err(_) => Err(Refusal::new("408 Request Timeout", format!("no request arrived within {HEAD_TIME:?}"))),
        };
        let is_sent = match request {
            Ok(Request::Events) => self.events().await,
            Ok(Request::Page) => self.send(&answer("200 OK", "text/html", PAGE)).await,
            Ok(Request::Json) => self.json().await,
            Ok(Request::Trace) => self.trace().await,
            Err(refusal) => self.refuse(refusal).await,
        };
        if is_sent.is_ok() && self.stream.shutdown(Shutdown::Write).is_ok() {
            let _ = timeout(LINGER, self.gone()).await;
        }
    }

    /// The head of the request, without the empty line at its end; or `None`, if it is too long.
    async fn head(&self) -> io::Result<Option<Vec<u8>>> {
        let (mut head, mut len) = (vec![0; HEAD], 0);
        loop {
            match self.stream.read(&mut head[len..]).await? {
                0 if len == HEAD => return Ok(None),
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => len += read,
            }
            if let Some(end) = head[..len].windows(4).position(|end| end == b"\r\n\r\n") {
                head.truncate(end);
                return Ok(Some(head));
            }
        }
    }

    async fn refuse(&self, refusal: Refusal) -> io::Result<()> {
        self.send(&answer(refusal.status, "text/plain", &format!("{}\n", refusal.text))).await
    }

    async fn send(&self, bytes: &str) -> io::Result<()> {
        timeout(SEND_TIME, self.stream.write_all(bytes.as_bytes())).await?
    }

    /// Sends the event that the page shows, or a new one if no page is open.
    async fn json(&self) -> io::Result<()> {
        let shown = self.site.events.borrow().clone();
        let event = match shown {
            Some(event) => event,
            None => self.site.new_event().await?,
        };
        self.send(&head("200 OK", "application/json", Some(event.len()))).await?;
        self.send(&event).await
    }

    /// Sends what the flight recorder has, unless another client is being sent that. It is sorted on another thread, as
    /// that takes its time.
    async fn trace(&self) -> io::Result<()> {
        let Ok(_place) = self.site.traces.try_acquire() else {
            let text = "another client is downloading a trace: try again when that has ended";
            return self.refuse(Refusal::new("503 Service Unavailable", text)).await;
        };
        let watched = self.site.settings.watched.clone();
        match mini::spawn_blocking(move || watched.trace()).await.map_err(io::Error::other)? {
            Ok(trace) => {
                self.send(&head("200 OK", "application/octet-stream", Some(trace.len()))).await?;
                for part in trace.chunks(PART) {
                    timeout(SEND_TIME, self.stream.write_all(part)).await??;
                }
                Ok(())
            }
            Err(error) => self.refuse(Refusal::new("404 Not Found", error.to_string())).await,
        }
    }

    /// Sends the newest event, over and over (HTML, section 9.2, "Server-sent events").
    async fn events(&self) -> io::Result<()> {
        let mut events = self.site.events.subscribe();
        events.mark_changed(); // the last event, if there is one
        self.site.listened.notify_one();
        self.send(&head("200 OK", "text/event-stream", None)).await?;
        loop {
            mini::race! {
                changed = events.changed() => changed.map_err(io::Error::other)?,
                _ = self.gone() => return Err(ErrorKind::ConnectionReset.into()),
            }
            let event = events.borrow_and_update().clone(); // the guard is not kept while it is sent
            if let Some(event) = event {
                self.send("data: ").await?;
                self.send(&event).await?;
                self.send("\n\n").await?;
            }
        }
    }

    /// Ready when the client has closed the connection, or sends more than is worth to be read.
    async fn gone(&self) {
        let (mut buf, mut left) = ([0; 1024], IGNORED);
        while let Ok(read @ 1..) = self.stream.read(&mut buf).await {
            left = left.saturating_sub(read);
            if left == 0 {
                return;
            }
        }
    }
}

/// Tells a client that there are `others` already, if that can be told at once.
pub(crate) fn refuse(stream: &TcpStream, others: usize) {
    let text = format!("{others} clients are connected already: close a page, or wait some seconds\n");
    let _ = stream.try_write(answer("503 Service Unavailable", "text/plain", &text).as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
}

fn answer(status: &str, kind: &str, body: &str) -> String {
    let mut text = head(status, kind, Some(body.len()));
    text.push_str(body);
    text
}

/// The head of an answer. It ends with the connection, or after a body of `len` bytes.
fn head(status: &str, kind: &str, len: Option<usize>) -> String {
    let charset = if kind.starts_with("text/") { "; charset=utf-8" } else { "" };
    let mut text = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}{charset}\r\n");
    if let Some(len) = len {
        let _ = write!(text, "Content-Length: {len}\r\n"); // a `String` takes all
    }
    if status.starts_with("405") {
        text.push_str("Allow: GET\r\n");
    }
    let _ = write!(text, "Content-Security-Policy: {POLICY}\r\n");
    text.push_str("Cache-Control: no-store\r\nConnection: close\r\nCross-Origin-Resource-Policy: same-origin\r\n");
    text.push_str("Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\r\n");
    text
}
