//! Marks of the network (RFC 3168) that are reported to the sender of the data.
//!
//! RFC 4960, Appendix A: after a marked packet, the receiver sends an ECNE with the lowest TSN of that
//! packet along with its SACKs until a CWR confirms it. With accurate ECN, each SACK is accompanied by
//! the number of marked bytes of each path, which needs no confirmation.

use std::num::NonZeroU64;

use ropewalk_base::{PathId, Serial32};
use smallvec::SmallVec;

use crate::sctp::chunk::Chunk;
use crate::sctp::extension_chunk::{ExtensionChunk, MarkCount};
use crate::sctp::packet::Packet;

/// Length of an ECNE chunk, bytes.
const ECNE: u32 = 8;
/// Length of a MARK COUNT chunk, bytes.
const MARK_COUNT: u32 = 12;

/// Marks of one path.
#[derive(Clone, Copy, Debug, Default)]
struct PathMarks {
    /// Lowest TSN of the last marked packet. `None`: no mark is to be echoed. Unwrapped TSNs are never 0.
    tsn: Option<NonZeroU64>,
    /// Bytes of DATA in marked packets.
    bytes: u32,
}

/// The marks that are reported to the peer.
#[derive(Clone, Debug)]
pub struct MarkEchoes {
    paths: SmallVec<[PathMarks; 2]>,
    /// Whether there is a mark to report.
    any: bool,
    /// Whether marked bytes are counted (accurate ECN) and reports are not ended by a CWR.
    counting: bool,
}

impl MarkEchoes {
    /// Creates the state for `paths` paths without marks.
    pub fn new(paths: usize, counting: bool) -> Self {
        Self { paths: SmallVec::from_elem(PathMarks::default(), paths), any: false, counting }
    }

    /// Adds a path.
    pub fn add_path(&mut self) {
        self.paths.push(PathMarks::default());
    }

    /// Keeps only these paths and renumbers them.
    pub fn retain_paths(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        self.paths.retain(|_| kept.next().is_some_and(|kept| *kept));
        self.settle();
    }

    fn settle(&mut self) {
        self.any = self.paths.iter().any(|path| path.tsn.is_some());
    }

    /// Whether a SACK with marks may share a packet with DATA. ECNEs are rare enough to be sent without
    /// DATA.
    pub const fn may_join_data(&self) -> bool {
        !self.any || self.counting
    }

    /// Processes a packet from `path` that the network has marked. `cumulative`: the cumulative TSN.
    #[cold]
    pub fn on_marked(&mut self, path: PathId, cumulative: u64, packet: &Packet) {
        let data = packet.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some((data.tsn.unwrap_near(cumulative), chunk.wire_len())),
            _ => None,
        });
        let mark = &mut self.paths[path.index()];
        let mut lowest = None;
        for (tsn, bytes) in data {
            lowest = Some(lowest.map_or(tsn, |lowest: u64| lowest.min(tsn)));
            mark.bytes = mark.bytes.wrapping_add(bytes);
        }
        mark.tsn = mark.tsn.max(lowest.and_then(NonZeroU64::new));
        self.any |= mark.tsn.is_some();
    }

    /// Length of the mark chunks that accompany the next SACK, bytes.
    pub fn wire_len(&self) -> u32 {
        let each = if self.counting { MARK_COUNT } else { ECNE };
        each * self.paths.iter().filter(|path| path.tsn.is_some()).count() as u32
    }

    /// Puts the chunks before the SACK, because otherwise the SACK would acknowledge their TSNs first.
    #[cold]
    pub fn add_to(&self, packet: &mut Packet) {
        for (path, marks) in (0..).zip(&self.paths) {
            let Some(tsn) = marks.tsn.map(|tsn| Serial32::wrap(tsn.get())) else { continue };
            let report = if self.counting {
                ExtensionChunk::MarkCount(MarkCount { path, tsn, bytes: marks.bytes })
            } else {
                ExtensionChunk::Ecne(tsn)
            };
            packet.chunks.insert(0, Chunk::Extension(Box::new(report)));
        }
    }

    /// Processes a CWR: the peer has received all echoes up to `tsn`.
    #[cold]
    pub fn on_cwr(&mut self, tsn: u64) {
        if self.counting {
            return;
        }
        for path in &mut self.paths {
            path.tsn = path.tsn.filter(|mark| mark.get() > tsn);
        }
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sctp::chunk::Data;

    const ORIGIN: u64 = 1 << 32;

    fn marked(tsns: &[u32]) -> Packet {
        let data = |tsn: &u32| Chunk::Data(Data { tsn: Serial32(*tsn), ..Data::BLANK });
        Packet { chunks: tsns.iter().map(data).collect(), ..Packet::default() }
    }

    #[test]
    fn the_lowest_tsn_of_a_marked_packet_is_echoed_until_it_is_confirmed() {
        let mut marks = MarkEchoes::new(2, false);
        assert_eq!((marks.any, marks.wire_len()), (false, 0));
        marks.on_marked(PathId(1), ORIGIN, &marked(&[9, 5, 7]));
        marks.on_marked(PathId(0), ORIGIN, &marked(&[6]));
        assert_eq!((marks.any, marks.wire_len()), (true, 16));
        marks.on_cwr(ORIGIN + 5);
        let mut packet = Packet::default();
        marks.add_to(&mut packet);
        let echo = Chunk::Extension(Box::new(ExtensionChunk::Ecne(Serial32(6))));
        assert_eq!(packet.chunks[..], [echo]);
        marks.on_cwr(ORIGIN + 6);
        assert!(!marks.any);
    }

    #[test]
    fn a_later_mark_replaces_an_earlier_one_and_paths_come_and_go() {
        let mut marks = MarkEchoes::new(1, false);
        marks.add_path();
        marks.on_marked(PathId(1), ORIGIN, &marked(&[3]));
        marks.on_marked(PathId(1), ORIGIN, &marked(&[8]));
        marks.on_marked(PathId(1), ORIGIN, &marked(&[4]));
        assert_eq!(marks.paths[1].tsn, NonZeroU64::new(ORIGIN + 8));
        marks.on_marked(PathId(0), ORIGIN, &marked(&[]));
        marks.retain_paths(&[true, false]);
        assert!(!marks.any, "nothing was marked on the path that stays");
    }

    #[test]
    fn a_count_adds_up_bytes_and_is_repeated_without_end() {
        let mut marks = MarkEchoes::new(2, true);
        marks.on_marked(PathId(1), ORIGIN, &marked(&[5, 7]));
        marks.on_marked(PathId(1), ORIGIN, &marked(&[9]));
        marks.on_cwr(ORIGIN + 9);
        assert_eq!((marks.any, marks.wire_len(), marks.may_join_data()), (true, 12, true));
        let mut packet = Packet::default();
        marks.add_to(&mut packet);
        let bytes = 3 * Data::BLANK.payload.len() + 3 * Data::HEADER;
        let count = MarkCount { path: 1, tsn: Serial32(9), bytes };
        let expected = Chunk::Extension(Box::new(ExtensionChunk::MarkCount(count)));
        assert_eq!(packet.chunks[..], [expected]);
    }
}
