//! Zero-window probes (RFC 9260, 6.1 A): while the peer's receive window is closed, one DATA chunk at a
//! time tests whether it has opened. The SACK that reported this may have been lost.
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

use super::Sender;
use crate::multipath::{Outstanding, nothing_in_flight};

/// State of the probing of a closed window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowProbe {
    /// The window is open, or data in flight will cause a SACK.
    #[default]
    Idle,
    /// The first probe is sent at `at`, one RTO after the window was found closed.
    Waiting { at: Time, interval: Duration },
    /// A probe may be sent now. `interval`: time since the previous one.
    Due { interval: Duration },
    /// A probe is in flight.
    Sent { at: Time, path: PathId, interval: Duration },
}

impl WindowProbe {
    /// Whether the window is not being probed.
    #[inline]
    pub const fn is_idle(self) -> bool {
        matches!(self, Self::Idle)
    }

    /// The timer of the first probe. A probe in flight is timed by the T3 of its path.
    #[inline]
    pub const fn deadline(self) -> Option<Time> {
        if let Self::Waiting { at, .. } = self { Some(at) } else { None }
    }
}

impl Sender {
    /// Checks, before anything is sent, whether the window is closed with nothing in flight.
    #[inline]
    pub fn watch_window(&mut self, now: Time) {
        let probing = !self.outstanding.window_probe.is_idle();
        if (probing || self.sendable_left == 0) && nothing_in_flight(&self.paths) {
            self.settle_window_probe(now);
        } else if matches!(self.outstanding.window_probe, WindowProbe::Waiting { .. }) {
            self.outstanding.window_probe = WindowProbe::Idle;
            self.outstanding.deadline.invalidate();
        }
    }

    #[cold]
    fn settle_window_probe(&mut self, now: Time) {
        // RACK and tail loss probe timers do not run while the window is probed.
        self.outstanding.deadline.invalidate();
        let waits =
            !(self.outstanding.queue.is_empty() && self.outstanding.board.holes().is_empty());
        let again = !self.outstanding.board.lost().is_empty();
        let closed = if again {
            self.outstanding.board.span() > self.outstanding.peer_rwnd
        } else {
            waits && self.outstanding.within_window(&self.paths) == 0
        };
        match self.outstanding.window_probe {
            // RFC 9260, 6.1 A: the first probe SHOULD be sent after 1 RTO.
            WindowProbe::Idle | WindowProbe::Sent { .. } if closed && !again => {
                let interval = self.paths[self.best_path().index()].tx.rtt.rto();
                self.outstanding.window_probe =
                    WindowProbe::Waiting { at: now + interval, interval };
            }
            _ if !closed => self.outstanding.window_probe = WindowProbe::Idle,
            _ => {}
        }
    }

    /// Handles the timer of the first probe.
    #[inline]
    pub fn on_window_timer(&mut self, now: Time) {
        if let WindowProbe::Waiting { at, interval } = self.outstanding.window_probe
            && at <= now
        {
            self.outstanding.window_probe = WindowProbe::Due { interval };
        }
    }

    /// Records that the packet with data just sent on `path` is the probe that was due, `interval` after the
    /// previous one. T3 measures the interval to the next one. RFC 9260, 6.1 A: it SHOULD increase
    /// exponentially.
    #[cold]
    pub fn note_window_probe(&mut self, now: Time, path: PathId, interval: Duration) {
        let interval = (interval * 2).min(self.outstanding.config.rto_max);
        self.outstanding.window_probe = WindowProbe::Sent { at: now, path, interval };
        self.paths[path.index()].t3 = Some(now + interval);
    }

    /// Ends the probing after a SACK if the window has opened or the probe was acknowledged.
    #[inline]
    pub fn update_window_probe(&mut self, now: Time) {
        let WindowProbe::Sent { path, .. } = self.outstanding.window_probe else { return };
        if nothing_in_flight(&self.paths) {
            self.outstanding.window_probe = WindowProbe::Idle;
        } else if self.outstanding.board.span() <= self.outstanding.peer_rwnd {
            // The peer may have dropped the probe before it opened the window. It is ordinary data now.
            self.outstanding.window_probe = WindowProbe::Idle;
            self.paths[path.index()].restart_t3(now);
        }
    }

    /// Handles the expiry of T3 of `id` if it timed a probe, which is the only data in flight there.
    /// Returns whether that is an error of the path. RFC 9260, 6.1 A: while SACKs arrive, unacknowledged
    /// probes SHOULD NOT count as errors of the association or an address; and probing does not affect
    /// the congestion window.
    pub(super) fn on_probe_unanswered(&mut self, now: Time, id: PathId) -> Option<bool> {
        let WindowProbe::Sent { at, path, interval } = self.outstanding.window_probe else {
            return None;
        };
        if path != id {
            return None;
        }
        self.paths[id.index()].t3 = None;
        self.mark_all_lost(now, id);
        self.outstanding.window_probe = WindowProbe::Due { interval };
        Some(self.outstanding.last_sack_at < at)
    }
}
