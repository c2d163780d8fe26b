//! Messages that were submitted and not acknowledged (RFC 9260, 11.1.14, 11.1.15).

use std::collections::BTreeMap;

use ropewalk_base::{Serial16, StreamId};

use super::held::Held;
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
    /// Its SSN, or with interleaving the lower half of its message identifier; meaningless if the message is unordered.
    pub ssn: Serial16,
    /// Payload protocol identifier. With interleaving, 0 if the first fragment, which alone carries it,
    /// has been acknowledged.
    pub ppid: u32,
    /// Whether it was sent unordered.
    pub unordered: bool,
    /// The message without its start that has been acknowledged cumulatively, and without freed data.
    pub payload: Payload,
    /// Whether `payload` starts at the beginning of the message.
    pub from_beginning: bool,
    /// Bytes of `payload` that have never been sent.
    pub unsent: u32,
    /// Bytes of `payload` that gap ack blocks have reported. They have arrived, and the peer's user may have
    /// received them.
    pub reported: u32,
    /// Bytes missing from `payload` because the peer has reported them as non-renegable and they were
    /// freed. A message whose bytes were all freed is delivered, and not listed.
    pub freed: u32,
    /// The application's number, from [`Delivery::context`](crate::sctp::Delivery::context).
    pub context: u32,
}

impl Undelivered {
    /// Whether the message has not been sent even in part.
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
    /// Whether this is the complete message.
    pub whole: bool,
    pub context: u32,
}

impl Rest {
    /// A message that has not entered the queue.
    pub(super) fn of(message: &Submitted) -> Self {
        let Submitted { stream, ppid, unordered, ref payload, limit } = *message;
        let payload = payload.clone();
        Self {
            stream,
            ssn: Serial16(0),
            ppid,
            unordered,
            payload,
            whole: true,
            context: limit.context,
        }
    }
}

impl From<&Submitted> for Undelivered {
    fn from(message: &Submitted) -> Self {
        Rest::of(message).into()
    }
}

impl From<Rest> for Undelivered {
    fn from(rest: Rest) -> Self {
        let Rest { stream, ssn, ppid, unordered, payload, whole, context } = rest;
        let unsent = payload.len();
        Self {
            stream,
            ssn,
            ppid,
            unordered,
            payload,
            from_beginning: whole,
            unsent,
            reported: 0,
            freed: 0,
            context,
        }
    }
}

/// Iterator over undelivered messages, oldest first.
struct Messages<R, Q> {
    records: R,
    queue: Q,
}

/// A chunk with a TSN.
#[derive(Clone, Copy)]
struct Piece<'a> {
    record: &'a Record,
    /// Whether its user data was freed.
    freed: bool,
    context: u32,
}

impl Piece<'_> {
    /// An abandoned message is intentionally not delivered. It has no rest in the queue.
    fn is_kept(&self) -> bool {
        !matches!(self.record.state, RecordState::Abandoned { .. })
    }
}

impl<'a, R: Iterator<Item = Piece<'a>>, Q: Iterator<Item = Rest>> Iterator for Messages<R, Q> {
    type Item = Undelivered;

    fn next(&mut self) -> Option<Undelivered> {
        loop {
            let Some(first) = self.records.find(Piece::is_kept) else {
                return self.queue.next().map(Undelivered::from);
            };
            let mut message = Gathered::begin(first);
            message.message.ppid = first.record.data.ppid;
            let mut piece = Some(first);
            // The fragments of a message have consecutive TSNs, and those without a TSN come first in the queue.
            while let Some(one) = piece {
                message.add(one);
                piece = if message.ended { None } else { self.records.next() };
            }
            if !message.ended
                && let Some(rest) = self.queue.next()
            {
                message.add_rest(rest);
            }
            if !message.is_delivered() {
                return Some(message.done());
            }
        }
    }
}

/// A message that is being assembled.
struct Gathered {
    message: Undelivered,
    pieces: Vec<Payload>,
    ended: bool,
}

impl Gathered {
    fn begin(first: Piece<'_>) -> Self {
        let Data { stream, ssn, ppid, flags, .. } = first.record.data;
        let from_beginning = flags.has(DataFlags::BEGIN);
        let message = Undelivered {
            stream,
            ssn,
            ppid: if from_beginning { ppid } else { 0 },
            unordered: flags.has(DataFlags::UNORDERED),
            payload: Payload::Length(0),
            from_beginning,
            unsent: 0,
            reported: 0,
            freed: 0,
            context: first.context,
        };
        Self { message, pieces: Vec::new(), ended: false }
    }

    fn add(&mut self, piece: Piece<'_>) {
        let Piece { record, freed, .. } = piece;
        let bytes = record.data.payload.len();
        self.ended = record.data.flags.has(DataFlags::END);
        if freed {
            self.message.freed += bytes;
            return;
        }
        let reported = matches!(record.state, RecordState::Acked { .. });
        self.message.unsent += if record.transmissions == 0 { bytes } else { 0 };
        self.message.reported += if reported { bytes } else { 0 };
        self.pieces.push(record.data.payload.clone());
    }

    /// Whether the peer will not drop any of it.
    fn is_delivered(&self) -> bool {
        self.ended && self.pieces.is_empty()
    }

    fn add_rest(&mut self, rest: Rest) {
        self.message.unsent += rest.payload.len();
        self.pieces.push(rest.payload);
        self.ended = true;
    }

    fn done(self) -> Undelivered {
        Undelivered { payload: Payload::concat(&self.pieces), ..self.message }
    }
}

/// Like [`Messages`], with interleaving: fragments of a stream and order belong together up to the end of
/// a message.
fn gathered<'a>(
    records: impl Iterator<Item = Piece<'a>>,
    queue: impl Iterator<Item = Rest>,
) -> Vec<Undelivered> {
    let mut all = Vec::<Gathered>::new();
    let mut open = BTreeMap::<(StreamId, bool), usize>::new();
    for piece in records.filter(Piece::is_kept) {
        let record = piece.record;
        let whole = record.data.flags.has(DataFlags::WHOLE);
        let way = (record.data.stream, record.data.flags.has(DataFlags::UNORDERED));
        let known = open.get(&way).copied().filter(|_| !whole);
        let at = known.unwrap_or_else(|| {
            all.push(Gathered::begin(piece));
            all.len() - 1
        });
        all[at].add(piece);
        if !whole && all[at].ended {
            open.remove(&way);
        } else if !whole {
            open.insert(way, at);
        }
    }
    let mut rests = Vec::new();
    for rest in queue {
        match open.remove(&(rest.stream, rest.unordered)).filter(|_| !rest.whole) {
            Some(at) => all[at].add_rest(rest),
            None => rests.push(rest.into()),
        }
    }
    let kept = all.into_iter().filter(|message| !message.is_delivered());
    kept.map(Gathered::done).chain(rests).collect()
}

impl Chunks {
    fn piece(&self, tsn: u64) -> Option<Piece<'_>> {
        let record = self.board.get(tsn)?;
        let limit = self.limits.as_ref().and_then(|limits| limits.get(tsn));
        let context = limit.map_or(0, |(limit, _)| limit.context);
        Some(Piece { record, freed: self.board.is_kept(tsn), context })
    }

    fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        (self.board.cumulative() + 1..).map_while(|tsn| self.piece(tsn))
    }

    /// The message with these fragments that have a TSN, lowest first, and the part `rest` that has none.
    pub fn gather(&self, fragments: &[u64], rest: Option<Rest>) -> Option<Undelivered> {
        let mut pieces = fragments.iter().filter_map(|tsn| self.piece(*tsn)).peekable();
        let Some(first) = pieces.peek() else { return rest.map(Into::into) };
        let mut message = Gathered::begin(*first);
        message.message.ppid = first.record.data.ppid;
        pieces.for_each(|piece| message.add(piece));
        if let Some(rest) = rest {
            message.add_rest(rest);
        }
        Some(message.done())
    }

    /// Messages whose end the peer has not acknowledged, oldest first.
    pub fn undelivered(&self) -> impl Iterator<Item = Undelivered> {
        let limits = self.limits.iter();
        let beside = limits.flat_map(|limits| {
            limits.interactive.iter().chain(&limits.first_open).chain(&limits.background)
        });
        let held = self.queue.held().into_iter().flat_map(Held::messages);
        let held = held.flat_map(|(message, more)| (0..=more).map(|_| Rest::of(message)));
        let queue = self.queue.rests().chain(beside.map(Rest::of)).chain(held);
        let (mut plain, mut interleaved) = (None, Vec::new());
        if self.queue.is_interleaved() {
            interleaved = gathered(self.pieces(), queue);
        } else {
            plain = Some(Messages { records: self.pieces(), queue });
        }
        plain.into_iter().flatten().chain(interleaved)
    }
}
