//! Where the window manager has its say.

use ropewalk_base::{PathId, Time};

use super::Association;
use crate::congestion::{CongestionControl, IdleDecay};
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
                rate: path.tx.config.rate_hint.or(path.tx.rate.rate()),
                round_trip: path.tx.rtt.base(),
                empty_round_trip: estimates.empty_round_trip(),
                last_queueing: estimates.last_queueing(),
                sent: path.tx.flights.next_number(),
                lost: path.tx.losses,
            }
        }));
        self.manager.manage(now, grown, &budget, &mut managed);
        for (i, path) in managed.iter().enumerate() {
            self.congestion.limit(PathId::from_index(i), path.window);
        }
        self.managed = managed;
    }

    /// RFC 9260, 7.2.1: while nothing is sent to an address, its window SHOULD be halved once per timeout. Done before
    /// anything leaves.
    #[inline]
    pub(super) fn decay_idle_windows(&mut self, now: Time) {
        /// More halvings change no window any more.
        const MOST: u64 = 40;
        if self.config.idle_decay != IdleDecay::Timeout {
            return;
        }
        for i in 0..self.paths.len() {
            let path = &mut self.paths[i];
            let since = path.tx.last_sent_at.max(path.decayed_at);
            if !path.tx.flights.is_empty() || path.tx.last_sent_at == Time::ZERO {
                continue;
            }
            let rto = path.tx.rtt.rto();
            let timeouts = now.since(since).as_nanos() / rto.as_nanos().max(1);
            if timeouts == 0 {
                continue;
            }
            path.decayed_at = since + rto.saturating_mul(timeouts);
            for _ in 0..timeouts.min(MOST) {
                self.congestion.on_idle(PathId::from_index(i), now);
            }
        }
    }

    pub(super) const fn budget(&self) -> Budget {
        Budget { buffer: self.offered, chunk: self.full_chunk() }
    }
}
