//! Messages that wait, and how they are cut into chunks (RFC 9260, 6.9).

use std::collections::VecDeque;

use ropewalk_base::{Serial16, Serial32, StreamId, Time};

use super::super::chunk::{Data, DataFlags};
use crate::payload::Payload;

#[derive(Clone, Debug)]
struct Waiting {
    stream: StreamId,
    ssn: Serial16,
    ppid: u32,
    unordered: bool,
    payload: Payload,
    /// Bytes of the message that have become chunks.
    taken: u32,
    /// Messages after it that are just like it, but for the number in the stream: a bulk transfer
    /// is one long run of them.
    more: u32,
}

impl Waiting {
    /// Whether a message may be counted as one more of these.
    #[inline]
    fn is_like(&self, stream: StreamId, ppid: u32, payload: &Payload, unordered: bool) -> bool {
        let same =
            matches!((&self.payload, payload), (Payload::Length(a), Payload::Length(b)) if a == b);
        let labels = self.stream == stream && self.ppid == ppid && self.unordered == unordered;
        same && labels && self.more < u32::MAX
    }
}

/// Messages in the order given; each stream numbers its own.
#[derive(Clone, Debug)]
pub(super) struct SendQueue {
    messages: VecDeque<Waiting>,
    next_ssn: Vec<Serial16>,
    bytes: u64,
    chunks: u64,
    chunk_payload: u32,
}

impl SendQueue {
    pub fn new(streams: u16, chunk_limit: u32) -> Self {
        Self {
            messages: VecDeque::new(),
            next_ssn: vec![Serial16(0); streams as usize],
            bytes: 0,
            chunks: 0,
            chunk_payload: chunk_limit - Data::HEADER,
        }
    }

    /// Bytes of user data that wait.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Chunks that they will make.
    #[inline]
    pub const fn chunks(&self) -> u64 {
        self.chunks
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub fn push(&mut self, stream: StreamId, ppid: u32, payload: Payload, unordered: bool) {
        let next = &mut self.next_ssn[stream.0 as usize];
        let ssn = *next;
        if !unordered {
            *next = ssn.plus(1);
        }
        self.bytes += payload.len() as u64;
        self.chunks += if payload.len() <= self.chunk_payload {
            1
        } else {
            payload.len().div_ceil(self.chunk_payload) as u64
        };
        match self.messages.back_mut() {
            Some(last) if last.is_like(stream, ppid, &payload, unordered) => last.more += 1,
            _ => {
                let waiting = Waiting { stream, ssn, ppid, unordered, payload, taken: 0, more: 0 };
                self.messages.push_back(waiting);
            }
        }
    }

    /// Size on the wire of the chunk that would come next.
    #[inline]
    pub fn next_bytes(&self) -> Option<u32> {
        let message = self.messages.front()?;
        let left = message.payload.len() - message.taken;
        Some(Data::wire_len_of(left.min(self.chunk_payload)))
    }

    /// Cuts the next chunk; its TSN and time of sending are for the caller to fill in.
    // Inlined by force: what is returned through memory is copied twice.
    #[inline(always)]
    pub fn next_chunk(&mut self) -> Option<Data> {
        let message = self.messages.front_mut()?;
        let left = message.payload.len() - message.taken;
        let size = left.min(self.chunk_payload);
        let mut flags = DataFlags::default();
        if message.taken == 0 {
            flags = flags.and(DataFlags::BEGIN);
        }
        if size == left {
            flags = flags.and(DataFlags::END);
        }
        if message.unordered {
            flags = flags.and(DataFlags::UNORDERED);
        }
        let chunk = Data {
            tsn: Serial32(0),
            stream: message.stream,
            ssn: message.ssn,
            ppid: message.ppid,
            flags,
            payload: message.payload.slice(message.taken, size),
            first_sent: Time::ZERO,
        };
        message.taken += size;
        self.bytes -= size as u64;
        self.chunks -= 1;
        if size == left {
            match message.more.checked_sub(1) {
                None => {
                    self.messages.pop_front();
                }
                Some(more) => {
                    let ssn = if message.unordered { message.ssn } else { message.ssn.plus(1) };
                    (message.more, message.ssn, message.taken) = (more, ssn, 0);
                }
            }
        }
        Some(chunk)
    }
}
