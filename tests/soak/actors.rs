//! The actors: each does one kind of work, over and over, until its world is over.
//!
//! Now and then each of them cancels what it has begun. Errors are failures, except while the runtime is being shut
//! down.

use std::pin::Pin;
use std::sync::Arc;

use crate::world::{Dice, World};

pub(crate) mod sockets;
pub(crate) mod work;

type Actor = Pin<Box<dyn Future<Output = ()> + Send>>;
type Play = fn(Arc<World>, Dice) -> Actor;

/// Every actor, and how many there are of it.
const CAST: [(usize, Play); 10] = [
    (8, |world, dice| Box::pin(sockets::tcp_client(world, dice))),
    (40, |world, dice| Box::pin(sockets::idle_client(world, dice))),
    (2, |world, dice| Box::pin(sockets::unix_pair(world, dice))),
    (3, |world, dice| Box::pin(sockets::udp_client(world, dice))),
    (2, |world, dice| Box::pin(work::channel(world, dice))),
    (3, |world, dice| Box::pin(work::jobs(world, dice))),
    (1, |world, dice| Box::pin(work::children(world, dice))),
    (2, |world, dice| Box::pin(work::files(world, dice))),
    (4, |world, dice| Box::pin(work::timers(world, dice))),
    (3, |world, dice| Box::pin(work::tasks(world, dice))),
];

/// All of them, with dice of their own.
pub(crate) fn all(world: &Arc<World>, seed: u64) -> Vec<Actor> {
    let plays = CAST.iter().flat_map(|&(count, play)| std::iter::repeat_n(play, count));
    plays.zip(seed..).map(|(play, seed)| play(world.clone(), Dice::new(seed))).collect()
}
