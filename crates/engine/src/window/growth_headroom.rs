//! Growth headroom: caps in-flight data per path so that the remaining paths can grow their windows to the
//! limits that the models advise.
//!
//! The cap applies when the receive buffer is smaller than the sum of all bandwidth-delay products.

use super::adaptive::Advice;
use super::manager::{Budget, ManagedPath, others};

/// Minimum predicted gain over equal shares of the buffer for which a cap applies. Below that, the random
/// part of the measured losses would decide, and nothing is gained.
const WORTH: f64 = 1.05;
/// Maximum difference of round trips, as a divisor of the longer one. With larger differences, packets of
/// one path wait at the receiver for packets of another, and data in flight does not show which path
/// occupies the buffer.
const ALIKE: u64 = 4;

/// The cap for the data in flight on path `i`, bytes, so that every other window can grow by a packet
/// until it reaches the advised size. `None` if a cap is not known to help. Path `i` may use space that
/// the others cannot use.
///
/// A congestion window does not grow while the receive window limits its path. Without this cap, a path with
/// frequent losses keeps buffer space that a path with rare losses would use better, and each of its losses
/// opens a wider gap.
pub(super) fn room_left(
    i: usize,
    budget: &Budget,
    paths: &[ManagedPath],
    advice: &Advice,
) -> Option<u64> {
    // A new path is not part of the advice yet.
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
