//! Replies to the packet that is being processed.
//!
//! RFC 9260, 12.4: one packet is answered by one packet at most, not counting DATA and SACKs. So no packet
//! can cause a burst of replies.

use ropewalk_base::PathId;

use super::super::chunk::Chunk;
use super::Association;
use crate::meter::{self, Defect};

/// Limits of the control queue when a reply is added: chunks, and their bytes on the wire.
const REPLIES_LIMIT: usize = 64;
const REPLY_BYTES_LIMIT: u32 = 16 << 10;
/// Room reserved beside replies for a SHUTDOWN or a COOKIE ACK, bytes.
const RESERVED: u32 = 16;

/// The path of the packet that is being processed, and the room left in the packet that answers it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    from: PathId,
    /// The path of the first reply and the room left beside it; none: no reply yet.
    begun: Option<(PathId, u32)>,
}

impl Association {
    /// Starts the processing of a packet that arrived on `path`.
    #[inline]
    pub(super) const fn begin_answers(&mut self, path: PathId) {
        self.answers = Answers { from: path, begun: None };
    }

    /// The path for replies to the packet that is being processed.
    pub(super) fn answer_path(&self) -> PathId {
        self.reply_path(self.answers.from)
    }

    /// Queues a reply to a chunk of the packet that is being processed. A reply that does not fit beside the
    /// others, or for which the queue is too full, is dropped, as if the network had lost it.
    pub(super) fn reply(&mut self, path: PathId, tag: u32, chunk: Chunk) {
        let queued: u32 = self.control.iter().take(REPLIES_LIMIT).map(|(.., c)| c.wire_len()).sum();
        let size = chunk.wire_len();
        let full = self.control.len() >= REPLIES_LIMIT
            || !self.control.is_empty() && queued + size > REPLY_BYTES_LIMIT;
        let left = match self.answers.begun {
            None => Some(self.packet_room(path).saturating_sub(size)),
            Some((to, room)) if to == path && size + RESERVED <= room => Some(room - size),
            Some(_) => None,
        };
        meter::count(1);
        let Some(left) = left.filter(|_| !full) else {
            if meter::has(Defect::UnboundedControl) {
                self.control.push_back((path, tag, chunk));
            }
            return;
        };
        self.answers.begun = Some((path, left));
        self.control.push_back((path, tag, chunk));
    }
}
