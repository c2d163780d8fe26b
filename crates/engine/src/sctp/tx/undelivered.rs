//! Messages that were submitted and not acknowledged (RFC 9260, 11.1.14, 11.1.15).

use ropewalk_base::{Serial16, StreamId};

use super::record::Record;
use super::{Chunks, RecordState};
use crate::payload::Payload;
use crate::sctp::chunk::{Data, DataFlags};
use crate::sctp::extensions::partial_reliability::Submitted;

/// A message whose end the peer has not acknowledged, or the rest of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// The stream.
    pub stream: StreamId,
    /// Its SSN; meaningless if the message is unordered.
    pub ssn: Serial16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Whether it was sent unordered.
    pub unordered: bool,
    /// The message without the beginning that has been acknowledged cumulatively.
    pub payload: Payload,
    /// Whether `payload` starts at the beginning of the message.
    pub from_beginning: bool,
    /// Bytes of `payload` that have never been sent.
    pub unsent: u32,
    /// Bytes of `payload` that gap ack blocks have reported. They have arrived, and the peer's user may have
    /// received them.
    pub reported: u32,
}

impl Undelivered {
    /// Whether no part of the message has ever been sent.
    pub fn never_left(&self) -> bool {
        self.from_beginning && self.unsent == self.payload.len()
    }
}

/// A queued message, or the rest of it.
pub struct Rest {
    pub stream: StreamId,
    pub ssn: Serial16,
    pub ppid: u32,
    pub unordered: bool,
    pub payload: Payload,
    /// Whether this is the whole message.
    pub whole: bool,
}

/// Iterator over undelivered messages, oldest first.
struct Messages<R, Q> {
    records: R,
    queue: Q,
}

impl<'a, R: Iterator<Item = &'a Record>, Q: Iterator<Item = Rest>> Iterator for Messages<R, Q> {
    type Item = Undelivered;

    fn next(&mut self) -> Option<Undelivered> {
        // An abandoned message is not delivered on purpose. It has no rest in the queue.
        let is_kept = |record: &&Record| !matches!(record.state, RecordState::Abandoned { .. });
        let Some(first) = self.records.find(is_kept) else {
            return self.queue.next().map(of_rest);
        };
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
        // The fragments of a message have consecutive TSNs, and those without a TSN come first in the queue.
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

fn rest_of(message: &Submitted) -> Rest {
    let Submitted { stream, ppid, unordered, ref payload, .. } = *message;
    let payload = payload.clone();
    Rest { stream, ssn: Serial16(0), ppid, unordered, payload, whole: true }
}

impl Chunks {
    /// Messages whose end the peer has not acknowledged, oldest first.
    pub fn undelivered(&self) -> impl Iterator<Item = Undelivered> {
        let limits = self.limits.iter();
        let beside = limits.flat_map(|limits| {
            limits.interactive.iter().chain(&limits.first_open).chain(&limits.background)
        });
        let queue = self.queue.rests().chain(beside.map(rest_of));
        Messages { records: self.board.records(), queue }
    }
}
