//! Forward delays: measured per path, and compared to find paths that share a bottleneck.

use ropewalk_base::{PathId, Time};

use super::{Outstanding, Sender};
use crate::congestion::{BottleneckCoupling, CongestionControl};
use crate::path::SharedBottlenecks;

/// The detector of shared bottlenecks, if congestion control uses it.
pub(super) fn detector(
    coupling: BottleneckCoupling,
    paths: usize,
) -> Option<Box<SharedBottlenecks>> {
    let detected = coupling == BottleneckCoupling::Detected;
    detected.then(|| Box::new(SharedBottlenecks::new(paths)))
}

impl<O: Outstanding> Sender<O> {
    /// Records a forward delay of `path`: our clock when a packet was sent, and the peer's clock when it
    /// arrived, nanoseconds.
    #[inline]
    pub fn sample_forward_delay(&mut self, now: Time, path: PathId, departed: u64, arrived: u64) {
        self.paths[path.index()].as_mut().forward.sample(departed, arrived);
        if self.bottlenecks.is_some() {
            self.compare_delays(now, path, departed, arrived);
        }
    }

    /// A delay does not count while the paths act in step, either because of congestion control, or
    /// because the application or the receive window first holds all of them back and then lets all of
    /// them send.
    #[inline(never)]
    fn compare_delays(&mut self, now: Time, path: PathId, departed: u64, arrived: u64) {
        let Some(bottlenecks) = &mut self.bottlenecks else { return };
        let round_trip = self.paths[path.index()].as_ref().rtt.srtt().unwrap_or_default();
        let usable = !self.congestion.disturbance(path).is_in_step()
            && self.held_back_at.is_none_or(|at| now.since(at) > round_trip);
        if bottlenecks.sample(path, departed, arrived, usable) {
            self.congestion.set_bottlenecks(bottlenecks.groups());
        }
    }

    /// Paths were added.
    pub fn extend_bottlenecks(&mut self) {
        if let Some(bottlenecks) = &mut self.bottlenecks {
            bottlenecks.grow(self.paths.len());
            self.congestion.set_bottlenecks(bottlenecks.groups());
        }
    }

    /// Called when `path` now leads through another network.
    pub fn forget_bottleneck(&mut self, path: PathId) {
        if let Some(bottlenecks) = &mut self.bottlenecks
            && bottlenecks.forget(path)
        {
            self.congestion.set_bottlenecks(bottlenecks.groups());
        }
    }
}
