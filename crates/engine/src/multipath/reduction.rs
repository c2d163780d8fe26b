//! Reduction of a congestion window after a loss, immediate or in proportion to delivered data.

use ropewalk_base::{PathId, Time};

use super::{Outstanding, Sender};
use crate::congestion::CongestionControl;
use crate::recovery::{Prr, PrrProgress};

impl<O: Outstanding> Sender<O> {
    /// Reduces the window of a path that enters recovery.
    pub fn reduce_window(&mut self, now: Time, id: PathId) {
        let before = self.congestion.window(id);
        self.congestion.on_loss(id, now);
        // A pacing algorithm sends at its own rate in recovery.
        if self.config.prr && self.congestion.pace(id).is_none() {
            let (target, unit) = (self.congestion.window(id), self.outstanding.budget().chunk);
            let path = self.paths[id.index()].as_mut();
            path.prr = Some(Box::new(Prr::new(before, target, unit, path.in_flight())));
        }
    }

    /// Processes an acknowledgement of `delivered` bytes in recovery. `advanced`: whether the cumulative
    /// acknowledgement advanced. `losses`: number of losses before it.
    pub fn reduce_in_proportion(
        &mut self,
        id: PathId,
        delivered: u64,
        advanced: bool,
        losses: u64,
    ) {
        let path = self.paths[id.index()].as_mut();
        let (in_flight, safe) = (path.in_flight(), advanced && path.losses == losses);
        if let Some(prr) = &mut path.prr {
            prr.on_ack(PrrProgress { delivered, in_flight, safe });
        }
    }

    /// The congestion window of a path, or in recovery the limit of the reduction.
    #[inline]
    pub fn congestion_window(&self, id: PathId) -> u64 {
        let window = self.congestion.window(id);
        let window = self.paths[id.index()].as_ref().in_reduction(window);
        if !self.config.whole_packets {
            return window;
        }
        let unit = self.outstanding.budget().chunk.max(1);
        (window / unit).max(1) * unit
    }
}
