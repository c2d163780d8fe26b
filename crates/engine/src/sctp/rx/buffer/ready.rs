//! Messages that can be read.

use std::collections::VecDeque;

use ropewalk_base::StreamId;

use crate::payload::Payload;
use crate::sctp::{Data, DataFlags};

/// How much of a message one [`Message`] is. Between the parts of one others may come, but whole
/// ones alone: at most one is delivered in parts at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// Its beginning: it is longer than the receive buffer (RFC 9260, 6.9).
    First,
    /// What follows the part before.
    Middle,
    /// Its end.
    Last,
}

/// A message for the user, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// On which stream.
    pub stream: StreamId,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// The user's data.
    pub payload: Payload,
    /// Whether that is all.
    pub part: Part,
    /// Whether it was sent unordered (U, RFC 9260, 3.3.1).
    pub unordered: bool,
    /// What it takes of the buffer until it is read, bytes.
    pub(super) charge: u64,
}

impl Message {
    /// To be filled in where it lies: see [`Data::BLANK`].
    const BLANK: Self = Self {
        stream: StreamId(0),
        ppid: 0,
        payload: Payload::Length(0),
        part: Part::Whole,
        unordered: false,
        charge: 0,
    };
}

/// Room for so many messages is kept when all are read.
const KEPT_MESSAGES: usize = 256;

/// The messages that can be read, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Ready {
    messages: VecDeque<Message>,
    bytes: u64,
}

impl Ready {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// What they take of the buffer, bytes.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a message that is one chunk of `charge` bytes, and takes its payload.
    #[inline(always)]
    pub fn push_chunk(&mut self, data: &mut Data, charge: u64) {
        self.bytes += charge;
        self.messages.push_back(Message::BLANK);
        let Some(message) = self.messages.back_mut() else { return };
        (message.stream, message.ppid, message.charge) = (data.stream, data.ppid, charge);
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

    /// As [`Self::pop`], for who wants to know no more than the length of its data, bytes.
    #[inline]
    pub fn skip(&mut self) -> Option<u32> {
        let message = self.messages.front()?;
        let (length, charge) = (message.payload.len(), message.charge);
        if self.messages.len() == 1 {
            // Dropped where it lies: it has just been written, and to read it in one piece would wait
            // for that.
            self.rewind();
        } else {
            self.messages.pop_front();
        }
        self.bytes -= charge;
        Some(length)
    }

    /// All is read. The next message goes to where the first was, which is in the cache.
    #[inline]
    fn rewind(&mut self) {
        self.messages.clear();
        if self.messages.capacity() > KEPT_MESSAGES {
            self.messages = VecDeque::new();
        }
    }
}
