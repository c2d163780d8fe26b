//! A radio link: the frames from one station to one receiver, their rate, and their counters.

use ropewalk_base::{Duration, Time};

use super::phy::Phy;
use crate::link::{DropCause, Drops, LinkStats};

/// Configuration of a radio link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioConfig {
    /// Physical layer and rate.
    pub phy: Phy,
    /// Probability that a frame arrives damaged without a collision, independently for each attempt.
    /// Acknowledgements are short and slow, and are assumed to arrive.
    pub frame_error: f64,
}

impl RadioConfig {
    /// A link without frame errors.
    pub const fn new(phy: Phy) -> Self {
        Self { phy, frame_error: 0.0 }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// If `frame_error` is not a probability.
    pub fn check(&self) -> Result<(), RadioError> {
        if (0.0..=1.0).contains(&self.frame_error) {
            return Ok(());
        }
        Err(RadioError { frame_error: self.frame_error })
    }
}

/// Error in the configuration of a radio link.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("frame error is {frame_error}; a probability lies within 0 and 1")]
pub struct RadioError {
    /// The value that is not a probability.
    pub frame_error: f64,
}

/// A level and its integral over time.
#[derive(Clone, Copy, Debug, Default)]
struct Gauge {
    level: u64,
    most: u64,
    since: Time,
    area: u128,
}

impl Gauge {
    fn set(&mut self, now: Time, level: u64) {
        self.area = self.area_at(now);
        (self.since, self.level) = (now, level);
        self.most = self.most.max(level);
    }

    fn area_at(&self, now: Time) -> u128 {
        self.area + u128::from(self.level) * u128::from(now.since(self.since).as_nanos())
    }
}

#[derive(Clone, Debug)]
pub(super) struct Radio {
    /// Position of the sending station.
    pub(super) station: u32,
    pub(super) config: RadioConfig,
    offered: u64,
    offered_bytes: u64,
    delivered: u64,
    delivered_bytes: u64,
    dropped: Drops,
    waiting: Gauge,
    waiting_bytes: Gauge,
    busy: Duration,
}

impl Radio {
    pub(super) fn new(station: u32, config: RadioConfig) -> Self {
        Self {
            station,
            config,
            offered: 0,
            offered_bytes: 0,
            delivered: 0,
            delivered_bytes: 0,
            dropped: Drops::default(),
            waiting: Gauge::default(),
            waiting_bytes: Gauge::default(),
            busy: Duration::ZERO,
        }
    }

    pub(super) fn offer(&mut self, size: u32) {
        self.offered += 1;
        self.offered_bytes += u64::from(size);
    }

    pub(super) fn enqueue(&mut self, now: Time, size: u32) {
        self.waiting.set(now, self.waiting.level + 1);
        self.waiting_bytes.set(now, self.waiting_bytes.level + u64::from(size));
    }

    pub(super) fn dequeue(&mut self, now: Time, size: u32) {
        self.waiting.set(now, self.waiting.level - 1);
        self.waiting_bytes.set(now, self.waiting_bytes.level - u64::from(size));
    }

    pub(super) fn drop(&mut self, cause: DropCause) {
        self.dropped.count(cause);
    }

    pub(super) fn deliver(&mut self, size: u32) {
        self.delivered += 1;
        self.delivered_bytes += u64::from(size);
    }

    pub(super) fn occupy(&mut self, airtime: Duration) {
        self.busy += airtime;
    }

    pub(super) fn stats(&self, now: Time) -> LinkStats {
        let elapsed = (now.as_nanos() as f64).max(1.0);
        let settled = self.waiting.level + self.delivered + self.dropped.total();
        LinkStats {
            offered: self.offered,
            offered_bytes: self.offered_bytes,
            delivered: self.delivered,
            delivered_bytes: self.delivered_bytes,
            dropped: self.dropped,
            queued: self.waiting.level,
            queued_bytes: self.waiting_bytes.level,
            in_flight: self.offered - settled,
            queue_max_packets: self.waiting.most,
            queue_max_bytes: self.waiting_bytes.most,
            queue_mean_packets: self.waiting.area_at(now) as f64 / elapsed,
            queue_mean_bytes: self.waiting_bytes.area_at(now) as f64 / elapsed,
            sent_bytes: self.delivered_bytes,
            busy: self.busy,
            ..LinkStats::default()
        }
    }
}
