//! Reads a trace, for tests: those of the drawing, and those in `tests/tests/dumps/trace.rs`.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Slice,
    Instant,
    Counter,
}

#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// In nanoseconds.
    pub(crate) at: u64,
    /// A slice without an end is still in progress.
    pub(crate) end: Option<u64>,
    pub(crate) kind: Kind,
    /// Of a counter none.
    pub(crate) track: u64,
    pub(crate) name: String,
    /// The arrow that begins here, and that which ends here.
    pub(crate) flow: Option<String>,
    pub(crate) ends: Option<String>,
    /// What stands beside it.
    pub(crate) notes: HashMap<String, String>,
}

#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// The names of the tracks.
    pub(crate) tracks: BTreeMap<u64, String>,
    /// By their times.
    pub(crate) events: Vec<Shown>,
}

impl Trace {
    /// Reads a trace, and checks that it is one.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut trace = Self::default();
        let mut processes = HashMap::new();
        for event in serde_json::from_slice::<Vec<Value>>(bytes).unwrap() {
            let text = |name: &str| event[name].as_str().unwrap_or_else(|| panic!("{name} of {event}"));
            let number = |name: &str| event[name].as_u64().unwrap_or_else(|| panic!("{name} of {event}"));
            let nanos = |name: &str| {
                let micros = event[name].as_f64().unwrap_or_else(|| panic!("{name} of {event}"));
                (micros * 1000.0).round() as u64 // exact up to 2^52: fifty days
            };
            let name_in_args = || event["args"]["name"].as_str().expect("a name").to_owned();
            let (pid, name) = (number("pid"), text("name").to_owned());
            let (kind, track, end) = match (text("ph"), &name[..]) {
                ("M", "process_name") => {
                    assert!(processes.insert(pid, name_in_args()).is_none(), "two names of a process");
                    continue;
                }
                ("M", "thread_name") => {
                    assert!(processes.contains_key(&pid) && pid != number("tid"), "{event}");
                    let before = trace.tracks.insert(number("tid"), name_in_args());
                    assert!(before.is_none(), "two tracks of one number");
                    continue;
                }
                ("C", _) => (Kind::Counter, 0, None),
                ("B", _) => (Kind::Slice, number("tid"), None),
                ("X", _) => match nanos("dur") {
                    0 => (Kind::Instant, number("tid"), Some(nanos("ts"))),
                    length => (Kind::Slice, number("tid"), Some(nanos("ts") + length)),
                },
                (kind, _) => panic!("an event of the type {kind}"),
            };
            let arrow = |way: &str| (event[way] == true).then(|| text("bind_id").to_owned());
            let notes = event["args"].as_object().into_iter().flatten();
            let note = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let notes = notes.map(|(name, value)| (name.clone(), note(value))).collect();
            let (at, flow, ends) = (nanos("ts"), arrow("flow_out"), arrow("flow_in"));
            trace.events.push(Shown { at, end, kind, track, name, flow, ends, notes });
        }
        trace.events.sort_by_key(|event| (event.at, event.kind == Kind::Slice));
        trace.check();
        trace
    }

    fn check(&self) {
        let (mut last, mut flows) = (HashMap::new(), HashMap::new());
        for event in self.events.iter().filter(|event| event.kind != Kind::Counter) {
            assert!(self.tracks.contains_key(&event.track), "no track of {event:?}");
            if event.kind == Kind::Slice {
                let last = last.insert(event.track, event.end.unwrap_or(u64::MAX));
                assert!(last.is_none_or(|last| last <= event.at), "{event:?} lies in another slice");
            }
            if let Some(flow) = &event.flow {
                assert!(flows.insert(flow, event.at).is_none(), "arrow {flow} begins twice");
            }
            if let Some(flow) = &event.ends {
                assert!(flows.remove(flow).is_some(), "arrow {flow} ends before it begins, or twice");
            }
        }
    }

    /// The number of the track with this name.
    pub(crate) fn track(&self, name: &str) -> u64 {
        let found = self.tracks.iter().find(|(_, track)| track.starts_with(name));
        *found.unwrap_or_else(|| panic!("no track {name:?} in {:?}", self.tracks)).0
    }

    /// The slices of a track.
    pub(crate) fn slices(&self, track: u64) -> Vec<&Shown> {
        self.events.iter().filter(|event| event.track == track && event.kind == Kind::Slice).collect()
    }

    /// The moments with this name.
    pub(crate) fn instants<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Shown> {
        self.events.iter().filter(move |event| event.kind == Kind::Instant && event.name == name)
    }

    /// Where the arrow ends that begins at an event.
    pub(crate) fn arrow(&self, event: &Shown) -> &Shown {
        assert!(event.flow.is_some(), "an arrow begins here");
        self.events.iter().find(|other| other.ends == event.flow).expect("it ends somewhere")
    }
}
