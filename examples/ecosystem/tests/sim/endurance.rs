//! A server and its clients while the network loses packets, a client is cut off, and the server crashes.
//!
//! What must hold, for each protocol: the server has done once what a client was told is done, and at most once what a
//! client does not know about; what a client sends and gets is whole; and once the faults are over, all clients are
//! served again.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::error::Error;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mini::sim::{Current, current};
use mini::time::{sleep, timeout};

/// Why a client knows nothing about its request.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// The host of the server.
pub(crate) const SERVER: &str = "server";

/// A client that hears nothing for so long gives up.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the server has on its disk: how often it has done each request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<BTreeMap<u32, u32>>>);

/// What the clients and the server of a test speak.
pub(crate) trait Protocol: Sized + 'static {
    const CLIENTS: u32 = 3;

    /// Serves until the host crashes.
    fn serve(ledger: Ledger) -> impl Future<Output = Result<(), Failure>>;

    /// A connection to the server.
    fn connect() -> impl Future<Output = Result<Self, Failure>>;

    /// Has the server do `id`, and returns `body` as it comes back.
    fn ask(&mut self, id: u32, body: Bytes) -> impl Future<Output = Result<Bytes, Failure>>;
}

impl Ledger {
    /// Does a request, after a while. The body is the answer.
    ///
    /// # Panics
    ///
    /// If the body is not the one that the client has sent: a request that came in part must not come so far.
    pub(crate) async fn apply(&self, id: u32, body: Bytes) -> Bytes {
        assert_eq!(body, body_of(id), "request {id} came in part");
        sleep(Duration::from_millis(u64::from(id) % 7)).await;
        *self.0.lock().unwrap().entry(id).or_default() += 1;
        body
    }
}

/// What the request of that number says: sometimes nothing, sometimes more than fits into a few packets.
pub(crate) fn body_of(id: u32) -> Bytes {
    let blocks = match id % 16 {
        0 => 0,
        1 => 200,
        rest => rest,
    };
    (0..blocks).map(|block| [(block ^ id) as u8; 100]).collect::<Vec<_>>().concat().into()
}

/// What one client was told.
#[derive(Debug, Default)]
struct Told {
    done: Vec<u32>,
    unknown: Vec<u32>,
}

/// Runs a server and clients through the faults.
pub(crate) async fn endure<P: Protocol>() {
    let (sim, ledger, are_over) = (current(), Ledger::default(), Rc::new(Cell::new(false)));
    let disk = ledger.clone();
    sim.host(SERVER, move || P::serve(disk.clone()));
    sim.settle().await;
    let clients: Vec<_> =
        (0..P::CLIENTS).map(|number| sim.client(&name(number), converse::<P>(number, are_over.clone()))).collect();
    break_things(&sim).await;
    are_over.set(true);
    let (mut successes, mut failures) = (0, 0);
    for client in clients {
        let told = client.await.unwrap();
        let ledger = ledger.0.lock().unwrap();
        successes += told.done.len();
        for id in told.done {
            assert_eq!(ledger.get(&id), Some(&1), "request {id} was acknowledged");
        }
        failures += told.unknown.len();
        for id in told.unknown {
            assert!(ledger.get(&id).is_none_or(|&times| times == 1), "request {id}, which failed, was done twice");
        }
    }
    assert!(successes > 2 * P::CLIENTS as usize, "no more than {successes} of {} requests", successes + failures);
    assert!(failures > 0, "the faults have hurt nobody");
}

/// Less than so many milliseconds.
fn upto(most: u64) -> Duration {
    Duration::from_millis(current().rand() % most)
}

fn name(number: u32) -> String {
    format!("client-{number}")
}

/// Latency and loss all the time; one client is cut off for a while, and then the server crashes and comes back.
async fn break_things(sim: &Current) {
    sim.latency(Duration::from_millis(1)..Duration::from_millis(20)).loss(0.01).duplication(0.01);
    sleep(Duration::from_millis(700) + upto(500)).await;
    sim.partition(SERVER, name(0));
    sleep(upto(2500)).await;
    sim.repair_all();
    sleep(upto(500)).await;
    sim.crash(SERVER);
    sleep(upto(500)).await;
    sim.restart(SERVER);
}

/// Asks again and again until the faults are over, and then until it is answered. Never asks for the same twice.
async fn converse<P: Protocol>(number: u32, are_over: Rc<Cell<bool>>) -> Told {
    let (mut told, mut connection) = (Told::default(), None);
    for id in (number * 10_000..).take(1000) {
        let is_last = are_over.get();
        match timeout(PATIENCE, request::<P>(&mut connection, id)).await {
            Ok(Ok(answer)) => {
                assert_eq!(answer, body_of(id), "the answer to {id} came in part");
                told.done.push(id);
                if is_last {
                    return told;
                }
            }
            Ok(Err(_)) | Err(_) => {
                connection = None;
                told.unknown.push(id);
            }
        }
        sleep(upto(400)).await;
    }
    panic!("nobody answers, though the faults are over: {told:?}");
}

async fn request<P: Protocol>(connection: &mut Option<P>, id: u32) -> Result<Bytes, Failure> {
    if connection.is_none() {
        *connection = Some(P::connect().await?);
    }
    connection.as_mut().expect("it was just made").ask(id, body_of(id)).await
}
