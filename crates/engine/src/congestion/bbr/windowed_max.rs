//! Maximum of the last rounds.

use std::collections::VecDeque;

/// A maximum over a sliding window of rounds. Holds only values that can still become the maximum, at most one
/// for each round.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct WindowedMax {
    /// Rounds and values: the rounds increase, the values decrease.
    samples: VecDeque<(u64, u64)>,
}

impl WindowedMax {
    /// Adds `value` of `round`, and drops values that are `length` or more rounds older.
    pub fn update(&mut self, round: u64, value: u64, length: u64) -> u64 {
        while self.samples.back().is_some_and(|(_, last)| *last <= value) {
            self.samples.pop_back();
        }
        if self.samples.back().is_none_or(|(last, _)| *last != round) {
            self.samples.push_back((round, value));
        }
        while self.samples.front().is_some_and(|(first, _)| first + length <= round) {
            self.samples.pop_front();
        }
        self.get()
    }

    /// The maximum, 0 without samples.
    pub fn get(&self) -> u64 {
        self.samples.front().map_or(0, |(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_that_of_the_last_rounds() {
        let mut max = WindowedMax::default();
        let values = [5, 3, 9, 1, 2, 2, 8, 0, 0, 0, 0];
        for (round, value) in values.into_iter().enumerate() {
            let from = (round + 1).saturating_sub(3);
            let expected = values[from..=round].iter().max().copied();
            assert_eq!(Some(max.update(round as u64, value, 3)), expected, "round {round}");
        }
    }

    #[test]
    fn a_round_keeps_its_largest_value_and_takes_one_place() {
        let mut max = WindowedMax::default();
        for value in [4, 7, 6, 5] {
            max.update(1, value, 2);
        }
        assert_eq!((max.get(), max.samples.len()), (7, 1));
    }
}
