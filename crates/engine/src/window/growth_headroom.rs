//! Room in a buffer that cannot hold all pipes, left for those paths that make more of it.

use super::adaptive::Advice;
use super::manager::{Budget, ManagedPath, others};

/// The models must promise so much more than equal shares of the buffer would bring: below that, the losses
/// that happen to be measured decide, and nothing is gained.
const WORTH: f64 = 1.05;
/// Round trips may differ by this part of the longer one. Where they differ more, packets of one path wait at the
/// receiver for those of another, and what is in flight does not tell who holds the buffer.
const ALIKE: u64 = 4;

/// The most that path `i` may have in flight, bytes, so that every other window can grow by a packet until it
/// is as large as the models advise; none where that is not known to pay. What the others cannot use it may have.
///
/// A window does not grow while the receive buffer holds it back. So without this rule a path that seldom loses
/// never gets room that one which often loses has once taken, and each loss there opens a wider gap.
pub(super) fn room_left(
    i: usize,
    budget: &Budget,
    paths: &[ManagedPath],
    advice: &Advice,
) -> Option<u64> {
    // A path that has just come is not in the advice yet.
    if advice.over_equal_shares < WORTH || advice.limits.len() != paths.len() {
        return None;
    }
    let own = paths[i].empty_round_trip?;
    let mut taken = 0;
    for (path, limit) in others(i, paths).zip(others(i, &advice.limits)) {
        let theirs = path.empty_round_trip?;
        if own.max(theirs) - own.min(theirs) > own.max(theirs) / ALIKE {
            return None;
        }
        taken += (path.window + budget.chunk).min(*limit);
    }
    Some(budget.buffer.saturating_sub(taken).max(advice.limits[i]).max(budget.chunk))
}

#[cfg(test)]
mod tests {
    use super::super::manager::tests::{CHUNK, budget, path};
    use super::*;

    fn left(over_equal_shares: f64, millis: u64, other: u64) -> Option<u64> {
        let limits = vec![20 * CHUNK, 67 * CHUNK];
        let paths = [path(20, 40, 40), path(20, millis, other)];
        let advice = Advice { limits, over_equal_shares };
        room_left(0, &budget(87), &paths, &advice).map(|bytes| bytes / CHUNK)
    }

    #[test]
    fn others_may_grow_to_what_is_advised_and_what_they_do_not_use_stays() {
        for (other, most) in [(4, 82), (30, 56), (65, 21), (66, 20), (90, 20)] {
            assert_eq!(left(1.2, 40, other), Some(most), "{other} chunks elsewhere");
        }
    }

    #[test]
    fn nothing_is_left_where_that_is_not_known_to_pay() {
        assert_eq!(left(1.04, 40, 30), None, "equal shares serve as well");
        assert_eq!(left(1.2, 60, 30), None, "packets wait for the slower path");
        let of_two = Advice { limits: vec![20 * CHUNK, 67 * CHUNK], over_equal_shares: 1.2 };
        for i in 0..3 {
            let paths = [path(20, 40, 40); 3];
            assert_eq!(room_left(i, &budget(87), &paths, &of_two), None, "a path has come");
        }
    }
}
