//! Common parts of coupled algorithms. Slow start, threshold and undo of each path are those of TCP; growth
//! in congestion avoidance and reductions depend on all paths.

use ropewalk_base::{PathId, Time};

use super::path_window::{Growth, PathWindow};
use super::{AckSample, CongestionControl, CongestionOptions, SentPacket};

/// The coupling rules' view of the windows of a connection, bytes.
#[derive(Clone, Copy, Debug)]
pub struct Windows<'a> {
    paths: &'a [PathWindow],
}

impl Windows<'_> {
    /// Window of path `i`, bytes.
    #[inline]
    pub fn window(&self, i: usize) -> f64 {
        self.paths[i].cwnd()
    }

    /// Smoothed round trip of path `i`, seconds, `None` before the first measurement.
    #[inline]
    pub fn srtt_s(&self, i: usize) -> Option<f64> {
        self.paths[i].srtt_s()
    }

    /// Sum of all windows, bytes.
    pub fn total(&self) -> f64 {
        self.paths.iter().map(PathWindow::cwnd).sum()
    }

    /// Number of paths.
    pub const fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether there are no paths.
    pub const fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Paths with a known round trip: index, window in bytes, round trip in seconds.
    pub fn measured(&self) -> impl Iterator<Item = (usize, f64, f64)> {
        let known = |(i, path): (usize, &PathWindow)| Some((i, path.cwnd(), path.srtt_s()?));
        self.paths.iter().enumerate().filter_map(known)
    }

    /// Sum of all rates, bytes per second: windows over round trips.
    pub fn total_rate(&self) -> f64 {
        self.measured().map(|(_, window, rtt)| window / rtt).sum()
    }
}

/// How paths are coupled. Rules count in bytes; `path` is an index into the windows.
pub trait Coupling {
    /// Growth of the window of `path` in congestion avoidance, per acknowledged byte and per unit: 1 / w for
    /// an uncoupled path. A negative value shrinks the window. 1/bytes.
    fn growth(&mut self, windows: Windows<'_>, path: usize) -> f64;

    /// The window after a loss, bytes.
    fn after_loss(&mut self, windows: Windows<'_>, path: usize) -> f64 {
        windows.window(path) / 2.0
    }

    /// Minimum window after a reduction in units, if it differs from the floor of the threshold.
    fn floor_units(&self) -> Option<u64> {
        None
    }

    /// Records acknowledged bytes.
    fn on_acked(&mut self, _path: usize, _bytes: u64) {}

    /// Records a reduction of the window of `path`.
    fn on_cut(&mut self, _path: usize) {}

    /// Records that the last reduction was undone.
    fn on_undo(&mut self, _path: usize) {}

    /// Extends the state to `paths` paths, more than before.
    fn grow(&mut self, _paths: usize) {}

    /// Resets the state of the path.
    fn renew(&mut self, _path: usize) {}
}

/// A connection under a coupling rule.
#[derive(Clone, Debug)]
pub struct Coupled<R> {
    paths: Vec<PathWindow>,
    rule: R,
}

impl<R: Coupling> Coupled<R> {
    /// Congestion control for `paths` new paths.
    pub fn new(options: CongestionOptions, paths: usize, rule: R) -> Self {
        Self { paths: vec![PathWindow::new(options); paths], rule }
    }
}

impl<R: Coupling> CongestionControl for Coupled<R> {
    fn grow(&mut self, fresh: Self) {
        self.paths.extend(fresh.paths.into_iter().skip(self.paths.len()));
        self.rule.grow(self.paths.len());
    }

    fn renew(&mut self, path: PathId, mut fresh: Self) {
        self.paths[path.index()] = fresh.paths.swap_remove(path.index());
        self.rule.renew(path.index());
    }

    fn on_sent(&mut self, path: PathId, _now: Time, packet: &SentPacket) {
        self.paths[path.index()].on_sent(packet);
    }

    fn on_ack(&mut self, path: PathId, _now: Time, sample: &AckSample) {
        let i = path.index();
        self.rule.on_acked(i, sample.acked_bytes);
        if let Growth::Avoid(acked) = self.paths[i].on_ack(sample) {
            let part = self.rule.growth(Windows { paths: &self.paths }, i);
            let path = &mut self.paths[i];
            path.grow(part * acked * path.unit());
        }
    }

    fn on_loss(&mut self, path: PathId, _now: Time) {
        let i = path.index();
        let to = self.rule.after_loss(Windows { paths: &self.paths }, i);
        let path = &mut self.paths[i];
        path.cut(to, self.rule.floor_units().unwrap_or(path.floor_units()));
        self.rule.on_cut(i);
    }

    fn on_timeout(&mut self, path: PathId, _now: Time) {
        let i = path.index();
        let to = self.rule.after_loss(Windows { paths: &self.paths }, i);
        self.paths[i].time_out(to);
        self.rule.on_cut(i);
    }

    fn on_spurious(&mut self, path: PathId, _now: Time) {
        if self.paths[path.index()].undo() {
            self.rule.on_undo(path.index());
        }
    }

    fn on_ecn(&mut self, path: PathId, now: Time) {
        self.on_loss(path, now);
    }

    fn on_idle(&mut self, path: PathId, _now: Time) {
        self.paths[path.index()].idle();
    }

    fn on_return(&mut self, path: PathId, _now: Time) {
        self.paths[path.index()].restart();
    }

    fn limit(&mut self, path: PathId, most: u64) {
        self.paths[path.index()].limit(most);
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
}
