//! The interface through which the sender accesses a protocol's data.

use ropewalk_base::{PathId, Time};

use super::TxPath;
use crate::scheduler::{DecisionKind, View};
use crate::window::Budget;

/// Data of a connection that is unassigned or unacknowledged, and the receive window for it.
///
/// A *unit* is assigned to a path undivided: an SCTP chunk by its TSN, or a Multipath TCP mapping by its
/// number.
pub(crate) trait Outstanding {
    /// State that the protocol keeps per path.
    type Path: AsRef<TxPath> + AsMut<TxPath>;

    /// Whether the oldest unit may be retransmitted on the path that carries it.
    const REPEATS_ON_SAME_PATH: bool;

    /// The view of a scheduler, without the paths.
    fn view(
        &self,
        paths: &[Self::Path],
        now: Time,
        occasion: DecisionKind,
        sendable: u64,
        epoch: u64,
    ) -> View<'static>;

    /// The span rule: number of unassigned units that fit, with all data before them, into the buffer
    /// that the peer offered.
    fn within_window(&self, paths: &[Self::Path]) -> u64;

    /// Whether one unit may be sent although the receive window has no space (zero-window probe; RFC 9260,
    /// 6.1 A; RFC 9293, 3.8.6.1).
    fn may_probe_window(&self) -> bool;

    /// Whether nothing is queued, neither new data nor skipped units.
    fn is_idle(&self) -> bool;

    /// The oldest unacknowledged unit, if it is in flight.
    fn oldest(&self, paths: &[Self::Path]) -> Option<Oldest>;

    /// Whether units wait for retransmission. A new unit is then not needed to keep the connection going.
    fn has_lost(&self) -> bool;

    /// Whether the oldest unit keeps the window closed, and no other measure is in progress.
    fn is_blocked_by_oldest(&self) -> bool;

    /// The number of a unit, counted from 0 at the first of the connection.
    fn sequence(&self, unit: u64) -> u64;

    /// The peer's buffer, and the size of a full unit.
    fn budget(&self) -> Budget;
}

/// The oldest unacknowledged unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Oldest {
    /// The unit.
    pub unit: u64,
    /// The path that carries its last transmission.
    pub path: PathId,
    /// When that was sent, `None` if no longer known.
    pub sent_at: Option<Time>,
    /// Number of transmissions.
    pub transmissions: u32,
}
