//! Random early detection (Floyd and Jacobson 1993, "Random early detection gateways for congestion avoidance").

use ropewalk_base::{Duration, Rng, Time};

use super::Limit;
use super::backlog::Backlog;

/// Parameters of RED. The thresholds refer to the *average* queue length, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Average below which nothing is dropped (section 4 of the paper).
    pub min_threshold: f64,
    /// Average from which every packet is dropped, unless `gentle`. The paper advises at least twice the
    /// minimum.
    pub max_threshold: f64,
    /// Drop probability just below the maximum threshold; 0.02 in the paper, 0.1 in practice.
    pub max_probability: f64,
    /// Weight of the current queue length in the average; the paper advises at least 0.001.
    pub weight: f64,
    /// Whether the probability rises linearly to 1 between the maximum threshold and its double, instead of
    /// jumping.
    pub gentle: bool,
    /// Whether ECN-capable packets are marked instead of dropped, while the average is below the region of
    /// certain drops (RFC 3168, section 7).
    pub ecn: bool,
    /// Transmission time of a typical packet. An idle time of m of these reduces the average like m arrivals at
    /// an empty queue.
    pub packet_time: Duration,
    /// Capacity of the queue.
    pub limit: Limit,
}

impl Red {
    /// Name and value of the first parameter that is out of range.
    pub(in crate::link) fn misfit(&self) -> Option<(&'static str, f64)> {
        let unit = 0.0..=1.0;
        [
            ("min_threshold", self.min_threshold, self.min_threshold >= 0.0),
            ("max_threshold", self.max_threshold, self.max_threshold > self.min_threshold),
            ("max_probability", self.max_probability, unit.contains(&self.max_probability)),
            ("weight", self.weight, unit.contains(&self.weight) && self.weight > 0.0),
            ("packet_time", self.packet_time.as_secs_f64(), !self.packet_time.is_zero()),
        ]
        .into_iter()
        .find_map(|(name, value, fits)| (!fits).then_some((name, value)))
    }
}

/// Decision on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::link) enum Verdict {
    Admit,
    Mark,
    /// The queue has no space.
    Full,
    Early,
}

#[derive(Clone, Debug)]
pub(in crate::link) struct RedQueue {
    red: Red,
    average: f64,
    /// Packets since the last drop, the arriving one included; `None` while the average is below the minimum
    /// threshold (-1 in the paper).
    count: Option<u32>,
    rng: Rng,
}

impl RedQueue {
    pub(in crate::link) fn new(red: Red, rng: Rng) -> Self {
        Self { red, average: 0.0, count: None, rng }
    }

    /// Decides on a packet of `size` bytes offered at `now`. `idle_since` is given if the link is idle.
    pub(in crate::link) fn judge(
        &mut self,
        now: Time,
        idle_since: Option<Time>,
        backlog: &Backlog,
        size: u32,
        ect: bool,
    ) -> Verdict {
        self.update_average(now, idle_since, backlog.packets());
        let verdict = self.early(ect);
        // A packet that finds the transmitter idle does not wait.
        let room =
            idle_since.is_some() || self.red.limit.admits(backlog.packets(), backlog.bytes(), size);
        if room || verdict == Verdict::Early { verdict } else { Verdict::Full }
    }

    fn update_average(&mut self, now: Time, idle_since: Option<Time>, queued: usize) {
        let keep = 1.0 - self.red.weight;
        match idle_since {
            Some(since) if now > since => {
                let packets = now.since(since).as_nanos() / self.red.packet_time.as_nanos();
                self.average *= keep.powi(packets.min(i32::MAX as u64) as i32);
            }
            _ => self.average = keep * self.average + self.red.weight * queued as f64,
        }
    }

    /// The decision on the average alone: Figure 2 of the paper.
    fn early(&mut self, ect: bool) -> Verdict {
        let Red { min_threshold, max_threshold, .. } = self.red;
        let certain = if self.red.gentle { 2.0 * max_threshold } else { max_threshold };
        if self.average < min_threshold {
            self.count = None;
            return Verdict::Admit;
        }
        if self.average >= certain {
            self.count = Some(0);
            return Verdict::Early;
        }
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        self.count = Some(count);
        let base = self.base_probability();
        // Section 7 of the paper, method 2: makes the gaps between drops uniform.
        let spread = 1.0 - f64::from(count) * base;
        if spread > 0.0 && !self.rng.chance(base / spread) {
            return Verdict::Admit;
        }
        self.count = Some(0);
        if ect && self.red.ecn { Verdict::Mark } else { Verdict::Early }
    }

    /// Probability p_b of the paper, with its gentle continuation above the maximum threshold.
    fn base_probability(&self) -> f64 {
        let Red { min_threshold, max_threshold, max_probability, .. } = self.red;
        if self.average < max_threshold {
            max_probability * (self.average - min_threshold) / (max_threshold - min_threshold)
        } else {
            let beyond = (self.average - max_threshold) / max_threshold;
            max_probability + (1.0 - max_probability) * beyond
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;
    use crate::link::shaper::Service;

    fn red() -> Red {
        Red {
            min_threshold: 5.0,
            max_threshold: 15.0,
            max_probability: 0.1,
            // With weight 1 the average equals the current queue length, which the test can choose.
            weight: 1.0,
            gentle: false,
            ecn: false,
            packet_time: Duration::from_millis(1),
            limit: Limit::Unlimited,
        }
    }

    /// A queue of `length` packets whose transmissions begin after the test.
    fn backlog(length: usize) -> Backlog {
        let mut backlog = Backlog::default();
        let never = Service { start: Time::FAR_FUTURE, depart: Time::FAR_FUTURE };
        (0..length).for_each(|_| backlog.push(Time::ZERO, never, 1000));
        backlog
    }

    /// Decisions on `n` packets that find `length` packets waiting.
    fn verdicts(red: Red, length: usize, n: usize, ect: bool) -> Vec<Verdict> {
        let mut queue = RedQueue::new(red, Seed::root(1).rng());
        let backlog = backlog(length);
        (0..n).map(|_| queue.judge(Time::ZERO, None, &backlog, 1000, ect)).collect()
    }

    #[test]
    fn gaps_between_drops_are_spread_evenly_up_to_the_reciprocal_of_the_probability() {
        // At 10 packets p_b is 0.05. Figure 2 also counts the arriving packet, so gaps are uniform on 1 .. 1 /
        // p_b - 1: one less than in the text of section 7.
        let verdicts = verdicts(red(), 10, 200_000, false);
        let drops: Vec<usize> =
            (0..verdicts.len()).filter(|i| verdicts[*i] == Verdict::Early).collect();
        let gaps: Vec<usize> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&19)));
        let n = gaps.len() as f64;
        let expected = 1.0 / 19.0;
        for length in 1..=19 {
            let share = gaps.iter().filter(|gap| **gap == length).count() as f64 / n;
            let deviation = (expected * (1.0 - expected) / n).sqrt();
            assert!((share - expected).abs() < 4.0 * deviation, "gaps of {length}: {share}");
        }
    }

    #[test]
    fn nothing_is_dropped_below_the_minimum_and_everything_from_the_maximum_on() {
        let share = |red: Red, length| {
            let all = verdicts(red, length, 10_000, false);
            all.iter().filter(|v| **v == Verdict::Early).count() as f64 / 10_000.0
        };
        assert_eq!(share(red(), 4), 0.0);
        assert_eq!(share(red(), 15), 1.0);
        let gentle = Red { gentle: true, ..red() };
        // At a fifth of the way from the maximum threshold to its double, p_b is 0.28. The first packet after a
        // drop is dropped with 0.28 / 0.72, the second with 0.28 / 0.44, the third with certainty: a mean gap
        // of 1.83.
        let middle = share(gentle, 18);
        assert!((middle - 1.0 / 1.833).abs() < 0.02, "{middle}");
        assert_eq!(share(gentle, 30), 1.0);
    }

    #[test]
    fn capable_packets_are_marked_until_drops_are_certain() {
        let ecn = Red { ecn: true, ..red() };
        let marked = verdicts(ecn, 10, 1_000, true);
        assert!(marked.contains(&Verdict::Mark) && !marked.contains(&Verdict::Early));
        assert!(!verdicts(ecn, 10, 1_000, false).contains(&Verdict::Mark));
        assert!(verdicts(ecn, 15, 100, true).iter().all(|v| *v == Verdict::Early));
    }

    #[test]
    fn an_idle_link_forgets_its_queue() {
        let mut queue = RedQueue::new(Red { weight: 0.1, ..red() }, Seed::root(1).rng());
        for _ in 0..100 {
            queue.judge(Time::ZERO, None, &backlog(10), 1000, false);
        }
        assert!(queue.average > 9.9);
        // Ten packet times with weight 0.1 reduce the average by the factor 0.9^10.
        let before = queue.average;
        queue.judge(Time::from_millis(10), Some(Time::ZERO), &backlog(0), 1000, false);
        assert!((queue.average - before * 0.9f64.powi(10)).abs() < 1e-12);
    }

    #[test]
    fn the_hard_limit_holds_whatever_the_average() {
        let limited = Red { limit: Limit::Packets(3), weight: 0.001, ..red() };
        assert!(verdicts(limited, 3, 10, false).iter().all(|v| *v == Verdict::Full));
        assert!(verdicts(limited, 2, 10, false).iter().all(|v| *v == Verdict::Admit));
    }
}
