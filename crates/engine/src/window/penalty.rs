//! Penalisation (Raiciu et al., 2012, 4.2): halves the congestion window of a slow path whose data keeps
//! the receive window closed.

use ropewalk_base::{Duration, PathId, Time};

use crate::scheduler::PathView;

/// Decides when to penalise. The halving itself is [`CongestionControl::penalise`].
///
/// [`CongestionControl::penalise`]: crate::congestion::CongestionControl::penalise
#[derive(Clone, Debug, Default)]
pub struct Penalty {
    last: Option<Time>,
}

impl Penalty {
    /// Whether to halve the window of path `holder` now, whose outstanding data keeps the receive window
    /// closed. A path is penalised only if it is slower than an open one, and at most once per round trip
    /// of the fastest open path.
    pub fn due(&mut self, now: Time, paths: &[PathView], holder: PathId) -> bool {
        let srtt = |id| paths.iter().find(|p| p.id == id).and_then(|p| p.srtt);
        let open = paths.iter().filter(|p| p.is_open() && p.id != holder);
        let Some(fast) = open.filter_map(|p| p.srtt).min() else { return false };
        let slower = srtt(holder).unwrap_or(Duration::MAX) > fast;
        let rested = self.last.is_none_or(|last| now.since(last) >= fast);
        if slower && rested {
            self.last = Some(now);
        }
        slower && rested
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::DelaySource;

    fn path(id: u8, millis: u64) -> PathView {
        PathView {
            id: PathId(id),
            usable: true,
            cost: 0,
            usage: crate::path::PathUse::Always,
            reserved: false,
            overdue: Duration::ZERO,
            weight: 1.0,
            srtt: Some(Duration::from_millis(millis)),
            last_rtt: None,
            rttvar: Duration::ZERO,
            queueing: Duration::ZERO,
            rtt_age: Duration::ZERO,
            forward_delay: None,
            delay_source: DelaySource::HalfRtt,
            cwnd: 9000,
            ssthresh: 9000,
            window: 9000,
            in_flight: 0,
            unacknowledged: 0,
            delivered: 0,
            burst_room: 9000,
            rate: None,
            pacing_rate: ropewalk_base::Rate::ZERO,
            drain: None,
            rate_confidence: 0.0,
            loss: 0.0,
            mtu: 1500,
            probing: false,
        }
    }

    #[test]
    fn only_a_slower_path_is_penalised_and_once_per_round_trip_of_the_fast_one() {
        let paths = [path(0, 20), path(1, 100), path(2, 60)];
        let mut penalty = Penalty::default();
        for (at, holder, due) in
            [(5, 0, false), (5, 1, true), (24, 1, false), (24, 2, false), (25, 2, true)]
        {
            let verdict = penalty.due(Time::from_millis(at), &paths, PathId(holder));
            assert_eq!(verdict, due, "at {at} ms, path {holder}");
        }
    }

    #[test]
    fn with_no_other_path_open_there_is_nobody_to_gain() {
        let full = PathView { in_flight: 9000, ..path(0, 20) };
        let paths = [full, path(1, 100)];
        assert!(!Penalty::default().due(Time::from_millis(5), &paths, PathId(1)));
    }
}
