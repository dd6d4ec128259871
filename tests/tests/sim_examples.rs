//! The examples `redis`, `http`, `queue` and `lease` in a simulation, unmodified.

#[path = "sim_examples/http.rs"]
mod http;
#[path = "sim_examples/lease.rs"]
mod lease;
#[path = "sim_examples/queue.rs"]
mod queue;
#[path = "sim_examples/redis.rs"]
mod redis;
#[path = "sim_examples/storm.rs"]
mod storm;

mini::sim::interpose!();
