//! SACKs that were due before later packets of the same input were processed.

use std::collections::VecDeque;

use ropewalk_base::PathId;

use crate::sctp::chunk::{Chunk, DelayEcho};

/// Maximum number of queued SACKs, and of gap ack blocks in all of them. A datagram causes at most one
/// SACK, and one batch of a socket holds some dozens of datagrams. Beyond these limits the next SACK
/// covers more packets.
const SACKS_LIMIT: usize = 64;
const BLOCKS_LIMIT: usize = 1024;

/// A SACK as of the time when it was due, and the path to send it on.
#[derive(Clone, Debug)]
struct WaitingSack {
    path: PathId,
    sack: Chunk,
    echo: Option<DelayEcho>,
}

/// Queued SACKs, oldest first. Empty if the driver drains after each packet, and towards peers with CMT.
#[derive(Clone, Debug, Default)]
pub struct WaitingSacks {
    sacks: VecDeque<WaitingSack>,
    /// Total number of words of the SACKs.
    words: usize,
}

impl WaitingSacks {
    /// Whether no SACK is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sacks.is_empty()
    }

    /// Whether a SACK of this length may be queued as well.
    pub fn has_room_for(&self, length: u32) -> bool {
        self.sacks.len() < SACKS_LIMIT && self.words + length as usize / 4 <= BLOCKS_LIMIT
    }

    /// Adds a SACK.
    pub fn push(&mut self, path: PathId, sack: Chunk, echo: Option<DelayEcho>) {
        self.words += sack.wire_len() as usize / 4;
        self.sacks.push_back(WaitingSack { path, sack, echo });
    }

    /// Takes the oldest SACK.
    #[cold]
    pub fn pop(&mut self) -> Option<(PathId, Chunk, Option<DelayEcho>)> {
        let WaitingSack { path, sack, echo } = self.sacks.pop_front()?;
        self.words -= sack.wire_len() as usize / 4;
        Some((path, sack, echo))
    }

    /// Drops all SACKs.
    pub fn clear(&mut self) {
        self.sacks.clear();
        self.words = 0;
    }
}
