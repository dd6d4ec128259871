//! Hosts: literal addresses, names, and a pool that fails.

use std::io::ErrorKind;
use std::net::{Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::task::Poll;

use mini_context::{IoKind, Reason, take_notes};

use super::rig::{Rig, Task};
use crate::{TcpStream, lookup_host};

fn no_pool() -> Rig {
    Rig::with_pool(|_| panic!("a literal address needs no pool"))
}

#[test]
fn literal_addresses_never_hop() {
    let mut rig = no_pool();
    let expected: SocketAddr = "127.0.0.1:80".parse().unwrap();
    let first = async |addrs: std::io::Result<crate::Addrs>| addrs.unwrap().next().unwrap();
    rig.block_on(async {
        assert_eq!(first(lookup_host("127.0.0.1:80").await).await, expected);
        assert_eq!(first(lookup_host(expected).await).await, expected);
        assert_eq!(first(lookup_host(expected).await).await, expected);
        assert_eq!(first(lookup_host(("127.0.0.1", 80)).await).await, expected);
        assert_eq!(first(lookup_host((String::from("127.0.0.1"), 80)).await).await, expected);
        assert_eq!(first(lookup_host((expected.ip(), 80)).await).await, expected);
        assert_eq!(first(lookup_host(String::from("127.0.0.1:80")).await).await, expected);
        assert_eq!(first(lookup_host(&[expected][..]).await).await, expected);
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 80));
        assert_eq!(first(lookup_host("[::1]:80").await).await, v6);
        assert_eq!(first(lookup_host(("::1", 80)).await).await, v6);
    });
}

#[test]
fn a_text_that_is_no_address_is_told_as_it_was_given() {
    let mut rig = no_pool();
    let texts = [
        ("localhost", "expected `host:port`"),
        ("localhost:", "`` is not a port"),
        (":80", "the host before the colon is missing"),
        ("localhost:port", "`port` is not a port, a number from 0 to 65535"),
        ("localhost:70000", "`70000` is not a port, a number from 0 to 65535"),
        ("", "expected `host:port`"),
    ];
    for (text, why) in texts {
        let error = rig.block_on(lookup_host(text)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(&format!("`{text}` is not an address: {why}")), "{error}");
    }
}

#[test]
fn a_name_is_looked_up_on_the_pool() {
    let mut rig = Rig::new();
    let addrs: Vec<_> = rig.block_on(lookup_host("localhost:80")).unwrap().collect();
    assert!(!addrs.is_empty() && addrs.iter().all(|addr| addr.ip().is_loopback() && addr.port() == 80));
}

#[test]
fn a_name_that_is_not_found_is_in_the_error() {
    let mut rig = Rig::new();
    // Reserved to never exist: RFC 6761, section 6.4.
    let error = rig.block_on(TcpStream::connect("nobody.invalid:80")).unwrap_err();
    assert!(error.to_string().starts_with("failed to connect to nobody.invalid:80: "), "{error}");
}

#[test]
fn a_lookup_that_waits_leaves_a_note() {
    let (give, take) = std::sync::mpsc::channel();
    let rig = Rig::with_pool(move |job| give.send(job).unwrap());
    let task = Task::new();
    let mut lookup = pin!(lookup_host("localhost:80"));
    assert!(task.poll(lookup.as_mut()).is_pending());
    let note = take_notes().wait.unwrap();
    assert_eq!((note.reason(), note.location().file()), (Reason::Io(IoKind::Resolve, -1), file!()));
    let job: Box<dyn FnOnce() + Send> = take.recv().unwrap();
    job();
    assert_eq!(task.wakes(), 1);
    assert!(task.poll(lookup.as_mut()).is_ready());
    drop(rig);
}

#[test]
fn a_pool_that_drops_the_job_is_an_error_and_not_a_hang() {
    let rig = Rig::with_pool(drop);
    let task = Task::new();
    let result = match task.poll(pin!(lookup_host("localhost:80"))) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it hangs"),
    };
    assert!(result.unwrap_err().to_string().contains("could not start a thread, or has shut down"));
    drop(rig);
}
