//! Extensions of RFC 9260, by the chunk types that an endpoint lists (RFC 5061, 4.2.7).

pub mod abandoned;
pub mod address_reconfiguration;
pub mod authentication;
pub mod interleaving;
pub(crate) mod non_renegable;
pub mod partial_reliability;
pub mod stream_reconfiguration;

use super::wire::kind;

/// A set of extensions, each identified by a chunk type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extensions(u16);

/// Each extension with the chunk type that identifies it.
const TYPES: [(Extensions, u8); 15] = [
    (Extensions::AUTH, kind::AUTH),
    (Extensions::NR_SACK, kind::NR_SACK),
    (Extensions::I_DATA, kind::I_DATA),
    (Extensions::ASCONF_ACK, kind::ASCONF_ACK),
    (Extensions::RE_CONFIG, kind::RE_CONFIG),
    (Extensions::PAD, kind::PAD),
    (Extensions::DELAY_STAMP, kind::DELAY_STAMP),
    (Extensions::DELAY_ECHO, kind::DELAY_ECHO),
    (Extensions::DATA_FRAGMENT, kind::DATA_FRAGMENT),
    (Extensions::CMT, kind::CMT),
    (Extensions::MARK_COUNT, kind::MARK_COUNT),
    (Extensions::REQUESTED_SACK, kind::REQUESTED_SACK),
    (Extensions::FORWARD_TSN, kind::FORWARD_TSN),
    (Extensions::ASCONF, kind::ASCONF),
    (Extensions::I_FORWARD_TSN, kind::I_FORWARD_TSN),
];

impl Extensions {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// Authenticated chunks (RFC 4895).
    pub const AUTH: Self = Self(1);
    /// SACK with non-renegable gap ack blocks (draft-natarajan-tsvwg-sctp-nrsack-08).
    pub const NR_SACK: Self = Self(1 << 1);
    /// Interleaved DATA (RFC 8260).
    pub const I_DATA: Self = Self(1 << 2);
    /// Acknowledgement of address reconfiguration (RFC 5061).
    pub const ASCONF_ACK: Self = Self(1 << 3);
    /// The sender of data requests SACKs by the I bit, and SACKs list only the blocks that changed
    /// ([`SackOptions::on_request`](crate::sctp::SackOptions::on_request)). Defined by this project.
    pub const REQUESTED_SACK: Self = Self(1 << 4);
    /// Stream reconfiguration (RFC 6525).
    pub const RE_CONFIG: Self = Self(1 << 5);
    /// Padding (RFC 4820).
    pub const PAD: Self = Self(1 << 6);
    /// The sender's timestamp with DATA (Sarwar et al., 2013). Defined by this project.
    pub const DELAY_STAMP: Self = Self(1 << 7);
    /// Both timestamps with a SACK (Sarwar et al., 2013). Defined by this project.
    pub const DELAY_ECHO: Self = Self(1 << 8);
    /// Partial reliability (RFC 3758).
    pub const FORWARD_TSN: Self = Self(1 << 9);
    /// Address reconfiguration (RFC 5061).
    pub const ASCONF: Self = Self(1 << 10);
    /// Partial reliability of interleaved DATA (RFC 8260).
    pub const I_FORWARD_TSN: Self = Self(1 << 11);
    /// DATA in pieces for a path whose MTU has decreased. Defined by this project.
    pub const DATA_FRAGMENT: Self = Self(1 << 12);
    /// Concurrent multipath transfer: the peer expects DATA on several paths simultaneously, delays SACKs
    /// in spite of gaps, and counts packets in the flags of SACKs (DAC). Only announced: no chunk has
    /// this type. Defined by this project.
    pub const CMT: Self = Self(1 << 13);
    /// Accurate ECN: SACKs are accompanied by the number of bytes that arrived marked, instead of an echo
    /// that is repeated until it is confirmed. Defined by this project. Requires [`Self::ECN`].
    pub const MARK_COUNT: Self = Self(1 << 14);
    /// Timestamps in both directions.
    pub const DELAY: Self = Self::DELAY_STAMP.and(Self::DELAY_ECHO);

    /// Explicit congestion notification, announced by its own parameter (RFC 4960, Appendix A).
    pub const ECN: Self = Self(1 << 15);
    /// Extensions that this implementation offers to a peer on a real path.
    pub const OFFERED: Self = Self::OURS.and(Self::FORWARD_TSN);
    /// All extensions defined by this project.
    pub const OURS: Self = Self::DELAY.and(Self::DATA_FRAGMENT).and(Self::CMT);

    /// Whether messages that have been sent may be abandoned. RFC 8260, 2.3.1: interleaved messages by
    /// I-FORWARD-TSN.
    pub const fn abandons(self) -> bool {
        let needed = match self.has(Self::I_DATA) {
            true => Self::FORWARD_TSN.and(Self::I_FORWARD_TSN),
            false => Self::FORWARD_TSN,
        };
        self.has(needed)
    }

    /// Union of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Intersection of both sets.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the set contains all of `other`.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Number of extensions in the set.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The chunk types in ascending order.
    pub fn types(self) -> impl Iterator<Item = u8> {
        TYPES.into_iter().filter(move |(one, _)| self.has(*one)).map(|(_, kind)| kind)
    }

    /// The set of these chunk types; unknown ones are ignored.
    pub fn of_types(types: &[u8]) -> Self {
        let listed = TYPES.iter().filter(|(_, kind)| types.contains(kind));
        listed.fold(Self::NONE, |all, (one, _)| all.and(*one))
    }

    /// The set as 16 bits, for the state cookie.
    pub(super) const fn bits(self) -> u16 {
        self.0
    }

    /// The set from 16 bits, without bits that do not correspond to a chunk type.
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
