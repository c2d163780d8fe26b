//! The queue of control chunks to send.

use std::collections::VecDeque;

use ropewalk_base::PathId;

use crate::meter::{self, Defect};
use crate::sctp::chunk::Chunk;
use crate::sctp::extension_chunk::ExtensionChunk;
use crate::sctp::packet::Packet;
use crate::transmit_info::PacketSize;

/// Limits of the queue when a reply is added: chunks, and their bytes on the wire.
const REPLIES_LIMIT: usize = 64;
const REPLY_BYTES_LIMIT: u32 = 16 << 10;
/// Bytes reserved in a packet of replies for a SHUTDOWN or a COOKIE ACK.
const RESERVED: u32 = 16;

/// A control chunk, its path, and the verification tag of its packet.
type Entry = (PathId, u32, Chunk);

/// The queue of control chunks.
///
/// RFC 9260, 12.4: a packet is answered by at most one packet, not counting DATA and SACKs. So no packet
/// can cause a burst of replies.
#[derive(Clone, Debug, Default)]
pub(super) struct ControlQueue {
    queue: VecDeque<Entry>,
    /// The path of the packet that is being processed.
    pub answers_to: PathId,
    /// The path of the first reply to that packet and the room left in the reply packet. `None` before
    /// the first reply.
    begun: Option<(PathId, u32)>,
}

impl ControlQueue {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds a chunk at the end.
    pub fn push(&mut self, path: PathId, tag: u32, chunk: Chunk) {
        self.queue.push_back((path, tag, chunk));
    }

    /// Adds a chunk before all others.
    pub fn push_front(&mut self, path: PathId, tag: u32, chunk: Chunk) {
        self.queue.push_front((path, tag, chunk));
    }

    /// Adds a chunk at the end unless an equal one is queued: a packet may repeat a chunk many times.
    pub fn push_once(&mut self, path: PathId, tag: u32, chunk: Chunk) {
        let entry = (path, tag, chunk);
        if !self.queue.contains(&entry) {
            self.queue.push_back(entry);
        }
    }

    /// Drops all chunks.
    pub fn clear(&mut self) {
        self.queue.clear();
    }

    /// Renumbers the paths. Chunks for paths that no longer exist are dropped.
    pub fn renumber(&mut self, renumbered: impl Fn(PathId) -> Option<PathId>) {
        let queued = std::mem::take(&mut self.queue).into_iter();
        let staying = queued.filter_map(|(path, tag, chunk)| Some((renumbered(path)?, tag, chunk)));
        self.queue = staying.collect();
    }

    /// Starts the processing of a packet that arrived on `path`.
    #[inline]
    pub const fn begin_answers(&mut self, path: PathId) {
        (self.answers_to, self.begun) = (path, None);
    }

    /// Adds a reply to a chunk of the packet that is being processed, to a packet with room for `room`
    /// bytes. A reply that no longer fits into that packet, or into the queue, is dropped, as if the
    /// network had lost it.
    pub fn reply(&mut self, path: PathId, tag: u32, chunk: Chunk, room: u32) {
        let queued: u32 = self.queue.iter().take(REPLIES_LIMIT).map(|(.., c)| c.wire_len()).sum();
        let size = chunk.wire_len();
        let full = self.queue.len() >= REPLIES_LIMIT
            || !self.queue.is_empty() && queued + size > REPLY_BYTES_LIMIT;
        let left = match self.begun {
            None => Some(room.saturating_sub(size)),
            Some((to, room)) if to == path && size + RESERVED <= room => Some(room - size),
            Some(_) => None,
        };
        meter::count(1);
        let Some(left) = left.filter(|_| !full) else {
            if meter::has(Defect::UnboundedControl) {
                self.push(path, tag, chunk);
            }
            return;
        };
        self.begun = Some((path, left));
        self.push(path, tag, chunk);
    }

    /// Bundles the next chunks for one path into a packet. `room` returns the capacity of a packet on a
    /// path. RFC 9260, 6.10: INIT, INIT ACK and SHUTDOWN COMPLETE MUST NOT be bundled with other chunks.
    #[cold]
    pub fn fill(
        &mut self,
        room: impl Fn(PathId) -> u32,
        packet: &mut Packet,
    ) -> Option<(PathId, PacketSize)> {
        let is_probe = self.probe_is_next();
        let (path, tag, first) = self.queue.pop_front()?;
        let whole = room(path);
        let too_long = first.wire_len() > whole;
        let mut room = whole.saturating_sub(first.wire_len());
        packet.begin(tag);
        packet.chunks.push(first);
        if is_probe {
            packet.chunks.extend(self.queue.pop_front().map(|(_, _, padding)| padding));
            return Some((path, PacketSize::Probe));
        }
        if !is_alone(&packet.chunks[0]) {
            while let Some((next_path, next_tag, chunk)) = self.queue.front() {
                let size = chunk.wire_len();
                let other = *next_path != path || *next_tag != tag;
                // RFC 9260, 3.2.2: a COOKIE ECHO is the first chunk of its packet.
                let begins = is_alone(chunk) || matches!(chunk, Chunk::CookieEcho(_));
                if other || begins || size > room || self.probe_is_next() {
                    break;
                }
                room -= size;
                packet.chunks.extend(self.queue.pop_front().map(|(_, _, chunk)| chunk));
            }
        }
        // RFC 9260, 5.1.4: a cookie cannot be fragmented by SCTP, so IP has to.
        Some((path, if too_long { PacketSize::TooLong } else { PacketSize::Usual }))
    }

    /// Whether the next control chunk is a probe: a HEARTBEAT followed by padding.
    fn probe_is_next(&self) -> bool {
        let Some((.., Chunk::Extension(chunk))) = self.queue.get(1) else { return false };
        matches!(**chunk, ExtensionChunk::Pad(_))
    }
}

const fn is_alone(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Init(_) | Chunk::InitAck(_) | Chunk::ShutdownComplete { .. })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const HERE: PathId = PathId(0);
    const THERE: PathId = PathId(1);

    fn echo(bytes: usize) -> Chunk {
        Chunk::HeartbeatAck(Bytes::from(vec![0; bytes]))
    }

    /// The chunks of each packet, in packets of 100 bytes.
    fn packets(queue: &mut ControlQueue) -> Vec<(PathId, u32, usize)> {
        let mut packet = Packet::default();
        let mut packets = Vec::new();
        while let Some((path, _)) = queue.fill(|_| 100, &mut packet) {
            packets.push((path, packet.tag, packet.chunks.len()));
        }
        packets
    }

    #[test]
    fn chunks_of_one_path_and_tag_share_a_packet_while_they_fit() {
        let mut queue = ControlQueue::default();
        for (path, tag, bytes) in
            [(HERE, 1, 40), (HERE, 1, 40), (HERE, 1, 40), (THERE, 1, 8), (THERE, 2, 8)]
        {
            queue.push(path, tag, echo(bytes));
        }
        assert_eq!(packets(&mut queue), [(HERE, 1, 2), (HERE, 1, 1), (THERE, 1, 1), (THERE, 2, 1)]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_shutdown_complete_is_alone_and_a_cookie_comes_first() {
        let mut queue = ControlQueue::default();
        queue.push(HERE, 1, Chunk::ShutdownAck);
        queue.push(HERE, 1, Chunk::SHUTDOWN_COMPLETE);
        queue.push(HERE, 1, Chunk::ShutdownAck);
        queue.push(HERE, 1, Chunk::CookieEcho(Bytes::from_static(b"cookie")));
        queue.push(HERE, 1, Chunk::ShutdownAck);
        let sizes: Vec<usize> = packets(&mut queue).iter().map(|(.., count)| *count).collect();
        assert_eq!(sizes, [1, 1, 1, 2]);
    }

    #[test]
    fn one_packet_is_answered_by_one_packet_at_most() {
        let mut queue = ControlQueue::default();
        for _ in 0..3 {
            queue.begin_answers(HERE);
            for _ in 0..50 {
                queue.reply(HERE, 1, echo(20), 100);
                queue.reply(THERE, 1, echo(20), 100);
            }
        }
        // Three chunks of 28 bytes fit in addition to the reserved room.
        assert_eq!(packets(&mut queue), [(HERE, 1, 3); 3]);
    }

    #[test]
    fn replies_end_where_the_queue_is_full_and_equal_answers_are_queued_once() {
        let mut queue = ControlQueue::default();
        for _ in 0..1000 {
            queue.begin_answers(HERE);
            queue.reply(HERE, 1, echo(20), 1000);
        }
        assert_eq!(queue.queue.len(), REPLIES_LIMIT);
        queue.clear();
        (0..9).for_each(|_| queue.push_once(HERE, 1, Chunk::ShutdownAck));
        assert_eq!(packets(&mut queue), [(HERE, 1, 1)]);
    }

    #[test]
    fn chunks_follow_their_paths_to_other_numbers_or_go_with_them() {
        let mut queue = ControlQueue::default();
        queue.push(HERE, 1, echo(4));
        queue.push(THERE, 1, echo(4));
        queue.renumber(|path| (path == THERE).then_some(HERE));
        assert_eq!(packets(&mut queue), [(HERE, 1, 1)]);
    }
}
