//! Zero-window probes (RFC 9260, 6.1 A): one DATA chunk at a time asks a peer that has shut its receive window
//! whether it has opened again, because the SACK that said so may have been lost.
//!
//! ```text
//!          window shut,          1 RTO              the probe leaves
//!          nothing in flight     later
//!   Idle ------------> Waiting ---------> Due --------------------> Sent
//!    ^                    |                ^                          |
//!    |   window open      |                |  the interval, doubled   |
//!    +--------------------+----------------+--------------------------+
//!            window open, or the probe acknowledged: Idle
//! ```

use ropewalk_base::{Duration, PathId, Time};

use super::Association;
use crate::multipath::{Outstanding, nothing_in_flight};

/// Where the probing of a shut window stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum WindowProbe {
    /// The window is open, or what is in flight will bring a SACK.
    #[default]
    Idle,
    /// The first probe leaves at `at`, one timeout after the window was found shut.
    Waiting { at: Time, interval: Duration },
    /// A probe may leave now; the one before left `interval` ago.
    Due { interval: Duration },
    /// A probe is on its way.
    Sent { at: Time, path: PathId, interval: Duration },
}

impl WindowProbe {
    /// Whether the window is not being probed.
    #[inline]
    pub const fn is_idle(self) -> bool {
        matches!(self, Self::Idle)
    }

    /// When time alone changes something. The timer of a probe that is on its way is the T3 of its path.
    #[inline]
    pub const fn deadline(self) -> Option<Time> {
        if let Self::Waiting { at, .. } = self { Some(at) } else { None }
    }
}

impl Association {
    /// Looks whether the window is shut with nothing in flight, before anything leaves.
    #[inline]
    pub(super) fn watch_window(&mut self, now: Time) {
        let probing = !self.outstanding.window_probe.is_idle();
        if (probing || self.sender.sendable_left == 0) && nothing_in_flight(&self.paths) {
            self.settle_window_probe(now);
        } else if matches!(self.outstanding.window_probe, WindowProbe::Waiting { .. }) {
            self.outstanding.window_probe = WindowProbe::Idle;
            self.timers_moved = true;
        }
    }

    #[cold]
    fn settle_window_probe(&mut self, now: Time) {
        // The timers of lost and last packets rest while the window is probed.
        self.timers_moved = true;
        let waits =
            !(self.outstanding.queue.is_empty() && self.outstanding.board.holes().is_empty());
        let again = !self.outstanding.board.lost().is_empty();
        let shut = if again {
            self.outstanding.board.span() > self.outstanding.peer_rwnd
        } else {
            waits && self.outstanding.within_window(&self.paths) == 0
        };
        match self.outstanding.window_probe {
            // 6.1 A: the first probe SHOULD be sent after 1 RTO.
            WindowProbe::Idle | WindowProbe::Sent { .. } if shut && !again => {
                let interval = self.paths[self.control_path().index()].tx.rtt.rto();
                self.outstanding.window_probe =
                    WindowProbe::Waiting { at: now + interval, interval };
            }
            _ if !shut => self.outstanding.window_probe = WindowProbe::Idle,
            _ => {}
        }
    }

    /// Time has passed.
    #[inline]
    pub(super) fn on_window_timer(&mut self, now: Time) {
        if let WindowProbe::Waiting { at, interval } = self.outstanding.window_probe
            && at <= now
        {
            self.outstanding.window_probe = WindowProbe::Due { interval };
        }
    }

    /// The packet of data that has left on `path` is the probe that was due; the one before left `interval` ago. T3
    /// then measures the interval to the next one. 6.1 A: the probe interval SHOULD increase exponentially.
    #[cold]
    pub(super) fn note_window_probe(&mut self, now: Time, path: PathId, interval: Duration) {
        let interval = (interval * 2).min(self.config.rto.max);
        self.outstanding.window_probe = WindowProbe::Sent { at: now, path, interval };
        self.paths[path.index()].t3 = Some(now + interval);
    }

    /// A SACK was taken.
    #[inline]
    pub(super) fn update_window_probe(&mut self, now: Time) {
        let WindowProbe::Sent { path, .. } = self.outstanding.window_probe else { return };
        if nothing_in_flight(&self.paths) {
            self.outstanding.window_probe = WindowProbe::Idle;
        } else if self.outstanding.board.span() <= self.outstanding.peer_rwnd {
            // The peer may have dropped the probe before it opened the window: it is data like any other now.
            self.outstanding.window_probe = WindowProbe::Idle;
            self.paths[path.index()].restart_t3(now);
        }
    }

    /// T3 of `id` expired: whether that was the timer of a probe, which is all that was in flight there. 6.1 A: while SACKs
    /// come, unacknowledged probes SHOULD NOT count as errors of the association or an address; and probing does
    /// not affect the congestion window.
    pub(super) fn on_probe_unanswered(&mut self, now: Time, id: PathId) -> bool {
        let WindowProbe::Sent { at, path, interval } = self.outstanding.window_probe else {
            return false;
        };
        if path != id {
            return false;
        }
        self.paths[id.index()].t3 = None;
        self.give_up_flights(id);
        self.outstanding.window_probe = WindowProbe::Due { interval };
        if self.heard_at < at {
            self.paths[id.index()].heartbeat.counted = true;
            self.note_path_error(now, id, true);
        }
        true
    }
}
