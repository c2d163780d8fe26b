//! Chunks that are reported as non-renegable (draft-natarajan-tsvwg-sctp-nrsack-08).
//!
//! ```text
//!   cumulative TSN          promised              highest TSN received
//!        |                     |                        |
//!   -----+----[====]---[===]---+---[====]----[delivered]+---> TSN
//!             never dropped        may be dropped
//! ```
//!
//! Delivered chunks are always non-renegable, because they can no longer be dropped. Waiting chunks are
//! promised up to one TSN, which only increases.
//!
//! A promise must not keep the buffer from accepting the chunks that the promised ones wait for. So the
//! TSN increases only as far as the free room suffices for everything missing up to it, at the size of
//! the largest chunk so far. A sender that obeys the span rule leaves this room, so that all its chunks
//! can be promised. If a chunk is larger than all previous ones and is the next in sequence, it is
//! accepted beyond the size of the buffer, but only once.

use ropewalk_base::Serial32;

use super::slots::Place;
use super::{ReceiveBuffer, charge};
use crate::meter;
use crate::sctp::gaps::{GapList, Word, distances, size, word};

/// Maximum number of TSNs beyond the promised ones that are examined for one report. TSNs beyond them
/// count as renegable until a later report.
const LOOKED_AT: u64 = 512;

/// The two lists of a report being built.
struct Report {
    gaps: Vec<Word>,
    kept: Vec<Word>,
    most: usize,
}

impl Report {
    fn is_full(&self) -> bool {
        self.gaps.len() + self.kept.len() >= self.most
    }

    fn add(&mut self, first: u64, last: u64, kept: bool) {
        if first <= last && !self.is_full() {
            let list = if kept { &mut self.kept } else { &mut self.gaps };
            list.push(word(first as u32, last as u32));
        }
    }
}

impl ReceiveBuffer {
    /// At most `most` renegable and non-renegable gap ack blocks of a report. Chunks in the latter are
    /// not dropped from now on.
    pub fn report(&mut self, most: usize) -> [GapList; 2] {
        let last = self.gaps.last().unwrap_or(0);
        (self.promised, self.promises) = (Serial32::wrap(self.promisable()), true);
        let words = &self.gaps.words()[..self.gaps.words().len().min(most)];
        let promised = self.promised();
        if promised >= last {
            return [GapList::default(), GapList { words: words.to_vec() }];
        }
        let mut report = Report { gaps: Vec::new(), kept: Vec::new(), most };
        let (mut left, cumulative) = (LOOKED_AT, self.cumulative());
        for block in words {
            let (first, last) = distances(*block, cumulative as u32);
            let (first, last) = (cumulative + u64::from(first), cumulative + u64::from(last));
            report.add(first, last.min(promised), true);
            self.report_rest(first.max(promised + 1), last, &mut left, &mut report);
        }
        [GapList { words: report.gaps }, GapList { words: report.kept }]
    }

    /// Maximum number of blocks in the next report, if a packet has room for all of them.
    pub fn most_blocks(&self) -> usize {
        let split = self.gaps.last().is_some_and(|last| self.promisable() < last);
        self.gaps.words().len() + if split { LOOKED_AT as usize } else { 0 }
    }

    /// The TSN up to which waiting chunks can be promised: there is room for everything missing before
    /// it.
    fn promisable(&self) -> u64 {
        let room = (self.free() + self.ready.bytes()) / u64::from(self.largest.max(1));
        let (cumulative, mut received) = (self.cumulative(), 0);
        let mut promised = self.promised().max(cumulative);
        for block in self.gaps.words() {
            meter::count(1);
            let last = u64::from(distances(*block, cumulative as u32).1);
            received += size(*block);
            if last - received > room {
                break;
            }
            promised = promised.max(cumulative + last);
        }
        promised
    }

    /// The highest TSN up to which waiting chunks are no longer dropped, or 0. It is updated with each
    /// report, so that it is never far behind the cumulative TSN.
    pub(super) fn promised(&self) -> u64 {
        if self.promises { self.promised.unwrap_near(self.cumulative()) } else { 0 }
    }

    /// Reports the chunks from `first` to `last`, which have arrived and are not promised.
    fn report_rest(&self, first: u64, last: u64, left: &mut u64, report: &mut Report) {
        let mut at = first;
        while at <= last && *left > 0 && !report.is_full() {
            let begin = at;
            let waits = self.waits(at);
            while at <= last && *left > 0 && self.waits(at) == waits {
                meter::count(1);
                *left -= 1;
                at += 1;
            }
            report.add(begin, at - 1, !waits);
        }
        report.add(at, last, false);
    }

    /// Whether a chunk that has arrived waits for others.
    fn waits(&self, tsn: u64) -> bool {
        matches!(self.slots.at(tsn, &self.gaps), Place::Held(_))
    }

    /// Whether waiting chunks must not be dropped, and the buffer has not been exceeded for that reason
    /// yet.
    pub(super) fn is_bound(&self) -> bool {
        self.promised() > self.cumulative()
            && self.chunk_bytes() <= self.capacity
            && self.bookkeeping() <= charge::most_bookkeeping(self.capacity)
    }
}
