//! Reads a trace as Perfetto does, for tests: those of the drawing, and those in `tests/tests/dumps/trace.rs`.
//!
//! This file repeats the numbers of the fields, from the same published files (`proto.rs`). So a wrong number in
//! `proto.rs` is not read here as it was written.

use std::collections::{BTreeMap, HashMap};

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message, in order.
pub(crate) fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Value)>, String> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)?),
            1 => Value::Number(u64::from_le_bytes(take(&mut bytes, 8)?.try_into().unwrap())),
            2 => {
                let len = varint(&mut bytes)?;
                Value::Bytes(take(&mut bytes, len as usize)?.to_vec())
            }
            way => return Err(format!("a value of the kind {way}")),
        };
        fields.push((key >> 3, value));
    }
    Ok(fields)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number of more than ten bytes".to_owned())
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Result<&'a [u8], String> {
    let (taken, rest) = bytes.split_at_checked(len).ok_or("the message ends in a field")?;
    *bytes = rest;
    Ok(taken)
}

/// A message whose fields are looked up by their numbers.
struct Message(Vec<(u64, Value)>);

impl Message {
    fn of(bytes: &[u8]) -> Self {
        Self(fields(bytes).unwrap())
    }

    fn all(&self, field: u64) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |(number, _)| *number == field).map(|(_, value)| value)
    }

    fn number(&self, field: u64) -> Option<u64> {
        match self.all(field).last()? {
            Value::Number(number) => Some(*number),
            Value::Bytes(_) => panic!("field {field} is no number"),
        }
    }

    fn message(&self, field: u64) -> Option<Self> {
        self.messages(field).pop()
    }

    fn messages(&self, field: u64) -> Vec<Self> {
        let bytes = |value: &Value| match value {
            Value::Bytes(bytes) => Self::of(bytes),
            Value::Number(_) => panic!("field {field} is a number"),
        };
        self.all(field).map(bytes).collect()
    }

    fn text(&self, field: u64) -> Option<String> {
        match self.all(field).last()? {
            Value::Bytes(bytes) => Some(String::from_utf8(bytes.clone()).unwrap()),
            Value::Number(_) => panic!("field {field} is a number"),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Track {
    pub(crate) name: String,
    pub(crate) parent: Option<u64>,
    pub(crate) is_counter: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Begin,
    End,
    Instant,
    Counter,
}

#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) at: u64,
    pub(crate) kind: Kind,
    pub(crate) track: u64,
    pub(crate) name: String,
    /// Arrows that begin here, and that end here.
    pub(crate) flows: Vec<u64>,
    pub(crate) ends: Vec<u64>,
    pub(crate) value: Option<u64>,
    /// What stands beside it.
    pub(crate) notes: HashMap<String, String>,
}

/// A slice of a track. A slice without an end is still in progress.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) begin: u64,
    pub(crate) end: Option<u64>,
    pub(crate) name: String,
}

#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) tracks: BTreeMap<u64, Track>,
    pub(crate) events: Vec<Shown>,
}

impl Trace {
    /// Reads a trace, and checks that it is one.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut trace = Self::default();
        let mut names = HashMap::new();
        for (nth, packet) in Message::of(bytes).messages(1).into_iter().enumerate() {
            assert_eq!(packet.number(10), Some(1), "trusted_packet_sequence_id");
            if let Some(interned) = packet.message(12) {
                assert_eq!((nth, packet.number(13)), (0, Some(1)), "the state is cleared before anything needs it");
                names.extend(interned.messages(2).iter().map(|name| (name.number(1).unwrap(), name.text(2).unwrap())));
            }
            if let Some(track) = packet.message(60) {
                let is_process = track.message(3).is_some_and(|process| process.number(1).is_some());
                let name = if is_process { "process".to_owned() } else { track.text(2).expect("a name") };
                let shown = Track { name, parent: track.number(5), is_counter: track.message(8).is_some() };
                assert!(trace.tracks.insert(track.number(1).unwrap(), shown).is_none(), "two tracks of one uuid");
            }
            if let Some(event) = packet.message(11) {
                assert_eq!(packet.number(13), Some(2), "it needs the names");
                trace.events.push(shown(packet.number(8).expect("a time"), &event, &names));
            }
        }
        trace.check();
        trace
    }

    fn check(&self) {
        for track in self.tracks.values() {
            assert!(track.parent.is_none_or(|parent| self.tracks.contains_key(&parent)), "{track:?}");
        }
        let mut last = 0;
        let (mut open, mut flows) = (HashMap::<u64, u32>::new(), HashMap::new());
        for event in &self.events {
            let track = self.tracks.get(&event.track).unwrap_or_else(|| panic!("no track of {event:?}"));
            assert_eq!(track.is_counter, event.kind == Kind::Counter, "{event:?} on {track:?}");
            assert!(last <= event.at, "{event:?} comes after {last}");
            last = event.at;
            let depth = open.entry(event.track).or_default();
            match event.kind {
                Kind::Begin => *depth += 1,
                Kind::End => *depth = depth.checked_sub(1).unwrap_or_else(|| panic!("{event:?} ends nothing")),
                Kind::Instant | Kind::Counter => {}
            }
            assert!(*depth <= 1, "{event:?} lies in another slice");
            for flow in &event.flows {
                assert!(flows.insert(*flow, event.at).is_none(), "arrow {flow} begins twice");
            }
            for flow in &event.ends {
                assert!(flows.remove(flow).is_some(), "arrow {flow} ends before it begins, or twice");
            }
        }
        assert!(flows.is_empty(), "arrows that end nowhere: {flows:?}");
    }

    /// The uuid of the track with this name.
    pub(crate) fn track(&self, name: &str) -> u64 {
        let found = self.tracks.iter().find(|(_, track)| track.name.starts_with(name));
        *found.unwrap_or_else(|| panic!("no track {name:?} in {:?}", self.tracks)).0
    }

    /// The slices of a track.
    pub(crate) fn slices(&self, track: u64) -> Vec<Slice> {
        let mut slices: Vec<Slice> = Vec::new();
        for event in self.events.iter().filter(|event| event.track == track) {
            match event.kind {
                Kind::Begin => {
                    slices.push(Slice { begin: event.at, end: None, name: event.name.clone() });
                }
                Kind::End => slices.last_mut().unwrap().end = Some(event.at),
                Kind::Instant | Kind::Counter => {}
            }
        }
        slices
    }

    /// The moments with this name.
    pub(crate) fn instants<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Shown> {
        self.events.iter().filter(move |event| event.kind == Kind::Instant && event.name == name)
    }

    /// Where the arrow ends that begins at an event.
    pub(crate) fn arrow(&self, event: &Shown) -> &Shown {
        let flow = event.flows.first().expect("an arrow begins here");
        self.events.iter().find(|other| other.ends.contains(flow)).expect("it ends somewhere")
    }
}

fn shown(at: u64, event: &Message, names: &HashMap<u64, String>) -> Shown {
    let kind = match event.number(9) {
        Some(1) => Kind::Begin,
        Some(2) => Kind::End,
        Some(3) => Kind::Instant,
        Some(4) => Kind::Counter,
        kind => panic!("an event of the type {kind:?}"),
    };
    let number = |value: &Value| match value {
        Value::Number(number) => *number,
        Value::Bytes(_) => panic!("an arrow is a number"),
    };
    let note = |note: &Message| {
        let value = note.text(6).or_else(|| note.number(3).map(|number| number.to_string()));
        (note.text(10).unwrap(), value.expect("a value"))
    };
    Shown {
        at,
        kind,
        track: event.number(11).unwrap(),
        name: event.number(10).map_or(String::new(), |name| names[&name].clone()),
        flows: event.all(47).map(number).collect(),
        ends: event.all(48).map(number).collect(),
        value: event.number(30),
        notes: event.messages(4).iter().map(note).collect(),
    }
}
