//! Time from the first transmission of data to its delivery in order, as measured by the sender.

use ropewalk_base::{Duration, Histogram, Time};

use super::Sender;
use crate::path::Estimates;

/// Delays from the first transmission of each chunk to its delivery in order.
///
/// A chunk is delivered when the packet arrives that fills the last gap before it. With the SACK for this
/// packet, the receiver sends the packet's arrival time by its clock. Without such a timestamp, the delay
/// ends with the SACK, less half of the minimum round trip.
#[derive(Clone, Debug, Default)]
pub struct DeliveryDelays {
    nanos: Histogram,
    /// The receiver's clock less ours, nanoseconds.
    clock_offset: Option<i64>,
    /// Half of the minimum round trip of a path without queueing.
    back: Duration,
    /// Arrival time of the newest packet that the SACK acknowledges, by our clock.
    arrived: Option<Time>,
}

impl DeliveryDelays {
    /// Starts a measurement. The path with the minimum round trip is assumed to be symmetric, which gives
    /// the offset between the clocks.
    pub fn new<'a>(paths: impl Iterator<Item = Estimates<'a>>) -> Self {
        let shortest =
            paths.filter_map(|path| Some((path.rtt.base()?, path))).min_by_key(|(base, _)| *base);
        let Some((base, path)) = shortest else { return Self::default() };
        let back = base / 2;
        let offset = |raw: i64| raw.saturating_sub(back.as_nanos() as i64);
        Self { back, clock_offset: path.forward.least_nanos().map(offset), ..Self::default() }
    }

    /// Records the receiver's timestamp of a packet that the next SACK acknowledges.
    pub fn on_arrival(&mut self, now: Time, received: u64) {
        let Some(offset) = self.clock_offset else { return };
        // The peer chooses the number, so it is limited to the past.
        let at = received.wrapping_sub(offset as u64).min(now.as_nanos());
        self.arrived = Some(Time::from_nanos(at));
    }

    /// Records a chunk that is acknowledged cumulatively.
    pub fn on_delivered(&mut self, now: Time, first_sent: Time) {
        let delay = match self.arrived {
            Some(arrived) => arrived.since(first_sent),
            None => now.since(first_sent).saturating_sub(self.back),
        };
        self.nanos.add(delay.as_nanos());
    }

    /// Ends a SACK.
    pub const fn on_sack_end(&mut self) {
        self.arrived = None;
    }

    /// The delays, nanoseconds.
    pub const fn nanos(&self) -> &Histogram {
        &self.nanos
    }
}

impl Sender {
    /// Measures delays of delivery from now on.
    pub fn measure_delivery_delays(&mut self) {
        let source = self.config.delay_source;
        let paths = self.paths.iter().map(|path| path.as_ref().estimates(source));
        self.outstanding.delivery_delays = Some(Box::new(DeliveryDelays::new(paths)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{DelaySource, ForwardDelay, PathConfig, RtoLimits, RttEstimator};

    fn delays(clock_ahead: i64) -> DeliveryDelays {
        let ms = Time::from_millis;
        let second = Duration::from_secs(1);
        let limits = RtoLimits { initial: second, min: second, max: second };
        let (mut rtt, mut forward) = (RttEstimator::new(limits), ForwardDelay::default());
        rtt.sample(ms(20), Duration::from_millis(20));
        let received = (ms(10).as_nanos() as i64).wrapping_add(clock_ahead) as u64;
        forward.sample(0, received);
        let config = PathConfig::default();
        let source = DelaySource::Timestamp;
        let path = Estimates { rtt: &rtt, forward: &forward, config: &config, idle: false, source };
        DeliveryDelays::new([path].into_iter())
    }

    #[test]
    fn the_way_back_and_the_offset_of_the_clocks_do_not_count() {
        for ahead in [0, 5_000_000_000, -5_000_000_000] {
            let mut delays = delays(ahead);
            // Sent at 100 ms, arrived at 150 ms, and the SACK returned on a slow path.
            let arrived = 150_000_000_i64.wrapping_add(ahead) as u64;
            delays.on_arrival(Time::from_millis(250), arrived);
            delays.on_delivered(Time::from_millis(250), Time::from_millis(100));
            assert_eq!(delays.nanos().max(), 50_000_000, "{ahead}");
            // No timestamp with the next SACK.
            delays.on_sack_end();
            delays.on_delivered(Time::from_millis(280), Time::from_millis(200));
            assert_eq!(delays.nanos().max(), 70_000_000, "{ahead}");
        }
    }

    #[test]
    fn no_timestamp_of_the_peer_gives_a_delay_below_zero_or_above_the_acknowledgement() {
        for received in [0, 1, u64::MAX, u64::MAX / 2] {
            let mut delays = delays(0);
            delays.on_arrival(Time::from_millis(250), received);
            delays.on_delivered(Time::from_millis(250), Time::from_millis(100));
            assert!(delays.nanos().max() <= 150_000_000, "{received}");
        }
    }
}
