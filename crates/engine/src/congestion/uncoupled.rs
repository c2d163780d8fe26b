//! Independent congestion control of all paths.

use ropewalk_base::{PathId, Time};

use super::{AckSample, CongestionControl, LostPacket, PathCongestion, SentPacket};
use crate::path::Pace;

/// A single-path algorithm on each path, independent of the other paths.
#[derive(Clone, Debug)]
pub struct Uncoupled<C> {
    paths: Vec<C>,
}

impl<C: PathCongestion> Uncoupled<C> {
    /// One instance per path.
    pub const fn new(paths: Vec<C>) -> Self {
        Self { paths }
    }
}

impl<C: PathCongestion> CongestionControl for Uncoupled<C> {
    fn grow(&mut self, fresh: Self) {
        self.paths.extend(fresh.paths.into_iter().skip(self.paths.len()));
    }
    fn renew(&mut self, path: PathId, mut fresh: Self) {
        self.paths[path.index()] = fresh.paths.swap_remove(path.index());
    }
    fn on_sent(&mut self, path: PathId, now: Time, packet: &SentPacket) {
        self.paths[path.index()].on_sent(now, packet);
    }
    fn on_ack(&mut self, path: PathId, now: Time, sample: &AckSample) {
        self.paths[path.index()].on_ack(now, sample);
    }
    fn on_lost(&mut self, path: PathId, now: Time, packet: &LostPacket) {
        self.paths[path.index()].on_lost(now, packet);
    }
    fn on_loss(&mut self, path: PathId, now: Time) {
        self.paths[path.index()].on_loss(now);
    }
    fn on_timeout(&mut self, path: PathId, now: Time) {
        self.paths[path.index()].on_timeout(now);
    }
    fn on_spurious(&mut self, path: PathId, now: Time) {
        self.paths[path.index()].on_spurious(now);
    }
    fn on_ecn(&mut self, path: PathId, now: Time) {
        self.paths[path.index()].on_ecn(now);
    }
    fn on_idle(&mut self, path: PathId, now: Time) {
        self.paths[path.index()].on_idle(now);
    }
    fn on_return(&mut self, path: PathId, now: Time) {
        self.paths[path.index()].on_return(now);
    }
    fn limit(&mut self, path: PathId, most: u64) {
        self.paths[path.index()].limit(most);
    }
    fn penalise(&mut self, path: PathId) {
        self.paths[path.index()].penalise();
    }
    fn set_unit(&mut self, unit: u64) {
        self.paths.iter_mut().for_each(|path| path.set_unit(unit));
    }
    fn window(&self, path: PathId) -> u64 {
        self.paths[path.index()].window()
    }
    fn ssthresh(&self, path: PathId) -> u64 {
        self.paths[path.index()].ssthresh()
    }
    fn pace(&self, path: PathId) -> Option<Pace> {
        self.paths[path.index()].pace()
    }
}
