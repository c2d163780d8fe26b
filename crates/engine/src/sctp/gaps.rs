//! Gap-acknowledgement blocks (RFC 9260, 3.3.4).

use ropewalk_base::Serial32;

/// One gap ack block as on the wire: offsets from the cumulative TSN, both inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GapBlock {
    /// First TSN of the block, less the cumulative TSN.
    pub start: u16,
    /// Last TSN of the block, less the cumulative TSN.
    pub end: u16,
}

/// First and last TSN of a block, the low 16 bits of each, packed into one word. A block is at most 2^16
/// TSNs away from the cumulative TSN, so these bits suffice.
///
/// Unlike an offset, a word does not change when the cumulative TSN advances. So the lists of two SACKs,
/// which differ in one or two of hundreds of blocks, can be copied and compared as memory.
pub(crate) type Word = u32;

#[inline]
pub(crate) const fn word(first: u32, last: u32) -> Word {
    first << 16 | last & 0xffff
}

/// First and last TSN as distances from `origin`, which is less than 2^16 before them.
#[inline]
pub(crate) const fn distances(word: Word, origin: u32) -> (u32, u32) {
    let origin = origin as u16;
    let (first, last) = ((word >> 16) as u16, word as u16);
    (first.wrapping_sub(origin) as u32, last.wrapping_sub(origin) as u32)
}

/// Number of TSNs in a block.
#[inline]
pub(crate) const fn size(word: Word) -> u64 {
    let (_, last) = distances(word, word >> 16);
    last as u64 + 1
}

/// Maximum number of gap ack blocks in a SACK of at most `room` bytes.
pub(crate) const fn blocks_within(room: u32) -> usize {
    (room.saturating_sub(16) / 4) as usize
}

/// The gap blocks of a SACK in ascending order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GapList {
    pub(crate) words: Vec<Word>,
}

impl GapList {
    /// Creates a list of these blocks in the memory of `spare`.
    #[inline(always)]
    pub(crate) fn copy_of(words: &[Word], mut spare: Vec<Word>) -> Self {
        spare.clear();
        spare.extend_from_slice(words);
        Self { words: spare }
    }

    /// Exchanges the lists: `kept` gets the first `count` blocks of this list.
    #[inline]
    pub(crate) fn swap(&mut self, kept: &mut Vec<Word>, count: usize) {
        self.words.truncate(count);
        std::mem::swap(&mut self.words, kept);
    }

    /// Creates the list that has `blocks` on the wire, relative to `cumulative`.
    pub fn from_offsets(cumulative: Serial32, blocks: impl IntoIterator<Item = GapBlock>) -> Self {
        let tsn = |offset: u16| cumulative.plus(offset as u32).0;
        let words = blocks.into_iter().map(|b| word(tsn(b.start), tsn(b.end))).collect();
        Self { words }
    }

    /// The blocks as on the wire, relative to `cumulative`.
    pub fn offsets(&self, cumulative: Serial32) -> impl ExactSizeIterator<Item = GapBlock> + '_ {
        self.words.iter().map(move |word| {
            let (start, end) = distances(*word, cumulative.0);
            GapBlock { start: start as u16, end: end as u16 }
        })
    }

    /// Number of blocks for which memory is allocated.
    #[inline]
    pub(crate) const fn capacity(&self) -> usize {
        self.words.capacity()
    }

    /// Number of blocks.
    #[inline]
    pub const fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no block.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_those_of_the_wire_also_where_the_numbers_wrap() {
        let cumulative = Serial32(u32::MAX - 3);
        let blocks = [GapBlock { start: 2, end: 2 }, GapBlock { start: 4, end: 900 }];
        let list = GapList::from_offsets(cumulative, blocks);
        assert_eq!(list.offsets(cumulative).collect::<Vec<_>>(), blocks);
        assert_eq!(list.words.iter().map(|w| size(*w)).collect::<Vec<_>>(), [1, 897]);
    }
}
