//! Messages that wait until the numbers of their streams have been reset (RFC 6525, 5.1.2 A1, 5.1.4 C3).
//!
//! ```text
//!   send()  --- stream is held ---> Held  --- reset has ended ---> queue
//!           --- otherwise -------------------------------------->
//! ```
//!
//! Messages get their stream sequence numbers in the queue. So messages submitted before the reset have
//! the old numbers, and those submitted after it the new ones.

use std::collections::{BTreeMap, VecDeque};

use ropewalk_base::StreamId;

use super::{Chunks, Sender};
use crate::sctp::extensions::partial_reliability::{Limit, Submitted, Urgency};
use crate::sctp::extensions::stream_reconfiguration::Streams;

/// A held message, or a run of equal ones.
#[derive(Clone, Debug)]
struct HeldMessage {
    message: Submitted,
    urgency: Urgency,
    /// Number of further messages like it.
    more: u32,
}

/// Streams that accept no messages for now, and the messages submitted to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// Number of requests that hold all streams.
    all: u32,
    /// Number of requests that hold each stream.
    streams: BTreeMap<u16, u32>,
    messages: VecDeque<HeldMessage>,
    /// User data of the messages.
    bytes: u64,
}

impl Held {
    /// Whether messages of `stream` are held.
    pub fn has(&self, stream: StreamId) -> bool {
        self.all > 0 || self.streams.contains_key(&stream.0)
    }

    fn hold(&mut self, streams: &Streams) {
        match streams {
            Streams::All => self.all += 1,
            Streams::Listed(each) => {
                each.iter().for_each(|stream| *self.streams.entry(stream.0).or_default() += 1);
            }
        }
    }

    /// Ends the hold of the streams by one request. Returns the messages of streams that no other request
    /// holds.
    fn release(&mut self, streams: &Streams) -> Vec<HeldMessage> {
        match streams {
            Streams::All => self.all = self.all.saturating_sub(1),
            Streams::Listed(each) => {
                for stream in each {
                    let count = self.streams.entry(stream.0).or_default();
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        self.streams.remove(&stream.0);
                    }
                }
            }
        }
        let all = std::mem::take(&mut self.messages).into_iter();
        let (stay, go): (Vec<_>, Vec<_>) = all.partition(|one| self.has(one.message.stream));
        self.messages = stay.into();
        self.bytes -= go.iter().map(HeldMessage::bytes).sum::<u64>();
        go
    }

    /// Whether no stream is held.
    pub fn is_idle(&self) -> bool {
        self.all == 0 && self.streams.is_empty()
    }

    /// Keeps a message, and `more` further ones like it.
    #[cold]
    pub fn push(&mut self, message: Submitted, urgency: Urgency, more: u32) {
        let one = HeldMessage { message, urgency, more };
        self.bytes += one.bytes();
        self.messages.push_back(one);
    }

    /// User data of the messages, bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The messages, each with the number of further ones like it.
    pub fn messages(&self) -> impl Iterator<Item = (&Submitted, u32)> {
        self.messages.iter().map(|one| (&one.message, one.more))
    }
}

impl HeldMessage {
    fn bytes(&self) -> u64 {
        u64::from(self.message.payload.len()) * (u64::from(self.more) + 1)
    }
}

impl Chunks {
    /// Holds messages that are submitted to these streams from now on. Messages submitted before are sent
    /// first.
    #[cold]
    pub fn hold_streams(&mut self, streams: &Streams) {
        self.queue.held_mut().hold(streams);
        self.queue.watch(streams.listed());
    }

    /// A TSN up to which all data of these streams was sent, `None` if some of it has no TSN yet. With
    /// `search`, the lowest such TSN, at a cost proportional to the chunks in flight; otherwise the TSN
    /// of the last chunk of any stream.
    #[cold]
    pub fn last_tsn_of(&self, streams: &Streams, search: bool) -> Option<u64> {
        let beside = || {
            let limits = self.limits.iter();
            let all = limits.flat_map(|limits| {
                limits.interactive.iter().chain(&limits.first_open).chain(&limits.background)
            });
            all.map(|message| message.stream).any(|stream| streams.has(stream))
        };
        let waits = match streams {
            Streams::All => !self.queue.is_empty(),
            Streams::Listed(each) => each.iter().any(|stream| self.queue.has_watched(*stream)),
        };
        if waits || beside() {
            return None;
        }
        let records = self.board.records().enumerate().filter(|_| search);
        let last = records.filter(|(_, one)| streams.has(one.data.stream)).last();
        let found = last.map_or(0, |(at, _)| at as u64 + 1);
        Some(if search { self.board.cumulative() + found } else { self.board.next_tsn() - 1 })
    }
}

impl Sender {
    /// Resumes sending messages of these streams, first those that were held. `from_zero`: their numbers
    /// start over.
    #[cold]
    pub fn release_streams(&mut self, streams: &Streams, from_zero: bool) {
        let queue = &mut self.outstanding.queue;
        if from_zero {
            queue.restart_streams(streams);
        }
        let released = queue.held_mut().release(streams);
        queue.unwatch(streams.listed());
        for HeldMessage { message, urgency, more } in released {
            if more > 0 {
                let Submitted { stream, ppid, payload, unordered, .. } = message;
                self.outstanding.queue.push(stream, ppid, payload, unordered, more, Limit::NONE);
            } else {
                self.submit(message, urgency);
            }
        }
        self.refill_bursts();
        self.epoch += 1;
    }
}
