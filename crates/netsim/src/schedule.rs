//! A value that changes at known times.

use std::collections::VecDeque;

use ropewalk_base::Time;

/// A value with later replacements. The times of successive queries must not decrease.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule<T> {
    current: T,
    upcoming: VecDeque<(Time, T)>,
}

/// The steps of a schedule are not in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {index} at {at} lies before its predecessor; list steps in order of time")]
pub struct OutOfOrder {
    /// Index of the first step that is before its predecessor.
    pub index: usize,
    /// Time of that step.
    pub at: Time,
}

impl<T> Schedule<T> {
    /// A constant value.
    pub const fn constant(value: T) -> Self {
        Self { current: value, upcoming: VecDeque::new() }
    }

    /// `initial`, replaced by each step's value from that step's time on. Of several steps at one
    /// time, the last counts.
    ///
    /// # Errors
    /// If a step lies before its predecessor.
    pub fn steps(initial: T, steps: Vec<(Time, T)>) -> Result<Self, OutOfOrder> {
        in_order(&steps)?;
        Ok(Self { current: initial, upcoming: steps.into() })
    }

    /// The value at `time`, which must not be before that of an earlier query.
    #[inline]
    pub fn at(&mut self, time: Time) -> &mut T {
        while self.upcoming.front().is_some_and(|(at, _)| *at <= time) {
            if let Some((_, value)) = self.upcoming.pop_front() {
                self.current = value;
            }
        }
        &mut self.current
    }

    /// The current value and all later ones.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        core::iter::once(&self.current).chain(self.upcoming.iter().map(|(_, value)| value))
    }

    /// Whether no step follows.
    pub fn is_constant(&self) -> bool {
        self.upcoming.is_empty()
    }
}

/// Checks that the times of `steps` do not decrease.
pub(crate) fn in_order<T>(steps: &[(Time, T)]) -> Result<(), OutOfOrder> {
    match steps.windows(2).position(|pair| pair[1].0 < pair[0].0) {
        Some(before) => Err(OutOfOrder { index: before + 1, at: steps[before + 1].0 }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_counts_from_its_own_time_on() {
        let at = Time::from_millis;
        let mut schedule = Schedule::steps('a', vec![(at(5), 'b'), (at(5), 'c'), (at(9), 'd')])
            .expect("steps are in order");
        for (ms, value) in [(0, 'a'), (4, 'a'), (5, 'c'), (8, 'c'), (20, 'd')] {
            assert_eq!(*schedule.at(at(ms)), value, "at {ms} ms");
        }
        assert!(schedule.is_constant());
    }

    #[test]
    fn steps_that_go_back_in_time_are_refused() {
        let steps = vec![(Time::from_millis(5), 1), (Time::from_millis(4), 2)];
        let error = Schedule::steps(0, steps).expect_err("4 ms lies before 5 ms");
        assert_eq!(error, OutOfOrder { index: 1, at: Time::from_millis(4) });
    }
}
