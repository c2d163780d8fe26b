//! Which paths may carry data, and how the scheduler sees them.

use ropewalk_base::{PathId, Time};

use super::{Association, Path};
use crate::congestion::{CongestionControl, IdleDecay};
use crate::multipath::{TxPath, fallback_path};
use crate::path::PathStatus;

impl Association {
    /// Computes the views of all paths before anything is sent in response to an input.
    pub(super) fn refresh_views(&mut self, now: Time) {
        self.decay_idle_windows(now);
        let held_back = self.config.cmt.hold_data_until_confirmed && !self.all_confirmed();
        let fallback = self.fallback_path();
        let only = (!self.config.cmt.concurrent).then(|| self.single_path());
        let is_usable = |id: PathId, path: &Path| {
            let active = match fallback {
                Some(fallback) => fallback == id,
                None => path.tx.state.status() == PathStatus::Active && !path.narrow,
            };
            active && !held_back && only.is_none_or(|only| only == id)
        };
        self.sender.refresh_views(now, is_usable);
        self.watch_window(now);
    }

    fn all_confirmed(&self) -> bool {
        self.sender.paths.iter().all(|p| p.tx.state.status() != PathStatus::Unconfirmed)
    }

    /// The confirmed path to use while no path is active.
    fn fallback_path(&self) -> Option<PathId> {
        let confirmed =
            |(_, path): &(PathId, &TxPath)| path.state.status() != PathStatus::Unconfirmed;
        let all = self.sender.paths.iter().enumerate();
        fallback_path(all.map(|(i, path)| (PathId::from_index(i), &path.tx)).filter(confirmed))
    }

    /// The path of SCTP without CMT: the primary path, or another one while that has failed.
    pub(super) fn single_path(&self) -> PathId {
        let active = |p: &Path| p.tx.state.status() == PathStatus::Active;
        if active(&self.sender.paths[self.primary.index()]) {
            return self.primary;
        }
        let first = self.sender.paths.iter().position(active);
        PathId::from_index(first.unwrap_or_else(|| self.fallback_path().map_or(0, |p| p.index())))
    }

    /// RFC 9260, 7.2.1: while nothing is sent to an address, its window SHOULD be halved once per RTO. Called
    /// before anything is sent.
    #[inline]
    pub(super) fn decay_idle_windows(&mut self, now: Time) {
        /// Number of halvings after which no window changes any more.
        const MOST: u64 = 40;
        if self.config.idle_decay != IdleDecay::Timeout {
            return;
        }
        for i in 0..self.sender.paths.len() {
            let path = &mut self.sender.paths[i];
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
                self.sender.congestion.on_idle(PathId::from_index(i), now);
            }
        }
    }
}
