//! The current delay of a packet, from all estimators of a path.

use ropewalk_base::{Duration, Time};

use super::{ForwardDelay, PathConfig, RttEstimator};

/// Source of forward delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelaySource {
    /// Provided by the driver; exists in simulations only.
    Oracle,
    /// Half of the smoothed round trip.
    #[default]
    HalfRtt,
    /// Measured by timestamps (Sarwar et al., 2013, Eq 6); a constant offset between the clocks is
    /// common to all paths and cancels.
    Timestamp,
}

/// The estimators of one path.
#[derive(Clone, Copy, Debug)]
pub struct Estimates<'a> {
    /// Round trip.
    pub rtt: &'a RttEstimator,
    /// Forward delay by timestamps.
    pub forward: &'a ForwardDelay,
    /// Configuration of the path.
    pub config: &'a PathConfig,
    /// Whether nothing is in flight.
    pub idle: bool,
    /// Source of forward delays.
    pub source: DelaySource,
}

impl Estimates<'_> {
    /// Queueing delay of the path when it was last measured.
    #[inline]
    pub fn queueing(&self) -> Duration {
        let by_round_trip = match (self.rtt.srtt(), self.rtt.base()) {
            (Some(srtt), Some(least)) => srtt.saturating_sub(least),
            _ => Duration::ZERO,
        };
        match self.source {
            // The round trip also changes when acknowledgements return on another path; the forward delay
            // does not.
            DelaySource::Timestamp => self.forward.queueing().unwrap_or(by_round_trip),
            DelaySource::HalfRtt | DelaySource::Oracle => by_round_trip,
        }
    }

    /// Queueing delay of the packet that was acknowledged last, `None` before the first.
    pub fn last_queueing(&self) -> Option<Duration> {
        let by_round_trip = || Some(self.rtt.last()?.saturating_sub(self.rtt.base()?));
        match self.source {
            DelaySource::Timestamp => self.forward.last_queueing().or_else(by_round_trip),
            DelaySource::HalfRtt | DelaySource::Oracle => by_round_trip(),
        }
    }

    /// Queueing delay of the packet that was acknowledged last, on its way to the peer, `None` if it is
    /// not measured. A round trip also includes the queues on the way back, which this sender does not
    /// fill.
    pub fn last_forward_queueing(&self) -> Option<Duration> {
        (self.source == DelaySource::Timestamp).then(|| self.forward.last_queueing()).flatten()
    }

    /// The smoothed round trip without queueing, with acknowledgements returning on the paths that they use
    /// now.
    pub fn empty_round_trip(&self) -> Option<Duration> {
        Some(self.rtt.srtt()?.saturating_sub(self.queueing()))
    }

    /// The part of that queueing delay that has drained since. While nothing is in flight, the queue of a
    /// path empties, and the last estimate becomes outdated. Otherwise a path that once had a queue would
    /// look slow forever, get no data, and never be measured again.
    #[inline]
    pub fn drained(&self, now: Time) -> Duration {
        if !self.idle {
            return Duration::ZERO;
        }
        self.queueing().min(now.since(self.rtt.sampled_at()))
    }

    /// One-way delay of a packet that is sent now, relative to a common clock ([`clock_offset`]).
    #[inline]
    pub fn forward_delay(&self, offset: Option<i64>, drained: Duration) -> Option<Duration> {
        let half = self.rtt.srtt().map(|r| r / 2);
        let honest = match self.source {
            DelaySource::Oracle => self.config.oracle_delay.or(half),
            DelaySource::HalfRtt => half.map(|d| d.saturating_sub(drained)),
            DelaySource::Timestamp => match (self.forward.raw_nanos(), offset) {
                (Some(raw), Some(offset)) => {
                    let delay = Duration::from_nanos(raw.saturating_sub(offset).max(0) as u64);
                    Some(delay.saturating_sub(drained))
                }
                _ => half,
            },
        };
        let error = self.config.delay_error;
        if error == 1.0 { honest } else { honest.map(|d| d.mul_f64(error)) }
    }
}

/// Offset of the peer's clock, estimated from timestamps: the path with the minimum round trip is assumed
/// to be symmetric, and the part of its timestamp difference beyond half its round trip is the offset.
/// All paths use the same offset, so that it cancels when paths are compared.
pub fn clock_offset<'a>(paths: impl Iterator<Item = Estimates<'a>>) -> Option<i64> {
    let measured = paths.filter_map(|p| Some((p.rtt.srtt()?, p.forward.raw_nanos()?)));
    let (srtt, raw) = measured.min_by_key(|(srtt, _)| *srtt)?;
    Some(raw.saturating_sub((srtt / 2).as_nanos() as i64))
}
