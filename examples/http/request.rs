//! Requests: parses the parts that the server has to know (RFC 9112). Nothing in here waits.

use std::mem::MaybeUninit;

use httparse::{Error, Header, Status::Complete, Status::Partial};

use super::response::{
    BAD_REQUEST, EXPECTATION_FAILED, HEADERS_TOO_LARGE, NOT_IMPLEMENTED, Status, VERSION_NOT_SUPPORTED,
};

/// The most header lines a request may have.
const MAX_HEADERS: usize = 64;

pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub is_http_10: bool,
    /// Whether the client wants to go on with this connection.
    pub(crate) keeps_alive: bool,
    pub(crate) body: Body,
    /// It sends its body only if it is told to (RFC 9110, section 10.1.1).
    pub(crate) expects_continue: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// This many bytes; zero if there is no body.
    Length(u64),
    Chunked,
}

/// The request that `bytes` begin with, and its length up to its body; `None` if it is not complete.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, Status> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut []);
    let length = match parsed.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(Complete(length)) => length,
        Ok(Partial) => return Ok(None),
        Err(Error::TooManyHeaders) => return Err(HEADERS_TOO_LARGE),
        Err(Error::Version) if names_a_version(bytes) => return Err(VERSION_NOT_SUPPORTED),
        Err(_) => return Err(BAD_REQUEST),
    };
    let is_http_10 = parsed.version == Some(0);
    let method = match parsed.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => Method::Other,
    };
    let target = parsed.path.unwrap_or_default().to_owned();
    let hosts = all(parsed.headers, "host").count();
    if hosts > 1 || hosts == 0 && !is_http_10 {
        return Err(BAD_REQUEST); // RFC 9112, section 3.2
    }
    let request = Request {
        method,
        target,
        is_http_10,
        keeps_alive: keeps_alive(parsed.headers, is_http_10),
        body: body(parsed.headers, is_http_10)?,
        expects_continue: expects_continue(parsed.headers)?,
    };
    Ok(Some((request, length)))
}

/// Whether the first line ends with a version of HTTP, be it one that nobody knows.
fn names_a_version(bytes: &[u8]) -> bool {
    let line = bytes.trim_ascii_start().split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.rsplit(|&byte| byte == b' ').next().is_some_and(|word| word.starts_with(b"HTTP/"))
}

/// RFC 9112, section 9.3.
fn keeps_alive(headers: &[Header<'_>], is_http_10: bool) -> bool {
    let has = |wanted: &str| {
        all(headers, "connection").flat_map(|value| value.split(|&b| b == b',')).any(|option| is(option, wanted))
    };
    !has("close") && (!is_http_10 || has("keep-alive"))
}

/// RFC 9112, section 6.3. Two contradicting lengths are refused: a proxy in between may believe the other one.
fn body(headers: &[Header<'_>], is_http_10: bool) -> Result<Body, Status> {
    let mut lengths = all(headers, "content-length");
    let mut codings = all(headers, "transfer-encoding");
    match (lengths.next(), codings.next()) {
        (None, None) => Ok(Body::Length(0)),
        (Some(digits), None) if lengths.next().is_none() => length(digits).map(Body::Length),
        (None, Some(coding)) if codings.next().is_none() && !is_http_10 => {
            if is(coding, "chunked") {
                Ok(Body::Chunked)
            } else {
                Err(NOT_IMPLEMENTED)
            }
        }
        _ => Err(BAD_REQUEST),
    }
}

/// A number that is too large is still a length; it is refused later as too long.
fn length(digits: &[u8]) -> Result<u64, Status> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(BAD_REQUEST);
    }
    Ok(digits.iter().fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))))
}

fn expects_continue(headers: &[Header<'_>]) -> Result<bool, Status> {
    match all(headers, "expect").next() {
        None => Ok(false),
        Some(value) if is(value, "100-continue") => Ok(true),
        Some(_) => Err(EXPECTATION_FAILED),
    }
}

/// The values of all headers of that name.
fn all<'a>(headers: &'a [Header<'_>], name: &str) -> impl Iterator<Item = &'a [u8]> {
    headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}

fn is(value: &[u8], wanted: &str) -> bool {
    value.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes())
}
