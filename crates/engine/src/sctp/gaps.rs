//! Gap-acknowledgement blocks (RFC 9260, 3.3.4).

use std::cell::RefCell;

use ropewalk_base::Serial32;

/// One block as it is on the wire: offsets from the cumulative TSN, both inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GapBlock {
    /// First TSN of the block, less the cumulative TSN.
    pub start: u16,
    /// Last TSN of the block, less the cumulative TSN.
    pub end: u16,
}

/// First and last TSN of a block, the low half of each, packed into one word: a block reaches no further
/// from the cumulative TSN than 16 bits tell.
///
/// Unlike an offset this does not change when the cumulative TSN moves, so that the lists of two
/// SACKs, which differ in a block or two of hundreds, are copied and compared as plain memory.
pub(crate) type Word = u32;

#[inline]
pub(crate) const fn word(first: u32, last: u32) -> Word {
    first << 16 | last & 0xffff
}

/// First and last TSN as distances from `origin`, which lies before them and within reach.
#[inline]
pub(crate) const fn distances(word: Word, origin: u32) -> (u32, u32) {
    let origin = origin as u16;
    let (first, last) = ((word >> 16) as u16, word as u16);
    (first.wrapping_sub(origin) as u32, last.wrapping_sub(origin) as u32)
}

/// How many TSNs a block holds.
#[inline]
pub(crate) const fn size(word: Word) -> u64 {
    let (_, last) = distances(word, word >> 16);
    last as u64 + 1
}

/// The gap blocks of a SACK in ascending order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GapList {
    pub(crate) words: Vec<Word>,
}

/// Most lists that are kept to be used again.
const SPARE_LISTS: usize = 64;
/// Most blocks of such a list, far more than a packet has room for: longer ones come in datagrams that others
/// send, and one of each size would be kept for ever.
const SPARE_BLOCKS: usize = 512;

thread_local! {
    /// Lists come and go with every SACK, and allocating them would cost more than filling
    /// them. What is in them before does not matter, so that nothing depends on the thread.
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
    /// The list of these blocks.
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

    /// Takes the blocks that `kept` held, and leaves it the first `count` of its own.
    #[inline]
    pub(crate) fn swap(&mut self, kept: &mut Vec<Word>, count: usize) {
        self.words.truncate(count);
        std::mem::swap(&mut self.words, kept);
    }

    /// The list that has `blocks` on the wire beside `cumulative`.
    pub fn from_offsets(cumulative: Serial32, blocks: impl IntoIterator<Item = GapBlock>) -> Self {
        let tsn = |offset: u16| cumulative.plus(offset as u32).0;
        let words = blocks.into_iter().map(|b| word(tsn(b.start), tsn(b.end))).collect();
        Self { words }
    }

    /// The blocks as they are on the wire beside `cumulative`.
    pub fn offsets(&self, cumulative: Serial32) -> impl ExactSizeIterator<Item = GapBlock> + '_ {
        self.words.iter().map(move |word| {
            let (start, end) = distances(*word, cumulative.0);
            GapBlock { start: start as u16, end: end as u16 }
        })
    }

    /// How many blocks there are.
    #[inline]
    pub const fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
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
