//! Subjects that do a number of operations and take the time: the harness chooses the number.

use std::future::Future;
use std::io;
use std::marker::PhantomData;

use super::{Runner, Started, Subject};
use crate::clock::Took;
use crate::load::Load;
use crate::measured::{Figure, Group, Unit};
use crate::rt::{Flavour, Rt};

/// Which of the clocks a row shows, per operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clocks {
    Wall,
    Cpu,
    Both,
}

/// Sets itself up, takes the time of the operations alone and returns it.
pub(super) trait Workload: 'static {
    const NAME: &'static str;
    const GROUP: Group;

    const CLOCKS: Clocks = Clocks::Wall;

    /// Whether it runs in a task; if not, it is the future given to `block_on`.
    const IN_TASK: bool = true;

    /// Operations in one of `run`'s rounds.
    fn operations(load: Load) -> u64;

    /// Leaves in the runtime what shall be there during all rounds.
    fn prepare<R: Rt>(load: Load) -> impl Future<Output = ()> + Send {
        let _ = load;
        async {}
    }

    /// Runs `rounds` rounds and returns how long they took.
    fn run<R: Rt>(rounds: u64, load: Load) -> impl Future<Output = Took> + Send;
}

/// A [`Workload`] as a [`Subject`].
pub(super) struct Timed<W>(PhantomData<W>);

impl<W: Workload> Subject for Timed<W> {
    fn name() -> String {
        W::NAME.to_owned()
    }

    fn group() -> Group {
        W::GROUP
    }

    fn figures() -> Vec<Figure> {
        let ns = Unit::Nanoseconds;
        match W::CLOCKS {
            Clocks::Wall => vec![Figure::lower("", ns)],
            Clocks::Cpu => vec![Figure::lower("CPU time", ns)],
            Clocks::Both => vec![Figure::lower("", ns), Figure::lower("CPU time", ns)],
        }
    }

    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started> {
        let rt = R::start(flavour)?;
        rt.block_on(async move { R::spawn(W::prepare::<R>(load)).await });
        let run = move |rounds| match W::IN_TASK {
            true => rt.block_on(async move { R::spawn(W::run::<R>(rounds, load)).await }),
            false => rt.block_on(W::run::<R>(rounds, load)),
        };
        Ok(Started::Timed(Runner { operations: W::operations(load), run: Box::new(run), figures: figures::<W> }))
    }
}

/// The values of [`Timed`]'s figures.
fn figures<W: Workload>(took: Took, operations: u64) -> Vec<f64> {
    let (wall, cpu) = (took.wall.as_secs_f64(), took.cpu.as_secs_f64());
    let per_operation = |seconds: f64| seconds * 1e9 / operations as f64;
    match W::CLOCKS {
        Clocks::Wall => vec![per_operation(wall)],
        Clocks::Cpu => vec![per_operation(cpu)],
        Clocks::Both => vec![per_operation(wall), per_operation(cpu)],
    }
}
