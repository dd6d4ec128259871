//! Answers: the status line, the headers, and short bodies that say what went wrong.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

/// A status code and its phrase (RFC 9110, section 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(&'static str);

pub(crate) const OK: Status = Status("200 OK");
pub(crate) const BAD_REQUEST: Status = Status("400 Bad Request");
pub(crate) const FORBIDDEN: Status = Status("403 Forbidden");
pub(crate) const NOT_FOUND: Status = Status("404 Not Found");
pub(crate) const METHOD_NOT_ALLOWED: Status = Status("405 Method Not Allowed");
pub(crate) const REQUEST_TIMEOUT: Status = Status("408 Request Timeout");
pub(crate) const CONTENT_TOO_LARGE: Status = Status("413 Content Too Large");
pub(crate) const EXPECTATION_FAILED: Status = Status("417 Expectation Failed");
pub(crate) const HEADERS_TOO_LARGE: Status = Status("431 Request Header Fields Too Large");
pub(crate) const INTERNAL_ERROR: Status = Status("500 Internal Server Error");
pub(crate) const NOT_IMPLEMENTED: Status = Status("501 Not Implemented");
pub(crate) const VERSION_NOT_SUPPORTED: Status = Status("505 HTTP Version Not Supported");

/// What becomes of the connection after an answer, and how the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    KeepAlive,
    /// A client of HTTP/1.0 expects a close unless it is told otherwise.
    KeepAlive10,
    Close,
}

/// Appends the head of an answer with a body of `length` bytes.
pub(crate) fn head(out: &mut Vec<u8>, status: Status, kind: &str, length: u64, then: Then) {
    let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
    put("HTTP/1.1 ");
    put(status.0);
    put("\r\nDate: ");
    with_date(&mut put);
    put("\r\nContent-Type: ");
    put(kind);
    put("\r\nContent-Length: ");
    put(&length.to_string());
    if status == METHOD_NOT_ALLOWED {
        put("\r\nAllow: GET, HEAD");
    }
    put(match then {
        Then::KeepAlive => "\r\n\r\n",
        Then::KeepAlive10 => "\r\nConnection: keep-alive\r\n\r\n",
        Then::Close => "\r\nConnection: close\r\n\r\n",
    });
}

/// Appends a whole answer that says no. To HEAD the text is not sent, but its length is.
pub(crate) fn refusal(out: &mut Vec<u8>, status: Status, then: Then, is_head: bool) {
    let text = format!("{}\n", status.0);
    head(out, status, "text/plain; charset=utf-8", text.len() as u64, then);
    if !is_head {
        out.extend_from_slice(text.as_bytes());
    }
}

/// Gives `f` the time in the format of RFC 9110, section 5.6.7, which is made once a second.
fn with_date(f: impl FnOnce(&str)) {
    thread_local!(static DATE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) });
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    DATE.with_borrow_mut(|(made, text)| {
        if *made != second || text.is_empty() {
            (*made, *text) = (second, httpdate::fmt_http_date(now));
        }
        f(text);
    });
}
