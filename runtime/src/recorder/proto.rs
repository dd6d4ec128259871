//! Messages in the format of protocol buffers, as far as a trace needs it.
//!
//! Called by `trace.rs`. A field is its number and how its value is written, then the value:
//! <https://protobuf.dev/programming-guides/encoding/>. The numbers of the fields are those that Perfetto publishes, in
//! `protos/perfetto/trace/trace_packet.proto`, `track_event/{track_descriptor,track_event,counter_descriptor,
//! process_descriptor,debug_annotation}.proto` and `interned_data/interned_data.proto` of its repository; its page
//! <https://perfetto.dev/docs/reference/synthetic-track-event> says what a made trace needs.

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

/// The ways to write a value.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

impl Message {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, way: u64) {
        self.varint(field << 3 | way);
    }

    pub(super) fn number(mut self, field: u64, value: u64) -> Self {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    pub(super) fn fixed(mut self, field: u64, value: u64) -> Self {
        self.key(field, FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(super) fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.key(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// The same without fields: its memory is kept.
    pub(super) fn emptied(mut self) -> Self {
        self.0.clear();
        self
    }

    /// Makes room for so many bytes more.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.0.reserve(bytes);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Adds a field whose value is a message.
    pub(super) fn append(&mut self, field: u64, message: &Self) {
        *self = std::mem::take(self).message(field, message);
    }
}

/// `Trace`.
pub(super) const PACKET: u64 = 1;

/// `TracePacket`.
pub(super) mod packet {
    pub(in super::super) const TIMESTAMP: u64 = 8;
    pub(in super::super) const SEQUENCE_ID: u64 = 10;
    pub(in super::super) const TRACK_EVENT: u64 = 11;
    pub(in super::super) const INTERNED_DATA: u64 = 12;
    pub(in super::super) const SEQUENCE_FLAGS: u64 = 13;
    pub(in super::super) const TRACK_DESCRIPTOR: u64 = 60;
    /// Of the flags: interned data begins anew, and what comes needs it.
    pub(in super::super) const STATE_CLEARED: u64 = 1;
    pub(in super::super) const NEEDS_STATE: u64 = 2;
}

/// `TrackDescriptor`, and what is in it.
pub(super) mod track {
    pub(in super::super) const UUID: u64 = 1;
    pub(in super::super) const NAME: u64 = 2;
    pub(in super::super) const PROCESS: u64 = 3;
    pub(in super::super) const PARENT: u64 = 5;
    pub(in super::super) const COUNTER: u64 = 8;
    /// How its children are ordered, and its place if that is `EXPLICIT`.
    pub(in super::super) const CHILD_ORDERING: u64 = 11;
    pub(in super::super) const RANK: u64 = 12;
    pub(in super::super) const CHRONOLOGICAL: u64 = 2;
    pub(in super::super) const EXPLICIT: u64 = 3;
    /// `ProcessDescriptor`.
    pub(in super::super) const PID: u64 = 1;
    pub(in super::super) const PROCESS_NAME: u64 = 6;
    /// `CounterDescriptor`.
    pub(in super::super) const UNIT_NAME: u64 = 6;
}

/// `TrackEvent`, and what is in it.
pub(super) mod event {
    pub(in super::super) const ANNOTATIONS: u64 = 4;
    pub(in super::super) const TYPE: u64 = 9;
    pub(in super::super) const NAME_IID: u64 = 10;
    pub(in super::super) const TRACK: u64 = 11;
    pub(in super::super) const COUNTER_VALUE: u64 = 30;
    pub(in super::super) const FLOWS: u64 = 47;
    pub(in super::super) const TERMINATING_FLOWS: u64 = 48;
    pub(in super::super) const SLICE_BEGIN: u64 = 1;
    pub(in super::super) const SLICE_END: u64 = 2;
    pub(in super::super) const INSTANT: u64 = 3;
    pub(in super::super) const COUNTER: u64 = 4;
    /// `DebugAnnotation`.
    pub(in super::super) const UINT_VALUE: u64 = 3;
    pub(in super::super) const STRING_VALUE: u64 = 6;
    pub(in super::super) const ANNOTATION_NAME: u64 = 10;
}

/// `InternedData`: its event names, each an `iid` and a name.
pub(super) mod interned {
    pub(in super::super) const EVENT_NAMES: u64 = 2;
    pub(in super::super) const IID: u64 = 1;
    pub(in super::super) const NAME: u64 = 2;
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_bytes_of_the_published_examples() {
        assert_eq!(Message::new().number(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::new().text(2, "testing").into_bytes(), *b"\x12\x07testing");
        let inner = Message::new().number(1, 150);
        assert_eq!(Message::new().message(3, &inner).into_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }
}
