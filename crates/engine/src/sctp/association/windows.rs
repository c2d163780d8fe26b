//! Where the window manager has its say.

use ropewalk_base::{PathId, Time};

use super::Association;
use crate::congestion::CongestionControl;
use crate::window::{Budget, ManagedPath};

impl Association {
    /// An acknowledgement may have opened the window of `grown`.
    #[inline]
    pub(super) fn manage_windows(&mut self, now: Time, grown: PathId) {
        if !self.manager.is_none() {
            self.fit_windows(now, grown);
        }
    }

    #[inline(never)]
    fn fit_windows(&mut self, now: Time, grown: PathId) {
        let budget = self.budget();
        let mut managed = std::mem::take(&mut self.managed);
        managed.clear();
        managed.extend(self.paths.iter().enumerate().map(|(i, path)| {
            let id = PathId::from_index(i);
            let estimates = self.estimates(id);
            ManagedPath {
                window: self.cwnd(id),
                rate: path.config.rate_hint.or(path.rate.rate()),
                round_trip: path.rtt.base(),
                empty_round_trip: estimates.empty_round_trip(),
                last_queueing: estimates.last_queueing(),
                sent: path.flights.next_number(),
                lost: path.losses,
            }
        }));
        self.manager.manage(now, grown, &budget, &mut managed);
        for (i, path) in managed.iter().enumerate() {
            self.congestion.limit(PathId::from_index(i), path.window);
        }
        self.managed = managed;
    }

    pub(super) const fn budget(&self) -> Budget {
        Budget { buffer: self.offered, chunk: self.full_chunk() }
    }
}
