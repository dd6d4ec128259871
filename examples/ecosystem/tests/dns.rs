//! hickory's resolver on mini against a server on the loopback that answers, lies, or says nothing.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_net::NetError;
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{RData, Record, RecordType};
use hickory_resolver::Resolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ProtocolConfig, ResolverConfig};
use mini::task::{JoinHandle, JoinSet};
use mini_ecosystem::dns_server::{Answer, DnsServer, Transport, encoded, reply};
use mini_hickory::MiniProvider;
use mini_tests::LIMIT;
use mini_tests::net_support::{refusing_port, udp};

#[path = "support/scenarios.rs"]
mod scenarios;

/// How long a test waits for an answer that does not come.
const PATIENCE: Duration = Duration::from_millis(200);

/// A resolver that asks `server` once, and waits so long for an answer.
fn resolver(server: SocketAddr, patience: Duration, protocols: &[ProtocolConfig]) -> Resolver<MiniProvider> {
    let connections = protocols.iter().map(|protocol| {
        let mut connection = ConnectionConfig::new(protocol.clone());
        connection.port = server.port();
        connection
    });
    let config = NameServerConfig::new(server.ip(), true, connections.collect());
    let config = ResolverConfig::from_parts(None, vec![], vec![config]);
    let mut builder = Resolver::builder_with_config(config, MiniProvider::new());
    builder.options_mut().timeout = patience;
    builder.options_mut().attempts = 0;
    builder.build().expect("a resolver")
}

const BOTH: &[ProtocolConfig] = &[ProtocolConfig::Udp, ProtocolConfig::Tcp];

/// A server, and its resolver.
async fn serving(
    patience: Duration,
    answer: impl Fn(Transport, &Message) -> Answer + Send + Sync + 'static,
) -> (JoinHandle<std::io::Result<()>>, Resolver<MiniProvider>) {
    let server = DnsServer::bind().await.expect("a free port");
    let addr = server.addr().expect("bound");
    (mini::spawn(server.serve(answer)), resolver(addr, patience, BOTH))
}

/// Ends both; returns when the server's sockets are closed.
async fn end(server: JoinHandle<std::io::Result<()>>, resolver: Resolver<MiniProvider>) {
    drop(resolver);
    server.cancel().await.expect_err("it serves for ever");
}

/// An answer of `count` addresses.
fn addresses(query: &Message, count: u8) -> Message {
    let mut answer = reply(query, ResponseCode::NoError);
    let question = &query.queries[0];
    if question.query_type() == RecordType::A {
        let addrs = (0..count).map(|last| RData::from(IpAddr::from([192, 0, 2, last])));
        answer.add_answers(addrs.map(|addr| Record::from_rdata(question.name().clone(), 60, addr)));
    }
    answer
}

fn silence() -> Answer {
    Answer::Messages(vec![])
}

async fn count(resolver: &Resolver<MiniProvider>, name: &str) -> Result<usize, NetError> {
    Ok(resolver.lookup_ip(name).await?.iter().count())
}

async fn an_address() {
    let (server, resolver) = serving(LIMIT, |_, query| addresses(query, 1).into()).await;
    let found = resolver.lookup_ip("host.test.").await.expect("an address");
    assert_eq!(found.iter().collect::<Vec<_>>(), [IpAddr::from([192, 0, 2, 0])]);
    end(server, resolver).await;
}

async fn an_answer_that_is_cut_off_comes_over_tcp() {
    let (server, resolver) = serving(LIMIT, |transport, query| {
        let whole = addresses(query, 250);
        if transport == Transport::Udp { whole.truncate().into() } else { whole.into() }
    })
    .await;
    assert_eq!(count(&resolver, "large.test.").await.expect("addresses"), 250);
    // Over the same connection.
    assert_eq!(count(&resolver, "larger.test.").await.expect("addresses"), 250);
    end(server, resolver).await;
}

async fn a_name_that_does_not_exist() {
    let (server, resolver) = serving(LIMIT, |_, query| reply(query, ResponseCode::NXDomain).into()).await;
    let error = resolver.lookup_ip("nowhere.test.").await.expect_err("no such name");
    assert!(error.is_nx_domain(), "{error:?}");
    end(server, resolver).await;
}

async fn a_server_that_refuses() {
    let (server, resolver) = serving(LIMIT, |_, query| reply(query, ResponseCode::Refused).into()).await;
    let error = resolver.lookup_ip("secret.test.").await.expect_err("refused");
    assert!(error.to_string().contains("Refused") || error.to_string().contains("refused"), "{error:?}");
    end(server, resolver).await;
}

async fn a_hundred_lookups_at_once() {
    let (server, resolver) = serving(LIMIT, |_, query| {
        let name = query.queries[0].name().to_ascii();
        let number = name.trim_start_matches("host").trim_end_matches(".test.").parse();
        addresses(query, number.expect("a number")).into() // within a datagram
    })
    .await;
    let mut lookups = JoinSet::new();
    for number in (1..=50).chain(1..=50) {
        let resolver = resolver.clone();
        lookups.spawn(async move { (number, count(&resolver, &format!("host{number}.test.")).await) });
    }
    while let Some(found) = lookups.join_next().await {
        let (number, found) = found.expect("no panic");
        assert_eq!(found.expect("addresses"), number);
    }
    end(server, resolver).await;
}

async fn answers_to_other_questions_are_passed_over() {
    let (server, resolver) = serving(LIMIT, |_, query| {
        let right = addresses(query, 3);
        let mut other_number = addresses(query, 66);
        other_number.metadata.id ^= 1;
        let mut other_name = addresses(query, 66);
        other_name.queries[0].set_name("evil.test.".parse().expect("a name"));
        Answer::Messages(vec![vec![], vec![7], encoded(&other_number), encoded(&other_name), encoded(&right)])
    })
    .await;
    assert_eq!(count(&resolver, "host.test.").await.expect("addresses"), 3);
    end(server, resolver).await;
}

async fn garbage_with_the_right_number_is_an_error() {
    for protocol in BOTH {
        let server = DnsServer::bind().await.expect("a free port");
        let resolver = resolver(server.addr().expect("bound"), PATIENCE, std::slice::from_ref(protocol));
        let server = mini::spawn(server.serve(|_, query| {
            // A head that promises a question and 65,535 answers, and nothing of them.
            let id = query.metadata.id.to_be_bytes();
            Answer::Messages(vec![[&id[..], &[0x81, 0x80, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0xc0]].concat()])
        }));
        let error = count(&resolver, "host.test.").await.expect_err("garbage");
        // Over TCP the message stands for itself, so nobody knows which query it answers.
        assert!(matches!(error, NetError::Proto(_) | NetError::Timeout | NetError::Io(_)), "{protocol:?}: {error:?}");
        end(server, resolver).await;
    }
}

async fn no_answer_is_a_timeout() {
    let (server, resolver) = serving(PATIENCE, |_, _| silence()).await;
    let error = count(&resolver, "silent.test.").await.expect_err("silence");
    assert!(matches!(error, NetError::Timeout), "{error:?}");
    end(server, resolver).await;
}

async fn a_connection_that_breaks_off() {
    let (server, resolver) = serving(PATIENCE, |transport, query| match transport {
        Transport::Udp => addresses(query, 1).truncate().into(),
        Transport::Tcp => {
            let whole = encoded(&addresses(query, 10));
            let length = (whole.len() as u16).to_be_bytes();
            Answer::HangUp([&length, &whole[..whole.len() / 2]].concat())
        }
    })
    .await;
    count(&resolver, "host.test.").await.expect_err("half an answer");
    end(server, resolver).await;
}

async fn a_server_that_is_not_there() {
    let (_keeps_the_port, addr) = refusing_port();
    let resolver = resolver(addr, LIMIT, &[ProtocolConfig::Tcp]);
    let error = count(&resolver, "host.test.").await.expect_err("nobody there");
    assert!(matches!(error, NetError::NoConnections | NetError::Io(_)), "{error:?}");
}

async fn a_lookup_that_is_dropped_closes_its_socket() {
    let server = udp().await;
    let resolver = resolver(server.local_addr().expect("bound"), LIMIT, &[ProtocolConfig::Udp]);
    let lookup = mini::spawn(async move { count(&resolver, "host.test.").await });
    let (_, from) = server.recv_from(&mut [0; 512]).await.expect("a query");
    lookup.cancel().await.expect_err("nobody has answered");
    mini_tests::until(|| std::net::UdpSocket::bind(from).is_ok()).await;
}

mod each {
    use super::scenarios::scenarios;

    scenarios! {
        an_address,
        an_answer_that_is_cut_off_comes_over_tcp,
        a_name_that_does_not_exist,
        a_server_that_refuses,
        a_hundred_lookups_at_once,
        answers_to_other_questions_are_passed_over,
        garbage_with_the_right_number_is_an_error,
        no_answer_is_a_timeout,
        a_connection_that_breaks_off,
        a_server_that_is_not_there,
        a_lookup_that_is_dropped_closes_its_socket,
    }
}
