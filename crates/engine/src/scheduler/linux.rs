//! `linux`: the scheduler of Linux MPTCP since 5.x. It takes the path whose queue drains first.

use ropewalk_base::{Duration, PathId};

use super::common::{active, known_round_trip};
use super::path_queues::Queues;
use super::{Behind, Decision, PathView, Reason, Schedule, SentReport, View};
use crate::payload::packet_memory;

/// Bytes of a burst, which stays on one path. The kernel's value, a segment below 64 KiB.
const BURST: u64 = 65_428;
/// Maximum number of windows of data that a path queues, including data in flight: the kernel's limit for
/// the send buffer of a subflow.
const QUEUE_WINDOWS: u64 = 2;
/// Overhead of a buffer with data of the send queue, bytes (`struct sk_buff` with a clone, and the
/// headers). One such buffer usually holds the two segments for which an acknowledgement makes room.
const SEND_BUFFER_HEAD: u64 = 832;
/// Minimum window that the send buffer of a subflow has space for, segments (`TCP_INIT_CWND`).
const LEAST_WINDOW: u64 = 10;

/// When the scheduler chooses a path again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinuxTurns {
    /// After a burst, or when the path is full. Data that waits for a window is reassigned after a loss.
    #[default]
    Burst,
    /// Also each time acknowledgements have opened the receive window, as in Linux 6.x
    /// (`__mptcp_subflow_push_pending` in net/mptcp/protocol.c). Fragments of 32 kB stay together, and
    /// data that was assigned to a subflow stays there.
    Push,
}

/// Options of `linux`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinuxOptions {
    /// Bytes that stay together on one path. Default 65 428, the kernel's value.
    pub burst: u64,
    /// When a path is chosen again.
    pub turns: LinuxTurns,
}

impl Default for LinuxOptions {
    fn default() -> Self {
        Self { burst: BURST, turns: LinuxTurns::Burst }
    }
}

/// State of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// Average pacing rate, bytes per nanosecond; 0 before the first burst.
    average: f64,
    /// Maximum memory of the subflow's send buffer so far, bytes (`sk_sndbuf`).
    memory: u64,
}

/// Takes the path with the lowest ratio of bytes in the path to its average pacing rate. The path then
/// gets a burst of at most 64 kB before the next choice. Chunks stay on the path they were assigned to,
/// even if it is full. When the best path holds its maximum, no path gets data. Standby paths carry data
/// only when no cheaper path is usable.
///
/// Without pacing, the rate is the kernel's formula: twice a window per round trip while the window is
/// below half of the slow-start threshold, 1.2 times from then on. The average weights the current rate
/// by the bytes of the burst, and the old average by the bytes in the path.
#[derive(Clone, Debug)]
pub struct Linux {
    options: LinuxOptions,
    queues: Queues,
    /// By path identifier.
    paces: Vec<Pace>,
    /// The current burst: its path, and the remaining bytes.
    current: Option<(PathId, u64)>,
}

impl Linux {
    /// Creates the scheduler. A burst contains at least one chunk.
    pub fn new(options: LinuxOptions) -> Self {
        let queues = match options.turns {
            LinuxTurns::Burst => Queues::without_standbys(),
            LinuxTurns::Push => Queues::without_standbys().keeping_after_loss(),
        };
        Self { options, queues, paces: Vec::new(), current: None }
    }

    fn decide_by_bursts(&mut self, view: &View<'_>) -> Decision {
        let Self { options, queues, paces, current, .. } = self;
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
            let linger = |p: &PathView| queues.load(view, p).0 as f64 / paces.rate(view, p);
            let best = queues.least(view, linger).filter(|p| room(p))?;
            let (held, bytes) = (queues.load(view, best).0, options.burst.max(chunk));
            paces.on_burst(view, best, held, bytes);
            *current = Some((best.id, options.burst.saturating_sub(chunk)));
            Some(best.id)
        })
    }

    fn decide_by_pushes(&mut self, view: &View<'_>) -> Decision {
        let Self { options, queues, paces, .. } = self;
        for path in view.paths {
            paces.allow(view, path);
        }
        // A push assigns all data that the window permits. The next push starts with another choice.
        let mut current: Option<(PathId, u64)> = None;
        let mut within_fragment = false;
        let placed = queues.total();
        let mut window = view.takeable().saturating_sub(placed).saturating_mul(view.chunk_bytes);
        queues.decide(view, Reason::ShortestQueue, |queues, view| {
            let chunk = view.chunk_bytes.max(1);
            let memory = |p: &PathView| memory_of(view, p, queues.queued(p.id));
            let room = |p: &PathView| memory(p) < paces[p.id.index()].memory;
            let linger = |p: &PathView| memory(p) as f64 / paces.rate(view, p);
            let left = match current {
                Some((path, left)) if within_fragment => Some((path, left)),
                Some((path, left)) if left > 0 && active(view).any(|p| p.id == path && room(p)) => {
                    Some((path, left))
                }
                _ => None,
            };
            let (path, left) = match left {
                Some(going) => going,
                None => {
                    let best = queues.least(view, linger).filter(|p| room(p))?;
                    let burst = options.burst.min(window).max(chunk);
                    let held = memory(best);
                    paces.on_burst(view, best, held, burst);
                    (best.id, burst)
                }
            };
            let end = view.fragment_ends.binary_search_by_key(&queues.total(), |end| end.position);
            let end = end.ok().map(|at| view.fragment_ends[at]);
            within_fragment = !view.fragment_ends.is_empty() && end.is_none();
            let bytes = end.map_or(chunk, |end| end.bytes);
            window = window.saturating_sub(bytes);
            current = Some((path, left.saturating_sub(bytes)));
            Some(path)
        })
    }
}

impl Default for Linux {
    fn default() -> Self {
        Self::new(LinuxOptions::default())
    }
}

/// Memory that the kernel charges to the send buffer of a subflow: `queued` chunks, and all
/// unacknowledged data.
const fn memory_of(view: &View<'_>, path: &PathView, queued: u64) -> u64 {
    let bytes = path.unacknowledged + queued * view.chunk_bytes;
    bytes + bytes.div_ceil(2 * view.chunk_bytes) * SEND_BUFFER_HEAD
}

/// Bytes per nanosecond at which the kernel would pace.
fn pacing_rate(view: &View<'_>, path: &PathView) -> f64 {
    let factor = if path.cwnd < path.ssthresh / 2 { 2.0 } else { 1.2 };
    let round_trip = known_round_trip(view, path).max(Duration::from_nanos(1));
    factor * path.cwnd.max(1) as f64 / round_trip.as_nanos() as f64
}

/// State of the paths.
trait Paces {
    fn rate(&self, view: &View<'_>, path: &PathView) -> f64;
    fn on_burst(&mut self, view: &View<'_>, path: &PathView, held: u64, bytes: u64);
    fn allow(&mut self, view: &View<'_>, path: &PathView);
}

impl Paces for [Pace] {
    /// The average pacing rate of a path.
    fn rate(&self, view: &View<'_>, path: &PathView) -> f64 {
        let average = self[path.id.index()].average;
        if average > 0.0 { average } else { pacing_rate(view, path) }
    }

    /// Records a burst of `bytes` bytes on a path that holds `held` bytes.
    fn on_burst(&mut self, view: &View<'_>, path: &PathView, held: u64, bytes: u64) {
        let average = &mut self[path.id.index()].average;
        let now = pacing_rate(view, path);
        let (held, bytes) = (held as f64, bytes as f64);
        *average =
            if *average > 0.0 { (*average * held + now * bytes) / (held + bytes) } else { now };
    }

    /// Enlarges the send buffer of a path to twice its window (`tcp_sndbuf_expand`); it never shrinks.
    fn allow(&mut self, view: &View<'_>, path: &PathView) {
        let segments = (path.cwnd / view.chunk_bytes.max(1)).max(LEAST_WINDOW);
        let memory = &mut self[path.id.index()].memory;
        *memory = (*memory).max(QUEUE_WINDOWS * segments * packet_memory(path.mtu as u64));
    }
}

impl Schedule for Linux {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let highest = view.paths.last().map_or(0, |p| p.id.index() + 1);
        if self.paces.len() < highest {
            self.paces.resize(highest, Pace::default());
        }
        match self.options.turns {
            LinuxTurns::Burst => self.decide_by_bursts(view),
            LinuxTurns::Push => self.decide_by_pushes(view),
        }
    }

    fn on_sent(&mut self, sent: &SentReport) {
        self.queues.on_sent(sent);
    }

    fn behind(&self, path: PathId) -> Behind {
        self.queues.behind(path)
    }

    fn reads_fragment_ends(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{CHUNK, path_view, view};
    use super::super::{Action, FragmentEnd};
    use super::*;

    /// The paths of the next chunks. Each chunk is in flight afterwards.
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
            assert_eq!(
                order(
                    &mut Linux::new(LinuxOptions { burst, ..LinuxOptions::default() }),
                    &mut paths,
                    6
                ),
                expected,
                "{burst}"
            );
        }
    }

    #[test]
    fn the_queue_counts_in_time_not_in_bytes() {
        let mut paths = [path_view(0), path_view(1)];
        // A window per 20 ms and one per 40 ms: two chunks on the first take as long as one on the
        // second.
        paths[1].srtt = Some(Duration::from_millis(40));
        assert_eq!(
            order(
                &mut Linux::new(LinuxOptions { burst: 1, ..LinuxOptions::default() }),
                &mut paths,
                9
            ),
            [0, 1, 0, 1, 0, 0, 1, 0, 0]
        );
    }

    #[test]
    fn a_path_holds_two_windows_and_the_rest_waits() {
        let mut paths = [path_view(0), path_view(1)];
        paths[1].srtt = Some(Duration::from_secs(10));
        paths[1].in_flight = CHUNK;
        let mut linux = Linux::new(LinuxOptions { burst: 1, ..LinuxOptions::default() });
        assert_eq!(order(&mut linux, &mut paths, 20), [0; 10]);
        assert_eq!(linux.queues.queued(PathId(0)), 10);
    }

    /// By pushes, in bursts of `burst` bytes; the path of the first chunk is 0.
    fn by_pushes(burst: u64) -> Linux {
        Linux::new(LinuxOptions { burst, turns: LinuxTurns::Push })
    }

    #[test]
    fn each_opening_of_the_window_is_a_new_choice() {
        let mut paths = [path_view(0), path_view(1)];
        paths.iter_mut().for_each(|path| path.unacknowledged = path.in_flight);
        let mut linux = by_pushes(1 << 20);
        let mut taken = Vec::new();
        // Two chunks at a time, while nothing is acknowledged.
        for _ in 0..4 {
            for left in [2, 1] {
                let view = View { sendable: left, ..view(&paths) };
                let Action::Send { path, position } = linux.decide(&view).action else { break };
                linux.on_sent(&SentReport { path, position, sequence: 0, bytes: CHUNK });
                paths[path.index()].unacknowledged += CHUNK;
                taken.push(path.0);
            }
        }
        assert_eq!(taken, [0, 0, 1, 1, 0, 0, 1, 1]);
    }

    #[test]
    fn a_fragment_stays_on_its_path_and_a_burst_ends_with_it() {
        let paths = [path_view(0), path_view(1)];
        let ends = [3, 7].map(|position| FragmentEnd { position, bytes: CHUNK });
        let mut linux = by_pushes(CHUNK);
        let mut taken = Vec::new();
        for left in (1..=8).rev() {
            let sent = 8 - left;
            let ends: Vec<_> = ends
                .iter()
                .filter_map(|end| {
                    let position = end.position.checked_sub(sent)?;
                    Some(FragmentEnd { position, ..*end })
                })
                .collect();
            let view = View { sendable: left, fragment_ends: &ends, ..view(&paths) };
            let Action::Send { path, position } = linux.decide(&view).action else { break };
            if left == 8 {
                assert_eq!(linux.behind(PathId(0)), Behind::Next);
            }
            linux.on_sent(&SentReport { path, position, sequence: 0, bytes: CHUNK });
            taken.push(path.0);
        }
        assert_eq!(taken, [0, 0, 0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn a_standby_is_left_alone() {
        let mut paths = [path_view(0), path_view(1)];
        paths[0].cost = 1;
        assert_eq!(order(&mut Linux::default(), &mut paths, 20), [1; 10]);
    }
}
