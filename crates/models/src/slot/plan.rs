//! The delay-aware plan: the packets of each path, computed from the delays that the scheduler assumes.

use std::collections::VecDeque;

use super::{SlotError, SlotPath};
use crate::number::OutOfRange;
use crate::order::receive_order;
use crate::period::period;

/// Number of packets per turn of a path whose assumed delay is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedCapacity {
    /// C_i unchanged. The window is known and the rate follows from the wrong delay: a path with an
    /// overestimated delay is also assumed to be slower, so the *split* is wrong.
    PerWindow,
    /// `C_i (1 + e)`: the rate is known and the window follows from the wrong delay. The split stays right and
    /// only the *time* is wrong. Fractions are carried to the next turn.
    PerRate,
}

/// Parameters of a delay-aware schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// e of each path: the scheduler plans with `D_i (1 + e)`, the network keeps D_i.
    /// Empty means that all are zero. Above -1; 1 is an error of 100 %.
    pub delay_errors: Vec<f64>,
    /// Effect of a wrong delay on the packets per turn.
    pub capacity: PlannedCapacity,
    /// Cap of the period, ticks; 64 times the longest planned delay if not given.
    pub period_cap_ticks: Option<u64>,
}

impl Plan {
    /// A plan with the true delays.
    pub fn perfect() -> Self {
        Self::with_errors(&[], PlannedCapacity::PerWindow)
    }

    /// A plan with these errors, one per path.
    pub fn with_errors(delay_errors: &[f64], capacity: PlannedCapacity) -> Self {
        Self { delay_errors: delay_errors.to_vec(), capacity, period_cap_ticks: None }
    }

    /// The delays that the scheduler assumes, in ticks: rounded to nearest, at least 1.
    pub(super) fn believed_delays(&self, paths: &[SlotPath]) -> Result<Vec<u64>, SlotError> {
        let errors = self.delay_errors.len();
        if errors != 0 && errors != paths.len() {
            return Err(SlotError::Errors { errors, paths: paths.len() });
        }
        let mut delays = Vec::with_capacity(paths.len());
        for (i, path) in paths.iter().enumerate() {
            let e = self.delay_errors.get(i).copied().unwrap_or(0.0);
            if !(e > -1.0 && e <= 1e6) {
                let valid = "above -1 (a delay of nothing) and at most 1e6";
                let error = OutOfRange { name: "delay_errors", value: e, valid };
                return Err(SlotError::DelayError(error));
            }
            let believed = (path.delay_ticks as f64 * (1.0 + e)).round();
            delays.push((believed as u64).max(1));
        }
        Ok(delays)
    }
}

/// Distributes the packets to the paths by Algorithms 1 and 2, period after period.
#[derive(Debug, Clone)]
pub(super) struct Planner {
    order: Vec<usize>,
    turn: usize,
    next_packet: u64,
    lists: Vec<VecDeque<u64>>,
    shares: Vec<Share>,
}

/// Packets per turn as the fraction `numerator / denominator`, with the remainder.
#[derive(Debug, Clone, Copy)]
struct Share {
    numerator: u128,
    denominator: u128,
    carried: u128,
}

impl Share {
    fn next(&mut self) -> u64 {
        let due = self.carried + self.numerator;
        self.carried = due % self.denominator;
        (due / self.denominator) as u64
    }
}

impl Planner {
    pub fn new(plan: &Plan, paths: &[SlotPath]) -> Result<Self, SlotError> {
        let believed = plan.believed_delays(paths)?;
        let period = period(&believed, plan.period_cap_ticks)?;
        let shares = paths.iter().zip(&believed).map(|(path, &delay)| {
            let capacity = u128::from(path.capacity_packets);
            let (numerator, denominator) = match plan.capacity {
                PlannedCapacity::PerWindow => (capacity, 1),
                PlannedCapacity::PerRate => {
                    (capacity * u128::from(delay), u128::from(path.delay_ticks))
                }
            };
            Share { numerator, denominator, carried: 0 }
        });
        Ok(Self {
            shares: shares.collect(),
            order: receive_order(&believed, period.ticks)?,
            turn: 0,
            next_packet: 1,
            lists: vec![VecDeque::new(); paths.len()],
        })
    }

    /// The next packet of the path's list, without removing it.
    pub fn peek(&mut self, path: usize) -> u64 {
        // Terminates: every path is in the order, because no cap is shorter than the longest delay, and a share
        // adds up to a packet within `denominator` turns.
        loop {
            if let Some(&packet) = self.lists[path].front() {
                return packet;
            }
            let next = self.order[self.turn];
            self.turn = (self.turn + 1) % self.order.len();
            let last = self.next_packet + self.shares[next].next();
            self.lists[next].extend(self.next_packet..last);
            self.next_packet = last;
        }
    }

    /// Removes the packet that [`Planner::peek`] returned.
    pub fn take(&mut self, path: usize) {
        let taken = self.lists[path].pop_front();
        assert!(taken.is_some(), "take follows peek");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [SlotPath; 2] = [
        SlotPath { delay_ticks: 10, capacity_packets: 2 },
        SlotPath { delay_ticks: 100, capacity_packets: 5 },
    ];

    fn first(plan: &Plan, path: usize, n: usize) -> Vec<u64> {
        let mut planner = Planner::new(plan, &PATHS).unwrap();
        (0..n)
            .map(|_| {
                let packet = planner.peek(path);
                planner.take(path);
                packet
            })
            .collect()
    }

    #[test]
    fn a_perfect_plan_repeats_the_papers_lists_every_25_packets() {
        let fast: Vec<u64> = (1..=20).chain(26..=45).collect();
        assert_eq!(first(&Plan::perfect(), 0, 40), fast);
        assert_eq!(first(&Plan::perfect(), 1, 6), [21, 22, 23, 24, 25, 46]);
    }

    #[test]
    fn a_slow_path_believed_slower_gets_later_packets_and_only_per_rate_keeps_the_split() {
        let window = Plan::with_errors(&[0.0, 1.0], PlannedCapacity::PerWindow);
        assert_eq!(first(&window, 1, 6), [41, 42, 43, 44, 45, 86]);
        let rate = Plan::with_errors(&[0.0, 1.0], PlannedCapacity::PerRate);
        assert_eq!(first(&rate, 1, 11), [41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 91]);
    }

    #[test]
    fn fractions_of_a_packet_are_carried_not_lost() {
        // 2 x 15/10 = 3 and 5 x 130/100 = 6.5 packets per turn, over a period of 390 ticks.
        let plan = Plan::with_errors(&[0.5, 0.3], PlannedCapacity::PerRate);
        let mut planner = Planner::new(&plan, &PATHS).unwrap();
        let slow: Vec<u64> = (0..2).map(|_| planner.shares[1].next()).collect();
        assert_eq!(slow, [6, 7]);
    }

    #[test]
    fn errors_that_make_no_sense_are_refused() {
        let plan = |errors: &[f64]| Plan::with_errors(errors, PlannedCapacity::PerRate);
        assert!(plan(&[0.0, -1.0]).believed_delays(&PATHS).is_err());
        assert!(plan(&[0.0, f64::NAN]).believed_delays(&PATHS).is_err());
        let uneven = plan(&[0.1]).believed_delays(&PATHS).unwrap_err();
        assert_eq!(uneven, SlotError::Errors { errors: 1, paths: 2 });
    }
}
