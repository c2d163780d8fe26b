//! Opportunistic retransmission (Raiciu et al., 2012, 4.2), usable with any scheduler.

use ropewalk_base::PathId;

use super::PathView;
use super::min_rtt::round_trip;

/// Size of a small window, in chunks: a loss in it is detected only by a timeout.
const SMALL_WINDOW: u64 = 4;
/// Minimum ratio of the round trips for which a duplicate is worthwhile.
const FASTER: u64 = 4;

/// The engine's measures while the receive window is closed, with any scheduler. Default: neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockingMitigation {
    /// The oldest unacknowledged data is retransmitted on the fast path ([`resend_on`]). This costs a
    /// duplicate and frees the window up to a round trip of the slow path sooner.
    pub opportunistic: bool,
    /// The window of the path that holds this data is halved ([`Penalty`](crate::window::Penalty)).
    pub penalise: bool,
}

impl BlockingMitigation {
    /// Whether either is enabled.
    #[inline]
    pub const fn any(self) -> bool {
        self.opportunistic || self.penalise
    }
}

/// The path on which to resend the oldest data, if it is outstanding only on `holder` and keeps the
/// receive window closed. That is the open path f with the lowest round trip, if `4 R_f < R_holder` or if
/// the holder's window is small.
pub fn resend_on(paths: &[PathView], holder: PathId, chunk_bytes: u64) -> Option<PathId> {
    let slow = paths.iter().find(|p| p.id == holder)?;
    let open = paths.iter().filter(|p| p.is_open() && p.id != holder);
    let fast = open.min_by_key(|p| round_trip(p))?;
    let small = slow.cwnd <= SMALL_WINDOW.saturating_mul(chunk_bytes);
    let faster = fast.srtt.is_some_and(|f| f.saturating_mul(FASTER) < round_trip(slow));
    (small || faster).then_some(fast.id)
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Duration;

    use super::super::conformance::{CHUNK, path_view};
    use super::*;

    #[test]
    fn the_fast_path_takes_it_if_it_is_four_times_as_fast_or_the_window_is_small() {
        let millis = |m| Some(Duration::from_millis(m));
        for (rtt, window, resent) in
            [(81, 10, true), (80, 10, false), (30, 4, true), (30, 5, false)]
        {
            let slow = PathView { srtt: millis(rtt), cwnd: window * CHUNK, ..path_view(1) };
            let paths = [path_view(0), slow, PathView { srtt: millis(25), ..path_view(2) }];
            let expected = resent.then_some(PathId(0));
            assert_eq!(resend_on(&paths, PathId(1), CHUNK), expected, "{rtt} ms, {window}");
        }
    }

    #[test]
    fn a_full_path_takes_nothing() {
        let slow = PathView { srtt: Some(Duration::from_secs(1)), ..path_view(1) };
        let paths = [PathView { in_flight: 10 * CHUNK, ..path_view(0) }, slow];
        assert_eq!(resend_on(&paths, PathId(1), CHUNK), None);
    }
}
