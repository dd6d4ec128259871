//! gRPC by tonic: a unary call that does the request, and a stream in both directions, a message for each byte.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use mini::net::{TcpListener, lookup_host};
use mini_ecosystem::grpc::sums::sums_client::SumsClient;
use mini_ecosystem::grpc::sums::sums_server::{Sums, SumsServer};
use mini_ecosystem::grpc::{Number, Transport, service};
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming, async_trait};

use crate::endurance::{Failure, Ledger, Protocol, SERVER, body_of, endure};

type Numbers = Pin<Box<dyn Stream<Item = Result<Number, Status>> + Send>>;

#[async_trait]
impl Sums for Ledger {
    type CountStream = Numbers;
    type TotalStream = Numbers;

    async fn double(&self, request: Request<Number>) -> Result<Response<Number>, Status> {
        let value = request.into_inner().value;
        self.apply(value as u32, body_of(value as u32)).await;
        Ok(Response::new(Number { value: value * 2 }))
    }

    async fn count(&self, request: Request<Number>) -> Result<Response<Numbers>, Status> {
        let numbers = stream::iter(1..=request.into_inner().value).map(|value| Ok(Number { value }));
        Ok(Response::new(numbers.boxed()))
    }

    async fn total(&self, request: Request<Streaming<Number>>) -> Result<Response<Numbers>, Status> {
        Ok(Response::new(request.into_inner().boxed()))
    }
}

/// So many bytes of a body, each in a message of its own.
const STREAMED: usize = 20;

struct Grpc(SumsClient<Transport>);

impl Protocol for Grpc {
    async fn serve(ledger: Ledger) -> Result<(), Failure> {
        let listener = TcpListener::bind("0.0.0.0:80").await?;
        mini_hyper::serve(listener, service(Routes::new(SumsServer::new(ledger)))).await?;
        Ok(())
    }

    async fn connect() -> Result<Self, Failure> {
        let address = lookup_host((SERVER, 80)).await?.next().ok_or("no address")?;
        let (transport, connection) = Transport::connect(address).await?;
        drop(mini::spawn(async { connection.await.map(Result::unwrap_or_default) })); // its calls fail, too
        Ok(Self(SumsClient::with_origin(transport, format!("http://{SERVER}").parse()?)))
    }

    async fn ask(&mut self, id: u32, body: Bytes) -> Result<Bytes, Failure> {
        let value = i64::from(id);
        assert_eq!(self.0.double(Number { value }).await?.into_inner().value, 2 * value);
        let begin = body.slice(..body.len().min(STREAMED));
        let bytes = stream::iter(begin.clone()).map(|byte| Number { value: byte.into() });
        let echoed = self.0.total(bytes).await?.into_inner();
        let echoed: Vec<u8> = echoed.map_ok(|number| number.value as u8).try_collect().await?;
        assert_eq!(echoed, begin, "the stream came in part, and says that it was whole");
        Ok(body)
    }
}

#[mini::test(sim, seeds = 100)]
async fn grpc_by_tonic() {
    endure::<Grpc>().await;
}
