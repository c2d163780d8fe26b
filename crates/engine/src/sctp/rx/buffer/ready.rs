//! Messages that the user can read.

use std::collections::VecDeque;

use ropewalk_base::{Serial16, Serial32, StreamId};

use crate::payload::Payload;
use crate::sctp::{Data, DataFlags};

/// The part of a message that a [`Message`] contains. At most one message is delivered in parts at a
/// time, and only complete messages may be delivered between its parts. With interleaving
/// ([`Config::interleaving`](crate::sctp::Config::interleaving)), one ordered and one unordered message
/// of each stream may be delivered in parts, and parts with the same stream and order belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The complete message.
    Whole,
    /// The beginning of a message that is longer than the receive buffer (RFC 9260, 6.9).
    First,
    /// The continuation of the previous part.
    Middle,
    /// The end of the message. It is empty if the sender has abandoned the rest of the message (RFC 3758).
    Last,
}

/// A message for the user, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The stream.
    pub stream: StreamId,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Stream sequence number that the sender gave the message; with interleaving, the lower half of its message identifier.
    pub ssn: Serial16,
    /// TSN of the first chunk of this part. For an empty last part, a TSN that the sender has skipped.
    pub tsn: Serial32,
    /// User data.
    pub payload: Payload,
    /// Which part of the message this is.
    pub part: Part,
    /// Whether the message was sent unordered (U bit, RFC 9260, 3.3.1).
    pub unordered: bool,
    /// Bytes of the buffer that the message occupies until it is read.
    pub(super) charge: u64,
}

impl Message {
    /// Initial value, filled in place: see [`Data::BLANK`].
    const BLANK: Self = Self {
        stream: StreamId(0),
        ppid: 0,
        ssn: Serial16(0),
        tsn: Serial32(0),
        payload: Payload::Length(0),
        part: Part::Whole,
        unordered: false,
        charge: 0,
    };
}

/// Capacity that is kept when all messages are read.
const KEPT_MESSAGES: usize = 256;

/// The messages that can be read, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Ready {
    messages: VecDeque<Message>,
    bytes: u64,
}

impl Ready {
    /// Number of messages.
    #[inline]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there is no message.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Bytes of the buffer that they occupy.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a message that consists of one chunk of `charge` bytes; moves the payload out of `data`.
    #[inline(always)]
    pub fn push_chunk(&mut self, data: &mut Data, charge: u64) {
        self.bytes += charge;
        self.messages.push_back(Message::BLANK);
        let Some(message) = self.messages.back_mut() else { return };
        (message.stream, message.ppid, message.charge) = (data.stream, data.ppid, charge);
        (message.ssn, message.tsn) = (data.ssn, data.tsn);
        message.unordered = data.flags.has(DataFlags::UNORDERED);
        match &mut data.payload {
            Payload::Length(n) => message.payload = Payload::Length(*n),
            bytes @ Payload::Bytes(_) => {
                message.payload = std::mem::replace(bytes, Payload::Length(0));
            }
        }
    }

    /// Adds a message.
    pub fn push(&mut self, message: Message) {
        self.bytes += message.charge;
        self.messages.push_back(message);
    }

    /// Takes the next message.
    #[inline]
    pub fn pop(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        if self.messages.is_empty() {
            self.rewind();
        }
        self.bytes -= message.charge;
        Some(message)
    }

    /// Like [`Self::pop`], but returns only the length of the data, bytes.
    #[inline]
    pub fn skip(&mut self) -> Option<u32> {
        let message = self.messages.front()?;
        let (length, charge) = (message.payload.len(), message.charge);
        if self.messages.len() == 1 {
            // Dropped in place: it has just been written, and moving it out would wait for these writes.
            self.rewind();
        } else {
            self.messages.pop_front();
        }
        self.bytes -= charge;
        Some(length)
    }

    /// Resets the empty queue, so that the next message reuses memory that is in the cache.
    #[inline]
    fn rewind(&mut self) {
        self.messages.clear();
        if self.messages.capacity() > KEPT_MESSAGES {
            self.messages = VecDeque::new();
        }
    }
}
