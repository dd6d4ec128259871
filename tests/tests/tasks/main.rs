//! Tasks: their life, their wakes, their cancellation and their panics.

mod cancel;
mod cancel_token;
mod foreign;
mod futures_spawn;
mod join_race;
mod large_futures;
mod local;
mod named;
mod panics;
mod shared_join;
mod sync_on_mini;
mod task_local;
mod tasks;
mod unseen;
mod wakes;
