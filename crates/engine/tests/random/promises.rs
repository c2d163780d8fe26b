//! Promises of NR-SACKs, checked from outside: data that an end has reported as non-renegable is in all
//! its later reports, and an end never retransmits data that its peer has reported as non-renegable.

use std::collections::BTreeSet;

use ropewalk_base::Serial32;
use ropewalk_engine::sctp::{Chunk, ExtensionChunk, NrSack, Packet};

/// The promises of one end, and those of its peer.
#[derive(Clone, Debug, Default)]
pub struct Promises {
    /// The highest cumulative TSN that this end has reported, and the TSNs beyond it that it has promised.
    own: Reported,
    /// Promises of its peer that have arrived.
    peer: Reported,
}

#[derive(Clone, Debug, Default)]
struct Reported {
    cumulative: Option<Serial32>,
    kept: BTreeSet<u32>,
}

/// Number of blocks that fit into any packet.
const BLOCKS: usize = 100;

fn nr_sacks(packet: &Packet) -> impl Iterator<Item = &NrSack> {
    packet.chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Extension(one) => match &**one {
            ExtensionChunk::NrSack(sack) => Some(sack),
            _ => None,
        },
        _ => None,
    })
}

impl Reported {
    fn is_old(&self, sack: &NrSack) -> bool {
        self.cumulative.is_some_and(|known| sack.cumulative.distance_from(known) < 0)
    }

    fn kept_by(sack: &NrSack) -> BTreeSet<u32> {
        let blocks = sack.kept.offsets(sack.cumulative).flat_map(|block| block.start..=block.end);
        blocks.map(|offset| sack.cumulative.plus(offset.into()).0).collect()
    }

    fn note(&mut self, sack: &NrSack) {
        let cumulative = sack.cumulative;
        self.cumulative = Some(cumulative);
        self.kept.extend(Self::kept_by(sack));
        self.kept.retain(|tsn| Serial32(*tsn).distance_from(cumulative) > 0);
    }
}

impl Promises {
    /// Records a received packet.
    pub fn received(&mut self, packet: &Packet) {
        for sack in nr_sacks(packet) {
            // An end drops a report that is out of date.
            if !self.peer.is_old(sack) {
                self.peer.note(sack);
            }
        }
    }

    /// Records a sent packet. Returns a broken promise.
    pub fn broken(&mut self, packet: &Packet) -> Option<String> {
        for chunk in &packet.chunks {
            if let Chunk::Data(data) = chunk
                && self.peer.kept.contains(&data.tsn.0)
            {
                return Some(format!("it sends {:?}, which its peer will not drop", data.tsn));
            }
        }
        for sack in nr_sacks(packet) {
            if self.own.is_old(sack) {
                return Some(format!("its cumulative TSN goes back: {sack:?}"));
            }
            let (kept, cumulative) = (Reported::kept_by(sack), sack.cumulative);
            let renegable: Vec<_> = sack.gaps.offsets(cumulative).collect();
            let both = renegable.iter().flat_map(|block| block.start..=block.end);
            for offset in both {
                if kept.contains(&cumulative.plus(offset.into()).0) {
                    return Some(format!("renegable and non-renegable: {offset} of {sack:?}"));
                }
            }
            let there =
                |tsn: &u32| Serial32(*tsn).distance_from(cumulative) <= 0 || kept.contains(tsn);
            if kept.len() + renegable.len() < BLOCKS
                && let Some(gone) = self.own.kept.iter().find(|tsn| !there(tsn))
            {
                return Some(format!("it has dropped {gone}: {sack:?}"));
            }
            self.own.note(sack);
        }
        None
    }
}
