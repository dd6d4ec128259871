//! gRPC by tonic on mini: unary calls, streams of the server and of both sides, and a deadline.
//!
//! `tonic HOST:PORT` serves there; without an argument it is server and client in one. What tonic needs of mini is in
//! `grpc.rs`.

use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use mini::net::TcpListener;
use mini::time::timeout;
use mini_ecosystem::grpc::sums::sums_client::SumsClient;
use mini_ecosystem::grpc::sums::sums_server::{Sums, SumsServer};
use mini_ecosystem::grpc::{Number, Transport, service};
use mini_hyper::serve;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming, async_trait};

/// The server's side.
#[derive(Debug)]
pub struct Adder;

type Numbers = Pin<Box<dyn Stream<Item = Result<Number, Status>> + Send>>;

#[async_trait]
impl Sums for Adder {
    type CountStream = Numbers;
    type TotalStream = Numbers;

    async fn double(&self, request: Request<Number>) -> Result<Response<Number>, Status> {
        let doubled = request.into_inner().value.checked_mul(2).ok_or_else(|| Status::out_of_range("too large"))?;
        Ok(Response::new(Number { value: doubled }))
    }

    async fn count(&self, request: Request<Number>) -> Result<Response<Numbers>, Status> {
        let numbers = stream::iter(1..=request.into_inner().value).map(|value| Ok(Number { value }));
        Ok(Response::new(numbers.boxed()))
    }

    async fn total(&self, request: Request<Streaming<Number>>) -> Result<Response<Numbers>, Status> {
        let totals = request.into_inner().scan(0_i64, |sum, number| {
            *sum = sum.wrapping_add(number.as_ref().map_or(0, |number| number.value));
            std::future::ready(Some(number.map(|_| Number { value: *sum })))
        });
        Ok(Response::new(totals.boxed()))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1);
    mini::block_on(async {
        let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
        let (at, service) = (listener.local_addr()?, service(Routes::new(SumsServer::new(Adder))));
        let (stop, stopped) = async_channel::bounded::<()>(1);
        let stopped = async move { stopped.recv().await.is_err() };
        let server = mini::spawn(serve(listener, service).with_graceful_shutdown(stopped).into_future());
        match address {
            Some(_) => drop(mini::signal::termination().await?),
            None => timeout(Duration::from_secs(20), call(at)).await??,
        }
        drop(stop);
        println!("{:?}", server.await??);
        Ok(())
    })
}

/// Calls each method once.
pub async fn call(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let (transport, connection) = Transport::connect(address).await?;
    let mut client = SumsClient::with_origin(transport, format!("http://{address}").parse()?);
    let mut request = Request::new(Number { value: 21 });
    request.set_timeout(Duration::from_secs(5)); // minded by the server
    println!("twice 21: {}", client.double(request).await?.into_inner().value);
    let numbers = client.count(Number { value: 5 }).await?.into_inner();
    println!("up to 5: {:?}", numbers.map_ok(|number| number.value).try_collect::<Vec<_>>().await?);
    let totals = client.total(stream::iter([1, 10, 100].map(|value| Number { value }))).await?.into_inner();
    println!("totals: {:?}", totals.map_ok(|number| number.value).try_collect::<Vec<_>>().await?);
    drop(client);
    Ok(connection.await??)
}
