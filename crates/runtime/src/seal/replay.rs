//! The replay window of a path: the counters that were already opened.
//!
//! A ring of bits as in RFC 6479: nothing is shifted, and old words are cleared as the window advances.

use super::wire::COUNTER_BITS;

/// Minimum number of counters that a window covers. At 1 Gbit/s with packets of 1400 bytes this is 90 ms of
/// reordering within one path. Older datagrams are refused, since they cannot be distinguished from replays.
pub(super) const WINDOW: u64 = 8192;

const WORD: u64 = 64;
/// One word more than the window, so that no part of the window is cleared too early.
const WORDS: usize = (WINDOW / WORD) as usize + 1;

/// The replay window of one path.
pub(super) struct ReplayWindow {
    /// Largest opened counter plus one.
    next: u64,
    bits: Box<[u64; WORDS]>,
}

/// Whether a counter may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    New,
    Seen,
    TooOld,
}

impl ReplayWindow {
    pub(super) fn new() -> Self {
        Self { next: 0, bits: Box::new([0; WORDS]) }
    }

    /// Largest opened counter plus one.
    #[inline]
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    pub(super) fn check(&self, counter: u64) -> Verdict {
        if counter >= self.next {
            Verdict::New
        } else if self.next - counter > WINDOW {
            Verdict::TooOld
        } else if self.bits[word(counter)] & bit(counter) == 0 {
            Verdict::New
        } else {
            Verdict::Seen
        }
    }

    /// Records a counter that [`Self::check`] called new, after its datagram was opened.
    #[inline]
    pub(super) fn mark(&mut self, counter: u64) {
        if counter >= self.next {
            self.advance(counter);
        }
        self.bits[word(counter)] |= bit(counter);
    }

    /// Clears the words from after the largest opened counter up to and including that of `counter`.
    fn advance(&mut self, counter: u64) {
        // The word of the largest opened counter contains valid bits; before the first datagram, none does.
        let first = self.next.div_ceil(WORD);
        let last = counter / WORD;
        let fresh = (last + 1).saturating_sub(first).min(WORDS as u64);
        for index in 0..fresh {
            self.bits[((last - index) % WORDS as u64) as usize] = 0;
        }
        self.next = counter.saturating_add(1);
    }
}

#[inline]
const fn word(counter: u64) -> usize {
    ((counter / WORD) % WORDS as u64) as usize
}

#[inline]
const fn bit(counter: u64) -> u64 {
    1 << (counter % WORD)
}

/// Reconstructs a counter from its last 24 bits: the value closest to the counter that is expected next (RFC 9000,
/// appendix A.3).
#[inline]
pub(super) fn whole_counter(shown: u32, expected: u64) -> u64 {
    const SPAN: u64 = 1 << COUNTER_BITS;
    let candidate = (expected & !(SPAN - 1)) | u64::from(shown);
    if expected.saturating_sub(candidate) >= SPAN / 2 {
        candidate.saturating_add(SPAN)
    } else if candidate.saturating_sub(expected) > SPAN / 2 && candidate >= SPAN {
        candidate - SPAN
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_counter_is_new_once_and_too_old_behind_the_window() {
        let mut window = ReplayWindow::new();
        for (counter, verdict) in [
            (0, Verdict::New),
            (0, Verdict::Seen),
            (5, Verdict::New),
            (3, Verdict::New),
            (5, Verdict::Seen),
            (WINDOW + 3, Verdict::New),
            (3, Verdict::TooOld),
            (4, Verdict::New),
            (4, Verdict::Seen),
            (u64::from(u32::MAX) * 3, Verdict::New),
            (WINDOW + 3, Verdict::TooOld),
        ] {
            assert_eq!(window.check(counter), verdict, "{counter}");
            if verdict == Verdict::New {
                window.mark(counter);
            }
        }
    }

    #[test]
    fn a_whole_window_backwards_is_no_replay() {
        let mut window = ReplayWindow::new();
        for counter in (1000..1000 + WINDOW).rev() {
            assert_eq!(window.check(counter), Verdict::New, "{counter}");
            window.mark(counter);
            assert_eq!(window.check(counter), Verdict::Seen, "{counter}");
        }
        assert_eq!(window.check(999), Verdict::TooOld);
    }

    #[test]
    fn the_whole_counter_is_the_closest_one() {
        const SPAN: u64 = 1 << COUNTER_BITS;
        const LAST: u32 = (1 << COUNTER_BITS) - 1;
        for (shown, expected, whole) in [
            (0, 0, 0),
            (LAST, 0, SPAN - 1),
            (7, 5, 7),
            (0, SPAN - 1, SPAN),
            (LAST, SPAN + 1, SPAN - 1),
            (3, 5 * SPAN, 5 * SPAN + 3),
            (LAST, 5 * SPAN, 5 * SPAN - 1),
            (1 << (COUNTER_BITS - 1), 5 * SPAN, 5 * SPAN + SPAN / 2),
        ] {
            assert_eq!(whole_counter(shown, expected), whole, "{shown:#x} at {expected:#x}");
        }
    }

    proptest! {
        #[test]
        fn the_window_agrees_with_a_set(
            start in prop_oneof![0_u64..200, (1_u64 << 32) - 9000..1 << 33],
            steps in prop::collection::vec(
                prop_oneof![4 => -70_i64..70, 2 => -9000_i64..9000, 1 => -20_000_i64..40_000], 1..400),
        ) {
            let (mut window, mut seen, mut at) = (ReplayWindow::new(), BTreeSet::new(), start);
            for step in steps {
                at = at.saturating_add_signed(step);
                let next = seen.last().map_or(0, |last| last + 1);
                let expected = if at < next && next - at > WINDOW {
                    Verdict::TooOld
                } else if seen.contains(&at) {
                    Verdict::Seen
                } else {
                    Verdict::New
                };
                prop_assert_eq!(window.check(at), expected, "{} of {}", at, next);
                if expected == Verdict::New {
                    window.mark(at);
                    seen.insert(at);
                }
            }
        }

        #[test]
        fn a_counter_within_half_a_span_is_found_again(
            expected in 0_u64..1 << 50, away in -(1_i64 << 23) + 1..1_i64 << 23,
        ) {
            let counter = expected.saturating_add_signed(away);
            let shown = counter as u32 % (1 << COUNTER_BITS);
            prop_assert_eq!(whole_counter(shown, expected), counter);
        }
    }
}
