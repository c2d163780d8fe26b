//! Chunks queued on full paths: shared by `bas`, `otias` and `linux`.
//!
//! These three schedulers assign each chunk to a path when it comes within the receive window, and it
//! stays there. The engine assigns a chunk only when it can be sent, so the queues are kept here. Every
//! chunk of the unassigned queue that may be sent has a *ticket*, in the order of the queue, and each
//! path has a list of its tickets. A path next sends its first ticket. The position of that chunk is the
//! number of smaller tickets on all lists. A full path keeps its tickets, and the chunks that other paths
//! take in the meantime come from beyond them.
//!
//! Chunks leave their list unsent only if keeping them would stop the transfer. All chunks are reassigned
//! when a path fails or loses its window, and after a loss.

use std::collections::VecDeque;

use ropewalk_base::PathId;

use super::common::{belongs_to_others, counts, least_cost};
use super::daps::oldest_first;
use super::{Behind, Decision, PathSet, PathView, Reason, SentReport, View};

/// A decision whose transmission has not been reported yet.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    path: PathId,
    ticket: u64,
    position: u64,
}

/// The lists of tickets.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    /// By path identifier; ascending.
    lanes: Vec<VecDeque<u64>>,
    next: u64,
    total: u64,
    /// The usable paths and the epoch for which the lists were made.
    made_for: Option<(PathSet, u64)>,
    /// Whether the last decision was for new data.
    asked: bool,
    chosen: Option<Chosen>,
    /// Whether paths that cost more than the cheapest usable one are not used.
    spare_standbys: bool,
    /// Whether chunks stay on their lists after a loss.
    keep_after_loss: bool,
}

impl Queues {
    /// Lists that do not use standby paths, as in Linux.
    pub fn without_standbys() -> Self {
        Self { spare_standbys: true, ..Self::default() }
    }

    /// Chunks also stay on their lists after a loss, like data in the send queue of a subflow.
    pub fn keeping_after_loss(self) -> Self {
        Self { keep_after_loss: true, ..self }
    }

    /// The paths that can be used.
    fn members<'a>(&self, view: &'a View<'_>) -> impl Iterator<Item = &'a PathView> + use<'a> {
        let cost = if self.spare_standbys { least_cost(view) } else { None };
        view.paths.iter().filter(move |p| counts(p) && cost.is_none_or(|cost| p.cost == cost))
    }

    /// Chunks queued on all paths: the position of the next one to be queued.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The chunk queued on a path after its first one.
    pub fn behind(&self, path: PathId) -> Behind {
        let Some(lane) = self.lanes.get(path.index()) else { return Behind::Nothing };
        match (lane.front(), lane.get(1)) {
            (Some(first), Some(second)) if *second == first + 1 => Behind::Next,
            (Some(_), Some(_)) => Behind::Later,
            _ => Behind::Nothing,
        }
    }

    /// Chunks queued on a path.
    pub fn queued(&self, path: PathId) -> u64 {
        self.lanes.get(path.index()).map_or(0, |lane| lane.len() as u64)
    }

    /// The order of otherwise equal paths: the one with less data before the chunk comes first.
    pub fn load(&self, view: &View<'_>, path: &PathView) -> (u64, u8) {
        let queued = self.queued(path.id).saturating_mul(view.chunk_bytes);
        (path.in_flight.saturating_add(queued), path.id.0)
    }

    /// The path with the lowest `score` among those that may carry the next chunk to be queued.
    pub fn least<'a>(
        &self,
        view: &'a View<'_>,
        score: impl Fn(&PathView) -> f64,
    ) -> Option<&'a PathView> {
        let order = |a: &&PathView, b: &&PathView| {
            let load = || self.load(view, a).cmp(&self.load(view, b));
            score(a).total_cmp(&score(b)).then_with(load)
        };
        self.members(view).min_by(order)
    }

    /// Queues all chunks that may be sent, each on the path that `place` returns, until it returns
    /// `None`. Then the open path whose chunk is first in the queue sends it.
    pub fn decide(
        &mut self,
        view: &View<'_>,
        reason: Reason,
        mut place: impl FnMut(&Self, &View<'_>) -> Option<PathId>,
    ) -> Decision {
        self.chosen = None;
        self.asked = view.is_new_data();
        if !self.asked {
            return oldest_first(view);
        }
        self.begin(view);
        let limit = view.takeable();
        while self.total < limit {
            let Some(path) = place(self, view) else { break };
            self.append(path);
        }
        match self.first(view, limit) {
            Some(chosen) => {
                self.chosen = Some(chosen);
                Decision::send(chosen.path, chosen.position, reason)
            }
            None => belongs_to_others(view),
        }
    }

    /// Removes the chunk from its list. A transmission that was not chosen here shifts all positions and
    /// clears the lists.
    pub fn on_sent(&mut self, sent: &SentReport) {
        match self.chosen.take() {
            Some(c) if c.path == sent.path && c.position == sent.position => {
                let lane = &mut self.lanes[c.path.index()];
                if let Ok(at) = lane.binary_search(&c.ticket) {
                    lane.remove(at);
                    self.total -= 1;
                }
            }
            _ if self.asked => self.clear(),
            _ => {}
        }
    }

    fn clear(&mut self) {
        self.lanes.iter_mut().for_each(VecDeque::clear);
        self.total = 0;
        self.made_for = None;
    }

    fn begin(&mut self, view: &View<'_>) {
        let members = self.members(view).fold(PathSet::EMPTY, |set, p| set.with(p.id));
        let epoch = if self.keep_after_loss { 0 } else { view.epoch };
        if self.made_for != Some((members, epoch)) {
            self.clear();
            self.made_for = Some((members, epoch));
        }
    }

    fn append(&mut self, path: PathId) {
        let index = path.index();
        if self.lanes.len() <= index {
            self.lanes.resize(index + 1, VecDeque::new());
        }
        self.lanes[index].push_back(self.next);
        self.next += 1;
        self.total += 1;
    }

    /// Number of chunks before that ticket.
    fn position(&self, ticket: u64) -> u64 {
        let before = |lane: &VecDeque<u64>| lane.partition_point(|t| *t < ticket) as u64;
        self.lanes.iter().map(before).sum()
    }

    fn first(&self, view: &View<'_>, limit: u64) -> Option<Chosen> {
        let own = |p: &PathView| {
            let ticket = *self.lanes.get(p.id.index())?.front()?;
            let position = self.position(ticket);
            (position < limit).then_some(Chosen { path: p.id, ticket, position })
        };
        view.open().filter_map(own).min_by_key(|c| c.position)
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    /// Assigns chunks in the order of `deal`, then returns `None`.
    fn ask(queues: &mut Queues, view: &View<'_>, deal: &[u8]) -> Decision {
        let mut left = deal.iter();
        let decision = queues
            .decide(view, Reason::SoonestDelivery, |_, _| left.next().map(|path| PathId(*path)));
        if let super::super::Action::Send { path, position } = decision.action {
            queues.on_sent(&SentReport { path, position, sequence: 0, bytes: CHUNK });
        }
        decision
    }

    fn send(path: u8, position: u64) -> Decision {
        Decision::send(PathId(path), position, Reason::SoonestDelivery)
    }

    #[test]
    fn a_full_path_keeps_its_chunks_and_others_take_theirs_from_behind() {
        let mut queues = Queues::default();
        let mut paths = [path_view(0), path_view(1)];
        paths[0].in_flight = paths[0].window;
        let deal = [0, 0, 1, 0, 1];
        assert_eq!(ask(&mut queues, &view(&paths), &deal), send(1, 2));
        assert_eq!(ask(&mut queues, &view(&paths), &[]), send(1, 3));
        let waits = Decision::blocked(Reason::QueuedElsewhere);
        assert_eq!(ask(&mut queues, &view(&paths), &[]), waits);
        assert_eq!(queues.queued(PathId(0)), 3);
        paths[0].in_flight = CHUNK;
        for _ in 0..3 {
            assert_eq!(ask(&mut queues, &view(&paths), &[]), send(0, 0));
        }
    }

    #[test]
    fn a_loss_or_a_path_that_goes_has_everything_assigned_anew() {
        let mut paths = [path_view(0), path_view(1)];
        paths[0].in_flight = paths[0].window;
        let fresh = || {
            let mut queues = Queues::default();
            assert_eq!(ask(&mut queues, &view(&paths), &[0, 0, 1, 1]), send(1, 2));
            queues
        };
        let lost = View { epoch: 1, ..view(&paths) };
        assert_eq!(ask(&mut fresh(), &lost, &[1]), send(1, 0));
        for gone in [PathView { usable: false, ..paths[0] }, PathView { window: 0, ..paths[0] }] {
            assert_eq!(ask(&mut fresh(), &view(&[gone, paths[1]]), &[1]), send(1, 0));
        }
    }

    #[test]
    fn a_chunk_that_left_without_being_asked_for_voids_the_lists() {
        let paths = [path_view(0), path_view(1)];
        let mut queues = Queues::default();
        queues.decide(&view(&paths), Reason::SoonestDelivery, |q, _| {
            (q.total < 3).then_some(PathId(0))
        });
        queues.on_sent(&SentReport { path: PathId(1), position: 0, sequence: 0, bytes: CHUNK });
        assert_eq!(queues.queued(PathId(0)), 0);
    }
}
