//! Congestion window management: all windows together may not claim more than the receive buffer.

use core::fmt;

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::adaptive::{Adaptive, Advice, MeasuredPath};
use super::{dynamic, fixed};

/// The receive buffer as a manager needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// The peer's whole buffer, bytes.
    pub buffer: u64,
    /// Size of a full chunk, bytes: no window is made smaller.
    pub chunk: u64,
}

/// One path as a manager sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ManagedPath {
    /// Its congestion window, bytes; what the manager leaves here is the most that it may be.
    pub window: u64,
    /// Available bandwidth: told, or else measured.
    pub rate: Option<Rate>,
    /// Round trip without queueing.
    pub round_trip: Option<Duration>,
    /// The smoothed round trip without queueing, with acknowledgements returning as they do now.
    pub empty_round_trip: Option<Duration>,
    /// What of the delay of the packet acknowledged last was queueing.
    pub last_queueing: Option<Duration>,
    /// Transmissions of the path so far, and how many of them were given up as lost.
    pub sent: u64,
    /// See `sent`.
    pub lost: u64,
}

impl ManagedPath {
    /// What the pipe holds and the one packet that is being sent (Wallace and Shami, 2014, Eq 60:
    /// the bound on a limit), bytes; none while the path is not known.
    pub(super) fn pipe(&self, chunk: u64) -> Option<u64> {
        Some(self.rate?.bytes_in(self.round_trip?) + chunk)
    }
}

/// How the receive buffer is shared between the windows.
#[derive(Clone, Debug, Default)]
pub enum WindowManager {
    /// It is not: whoever fills it first has it.
    #[default]
    None,
    /// Equal shares: no window is larger than its share of the buffer (buffer splitting, Adhari et
    /// al., 2011).
    Splitting,
    /// Equal shares of what has left and is not yet cumulatively acknowledged: a path whose data
    /// fills its share of the buffer waits, however large its window.
    SplittingOutstanding,
    /// The better path takes from the worse one (Wallace and Shami, 2014, 5.1).
    Dynamic,
    /// A limit per path, bytes (Wallace and Shami, 2014, 5.2).
    Static(Vec<u64>),
    /// Limits on what is in flight that follow what is measured.
    Adaptive(Adaptive),
}

impl WindowManager {
    /// Whether there is nothing to manage.
    #[inline]
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The window of `grown` may have grown: makes all fit again.
    pub fn manage(&mut self, now: Time, grown: PathId, budget: &Budget, paths: &mut [ManagedPath]) {
        match self {
            Self::None | Self::SplittingOutstanding => {}
            Self::Splitting => {
                let share = share(budget, paths.len());
                paths.iter_mut().for_each(|p| p.window = p.window.min(share));
            }
            Self::Dynamic => dynamic::fit(grown, budget, paths),
            Self::Static(limits) => fixed::fit(grown, budget, limits, paths),
            Self::Adaptive(adaptive) => adaptive.note(now, grown, budget, paths),
        }
    }

    /// What `path` may have in flight while the peer holds `held` bytes of its data that wait for
    /// others', bytes.
    #[inline]
    pub fn in_flight_most(&self, path: PathId, budget: &Budget, paths: usize, held: u64) -> u64 {
        match self {
            Self::Adaptive(adaptive) => adaptive.in_flight_most(path),
            Self::SplittingOutstanding => share(budget, paths).saturating_sub(held),
            _ => u64::MAX,
        }
    }
}

fn share(budget: &Budget, paths: usize) -> u64 {
    (budget.buffer / paths.max(1) as u64).max(budget.chunk)
}

/// All but the one of path `i`.
pub(super) fn others<T>(i: usize, all: &[T]) -> impl Iterator<Item = &T> {
    all.iter().enumerate().filter(move |(j, _)| *j != i).map(|(_, one)| one)
}

/// How far the windows together exceed the buffer, bytes.
pub(super) fn excess(budget: &Budget, paths: &[ManagedPath]) -> u64 {
    paths.iter().map(|p| p.window).sum::<u64>().saturating_sub(budget.buffer)
}

/// Takes up to `excess` from a window, but leaves it `least`; tells what is still too much.
pub(super) fn take(path: &mut ManagedPath, excess: u64, least: u64) -> u64 {
    let taken = path.window.saturating_sub(least).min(excess);
    path.window -= taken;
    excess - taken
}

/// Whoever knows which limits are best for paths with such properties.
pub trait LimitAdvisor: Send {
    /// Advice that is clearly better than `current`; none: keep that. A `current` of `None` means
    /// that there is no limit yet.
    fn advise(
        &mut self,
        budget: &Budget,
        paths: &[MeasuredPath],
        current: Option<&Advice>,
    ) -> Option<Advice>;

    /// A copy that goes on alike.
    fn clone_box(&self) -> Box<dyn LimitAdvisor>;
}

impl Clone for Box<dyn LimitAdvisor> {
    fn clone(&self) -> Self {
        self.as_ref().clone_box()
    }
}

impl fmt::Debug for Box<dyn LimitAdvisor> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LimitAdvisor")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::window) const CHUNK: u64 = 1000;

    /// A path of `mbps` and `millis` with a window of `chunks`.
    pub(in crate::window) fn path(mbps: u64, millis: u64, chunks: u64) -> ManagedPath {
        ManagedPath {
            window: chunks * CHUNK,
            rate: Some(Rate::from_bps(mbps * 1_000_000)),
            round_trip: Some(Duration::from_millis(millis)),
            empty_round_trip: Some(Duration::from_millis(millis)),
            last_queueing: Some(Duration::ZERO),
            sent: 0,
            lost: 0,
        }
    }

    pub(in crate::window) fn budget(chunks: u64) -> Budget {
        Budget { buffer: chunks * CHUNK, chunk: CHUNK }
    }

    pub(in crate::window) fn windows(paths: &[ManagedPath]) -> Vec<u64> {
        paths.iter().map(|p| p.window / CHUNK).collect()
    }

    #[test]
    fn equal_shares_cut_what_is_larger_and_leave_the_rest() {
        let mut paths = [path(20, 40, 70), path(5, 40, 10)];
        WindowManager::Splitting.manage(Time::ZERO, PathId(0), &budget(100), &mut paths);
        assert_eq!(windows(&paths), [50, 10]);
    }

    #[test]
    fn a_share_of_the_outstanding_counts_what_the_peer_holds() {
        let manager = WindowManager::SplittingOutstanding;
        assert_eq!(manager.in_flight_most(PathId(0), &budget(100), 2, 20 * CHUNK), 30 * CHUNK);
        assert_eq!(manager.in_flight_most(PathId(0), &budget(100), 2, 80 * CHUNK), 0);
        assert_eq!(
            WindowManager::None.in_flight_most(PathId(0), &budget(100), 2, 80 * CHUNK),
            u64::MAX
        );
    }
}
