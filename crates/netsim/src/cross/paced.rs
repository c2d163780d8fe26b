//! Open-loop sources without feedback: CBR, on/off, Poisson.

use ropewalk_base::{Duration, Rate, RateClock, Rng, Time};

use super::{CrossConfig, Pattern};

#[derive(Clone, Debug)]
pub(super) struct PacedSource {
    gaps: Gaps,
    packet: u64,
    next: Time,
    stop: Time,
    rng: Rng,
}

/// Gaps between packets.
#[derive(Clone, Debug)]
enum Gaps {
    Even { rate: Rate, clock: RateClock },
    OnOff { rate: Rate, clock: RateClock, on: Duration, off: Duration, spell_ends: Time },
    Exponential { mean_nanos: f64 },
}

impl PacedSource {
    /// Creates a source from a checked configuration.
    pub(super) fn new(config: &CrossConfig, mut rng: Rng) -> Self {
        let packet = u64::from(config.packet);
        debug_assert_eq!(config.check(), Ok(()));
        let clock = RateClock::default();
        let gaps = match &config.pattern {
            Pattern::Cbr(rate) => Gaps::Even { rate: *rate, clock },
            Pattern::OnOff { rate, on, off } => {
                let spell_ends = config.start.saturating_add(exponential(&mut rng, *on));
                Gaps::OnOff { rate: *rate, clock, on: *on, off: *off, spell_ends }
            }
            Pattern::Poisson(rate) => {
                Gaps::Exponential { mean_nanos: packet as f64 * 8e9 / rate.as_bps() as f64 }
            }
            Pattern::Greedy(_) => unreachable!("a greedy source is not paced"),
        };
        let mut source = Self { gaps, packet, next: config.start, stop: config.stop, rng };
        // The first event of a Poisson process is one gap after its start.
        if matches!(source.gaps, Gaps::Exponential { .. }) {
            source.advance();
        }
        source
    }

    pub(super) fn next_wake(&self) -> Option<Time> {
        (self.next < self.stop).then_some(self.next)
    }

    /// Returns whether a packet is due at `now`, and if so advances to the next one.
    pub(super) fn due(&mut self, now: Time) -> bool {
        if self.next > now || self.next >= self.stop {
            return false;
        }
        self.advance();
        true
    }

    fn advance(&mut self) {
        match &mut self.gaps {
            Gaps::Even { rate, clock } => {
                self.next = self.next.saturating_add(clock.serialise(*rate, self.packet));
            }
            Gaps::OnOff { rate, clock, on, off, spell_ends } => {
                self.next = self.next.saturating_add(clock.serialise(*rate, self.packet));
                // An on period can be too short for any packet: skip to one that is not.
                while self.next >= *spell_ends && *spell_ends < self.stop {
                    let begins = spell_ends.saturating_add(exponential(&mut self.rng, *off));
                    *spell_ends = begins.saturating_add(exponential(&mut self.rng, *on));
                    self.next = begins;
                }
            }
            Gaps::Exponential { mean_nanos } => {
                let gap = self.rng.exponential(*mean_nanos).round() as u64;
                self.next = self.next.saturating_add(Duration::from_nanos(gap));
            }
        }
    }
}

fn exponential(rng: &mut Rng, mean: Duration) -> Duration {
    Duration::from_nanos(rng.exponential(mean.as_nanos() as f64).round() as u64)
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;

    /// Times of all packets within ten seconds, for packets of 1250 bytes (10 kbit).
    fn instants(pattern: Pattern) -> Vec<Time> {
        let stop = Time::from_secs(10);
        let config = CrossConfig { packet: 1250, stop, ..CrossConfig::new(pattern) };
        let mut source = PacedSource::new(&config, Seed::root(6).rng());
        core::iter::from_fn(|| {
            let now = source.next_wake()?;
            assert!(source.due(now));
            Some(now)
        })
        .collect()
    }

    #[test]
    fn cbr_is_even_to_the_nanosecond() {
        let sent = instants(Pattern::Cbr(Rate::from_bps(30_000_000)));
        assert_eq!(sent.len(), 30_000);
        for (i, at) in sent.iter().enumerate() {
            assert_eq!(at.as_nanos(), i as u64 * 1_000_000 / 3);
        }
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_deviation_of_the_distribution() {
        let sent = instants(Pattern::Poisson(Rate::from_bps(30_000_000)));
        let gaps: Vec<f64> =
            sent.windows(2).map(|w| w[1].since(w[0]).as_secs_f64() * 3000.0).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let deviation = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n).sqrt();
        assert!((mean - 1.0).abs() < 0.025 && (deviation - 1.0).abs() < 0.03, "{mean} {deviation}");
    }

    #[test]
    fn an_on_off_source_is_on_for_its_share_of_time() {
        let (on, off) = (Duration::from_millis(2), Duration::from_millis(6));
        let sent = instants(Pattern::OnOff { rate: Rate::from_bps(100_000_000), on, off });
        // A quarter of 100 000. About 1250 cycles leave a deviation of a few per cent. The last, partial gap of
        // an on period still sends its packet: half a packet per cycle on average.
        let expected = 25_000.0 + 0.5 * 1250.0;
        let ratio = sent.len() as f64 / expected;
        assert!((0.9..1.1).contains(&ratio), "{} packets", sent.len());
        let pauses = sent.windows(2).filter(|w| w[1].since(w[0]) > Duration::from_micros(101));
        assert!((1000..1500).contains(&pauses.count()));
    }
}
