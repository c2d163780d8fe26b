//! The current rate at which a queue drains, from the most recent acknowledgements.

use ropewalk_base::{Duration, Rate, Time};

/// Minimum time over which acknowledgements are counted: several packets of a link with a few Mbit/s.
const LEAST_SPAN: Duration = Duration::from_millis(10);
/// The queue counts as growing immediately if acknowledgements arrive this many times more slowly than
/// their packets were sent. Jitter and delayed acknowledgements stay below it.
const SLOWER: u64 = 2;
/// Time without acknowledgements after which the rate is unknown.
const LONGEST_AGE: Duration = Duration::from_secs(1);

/// State at an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Time,
    /// When the newest packet that it covers was sent.
    sent_at: Time,
    /// Bytes that the path had delivered.
    delivered: u64,
}

impl Mark {
    /// The rate since `earlier`, bits per second.
    fn rate_since(&self, earlier: &Self) -> f64 {
        let bytes = self.delivered - earlier.delivered;
        bytes as f64 * 8e9 / self.at.since(earlier.at).as_nanos().max(1) as f64
    }
}

/// Detects a link that has suddenly become slower. [`DeliveryRate`](super::DeliveryRate) keeps the
/// maximum rate of ten rounds, and a round trip describes a packet only after it has passed the queue.
/// Data sent since then is in that queue, and its delay follows from the most recent rate.
#[derive(Clone, Debug, Default)]
pub struct DrainRate {
    /// The measured acknowledgements, `None` before the first, so that an idle association takes less
    /// memory.
    marks: Option<Box<Marks>>,
}

#[derive(Clone, Debug, Default)]
struct Marks {
    /// The last three acknowledgements, the newest first.
    last: [Mark; 3],
    /// Beginning of the current span, and of the one before.
    spans: [Mark; 2],
}

impl DrainRate {
    /// Records an acknowledgement: when its newest packet was sent, and the bytes that the path has
    /// delivered. `trip`: the round trip without queueing. Acknowledgements are counted over half of
    /// that, and over at least 10 ms.
    #[inline]
    pub fn on_ack(&mut self, now: Time, sent_at: Time, delivered: u64, trip: Duration) {
        let mark = Mark { at: now, sent_at, delivered };
        let Some(marks) = &mut self.marks else {
            self.marks = Some(Box::new(Marks { last: [mark; 3], spans: [mark; 2] }));
            return;
        };
        if marks.last[0].at == now {
            marks.last[0] = mark;
            return;
        }
        marks.last = [mark, marks.last[0], marks.last[1]];
        if now.since(marks.spans[0].at) >= LEAST_SPAN.max(trip / 2) {
            marks.spans = [mark, marks.spans[0]];
        }
    }

    /// The rate, if acknowledgements arrive at less than half of the rate at which their packets were
    /// sent, so that the queue grows; otherwise `None`. The first acknowledgement after a pause has the
    /// same effect.
    #[inline]
    pub fn suspected_rate(&self, now: Time) -> Option<Rate> {
        let marks = self.marks.as_ref()?;
        let (last, from) = (&marks.last[0], &marks.spans[1]);
        let took = last.at.since(from.at).as_nanos();
        let sending = last.sent_at.since(from.sent_at).as_nanos();
        let grows = took > SLOWER * sending && now.since(last.at) <= LONGEST_AGE;
        grows.then(|| Rate::from_bps(last.rate_since(from) as u64))
    }

    /// The same, after two successive slow acknowledgements. After a pause, acknowledgements that were
    /// delayed or took another route arrive at their usual intervals.
    #[inline]
    pub fn rate(&self, now: Time) -> Option<Rate> {
        let suspected = self.suspected_rate(now)?;
        let [last, second, third] = &self.marks.as_ref()?.last;
        let each = last.rate_since(second).max(second.rate_since(third));
        Some(suspected.max(Rate::from_bps(each as u64)))
    }

    /// Time until `bytes` in flight are acknowledged, if the queue grows.
    #[inline]
    pub fn time_for(&self, now: Time, bytes: u64) -> Option<Duration> {
        let bps = self.suspected_rate(now)?.as_bps().max(1);
        Some(Duration::from_nanos((bytes as f64 * 8e9 / bps as f64) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that takes 1 ms for a packet of 1250 B (10 Mbit/s) until `falls_at`, and `slower` ms after
    /// it, with a round trip of 20 ms without queues. A packet is sent every `every` ms. Returns the rate
    /// after each acknowledgement.
    fn rates(every: u64, slower: u64, falls_at: u64) -> Vec<(Time, Option<Rate>)> {
        let mut drain = DrainRate::default();
        let mut link_free = 0;
        let mut rates = Vec::new();
        for number in 0..200 {
            let sent_at = every * number;
            link_free = sent_at.max(link_free);
            link_free += if link_free < falls_at { 1 } else { slower };
            let acked_at = Time::from_millis(link_free + 19);
            let trip = Duration::from_millis(20);
            drain.on_ack(acked_at, Time::from_millis(sent_at), 1250 * (number + 1), trip);
            rates.push((acked_at, drain.rate(acked_at)));
            let suspected = drain.suspected_rate(acked_at);
            assert!(drain.rate(acked_at).is_none() || suspected.is_some());
        }
        rates
    }

    #[test]
    fn a_rate_that_falls_shows_within_a_round_trip_after_the_first_slow_acknowledgement() {
        let rates = rates(1, 10, 100);
        let (known, early): (Vec<_>, Vec<_>) = rates
            .into_iter()
            .filter(|(at, _)| *at >= Time::from_millis(100))
            .partition(|(at, _)| *at >= Time::from_millis(100 + 20 + 30));
        assert!(early.iter().all(|(_, rate)| rate.is_none_or(|rate| rate.as_bps() < 8_000_000)));
        for (at, rate) in known {
            let bps = rate.expect("the queue grows").as_bps();
            assert!((990_000..1_300_000).contains(&bps), "{bps} bit/s at {at:?}");
        }
    }

    #[test]
    fn neither_a_steady_queue_nor_a_sender_that_sends_little_makes_a_link_slow() {
        for (every, slower) in [(1, 1), (2, 1), (5, 1), (40, 10), (3, 5)] {
            let all = rates(every, slower, 0);
            let slow = all.iter().find(|(_, rate)| rate.is_some());
            assert_eq!(slow, None, "a packet each {every} ms, {slower} ms for each");
        }
    }

    #[test]
    fn a_pause_of_acknowledgements_is_suspected_to_be_a_slow_link_and_is_known_not_to_be_one() {
        let mut drain = DrainRate::default();
        let trip = Duration::from_millis(20);
        let mut suspected = 0;
        for number in 0..200_u64 {
            // A packet every millisecond. Acknowledgements of the second half return on a route that is
            // longer by 100 ms.
            let way = if number < 100 { 20 } else { 120 };
            let at = Time::from_millis(number + way);
            drain.on_ack(at, Time::from_millis(number), 1250 * (number + 1), trip);
            suspected += u32::from(drain.suspected_rate(at).is_some());
            let rate = drain.rate(at).map_or(u64::MAX, Rate::as_bps);
            assert!(rate > 5_000_000, "acknowledgement {number}: {rate} bit/s");
        }
        assert!((1..=120).contains(&suspected), "{suspected}");
    }

    #[test]
    fn what_is_in_flight_takes_its_time_and_old_rates_are_not_believed() {
        let mut drain = DrainRate::default();
        for ms in 0..100 {
            let at = Time::from_millis(10 * ms);
            drain.on_ack(at, Time::from_millis(ms), 1250 * ms, Duration::from_millis(20));
        }
        let last = Time::from_millis(990);
        // 125 B per ms.
        assert_eq!(drain.time_for(last, 12_500), Some(Duration::from_millis(100)));
        assert_eq!(drain.time_for(last + LONGEST_AGE, 0), Some(Duration::ZERO));
        assert_eq!(drain.time_for(last + LONGEST_AGE + Duration::from_nanos(1), 0), None);
    }
}
