//! HyStart++ (RFC 9406): leaves the first slow start when round trips grow, before the queue overflows.

use ropewalk_base::Duration;

use super::AckSample;

/// `MIN_RTT_THRESH` (4.3).
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
/// `MAX_RTT_THRESH`.
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// `MIN_RTT_DIVISOR`.
const MIN_RTT_DIVISOR: u64 = 8;
/// `N_RTT_SAMPLE`: minimum number of samples of a round.
const RTT_SAMPLES: u32 = 8;
/// `CSS_GROWTH_DIVISOR`: conservative slow start grows slower by this factor.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// `CSS_ROUNDS`: rounds of conservative slow start before congestion avoidance.
const CSS_ROUNDS: u32 = 5;

/// Result of an acknowledgement in slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlowStart {
    /// The window grows by the acknowledged bytes, divided by this.
    Grow(u64),
    /// Congestion avoidance begins.
    Leave,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Css {
    /// `cssBaselineMinRtt`.
    baseline: Duration,
    /// Number of rounds started.
    rounds: u32,
}

/// HyStart++ of a path: runs until its first slow start ends, if enabled.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart(Option<Rounds>);

impl HyStart {
    /// Creates the state of a new path.
    pub fn new(used: bool) -> Self {
        Self(used.then(Rounds::default))
    }

    /// The first slow start has ended.
    pub const fn stop(&mut self) {
        self.0 = None;
    }

    /// Processes an acknowledgement in slow start (4.2).
    pub fn on_ack(&mut self, sample: &AckSample) -> SlowStart {
        let Some(rounds) = &mut self.0 else { return SlowStart::Grow(1) };
        let meaning = rounds.on_ack(sample);
        if meaning == SlowStart::Leave {
            self.stop();
        }
        meaning
    }
}

/// Round trips during the first slow start.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    /// The round ends when a packet is acknowledged that was sent after this many bytes had been
    /// delivered (`windowEnd`).
    round_end: u64,
    /// `lastRoundMinRTT`, `None` before the second round.
    last: Option<Duration>,
    /// `currentRoundMinRTT`, `None` before the first sample.
    current: Option<Duration>,
    /// `rttSampleCount`.
    samples: u32,
    css: Option<Css>,
}

impl Rounds {
    fn on_ack(&mut self, sample: &AckSample) -> SlowStart {
        if sample.delivery.prior_delivered >= self.round_end && self.begin_round(sample) {
            return SlowStart::Leave;
        }
        if let Some(rtt) = sample.rtt {
            self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        if let Some(current) = self.current.filter(|_| self.samples >= RTT_SAMPLES) {
            self.judge(current);
        }
        SlowStart::Grow(if self.css.is_some() { CSS_GROWTH_DIVISOR } else { 1 })
    }

    /// Returns whether conservative slow start has lasted long enough.
    fn begin_round(&mut self, sample: &AckSample) -> bool {
        self.round_end = sample.delivery.delivered;
        self.last = self.current.take();
        self.samples = 0;
        let Some(css) = &mut self.css else { return false };
        css.rounds += 1;
        css.rounds > CSS_ROUNDS
    }

    /// Starts conservative slow start if the round trip has grown, and ends it if the round trip has
    /// fallen again.
    fn judge(&mut self, current: Duration) {
        match (self.css, self.last) {
            (Some(css), _) if current < css.baseline => self.css = None,
            (None, Some(last)) => {
                let threshold = (last / MIN_RTT_DIVISOR).max(MIN_RTT_THRESH).min(MAX_RTT_THRESH);
                if current >= last + threshold {
                    self.css = Some(Css { baseline: current, rounds: 1 });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Delivery;

    /// A round of ten acknowledgements with this round trip, ms. Returns the result of the last one.
    fn round(hystart: &mut HyStart, number: u64, rtt: u64) -> SlowStart {
        let ack = |i: u64| AckSample {
            rtt: Some(Duration::from_millis(rtt)),
            delivery: Delivery {
                delivered: number * 10 + i + 1,
                prior_delivered: (number * 10 + i).saturating_sub(9),
                ..Delivery::default()
            },
            ..AckSample::default()
        };
        let all: Vec<_> = (0..10).map(|i| hystart.on_ack(&ack(i))).collect();
        if all.contains(&SlowStart::Leave) { SlowStart::Leave } else { all[9] }
    }

    #[test]
    fn slow_start_becomes_conservative_when_the_round_trip_grows_and_ends_five_rounds_later() {
        let mut hystart = HyStart::new(true);
        for number in 0..4 {
            assert_eq!(round(&mut hystart, number, 40), SlowStart::Grow(1));
        }
        // The threshold is an eighth of 40 ms.
        assert_eq!(round(&mut hystart, 4, 44), SlowStart::Grow(1));
        assert_eq!(round(&mut hystart, 5, 50), SlowStart::Grow(4));
        for number in 6..10 {
            assert_eq!(round(&mut hystart, number, 60), SlowStart::Grow(4), "round {number}");
        }
        assert_eq!(round(&mut hystart, 10, 60), SlowStart::Leave);
    }

    #[test]
    fn a_round_trip_that_falls_again_resumes_slow_start() {
        let mut hystart = HyStart::new(true);
        let rtts = [40, 40, 50, 60, 45, 45, 45];
        let found: Vec<_> =
            (0..7).map(|number| round(&mut hystart, number, rtts[number as usize])).collect();
        let expected = [1, 1, 4, 4, 1, 1, 1].map(SlowStart::Grow);
        assert_eq!(found, expected);
    }

    #[test]
    fn the_threshold_is_between_4_and_16_ms() {
        for (rtt, grown, divisor) in [(8, 11, 1), (8, 12, 4), (400, 415, 1), (400, 416, 4)] {
            let mut hystart = HyStart::new(true);
            for number in 0..3 {
                round(&mut hystart, number, rtt);
            }
            assert_eq!(round(&mut hystart, 3, grown), SlowStart::Grow(divisor), "{rtt} to {grown}");
        }
    }
}
