//! Gap-acknowledgement blocks (RFC 9260, 3.3.4).

use std::cell::RefCell;

use ropewalk_base::Serial32;

/// One gap ack block as on the wire: offsets from the cumulative TSN, both inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GapBlock {
    /// First TSN of the block, less the cumulative TSN.
    pub start: u16,
    /// Last TSN of the block, less the cumulative TSN.
    pub end: u16,
}

/// First and last TSN of a block, the low 16 bits of each, packed into one word. A block is at most 16 bits
/// away from the cumulative TSN, so these bits suffice.
///
/// Unlike an offset, a word does not change when the cumulative TSN advances. So the lists of two SACKs,
/// which differ in one or two of hundreds of blocks, can be copied and compared as memory.
pub(crate) type Word = u32;

#[inline]
pub(crate) const fn word(first: u32, last: u32) -> Word {
    first << 16 | last & 0xffff
}

/// First and last TSN as distances from `origin`, which is at most 16 bits before them.
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

/// Most gap ack blocks in a SACK of at most `room` bytes.
pub(crate) const fn blocks_within(room: u32) -> usize {
    (room.saturating_sub(16) / 4) as usize
}

/// The gap blocks of a SACK in ascending order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GapList {
    pub(crate) words: Vec<Word>,
}

/// Most lists that are kept for reuse.
const SPARE_LISTS: usize = 64;
/// Most blocks of a list kept for reuse, far more than a packet holds. Longer lists come from datagrams of
/// other senders, and one of each size would be kept for ever.
const SPARE_BLOCKS: usize = 512;

thread_local! {
    /// Each SACK needs a list, and allocating it would cost more than filling it. Previous content does not
    /// matter, so nothing depends on the thread.
    static SPARE: RefCell<Vec<Vec<Word>>> = const { RefCell::new(Vec::new()) };
}

impl Drop for GapList {
    #[inline]
    fn drop(&mut self) {
        if (1..=SPARE_BLOCKS).contains(&self.words.capacity()) {
            give_back(std::mem::take(&mut self.words));
        }
    }
}

fn give_back(words: Vec<Word>) {
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < SPARE_LISTS {
            spare.push(words);
        }
    });
}

impl GapList {
    /// Creates a list of these blocks.
    #[inline(always)]
    pub(crate) fn copy_of(words: &[Word]) -> Self {
        if words.is_empty() {
            return Self::default();
        }
        let mut list = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        list.clear();
        list.extend_from_slice(words);
        Self { words: list }
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
