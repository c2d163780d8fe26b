//! `linux`: the scheduler of Linux MPTCP since 5.x. It takes the path with the shortest queue in time.

use ropewalk_base::{Duration, PathId};

use super::common::{active, known_round_trip};
use super::path_queues::Queues;
use super::{Decision, PathView, Reason, Schedule, SentReport, View};

/// Bytes of a burst, which stays on one path. The kernel's value, a segment below 64 KiB.
pub(super) const BURST: u64 = 65_428;
/// Most windows of data that a path queues, including data in flight: the kernel's limit for the send buffer
/// of a subflow.
const QUEUE_WINDOWS: u64 = 2;

/// State of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// Average pacing rate, bytes per nanosecond; 0 before the first burst.
    average: f64,
}

/// Takes the path with the least bytes in the path over its average pacing rate. The path then gets a burst
/// of at most 64 kB before the next choice. Chunks stay on the path they were assigned to, even if it is
/// full. When the best path holds its maximum, no path gets data. Standby paths carry data only when no
/// cheaper path is usable.
///
/// Without pacing, the rate is the kernel's formula: twice a window per round trip while the window is below
/// half of the slow-start threshold, 1.2 times from then on. The average weights the current rate by the
/// bytes of the burst, and the old average by the bytes in the path.
#[derive(Clone, Debug)]
pub struct Linux {
    burst: u64,
    queues: Queues,
    /// By path identifier.
    paces: Vec<Pace>,
    /// The current burst: its path, and the bytes left of it.
    current: Option<(PathId, u64)>,
}

impl Linux {
    /// With bursts of `burst` bytes. A burst contains at least one chunk.
    pub fn new(burst: u64) -> Self {
        Self { burst, queues: Queues::without_standbys(), paces: Vec::new(), current: None }
    }
}

impl Default for Linux {
    fn default() -> Self {
        Self::new(BURST)
    }
}

/// Bytes per nanosecond at which the kernel would pace.
fn pacing_rate(view: &View<'_>, path: &PathView) -> f64 {
    let factor = if path.cwnd < path.ssthresh / 2 { 2.0 } else { 1.2 };
    let round_trip = known_round_trip(view, path).max(Duration::from_nanos(1));
    factor * path.cwnd.max(1) as f64 / round_trip.as_nanos() as f64
}

impl Schedule for Linux {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let Self { burst, queues, paces, current } = self;
        let highest = view.paths.last().map_or(0, |p| p.id.index() + 1);
        if paces.len() < highest {
            paces.resize(highest, Pace::default());
        }
        queues.decide(view, Reason::ShortestQueue, |queues, view| {
            let chunk = view.chunk_bytes.max(1);
            let room =
                |p: &PathView| queues.load(view, p).0 < p.window.saturating_mul(QUEUE_WINDOWS);
            if let Some((path, left)) = *current {
                let going = active(view).any(|p| p.id == path && room(p));
                if going && left >= chunk {
                    *current = Some((path, left - chunk));
                    return Some(path);
                }
            }
            let linger = |p: &PathView| {
                let average = paces[p.id.index()].average;
                let rate = if average > 0.0 { average } else { pacing_rate(view, p) };
                queues.load(view, p).0 as f64 / rate
            };
            let best = queues.least(view, linger).filter(|p| room(p))?;
            let (held, bytes) = (queues.load(view, best).0 as f64, (*burst).max(chunk) as f64);
            let average = &mut paces[best.id.index()].average;
            let now = pacing_rate(view, best);
            *average =
                if *average > 0.0 { (*average * held + now * bytes) / (held + bytes) } else { now };
            *current = Some((best.id, burst.saturating_sub(chunk)));
            Some(best.id)
        })
    }

    fn on_sent(&mut self, sent: &SentReport) {
        self.queues.on_sent(sent);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Action;
    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    /// The paths of the next chunks; each chunk is in flight afterwards.
    fn order(linux: &mut Linux, paths: &mut [PathView], chunks: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        while taken.len() < chunks {
            let Action::Send { path, position } = linux.decide(&view(paths)).action else { break };
            linux.on_sent(&SentReport { path, position, sequence: 0, bytes: CHUNK });
            paths[path.index()].in_flight += CHUNK;
            taken.push(path.0);
        }
        taken
    }

    #[test]
    fn a_burst_stays_together_and_the_shortest_queue_gets_the_next() {
        for (burst, expected) in [(1, [0, 1, 0, 1, 0, 1]), (3000, [0, 0, 0, 1, 1, 1])] {
            let mut paths = [path_view(0), path_view(1)];
            assert_eq!(order(&mut Linux::new(burst), &mut paths, 6), expected, "{burst}");
        }
    }

    #[test]
    fn the_queue_counts_in_time_not_in_bytes() {
        let mut paths = [path_view(0), path_view(1)];
        // A window per 20 ms against one per 40 ms: two chunks on the first take as long as one on the
        // second.
        paths[1].srtt = Some(Duration::from_millis(40));
        assert_eq!(order(&mut Linux::new(1), &mut paths, 9), [0, 1, 0, 1, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_path_holds_two_windows_and_the_rest_waits() {
        let mut paths = [path_view(0), path_view(1)];
        paths[1].srtt = Some(Duration::from_secs(10));
        paths[1].in_flight = CHUNK;
        let mut linux = Linux::new(1);
        assert_eq!(order(&mut linux, &mut paths, 20), [0; 10]);
        assert_eq!(linux.queues.queued(PathId(0)), 10);
    }

    #[test]
    fn a_standby_is_left_alone() {
        let mut paths = [path_view(0), path_view(1)];
        paths[0].cost = 1;
        assert_eq!(order(&mut Linux::default(), &mut paths, 20), [1; 10]);
    }
}
