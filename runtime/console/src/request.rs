//! `Request`: what a client asks for, read from the head of an HTTP/1.1 request (RFC 9112), or why it is refused.
//!
//! The hard part is that a browser runs pages of any server. A page from elsewhere may have its own name resolve to
//! 127.0.0.1 once it is loaded, and then has the same origin (DNS rebinding). Its requests have that name as their
//! `Host`, so a host that is a name is refused. Such a page may also open the stream of events by this server's
//! address. That takes a place, though the browser lets no script read it: `Sec-Fetch-Site` reveals it.
//!
//! Rejected: keep-alive. A page makes two requests, and a connection that may have a second one needs the end of each
//! body to be found, which is where servers go wrong.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Page,
    Events,
    Json,
    Trace,
}

/// Why a client gets nothing: status and reason of an answer, and a sentence for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: &'static str,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(status: &'static str, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
}

const BAD: &str = "400 Bad Request";
const FORBIDDEN: &str = "403 Forbidden";

impl Request {
    /// Reads `head`, which ends before the empty line. Hosts that are addresses but not of this computer are allowed if
    /// `allows_remote`.
    pub(crate) fn parse(head: &[u8], allows_remote: bool) -> Result<Self, Refusal> {
        let not_text = |_| Refusal::new(BAD, "the request is not text");
        let mut lines = std::str::from_utf8(head).map_err(not_text)?.split("\r\n");
        let target = target(lines.next().unwrap_or_default())?;
        let (mut host, mut site) = (None, None);
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(|| Refusal::new(BAD, "a header has no colon"))?;
            if name.is_empty() || name.contains(|c: char| c.is_ascii_whitespace()) {
                return Err(Refusal::new(BAD, "the name of a header is empty or has a space"));
            }
            let value = value.trim_matches([' ', '\t']);
            if name.eq_ignore_ascii_case("host") && host.replace(value).is_some() {
                return Err(Refusal::new(BAD, "there are two Host headers"));
            }
            if name.eq_ignore_ascii_case("sec-fetch-site") {
                site = Some(value);
            }
        }
        check_host(host.ok_or_else(|| Refusal::new(BAD, "there is no Host header"))?, allows_remote)?;
        let request = match target.split_once('?').map_or(target, |(path, _)| path) {
            "/" => Self::Page,
            "/events" => Self::Events,
            "/json" => Self::Json,
            "/trace" => Self::Trace,
            _ => {
                return Err(Refusal::new(
                    "404 Not Found",
                    "the paths are / (the page), /events and /json (its data), and /trace",
                ));
            }
        };
        match site {
            Some(site) if request != Self::Page && !["same-origin", "none"].contains(&site) => {
                Err(Refusal::new(FORBIDDEN, "the request comes from a page of another site: open / instead"))
            }
            _ => Ok(request),
        }
    }
}

/// What the request line asks for.
fn target(line: &str) -> Result<&str, Refusal> {
    let bad = || Refusal::new(BAD, "the request line is not METHOD TARGET HTTP/1.1");
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad());
    };
    if !version.starts_with("HTTP/") || method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(bad());
    }
    if !["HTTP/1.1", "HTTP/1.0"].contains(&version) {
        return Err(Refusal::new("505 HTTP Version Not Supported", "only HTTP/1.1 is supported"));
    }
    if method != "GET" {
        return Err(Refusal::new("405 Method Not Allowed", format!("{method} is not supported: use GET")));
    }
    Ok(target)
}

/// Whether the client knows this server by an address, or as `localhost`.
fn check_host(host: &str, allows_remote: bool) -> Result<(), Refusal> {
    let bad = || Refusal::new(BAD, "the Host header is not a host");
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(bad)?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    if !port.is_empty() && !is_port(port) {
        return Err(bad());
    }
    let is_loopback = if host.starts_with('[') {
        name.parse().map(|ip: Ipv6Addr| ip.to_canonical().is_loopback()).ok()
    } else {
        name.parse().map(|ip: Ipv4Addr| ip.is_loopback()).ok()
    };
    if name.eq_ignore_ascii_case("localhost") || is_loopback.is_some_and(|is_loopback| is_loopback || allows_remote) {
        return Ok(());
    }
    Err(Refusal::new(
        FORBIDDEN,
        "open this page as localhost or by its address: a request for another name may come from a page of another \
         site",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &str) -> Result<Request, &'static str> {
        Request::parse(head.as_bytes(), false).map_err(|refusal| &refusal.status[..3])
    }

    #[test]
    fn what_is_there_is_found() {
        assert_eq!(parse("GET / HTTP/1.1\r\nHost: localhost"), Ok(Request::Page));
        assert_eq!(parse("GET /?a=b HTTP/1.0\r\nhOST:127.0.0.1:7669 "), Ok(Request::Page));
        assert_eq!(parse("GET /events HTTP/1.1\r\nAccept: */*\r\nHost: [::1]:80"), Ok(Request::Events));
        assert_eq!(parse("GET /json HTTP/1.1\r\nHost: localhost"), Ok(Request::Json));
        assert_eq!(parse("GET /trace HTTP/1.1\r\nHost: LOCALHOST:1"), Ok(Request::Trace));
    }

    #[test]
    fn what_is_wrong_has_its_status() {
        let with_host = |line: &str| parse(&format!("{line}\r\nHost: localhost"));
        assert_eq!(with_host("GET /x HTTP/1.1"), Err("404"));
        assert_eq!(with_host("GET http://localhost/ HTTP/1.1"), Err("404"));
        assert_eq!(with_host("POST / HTTP/1.1"), Err("405"));
        assert_eq!(with_host("GET / HTTP/2.0"), Err("505"));
        for line in ["", "GET /", "GET / HTTP/1.1 ", "GET  / HTTP/1.1", "get / HTTP/1.1", "\u{16}\u{3}\u{1} x y"] {
            assert_eq!(with_host(line), Err("400"), "{line:?}");
        }
        for headers in ["", "\r\nx", "\r\nHost : localhost", "\r\nHost: localhost\r\nHost: localhost", "\r\n: x"] {
            assert_eq!(parse(&format!("GET / HTTP/1.1{headers}")), Err("400"), "{headers:?}");
        }
        assert_eq!(Request::parse(b"GET / HTTP/1.1\r\nHost: \xff", false).unwrap_err().status, BAD);
    }

    #[test]
    fn a_host_is_an_address_and_of_this_computer() {
        let ask = |host: &str, remote| {
            let head = format!("GET / HTTP/1.1\r\nHost: {host}");
            Request::parse(head.as_bytes(), remote).map_err(|refusal| refusal.status)
        };
        for host in ["localhost", "127.0.0.1", "127.9.9.9:80", "[::1]", "[::ffff:127.0.0.1]:80"] {
            assert_eq!(ask(host, false), Ok(Request::Page), "{host}");
        }
        for host in ["10.0.0.1", "10.0.0.1:80", "[fe80::1]:80", "0.0.0.0"] {
            assert_eq!(ask(host, false), Err(FORBIDDEN), "{host}");
            assert_eq!(ask(host, true), Ok(Request::Page), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "1", "", "[127.0.0.1]"] {
            assert_eq!(ask(host, true), Err(FORBIDDEN), "{host}");
        }
        for host in ["localhost:x", "localhost@evil:80", "[::1", "[::1]x", "::1", "localhost:1:2"] {
            assert_eq!(ask(host, true), if host == "localhost@evil:80" { Err(FORBIDDEN) } else { Err(BAD) }, "{host}");
        }
    }

    #[test]
    fn another_servers_page_gets_no_events() {
        let ask =
            |path: &str, site: &str| parse(&format!("GET {path} HTTP/1.1\r\nHost: [::1]\r\nSec-Fetch-Site: {site}"));
        assert_eq!(ask("/events", "same-origin"), Ok(Request::Events));
        assert_eq!(ask("/events", "none"), Ok(Request::Events));
        assert_eq!(ask("/", "cross-site"), Ok(Request::Page)); // a link to it
        assert_eq!(ask("/events", "cross-site"), Err("403"));
        assert_eq!(ask("/trace", "same-site"), Err("403"));
    }
}
