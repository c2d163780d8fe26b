//! The tunnel's own header before each inner packet.
//!
//! ```text
//!    0                   1                   2                   3
//!    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!   +-------------------+-----+-+-----------------------------------+
//!   |     flow slot     | gen |O|             sequence              |
//!   +-------------------+-----+-+-----------------------------------+
//! ```

/// Bits of the flow slot.
pub(crate) const SLOT_BITS: u32 = 10;
const GENERATION_BITS: u32 = 3;
const SEQUENCE_BITS: u32 = 18;
const SEQUENCES: u64 = 1 << SEQUENCE_BITS;

/// Position of an inner packet within its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The flow slot, below [`Config::FLOWS_MAX`](crate::Config::FLOWS_MAX).
    pub(crate) slot: u16,
    /// Changes when the slot gets another flow, modulo 8.
    pub(crate) generation: u8,
    /// Whether the far end restores the order of the flow.
    pub(crate) ordered: bool,
    /// Sequence number within the flow, modulo 2^18.
    pub(crate) sequence: u32,
}

impl Header {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    pub(crate) const fn new(slot: u16, generation: u8, ordered: bool, sequence: u64) -> Self {
        let sequence = (sequence % SEQUENCES) as u32;
        Self { slot, generation: generation % (1 << GENERATION_BITS), ordered, sequence }
    }

    /// The bytes on the wire.
    pub const fn encode(self) -> [u8; Self::LEN] {
        let slot = (self.slot as u32) << (32 - SLOT_BITS);
        let generation = (self.generation as u32) << (1 + SEQUENCE_BITS);
        let ordered = (self.ordered as u32) << SEQUENCE_BITS;
        (slot | generation | ordered | self.sequence).to_be_bytes()
    }

    /// Reads a header. Any four bytes are valid.
    pub const fn decode(bytes: [u8; Self::LEN]) -> Self {
        let word = u32::from_be_bytes(bytes);
        Self {
            slot: (word >> (32 - SLOT_BITS)) as u16,
            generation: (word >> (1 + SEQUENCE_BITS)) as u8 & ((1 << GENERATION_BITS) - 1),
            ordered: word >> SEQUENCE_BITS & 1 == 1,
            sequence: word & (SEQUENCES - 1) as u32,
        }
    }

    /// The full sequence number with the low bits in `self` that is nearest to `near`.
    pub(crate) const fn unwrapped(self, near: u64) -> u64 {
        let base = near & !(SEQUENCES - 1);
        let candidate = base + self.sequence as u64;
        if candidate + SEQUENCES / 2 < near {
            candidate + SEQUENCES
        } else if candidate > near + SEQUENCES / 2 && candidate >= SEQUENCES {
            candidate - SEQUENCES
        } else {
            candidate
        }
    }

    /// Whether `self` belongs to an earlier user of the slot than `current`.
    pub(crate) const fn is_older(self, current: u8) -> bool {
        let ahead = self.generation.wrapping_sub(current) % (1 << GENERATION_BITS);
        ahead >= 1 << (GENERATION_BITS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for header in [
            Header::new(0, 0, false, 0),
            Header::new(1023, 7, true, SEQUENCES - 1),
            Header::new(513, 5, false, 77_777),
            Header::new(3, 9, true, SEQUENCES + 4),
        ] {
            assert_eq!(Header::decode(header.encode()), header);
        }
        assert_eq!(Header::new(3, 9, true, SEQUENCES + 4), Header::new(3, 1, true, 4));
    }

    #[test]
    fn a_sequence_number_is_found_from_its_last_bits_within_half_the_range() {
        for near in [0, 5, SEQUENCES / 2, SEQUENCES - 1, SEQUENCES, 7 * SEQUENCES + 12] {
            for offset in [0, 1, 1000, SEQUENCES / 2 - 1] {
                let ahead = near + offset;
                assert_eq!(Header::new(0, 0, true, ahead).unwrapped(near), ahead);
                if let Some(behind) = near.checked_sub(offset) {
                    assert_eq!(Header::new(0, 0, true, behind).unwrapped(near), behind);
                }
            }
        }
    }

    #[test]
    fn generations_are_compared_modulo_eight() {
        for (generation, current, older) in
            [(0, 0, false), (1, 0, false), (0, 1, true), (7, 0, true), (0, 7, false), (2, 6, true)]
        {
            let header = Header::new(0, generation, false, 0);
            assert_eq!(header.is_older(current), older, "{generation} at {current}");
        }
    }
}
