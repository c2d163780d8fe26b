//! Congestion window management: all windows together must fit into the receive buffer.

use core::fmt;

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::adaptive::{Adaptive, Advice, MeasuredPath};
use super::{Dynamic, Splitting, SplittingOutstanding, Static};

/// The window managers' view of the receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// The peer's total receive buffer, bytes.
    pub buffer: u64,
    /// Size of a full chunk, bytes. No window is made smaller.
    pub chunk: u64,
}

/// The window managers' view of one path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ManagedPath {
    /// Congestion window, bytes. The manager lowers it to the permitted maximum.
    pub window: u64,
    /// Available bandwidth: configured, or else measured.
    pub rate: Option<Rate>,
    /// Round trip without queueing.
    pub round_trip: Option<Duration>,
    /// Smoothed round trip without queueing, with acknowledgements returning on the paths that they use now.
    pub empty_round_trip: Option<Duration>,
    /// Queueing delay of the packet that was acknowledged last.
    pub last_queueing: Option<Duration>,
    /// Transmissions on the path so far.
    pub sent: u64,
    /// Transmissions that were counted as lost.
    pub lost: u64,
}

impl ManagedPath {
    /// BDP plus the one packet that is being sent, bytes (Wallace and Shami, 2014, Eq 60: the upper bound
    /// of a limit). `None` while rate or round trip is unknown.
    pub(super) fn pipe(&self, chunk: u64) -> Option<u64> {
        Some(self.rate?.bytes_in(self.round_trip?) + chunk)
    }
}

/// A way to share the receive buffer between the windows.
pub trait ManageWindows {
    /// Makes all windows fit into the buffer after the window of `grown` may have grown.
    fn manage(&mut self, _now: Time, _grown: PathId, _budget: &Budget, _paths: &mut [ManagedPath]) {
    }

    /// The limit of the data in flight on `path`, bytes. `held` is the number of bytes of its data that wait
    /// at the peer for data of other paths.
    #[inline]
    fn in_flight_most(&self, _path: PathId, _budget: &Budget, _paths: usize, _held: u64) -> u64 {
        u64::MAX
    }
}

/// Declares the window managers: description and type. A row yields the variant and its dispatch.
macro_rules! managers {
    ($($(#[$doc:meta])+ $manager:ident;)+) => {
        /// How the receive buffer is shared between the windows.
        #[derive(Clone, Debug, Default)]
        pub enum WindowManager {
            /// No management: the path that fills the buffer first uses it.
            #[default]
            None,
            $($(#[$doc])+ $manager($manager),)+
        }

        impl ManageWindows for WindowManager {
            fn manage(
                &mut self,
                now: Time,
                grown: PathId,
                budget: &Budget,
                paths: &mut [ManagedPath],
            ) {
                match self {
                    Self::None => {}
                    $(Self::$manager(manager) => manager.manage(now, grown, budget, paths),)+
                }
            }

            #[inline]
            fn in_flight_most(&self, path: PathId, budget: &Budget, paths: usize, held: u64) -> u64 {
                match self {
                    Self::None => u64::MAX,
                    $(Self::$manager(manager) => manager.in_flight_most(path, budget, paths, held),)+
                }
            }
        }
    };
}

managers! {
    /// Equal shares: no window is larger than its share of the buffer (buffer splitting, Adhari et
    /// al., 2011).
    Splitting;
    /// Equal shares of the outstanding data, counted from the cumulative acknowledgement: a path whose
    /// data fills its share of the buffer waits, regardless of its window.
    SplittingOutstanding;
    /// A better path takes space from a worse one (Wallace and Shami, 2014, 5.1).
    Dynamic;
    /// A limit per path (Wallace and Shami, 2014, 5.2).
    Static;
    /// Limits of the data in flight, computed from measurements.
    Adaptive;
}

impl WindowManager {
    /// Whether windows are not managed.
    #[inline]
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// All elements except element `i`.
pub(super) fn others<T>(i: usize, all: &[T]) -> impl Iterator<Item = &T> {
    all.iter().enumerate().filter(move |(j, _)| *j != i).map(|(_, one)| one)
}

/// Number of bytes by which the windows together exceed the buffer.
pub(super) fn excess(budget: &Budget, paths: &[ManagedPath]) -> u64 {
    paths.iter().map(|p| p.window).sum::<u64>().saturating_sub(budget.buffer)
}

/// Takes up to `excess` bytes from a window, but leaves at least `least`. Returns the remaining excess.
pub(super) fn take(path: &mut ManagedPath, excess: u64, least: u64) -> u64 {
    let taken = path.window.saturating_sub(least).min(excess);
    path.window -= taken;
    excess - taken
}

/// Computes the best limits for measured paths.
pub trait LimitAdvisor: Send {
    /// Advice that is clearly better than `current`, or `None` to keep `current`. If `current` is `None`,
    /// there is no limit yet.
    fn advise(
        &mut self,
        budget: &Budget,
        paths: &[MeasuredPath],
        current: Option<&Advice>,
    ) -> Option<Advice>;

    /// A copy with the same state and behaviour.
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
}
