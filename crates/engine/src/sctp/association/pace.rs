//! The pace of each path, which follows its window and round trip.

use ropewalk_base::{PathId, Time};

use super::Association;
use crate::congestion::CongestionControl;
use crate::path::Shape;

impl Association {
    /// Sets the pace of all paths whose round trip is known.
    pub(super) fn set_pace(&mut self, now: Time) {
        let Some(pacing) = self.config.pacing else { return };
        let full = self.full_chunk();
        for i in 0..self.paths.len() {
            let id = PathId::from_index(i);
            let (window, threshold) = (self.congestion.window(id), self.congestion.ssthresh(id));
            let path = &mut self.paths[i];
            if let Some(srtt) = path.tx.rtt.srtt() {
                let slow_start = window < threshold;
                path.tx.pacer.set(now, &pacing, Shape { window, srtt, slow_start }, full);
            }
        }
    }
}
