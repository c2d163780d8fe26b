//! Makes room in a full send buffer by abandoning messages of lower priority (RFC 7496, 3.2).
//!
//! Only messages without a TSN are abandoned. Data with a TSN occupies the buffer until the peer has
//! acknowledged it or was told to skip it, so abandoning it would not make room. The lowest priority is
//! abandoned first, and among equals the oldest message.

use std::collections::BTreeMap;

use super::{Chunks, Sender};
use crate::sctp::extensions::abandoned::ReliabilityPolicy;
use crate::sctp::extensions::partial_reliability::Submitted;

/// The messages to abandon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cut {
    /// All messages with a number above this.
    above: u32,
    /// The user data of the oldest messages with this number that are abandoned, bytes.
    bytes: u64,
}

impl Cut {
    /// The cut that abandons `needed` bytes, `None` if there are fewer. `sums`: user data by priority.
    fn of(sums: &BTreeMap<u32, u64>, needed: u64) -> Option<Self> {
        let mut left = needed;
        for (&above, &bytes) in sums.iter().rev() {
            if bytes >= left {
                return Some(Self { above, bytes: left });
            }
            left -= bytes;
        }
        None
    }

    /// The number of messages to abandon of a run of `count` with `len` bytes each.
    fn take(&mut self, priority: Option<u32>, len: u32, count: u64) -> u64 {
        let Some(priority) = priority.filter(|priority| *priority >= self.above) else { return 0 };
        if priority > self.above {
            return count;
        }
        let len = u64::from(len.max(1));
        let taken = self.bytes.div_ceil(len).min(count);
        self.bytes = self.bytes.saturating_sub(taken * len);
        taken
    }
}

impl Chunks {
    /// User data of the messages without a TSN whose number is higher, by number.
    fn bytes_below(&self, priority: u32) -> BTreeMap<u32, u64> {
        let mut sums = BTreeMap::new();
        let mut add = |number: u32, bytes: u64| *sums.entry(number).or_default() += bytes;
        for (number, bytes) in self.queue.priorities() {
            add(number, bytes);
        }
        for message in self.limits.iter().flat_map(|limits| limits.beside_queue()) {
            if let Some(number) = message.limit.priority {
                add(number, u64::from(message.payload.len()));
            }
        }
        sums.split_off(&priority.saturating_add(1))
    }

    /// Abandons the messages of a cut. Returns their number.
    fn give_up(&mut self, mut cut: Cut) -> u64 {
        let Some(limits) = &mut self.limits else { return 0 };
        let policy = ReliabilityPolicy::Priority;
        let mut gone = self.queue.drop_messages(
            |priority, len, count| cut.take(priority, len, count),
            |run, count| {
                let rests = run.rests().take(count as usize).map(Into::into);
                limits.on_dropped(policy, run.stream, count, rests);
            },
        );
        gone += limits.drop_beside_queue(policy, |message: &Submitted| {
            cut.take(message.limit.priority, message.payload.len(), 1) > 0
        });
        gone
    }
}

impl Sender {
    /// Abandons messages of lower priority, if that makes room for one of this priority. Returns whether
    /// it did.
    ///
    /// RFC 7496, 3.2: the lower the number, the higher the priority. The work is proportional to the
    /// queued messages.
    #[cold]
    pub fn make_room(&mut self, priority: u32) -> bool {
        // Without limits no message has a priority.
        if self.outstanding.limits.is_none() || priority == u32::MAX {
            return false;
        }
        let sums = self.outstanding.bytes_below(priority);
        let Some(cut) = Cut::of(&sums, self.buffer_excess() + 1) else { return false };
        self.measurements.stats.abandoned += self.outstanding.give_up(cut);
        self.outstanding.deadline.invalidate();
        self.discard_views();
        self.epoch += 1;
        self.buffer_room() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_priority_goes_first_and_no_more_than_is_needed() {
        let sums = BTreeMap::from([(3, 100), (7, 50), (9, 20)]);
        for (needed, expected) in [
            (1, Some((9, 1))),
            (20, Some((9, 20))),
            (21, Some((7, 1))),
            (70, Some((7, 50))),
            (170, Some((3, 100))),
            (171, None),
        ] {
            let found = Cut::of(&sums, needed).map(|cut| (cut.above, cut.bytes));
            assert_eq!(found, expected, "{needed} B");
        }
        let mut cut = Cut { above: 7, bytes: 45 };
        let taken = [(Some(9), 10, 3), (None, 10, 3), (Some(6), 10, 3), (Some(7), 20, 2)];
        let taken = taken.map(|(priority, len, count)| cut.take(priority, len, count));
        assert_eq!(taken, [3, 0, 0, 2]);
        assert_eq!([cut.take(Some(7), 20, 4), cut.take(Some(7), 20, 4)], [1, 0]);
    }
}
