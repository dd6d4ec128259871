//! What a server and its clients go through: latency and loss all the time, a partition, and a crash.

use std::time::Duration;

use mini::sim::current;
use mini::time::sleep;

/// The host of the server.
pub(crate) const SERVER: &str = "server";
pub(crate) const CLIENTS: u32 = 3;

pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Less than so many milliseconds.
pub(crate) fn upto(most: u64) -> Duration {
    ms(current().rand() % most)
}

pub(crate) fn client(number: u32) -> String {
    format!("client-{number}")
}

/// One client is cut off for a while, then the server crashes and comes back. Call it when all hosts are there.
pub(crate) async fn storm() {
    let sim = current();
    sim.latency(ms(1)..ms(20)).loss(0.01);
    sleep(ms(500) + upto(500)).await;
    sim.partition(SERVER, client(0));
    sleep(upto(3000)).await;
    sim.repair_all();
    sleep(upto(500)).await;
    sim.crash(SERVER);
    sleep(upto(500)).await;
    sim.restart(SERVER);
}
