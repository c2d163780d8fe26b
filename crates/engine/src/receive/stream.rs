//! Order within one stream (RFC 9260, 6.6).

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use ropewalk_base::Serial16;

/// Most messages of one stream that may wait for an earlier one: half of the numbers there are, beyond
/// which later and earlier cannot be told apart (RFC 1982).
const WAITING_LIMIT: usize = 1 << 15;

/// Complete messages of one stream that wait for an earlier one.
#[derive(Clone, Debug, Default)]
pub struct InStream {
    next: Serial16,
    /// Index 0 is `next`; each holds the TSNs of a complete message.
    waiting: VecDeque<Option<(u64, u64)>>,
}

impl InStream {
    /// Whether the message with this number may be delivered now.
    #[inline]
    pub fn is_next(&self, ssn: Serial16) -> bool {
        ssn == self.next && self.waiting.front().is_none_or(Option::is_none)
    }

    /// The next message was delivered without waiting.
    #[inline]
    pub fn advance(&mut self) {
        self.next = self.next.plus(1);
        self.waiting.pop_front();
    }

    /// Keeps a complete message; false if its number makes no sense here: it lies behind, too far
    /// ahead, or has come before.
    pub fn keep(&mut self, ssn: Serial16, tsns: RangeInclusive<u64>) -> bool {
        let ahead = ssn.distance_from(self.next);
        if ahead < 0 || ahead as usize >= WAITING_LIMIT {
            return false;
        }
        let at = ahead as usize;
        if at >= self.waiting.len() {
            self.waiting.resize(at + 1, None);
        }
        let fresh = self.waiting[at].is_none();
        self.waiting[at] = Some((*tsns.start(), *tsns.end()));
        fresh
    }

    /// A piece of this message was dropped again: it is no longer complete.
    pub fn forget(&mut self, ssn: Serial16) {
        let ahead = ssn.distance_from(self.next);
        if let Some(slot) = usize::try_from(ahead).ok().and_then(|at| self.waiting.get_mut(at)) {
            *slot = None;
        }
    }

    /// Takes the next message if it is complete.
    #[inline]
    pub fn take_next(&mut self) -> Option<RangeInclusive<u64>> {
        let (first, last) = (*self.waiting.front()?)?;
        self.advance();
        Some(first..=last)
    }
}
