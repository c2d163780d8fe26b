//! Which subflows may carry data.

use ropewalk_base::{PathId, Time};

use super::super::subflow::Subflow;
use super::DataSender;
use crate::multipath::fallback_path;
use crate::path::PathStatus;

impl DataSender {
    /// Updates the views of all subflows, before anything is sent in response to an input.
    pub(super) fn refresh_views(&mut self, now: Time) {
        let open = self.paths.iter().enumerate().filter(|(_, subflow)| subflow.is_open());
        let fallback = fallback_path(open.map(|(i, subflow)| (PathId::from_index(i), &subflow.tx)));
        let is_usable = |id: PathId, subflow: &Subflow| {
            let active = match fallback {
                Some(fallback) => fallback == id,
                None => subflow.tx.state.status() == PathStatus::Active,
            };
            active && subflow.is_open()
        };
        self.update_views(now, is_usable);
    }
}
