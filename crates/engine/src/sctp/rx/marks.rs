//! Marks of the network (RFC 3168) that the sender of the data must be told of. RFC 4960, Appendix A: the
//! receiver of a marked packet sends an ECNE with the lowest TSN of that packet beside its SACKs until a CWR
//! confirms it.

use ropewalk_base::{PathId, Serial32};
use smallvec::SmallVec;

use crate::sctp::chunk::Chunk;
use crate::sctp::extension_chunk::ExtensionChunk;
use crate::sctp::packet::Packet;

/// Length of an ECNE chunk, bytes.
const ECNE: u32 = 8;

/// The marks that have not been confirmed.
#[derive(Clone, Debug)]
pub struct MarkEchoes {
    /// Per path: lowest TSN of the last marked packet.
    paths: SmallVec<[Option<u64>; 2]>,
    any: bool,
}

impl MarkEchoes {
    /// No marks on `paths` paths.
    pub fn new(paths: usize) -> Self {
        Self { paths: SmallVec::from_elem(None, paths), any: false }
    }

    /// Adds a path.
    pub fn add_path(&mut self) {
        self.paths.push(None);
    }

    /// Keeps only these paths and renumbers them.
    pub fn retain_paths(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        self.paths.retain(|_| kept.next().is_some_and(|kept| *kept));
        self.any = self.paths.iter().any(Option::is_some);
    }

    /// Whether a mark has not been confirmed.
    #[inline]
    pub const fn any(&self) -> bool {
        self.any
    }

    /// Processes a packet from `path` that the network has marked. `cumulative`: the cumulative TSN.
    #[cold]
    pub fn on_marked(&mut self, path: PathId, cumulative: u64, packet: &Packet) {
        let tsn = |chunk: &Chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn.unwrap_near(cumulative)),
            _ => None,
        };
        let Some(lowest) = packet.chunks.iter().filter_map(tsn).min() else { return };
        let mark = &mut self.paths[path.index()];
        *mark = (*mark).max(Some(lowest));
        self.any = true;
    }

    /// Length of the ECNE chunks beside the next SACK, bytes.
    pub fn wire_len(&self) -> u32 {
        ECNE * self.paths.iter().flatten().count() as u32
    }

    /// Puts ECNE chunks before the SACK, which would otherwise acknowledge their TSNs first.
    #[cold]
    pub fn add_to(&self, packet: &mut Packet) {
        for tsn in self.paths.iter().flatten() {
            let ecne = Chunk::Extension(Box::new(ExtensionChunk::Ecne(Serial32::wrap(*tsn))));
            packet.chunks.insert(0, ecne);
        }
    }

    /// Processes a CWR: the peer has received all echoes up to `tsn`.
    #[cold]
    pub fn on_cwr(&mut self, tsn: u64) {
        for mark in &mut self.paths {
            *mark = mark.filter(|mark| *mark > tsn);
        }
        self.any = self.paths.iter().any(Option::is_some);
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
        let mut marks = MarkEchoes::new(2);
        assert_eq!((marks.any(), marks.wire_len()), (false, 0));
        marks.on_marked(PathId(1), ORIGIN, &marked(&[9, 5, 7]));
        marks.on_marked(PathId(0), ORIGIN, &marked(&[6]));
        assert_eq!((marks.any(), marks.wire_len()), (true, 16));
        marks.on_cwr(ORIGIN + 5);
        let mut packet = Packet::default();
        marks.add_to(&mut packet);
        let echo = Chunk::Extension(Box::new(ExtensionChunk::Ecne(Serial32(6))));
        assert_eq!(packet.chunks[..], [echo]);
        marks.on_cwr(ORIGIN + 6);
        assert!(!marks.any());
    }

    #[test]
    fn a_later_mark_replaces_an_earlier_one_and_paths_come_and_go() {
        let mut marks = MarkEchoes::new(1);
        marks.add_path();
        marks.on_marked(PathId(1), ORIGIN, &marked(&[3]));
        marks.on_marked(PathId(1), ORIGIN, &marked(&[8]));
        marks.on_marked(PathId(1), ORIGIN, &marked(&[4]));
        assert_eq!(marks.paths[1], Some(ORIGIN + 8));
        marks.on_marked(PathId(0), ORIGIN, &marked(&[]));
        marks.retain_paths(&[true, false]);
        assert!(!marks.any(), "nothing was marked on the path that stays");
    }
}
