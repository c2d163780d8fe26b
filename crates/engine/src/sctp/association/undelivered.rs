//! Messages that were handed over and not acknowledged (RFC 9260, 11.1.14, 11.1.15).

use ropewalk_base::{Serial16, StreamId};

use super::super::chunk::{Data, DataFlags};
use super::Association;
use crate::payload::Payload;
use crate::sctp::tx::{Record, RecordState};

/// A message of which the peer has not acknowledged the end, or what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// On which stream.
    pub stream: StreamId,
    /// Its number there; of an unordered message it says nothing.
    pub ssn: Serial16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Whether it was sent unordered.
    pub unordered: bool,
    /// The message, but for the beginning that the peer has acknowledged together with all that came before.
    pub payload: Payload,
    /// Whether `payload` begins where the message does.
    pub from_beginning: bool,
    /// Bytes of `payload` that have never left.
    pub unsent: u32,
    /// Bytes of `payload` that the peer has reported by gap blocks: they have arrived, and may have been handed to
    /// its user.
    pub reported: u32,
}

impl Undelivered {
    /// Whether nothing of the message has ever left.
    pub fn never_left(&self) -> bool {
        self.from_beginning && self.unsent == self.payload.len()
    }
}

/// What waits in the queue: a message, or the rest of it.
pub(super) struct Rest {
    pub stream: StreamId,
    pub ssn: Serial16,
    pub ppid: u32,
    pub unordered: bool,
    pub payload: Payload,
    /// It is the whole message.
    pub whole: bool,
}

/// What is left of the messages, oldest first.
struct Messages<R, Q> {
    records: R,
    queue: Q,
}

impl<'a, R: Iterator<Item = &'a Record>, Q: Iterator<Item = Rest>> Iterator for Messages<R, Q> {
    type Item = Undelivered;

    fn next(&mut self) -> Option<Undelivered> {
        let Some(first) = self.records.next() else { return self.queue.next().map(of_rest) };
        let Data { stream, ssn, ppid, flags, .. } = first.data;
        let mut message = Undelivered {
            stream,
            ssn,
            ppid,
            unordered: flags.has(DataFlags::UNORDERED),
            payload: Payload::Length(0),
            from_beginning: flags.has(DataFlags::BEGIN),
            unsent: 0,
            reported: 0,
        };
        let mut pieces = Vec::new();
        let mut record = Some(first);
        // The pieces of a message have numbers one after the other, and what has none yet waits first in the queue.
        while let Some(piece) = record {
            let bytes = piece.data.payload.len();
            message.unsent += if piece.transmissions == 0 { bytes } else { 0 };
            let reported = matches!(piece.state, RecordState::Acked { .. });
            message.reported += if reported { bytes } else { 0 };
            pieces.push(piece.data.payload.clone());
            if piece.data.flags.has(DataFlags::END) {
                message.payload = Payload::concat(&pieces);
                return Some(message);
            }
            record = self.records.next();
        }
        let rest = self.queue.next();
        message.unsent += rest.as_ref().map_or(0, |rest| rest.payload.len());
        pieces.extend(rest.map(|rest| rest.payload));
        message.payload = Payload::concat(&pieces);
        Some(message)
    }
}

fn of_rest(rest: Rest) -> Undelivered {
    let Rest { stream, ssn, ppid, unordered, payload, whole } = rest;
    let unsent = payload.len();
    Undelivered {
        stream,
        ssn,
        ppid,
        unordered,
        payload,
        from_beginning: whole,
        unsent,
        reported: 0,
    }
}

impl Association {
    /// Messages of which nothing has ever left, oldest first (RFC 9260, 11.1.14). They are there after the association
    /// has ended, too.
    pub fn unsent(&self) -> impl Iterator<Item = Undelivered> {
        self.undelivered().filter(Undelivered::never_left)
    }

    /// Messages that have left, as a whole or in part, and of which the peer has not acknowledged the end, oldest
    /// first (RFC 9260, 11.1.15): it may or may not have got them. They are there after the association has ended, too.
    pub fn unacknowledged(&self) -> impl Iterator<Item = Undelivered> {
        self.undelivered().filter(|message| !message.never_left())
    }

    fn undelivered(&self) -> impl Iterator<Item = Undelivered> {
        Messages {
            records: self.outstanding.board.records(),
            queue: self.outstanding.queue.rests(),
        }
    }
}
