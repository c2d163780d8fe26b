//! Reassembles messages that are longer than the space in the receive buffer. The size of each message, and of all
//! together, is bounded.

use std::collections::BTreeMap;

use bytes::Bytes;
use ropewalk_engine::sctp::{Message, Part};

/// Memory overhead of a partly received message.
const ENTRY_COST: usize = 128;

/// A partly received message of one stream. Ordered and unordered ones are separate (RFC 8260, 2.1).
type Key = (u16, bool);

/// Result of adding a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Assembled {
    /// More parts follow.
    Partly,
    /// The message with this payload protocol identifier is complete.
    Whole(u32, Bytes),
    /// The message is too long. Its other parts are dropped.
    TooLong,
}

#[derive(Clone, Debug, Default)]
struct Beginning {
    ppid: u32,
    bytes: Vec<u8>,
    /// The message is too long, and its remaining parts are dropped.
    dropped: bool,
}

/// Partly received messages.
#[derive(Clone, Debug)]
pub(crate) struct Assemblies {
    messages: BTreeMap<Key, Beginning>,
    bytes: usize,
    longest: usize,
    /// Maximum number of bytes of all messages together.
    limit: usize,
}

impl Assemblies {
    /// `longest` is the maximum size of a message, bytes.
    pub fn new(longest: usize) -> Self {
        Self { messages: BTreeMap::new(), bytes: 0, longest, limit: longest.saturating_mul(4) }
    }

    /// Adds a message, or a part of one.
    pub fn take(&mut self, message: Message) -> Assembled {
        let key = (message.stream.0, message.unordered);
        let (part, ppid) = (message.part, message.ppid);
        let payload = message.payload.into_bytes();
        match part {
            Part::Whole if payload.len() > self.longest => Assembled::TooLong,
            Part::Whole => Assembled::Whole(ppid, payload),
            Part::First => {
                self.forget(key);
                self.messages.insert(key, Beginning { ppid, ..Beginning::default() });
                self.bytes += ENTRY_COST;
                self.add(key, &payload)
            }
            Part::Middle => self.add(key, &payload),
            Part::Last => self.end(key, &payload),
        }
    }

    fn add(&mut self, key: Key, payload: &[u8]) -> Assembled {
        let Some(beginning) = self.messages.get_mut(&key) else { return Assembled::Partly };
        if beginning.dropped {
            return Assembled::Partly;
        }
        let length = beginning.bytes.len() + payload.len();
        if length > self.longest || self.bytes + payload.len() > self.limit {
            self.bytes -= beginning.bytes.len();
            *beginning = Beginning { dropped: true, ..Beginning::default() };
            return Assembled::TooLong;
        }
        beginning.bytes.extend_from_slice(payload);
        self.bytes += payload.len();
        Assembled::Partly
    }

    fn end(&mut self, key: Key, payload: &[u8]) -> Assembled {
        // RFC 3758: if the rest of a message was abandoned, the engine ends the message with an empty part.
        if payload.is_empty() {
            self.forget(key);
            return Assembled::Partly;
        }
        let added = self.add(key, payload);
        match self.forget(key) {
            Some(whole) if !whole.dropped => Assembled::Whole(whole.ppid, whole.bytes.into()),
            _ => added,
        }
    }

    fn forget(&mut self, key: Key) -> Option<Beginning> {
        let known = self.messages.remove(&key)?;
        self.bytes -= ENTRY_COST + known.bytes.len();
        Some(known)
    }

    /// Drops the partly received messages of a stream.
    pub fn forget_stream(&mut self, stream: u16) {
        for unordered in [false, true] {
            self.forget((stream, unordered));
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.bytes = 0;
    }
}
