//! What an end can do beyond RFC 9260: the chunk types that it lists (RFC 5061, 4.2.7).

use super::wire::kind;

/// A set of extensions, each known by the type of its chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extensions(u16);

/// Each extension with the chunk type that stands for it.
const TYPES: [(Extensions, u8); 14] = [
    (Extensions::AUTH, kind::AUTH),
    (Extensions::NR_SACK, kind::NR_SACK),
    (Extensions::I_DATA, kind::I_DATA),
    (Extensions::ASCONF_ACK, kind::ASCONF_ACK),
    (Extensions::PACKET_DROP, kind::PACKET_DROP),
    (Extensions::RE_CONFIG, kind::RE_CONFIG),
    (Extensions::PAD, kind::PAD),
    (Extensions::DELAY_STAMP, kind::DELAY_STAMP),
    (Extensions::DELAY_ECHO, kind::DELAY_ECHO),
    (Extensions::PIECE, kind::PIECE),
    (Extensions::CMT, kind::CMT),
    (Extensions::FORWARD_TSN, kind::FORWARD_TSN),
    (Extensions::ASCONF, kind::ASCONF),
    (Extensions::I_FORWARD_TSN, kind::I_FORWARD_TSN),
];

impl Extensions {
    /// None.
    pub const NONE: Self = Self(0);
    /// Authenticated chunks (RFC 4895).
    pub const AUTH: Self = Self(1);
    /// SACK with non-renegable gaps (draft-tuexen-tsvwg-sctp-multipath).
    pub const NR_SACK: Self = Self(1 << 1);
    /// Interleaved DATA (RFC 8260).
    pub const I_DATA: Self = Self(1 << 2);
    /// Acknowledgement of changed addresses (RFC 5061).
    pub const ASCONF_ACK: Self = Self(1 << 3);
    /// Reports of dropped packets.
    pub const PACKET_DROP: Self = Self(1 << 4);
    /// Streams reset and added (RFC 6525).
    pub const RE_CONFIG: Self = Self(1 << 5);
    /// Padding (RFC 4820).
    pub const PAD: Self = Self(1 << 6);
    /// The sender's clock beside DATA (Sarwar et al., 2013): ours.
    pub const DELAY_STAMP: Self = Self(1 << 7);
    /// Both clocks beside a SACK (Sarwar et al., 2013): ours.
    pub const DELAY_ECHO: Self = Self(1 << 8);
    /// Partial reliability (RFC 3758).
    pub const FORWARD_TSN: Self = Self(1 << 9);
    /// Changed addresses (RFC 5061).
    pub const ASCONF: Self = Self(1 << 10);
    /// Partial reliability of interleaved DATA (RFC 8260).
    pub const I_FORWARD_TSN: Self = Self(1 << 11);
    /// DATA in pieces where a path became too narrow for it: ours.
    pub const PIECE: Self = Self(1 << 12);
    /// Concurrent multipath transfer: the peer expects DATA on all paths at once, gaps that wait for the
    /// delayed SACK, and the number of packets in the flags of SACKs (DAC). Announced only: no chunk has
    /// this type. Ours.
    pub const CMT: Self = Self(1 << 13);
    /// Timestamps both ways.
    pub const DELAY: Self = Self::DELAY_STAMP.and(Self::DELAY_ECHO);

    /// Explicit congestion notification, which a parameter of its own stands for and no chunk (RFC 4960,
    /// Appendix A).
    pub const ECN: Self = Self(1 << 15);
    /// All that are ours.
    pub const OURS: Self = Self::DELAY.and(Self::PIECE).and(Self::CMT);

    /// Both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What both sets have.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of `other` is in here.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether nothing is.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The chunk types, ascending.
    pub fn types(self) -> impl Iterator<Item = u8> {
        TYPES.into_iter().filter(move |(one, _)| self.has(*one)).map(|(_, kind)| kind)
    }

    /// The set of those chunk types that are known here; the others are nothing to this end.
    pub fn of_types(types: &[u8]) -> Self {
        let listed = TYPES.iter().filter(|(_, kind)| types.contains(kind));
        listed.fold(Self::NONE, |all, (one, _)| all.and(*one))
    }

    /// As two bytes, for the state cookie.
    pub(super) const fn bits(self) -> u16 {
        self.0
    }

    /// Those of them that stand for chunks.
    pub(super) const fn from_bits(bits: u16) -> Self {
        Self(bits & ((1 << TYPES.len()) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_the_same_by_types_and_by_bits() {
        for bits in 0..1 << TYPES.len() {
            let set = Extensions::from_bits(bits);
            let types: Vec<u8> = set.types().collect();
            assert!(types.is_sorted() && types.len() as u32 == set.len());
            assert_eq!(Extensions::of_types(&types), set);
            assert_eq!(Extensions::from_bits(set.bits()), set);
        }
        assert_eq!(Extensions::of_types(&[0, 0x7f, 0xff]), Extensions::NONE);
    }
}
