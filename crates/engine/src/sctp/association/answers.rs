//! What answers the packet that is being taken.
//!
//! RFC 9260, 12.4: several chunks in one packet are answered by one packet at most, DATA and SACKs apart, so
//! that nobody calls forth a burst.

use ropewalk_base::PathId;

use super::super::chunk::Chunk;
use super::Association;
use crate::meter::{self, Defect};

/// Most control chunks that wait when one more reply is queued, and their bytes on the wire.
const REPLIES_LIMIT: usize = 64;
const REPLY_BYTES_LIMIT: u32 = 16 << 10;
/// Bytes that are left for a SHUTDOWN or a COOKIE ACK beside replies.
const RESERVED: u32 = 16;

/// Where the packet came from, and what is left of the one that answers it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    from: PathId,
    /// Where the first reply goes, and the room that is left beside it; none: nothing has been answered yet.
    begun: Option<(PathId, u32)>,
}

impl Association {
    /// A packet came on `path`.
    #[inline]
    pub(super) const fn begin_answers(&mut self, path: PathId) {
        self.answers = Answers { from: path, begun: None };
    }

    /// Where a reply goes to the packet that is being taken.
    pub(super) fn answer_path(&self) -> PathId {
        self.reply_path(self.answers.from)
    }

    /// Queues a reply to a chunk of the packet that is being taken. One that finds no room beside the others is left
    /// out, as if the network had lost it, and so is one where too many wait to leave.
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
