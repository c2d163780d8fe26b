//! HyStart of Linux in CUBIC (Ha and Rhee, 2011; `hystart_update` in net/ipv4/tcp_cubic.c, 6.18): slow
//! start ends after a train of acknowledgements of half a round trip, or when the round trip grows.

use ropewalk_base::{Duration, Time};

use super::AckSample;

/// Minimum window at which slow start may end, packets (`hystart_low_window`).
const LOW_WINDOW: f64 = 16.0;
/// Maximum time between two acknowledgements of a train (`hystart_ack_delta_us`).
const ACK_DELTA: Duration = Duration::from_millis(2);
/// Delay of acknowledgements that aggregation may cause (`hystart_ack_delay`, its upper limit).
const ACK_DELAY: Duration = Duration::from_millis(1);
/// Samples of a round that determine its round trip (`HYSTART_MIN_SAMPLES`).
const SAMPLES: u32 = 8;
/// Limits of the growth of the round trip that ends slow start (`HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`).
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);
/// Minimum of such a growth, as a divisor of the minimum round trip.
const DELAY_DIVISOR: u64 = 8;

/// State of the detection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinuxHyStart {
    /// Whether slow start has ended.
    found: bool,
    /// Bytes delivered at the end of the round.
    round_end: u64,
    round_start: Time,
    last_ack: Time,
    /// Minimum round trip of the round, and the number of samples.
    current: Option<Duration>,
    samples: u32,
}

impl LinuxHyStart {
    /// Restarts the detection after a timeout (`bictcp_reset`).
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// Processes an acknowledgement in slow start, with a window of `cwnd` packets. `least`: the minimum
    /// round trip. Returns whether slow start ends.
    pub fn on_ack(&mut self, now: Time, sample: &AckSample, cwnd: f64, least: Duration) -> bool {
        let Some(rtt) = sample.rtt.filter(|_| !self.found) else { return false };
        if sample.delivery.prior_delivered >= self.round_end {
            self.round_end = sample.delivery.delivered;
            (self.round_start, self.last_ack) = (now, now);
            (self.current, self.samples) = (None, 0);
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        self.found = self.is_train(now, least) | self.has_grown(rtt, least);
        self.found
    }

    /// Whether a train of acknowledgements has lasted for half of the minimum round trip.
    fn is_train(&mut self, now: Time, least: Duration) -> bool {
        if now.since(self.last_ack) > ACK_DELTA {
            return false;
        }
        self.last_ack = now;
        now.since(self.round_start) > (least + ACK_DELAY) / 2
    }

    fn has_grown(&mut self, rtt: Duration, least: Duration) -> bool {
        let current = self.current.map_or(rtt, |current| current.min(rtt));
        self.current = Some(current);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        current > least + (least / DELAY_DIVISOR).max(DELAY_MIN).min(DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Delivery;

    /// A round of `acks` acknowledgements, `apart` from each other. Returns the number of the one that ended slow
    /// start.
    fn round(
        hystart: &mut LinuxHyStart,
        start: Time,
        apart: Duration,
        rtt: u64,
        acks: u64,
    ) -> Option<u64> {
        let least = Duration::from_millis(20);
        (0..acks).find(|i| {
            let delivery =
                Delivery { delivered: 100 + i, prior_delivered: *i, ..Delivery::default() };
            let rtt = Some(Duration::from_millis(rtt));
            let sample = AckSample { rtt, delivery, ..AckSample::default() };
            hystart.on_ack(start + apart * *i, &sample, 16.0, least)
        })
    }

    #[test]
    fn a_train_of_acknowledgements_over_half_a_round_trip_ends_slow_start() {
        let (start, apart) = (Time::from_secs(1), Duration::from_millis(1));
        let ended = round(&mut LinuxHyStart::default(), start, apart, 20, 40);
        assert_eq!(ended, Some(11), "10.5 ms after the first");
        let apart = Duration::from_micros(2400);
        assert_eq!(round(&mut LinuxHyStart::default(), start, apart, 20, 40), None);
    }

    #[test]
    fn a_longer_round_trip_ends_it_after_eight_samples_and_a_small_window_does_not() {
        let (start, apart) = (Time::from_secs(1), Duration::from_millis(3));
        for (rtt, ended) in [(24, None), (25, Some(8))] {
            let found = round(&mut LinuxHyStart::default(), start, apart, rtt, 20);
            assert_eq!(found, ended, "{rtt} ms");
        }
    }
}
