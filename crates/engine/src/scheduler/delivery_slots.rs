//! Chunks in the order in which paths will deliver them: shared by `ods`, `sttf` and `reception-index`.
//!
//! Each path offers a sequence of slots, one per chunk, each with the time at which that chunk would be
//! delivered. Times within a sequence do not decrease. Assigning every chunk to the path that delivers it
//! soonest, behind the queue on that path, is equivalent to assigning the queue to all slots in the order
//! of their times. The next chunk of an open path is therefore as far beyond the head as the *full* paths
//! have earlier slots. The open path with the earliest slot sends first, so other open paths have no
//! slots before it.
//!
//! No state is kept between decisions. This implements the rule "when an acknowledgement changes
//! something, reassign all queued and unsent data", with two passes over the paths instead of a pass over
//! the queue.

use super::common::{belongs_to_others, counts};
use super::daps::oldest_first;
use super::{Decision, PathView, Reason, View};

/// How a scheduler predicts deliveries.
pub(super) trait Slots {
    /// When the next chunk would be delivered on `path`, which has space for it: nanoseconds from now.
    fn next(&self, view: &View<'_>, path: &PathView) -> f64;

    /// Number of chunks that `path` would deliver in less than `within` nanoseconds from now.
    fn sooner(&self, view: &View<'_>, path: &PathView, within: f64) -> u64;
}

/// The open path with the earliest slot, and the chunk that is due in that slot.
pub(super) fn decide(view: &View<'_>, slots: &impl Slots) -> Decision {
    if !view.is_new_data() {
        return oldest_first(view);
    }
    let limit = view.reach();
    let mut best: Option<((f64, u64, u8), &PathView, u64)> = None;
    for path in view.open().filter(|_| limit > 0) {
        let time = slots.next(view, path);
        // Among equal paths, the one with less data in flight, so that they alternate.
        let key = (time, path.in_flight, path.id.0);
        if best.as_ref().is_some_and(|(least, _, _)| !precedes(key, *least)) {
            continue;
        }
        if let Some(position) = view.admit(sooner_elsewhere(view, slots, time, limit)) {
            best = Some((key, path, position));
        }
    }
    match best {
        Some((_, path, position)) => Decision::send(path.id, position, Reason::SoonestDelivery),
        None => belongs_to_others(view),
    }
}

fn precedes(a: (f64, u64, u8), b: (f64, u64, u8)) -> bool {
    a.0.total_cmp(&b.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))).is_lt()
}

/// Chunks that full paths deliver within that time, counted up to `limit`.
fn sooner_elsewhere(view: &View<'_>, slots: &impl Slots, within: f64, limit: u64) -> u64 {
    let full = view.paths.iter().filter(|p| counts(p) && !p.is_open());
    full.fold(
        0,
        |sum: u64, p| {
            if sum >= limit { sum } else { sum.saturating_add(slots.sooner(view, p, within)) }
        },
    )
}
