//! The picture of a simulation in virtual time, in the format of `trace.rs`: a track for each task with its steps, and
//! one with the faults.
//!
//! A step takes no virtual time. Drawn so, all steps between two timers would lie on each other; so each is a
//! nanosecond wide, and begins where the one before it ends, if that is at the same time.

use std::time::Duration;

use super::proto::{self, Message, event, packet, track};
use super::trace::{Names, count, packet_in};

/// The tracks that there are once.
const SIMULATION: u64 = 1;
const FAULTS: u64 = 2;

/// More steps than these are of no use to a viewer: the last ones are drawn.
const MOST: usize = 200_000;

fn task_track(task: u64) -> u64 {
    1 << 48 | task
}

/// What there is to draw.
pub(crate) struct Picture<'a> {
    pub(crate) title: String,
    /// By their numbers, from 0 on.
    pub(crate) tasks: Vec<String>,
    /// In order; a step is the number of its task and when it began.
    pub(crate) steps: Vec<(u64, Duration)>,
    /// In order; a fault is the index of its step, its number and what it was.
    pub(crate) faults: Vec<(usize, u64, &'a str)>,
}

impl Picture<'_> {
    /// Draws it.
    pub(crate) fn draw(&self) -> Vec<u8> {
        let mut names = Names::default();
        let mut packets = Vec::new();
        let first = self.steps.len().saturating_sub(MOST);
        let mut faults = self.faults.iter().skip_while(|(step, ..)| *step < first).peekable();
        let mut last = 0;
        for (index, &(task, at)) in self.steps.iter().enumerate().skip(first) {
            let begin = last.max(at.as_nanos() as u64);
            let numbered = count("step", index as u64 + 1);
            let slice = named(&mut names, event::SLICE_BEGIN, task_track(task), "runs");
            packets.push(packet_in(Message::new(), begin, &slice.message(event::ANNOTATIONS, &numbered)));
            while let Some((_, number, text)) = faults.next_if(|(step, ..)| *step <= index) {
                let fault = named(&mut names, event::INSTANT, FAULTS, text);
                packets.push(packet_in(
                    Message::new(),
                    begin,
                    &fault.message(event::ANNOTATIONS, &count("fault", *number)),
                ));
            }
            last = begin + 1;
            let end = Message::new().number(event::TYPE, event::SLICE_END).number(event::TRACK, task_track(task));
            packets.push(packet_in(Message::new(), last, &end));
        }
        let mut trace = Message::new();
        trace.append(proto::PACKET, &names.packet());
        for track in self.tracks() {
            let packet = Message::new().number(packet::SEQUENCE_ID, 1).message(packet::TRACK_DESCRIPTOR, &track);
            trace.append(proto::PACKET, &packet);
        }
        for packet in &packets {
            trace.append(proto::PACKET, packet);
        }
        trace.into_bytes()
    }

    fn tracks(&self) -> Vec<Message> {
        let process =
            Message::new().number(track::PID, std::process::id().into()).text(track::PROCESS_NAME, &self.title);
        let simulation = Message::new().number(track::UUID, SIMULATION);
        let simulation = simulation.number(track::CHILD_ORDERING, track::EXPLICIT).message(track::PROCESS, &process);
        let below = |uuid, name: &str, rank| {
            let track = Message::new().number(track::UUID, uuid).number(track::PARENT, SIMULATION);
            track.text(track::NAME, name).number(track::RANK, rank)
        };
        let tasks = (0..).zip(&self.tasks).map(|(number, name)| below(task_track(number), name, number + 1));
        [simulation, below(FAULTS, "faults", 0)].into_iter().chain(tasks).collect()
    }
}

fn named(names: &mut Names, kind: u64, track: u64, name: &str) -> Message {
    let name = names.number(name);
    Message::new().number(event::TYPE, kind).number(event::TRACK, track).number(event::NAME_IID, name)
}
