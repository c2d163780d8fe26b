//! Independent congestion control of all paths, or of all bottlenecks if paths that share one act like
//! one flow.

use ropewalk_base::{PathId, Time};

use super::flow_group::{FlowGroups, Signals};
use super::{
    AckSample, BottleneckCoupling, CongestionControl, CongestionOptions, Disturbance, LostPacket,
    PathCongestion, SentPacket,
};
use crate::path::Pace;

/// A single-path algorithm on each path, independent of the paths that do not share its bottleneck.
#[derive(Clone, Debug)]
pub struct Uncoupled<C> {
    paths: Vec<C>,
    /// Whether all paths count as one flow.
    all: bool,
    /// The groups of paths that act as one flow, `None` while all paths act alone.
    groups: Option<Box<FlowGroups>>,
}

impl<C: PathCongestion> Uncoupled<C> {
    /// One instance per path.
    pub fn new(options: CongestionOptions, paths: Vec<C>) -> Self {
        let all = options.variants.coupling == BottleneckCoupling::All;
        let mut made = Self { paths, all, groups: None };
        made.join_all();
        made
    }

    /// Puts all paths into one group, if they count as one flow.
    fn join_all(&mut self) {
        if self.all {
            self.set_bottlenecks(&vec![PathId(0); self.paths.len()]);
        }
    }

    /// Sets the part of `path` in the growth of one flow.
    fn share_growth(&mut self, path: PathId) {
        let share = self.groups.as_ref().map_or(1.0, |groups| groups.growth_share(path));
        self.paths[path.index()].set_flow_share(share);
    }

    /// Passes the signals of `path` to the other paths of the group.
    fn pass_on(&mut self, path: PathId, now: Time) {
        let Some(groups) = &self.groups else { return };
        let signals = self.paths[path.index()].take_signals();
        if signals != Signals::default() {
            for other in groups.others(path) {
                self.paths[other].join(now, signals);
            }
        }
    }

    /// Reduces the windows after a loss on `path`, by calling `reduce` on this path.
    fn reduce(&mut self, path: PathId, now: Time, reduce: impl Fn(&mut C)) {
        let joint = self.paths[path.index()].reduces_by_loss();
        let Some(groups) = self.groups.as_mut().filter(|_| joint) else {
            return reduce(&mut self.paths[path.index()]);
        };
        if !groups.reduces(path.index(), path, now) {
            return;
        }
        reduce(&mut self.paths[path.index()]);
        for other in groups.reduced_with(path, now) {
            self.paths[other].on_loss(now);
        }
    }
}

impl<C: PathCongestion> CongestionControl for Uncoupled<C> {
    fn grow(&mut self, fresh: Self) {
        self.paths.extend(fresh.paths.into_iter().skip(self.paths.len()));
        self.join_all();
    }
    fn renew(&mut self, path: PathId, mut fresh: Self) {
        self.paths[path.index()] = fresh.paths.swap_remove(path.index());
        self.share_growth(path);
    }
    fn on_sent(&mut self, path: PathId, now: Time, packet: &SentPacket) {
        self.paths[path.index()].on_sent(now, packet);
    }
    fn on_ack(&mut self, path: PathId, now: Time, sample: &AckSample) {
        self.paths[path.index()].on_ack(now, sample);
        if let Some(groups) = &mut self.groups {
            groups.note_round_trip(path, sample.srtt);
            self.share_growth(path);
            self.pass_on(path, now);
        }
    }
    fn on_lost(&mut self, path: PathId, now: Time, packet: &LostPacket) {
        self.paths[path.index()].on_lost(now, packet);
        self.pass_on(path, now);
    }
    fn on_loss(&mut self, path: PathId, now: Time) {
        self.reduce(path, now, |path| path.on_loss(now));
    }
    fn on_timeout(&mut self, path: PathId, now: Time) {
        // A timeout may be due to an interruption of this path alone, so the others continue.
        self.paths[path.index()].on_timeout(now);
    }
    fn on_spurious(&mut self, path: PathId, now: Time) {
        self.paths[path.index()].on_spurious(now);
        if let Some(groups) =
            self.groups.as_ref().filter(|_| self.paths[path.index()].reduces_by_loss())
        {
            for other in groups.others(path).filter(|other| groups.was_reduced_by(*other, path)) {
                self.paths[other].on_spurious(now);
            }
        }
    }
    fn on_ecn(&mut self, path: PathId, now: Time) {
        self.reduce(path, now, |path| path.on_ecn(now));
        self.pass_on(path, now);
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
    fn is_scalable(&self) -> bool {
        C::SCALABLE
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
    fn set_bottlenecks(&mut self, groups: &[PathId]) {
        self.groups.get_or_insert_default().set(groups);
        (0..self.paths.len()).for_each(|i| self.share_growth(PathId::from_index(i)));
    }
    fn disturbance(&self, path: PathId) -> Disturbance {
        if self.groups.as_ref().is_some_and(|groups| groups.is_in_step(path)) {
            return Disturbance::InStep;
        }
        self.paths[path.index()].disturbance()
    }
}
