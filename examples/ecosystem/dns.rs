//! DNS: hickory's resolver on mini, without a thread per name.
//!
//! Without arguments it asks a server that it starts on the loopback, and ends. With names, `dns example.org`, it asks
//! the servers of this machine (`/etc/resolv.conf`).
//!
//! The glue is `mini_hickory::MiniProvider`.

use std::net::{IpAddr, SocketAddr};

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{RData, Record, RecordType};
use hickory_resolver::Resolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use mini_ecosystem::certificate::Failure;
use mini_ecosystem::dns_server::{Answer, DnsServer, Transport, reply};
use mini_hickory::MiniProvider;

#[mini::main]
async fn main() -> Result<(), Failure> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    if !names.is_empty() {
        let resolver = Resolver::builder(MiniProvider::new())?.build()?;
        for name in names {
            print(&resolver, &name).await;
        }
        return Ok(());
    }
    let server = DnsServer::bind().await?;
    let addr = server.addr()?;
    let serving = mini::spawn(server.serve(zone));
    let resolver = Resolver::builder_with_config(only(addr), MiniProvider::new()).build()?;
    for name in ["small.test.", "large.test.", "unknown.test."] {
        print(&resolver, name).await;
    }
    serving.cancel().await.ok();
    Ok(())
}

async fn print(resolver: &Resolver<MiniProvider>, name: &str) {
    match resolver.lookup_ip(name).await {
        Ok(found) => {
            let addrs: Vec<IpAddr> = found.iter().collect();
            println!("{name} has {} addresses, such as {}", addrs.len(), addrs[0]);
        }
        Err(error) => println!("{name}: {error}"),
    }
}

fn only(server: SocketAddr) -> ResolverConfig {
    let mut config = NameServerConfig::udp_and_tcp(server.ip());
    for connection in &mut config.connections {
        connection.port = server.port();
    }
    ResolverConfig::from_parts(None, vec![], vec![config])
}

/// `small.test` has one address; `large.test` so many that they take TCP.
fn zone(transport: Transport, query: &Message) -> Answer {
    let question = &query.queries[0];
    let count = match question.name().to_ascii().as_str() {
        "small.test." => 1,
        "large.test." => 200,
        _ => return reply(query, ResponseCode::NXDomain).into(),
    };
    let mut answer = reply(query, ResponseCode::NoError);
    if transport == Transport::Udp && count > 10 {
        return answer.truncate().into();
    }
    if question.query_type() == RecordType::A {
        let addrs = (1..=count).map(|last| IpAddr::from([192, 0, 2, last]));
        answer.add_answers(addrs.map(|addr| Record::from_rdata(question.name().clone(), 60, RData::from(addr))));
    }
    answer.into()
}
