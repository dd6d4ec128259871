//! QUIC by quinn: a stream for each request, which begins with its number.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use mini::net::{UdpSocket, lookup_host};
use mini::sim::current;
use mini::time::timeout;
use mini_quinn::MiniRuntime;
use quinn::{Connection, Endpoint, EndpointConfig, IdleTimeout, Incoming, RecvStream, SendStream, TransportConfig};

use crate::endurance::{Failure, Ledger, Protocol, SERVER, body_of, endure};
use crate::tls::IDENTITY;

const LARGEST: usize = 1 << 20;

/// A server that has crashed says nothing: a connection of it ends after this.
const SILENCE: Duration = Duration::from_secs(1);

async fn endpoint(address: &str, server: Option<quinn::ServerConfig>) -> Result<Endpoint, Failure> {
    let socket = mini_quinn::socket(UdpSocket::bind(address).await?)?;
    let mut config = EndpointConfig::default();
    config.rng_seed(Some([current().rand() as u8; 32])); // so that a seed that fails fails again
    Ok(Endpoint::new_with_abstract_socket(config, server, socket, Arc::new(MiniRuntime))?)
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::try_from(SILENCE).expect("not too long")));
    Arc::new(transport)
}

/// Until the client is gone. A request that breaks off is the client's to find out.
async fn serve(incoming: Incoming, ledger: Ledger) {
    let Ok(connection) = incoming.await else { return };
    while let Ok((send, receive)) = connection.accept_bi().await {
        let ledger = ledger.clone();
        drop(mini::spawn(async move { answer(send, receive, ledger).await.unwrap_or_default() }));
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream, ledger: Ledger) -> Result<(), Failure> {
    let mut body = Bytes::from(receive.read_to_end(LARGEST).await?);
    let id = body.get_u32();
    send.write_all(&ledger.apply(id, body).await).await?;
    Ok(send.finish()?)
}

struct Quic(Connection, #[allow(dead_code)] Endpoint);

impl Protocol for Quic {
    const CLIENTS: u32 = 2; // quinn takes its time in a debug build

    async fn serve(ledger: Ledger) -> Result<(), Failure> {
        let mut config = IDENTITY.quic_server()?;
        config.transport_config(transport());
        let endpoint = endpoint("0.0.0.0:443", Some(config)).await?;
        while let Some(incoming) = endpoint.accept().await {
            drop(mini::spawn(serve(incoming, ledger.clone())));
        }
        Err("the endpoint is closed".into())
    }

    async fn connect() -> Result<Self, Failure> {
        let mut config = IDENTITY.quic_client()?;
        config.transport_config(transport());
        let mut endpoint = endpoint("0.0.0.0:0", None).await?;
        endpoint.set_default_client_config(config);
        let address = lookup_host((SERVER, 443)).await?.next().ok_or("no address")?;
        Ok(Self(endpoint.connect(address, SERVER)?.await?, endpoint))
    }

    async fn ask(&mut self, id: u32, body: Bytes) -> Result<Bytes, Failure> {
        let (mut send, mut receive) = self.0.open_bi().await?;
        send.write_all(&id.to_be_bytes()).await?;
        send.write_all(&body).await?;
        send.finish()?;
        Ok(receive.read_to_end(LARGEST).await?.into())
    }
}

#[mini::test(sim, seeds = 100)]
async fn quic_by_quinn() {
    endure::<Quic>().await;
}

/// As programs mostly make them: `Endpoint::new` with a socket of the standard library.
fn usual_endpoint(server: Option<quinn::ServerConfig>) -> Result<Endpoint, Failure> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    Ok(Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(MiniRuntime))?)
}

#[mini::test(sim, seeds = 20)]
async fn a_socket_of_the_standard_library_is_bound_again_in_the_simulation() {
    let (sim, port) = (current(), Rc::new(Cell::new(0)));
    let bound = port.clone();
    sim.host(SERVER, move || {
        let bound = bound.clone();
        async move {
            let endpoint = usual_endpoint(Some(IDENTITY.quic_server()?))?;
            bound.set(endpoint.local_addr()?.port());
            serve(endpoint.accept().await.ok_or("closed")?, Ledger::default()).await;
            Ok::<(), Failure>(())
        }
    });
    sim.settle().await;
    let mut client = usual_endpoint(None).unwrap();
    client.set_default_client_config(IDENTITY.quic_client().unwrap());
    let address = (sim.lookup(SERVER), port.get()).into();
    let mut quic = Quic(client.connect(address, SERVER).unwrap().await.unwrap(), client);
    assert_eq!(quic.ask(1, body_of(1)).await.unwrap(), body_of(1));
    sim.partition("test", SERVER);
    assert!(timeout(2 * SILENCE, quic.ask(2, body_of(2))).await.is_err(), "it goes through the simulated network");
    sim.repair_all();
    assert_eq!(quic.ask(3, body_of(3)).await.unwrap(), body_of(3));
}
