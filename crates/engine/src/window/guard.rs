//! The receive-window guard: a bundle is never slower than its best single path.
//!
//! The guard has three rules, all inactive while the buffer is ample, and a fourth that relies only on
//! measured delivery ([`SinglePathProbe`]). If the scheduler shares the window itself
//! ([`SharedWindow::shared`]), only the fourth rule applies to ordered data:
//! 1. No path holds more of the shared window than its BDP. The flow-control bound is reached this way.
//! 2. No path gets data that it would deliver too late: before that data arrives, faster paths would have
//!    filled the window behind it. Such a path may take data from further back in the queue, which is due
//!    when it arrives, or none.
//! 3. No path is used if its losses cost the other paths more than it carries: each loss leaves a gap for a
//!    while, and the data that the others deliver meanwhile must fit into the buffer.

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::share::{ShareRequest, share};
use super::single_path_probe::{ExpectedRate, Progress, SinglePathProbe};
use crate::scheduler::{PathSet, PathView};

/// Data in flight that a path may have, as a multiple of its BDP. A value above 1 reveals a growing rate.
const PIPE_GAIN: f64 = 1.25;
/// The same for a path with link losses. Each loss halves the congestion window; from a window little above
/// the BDP, that would leave the path half empty.
const LOSSY_PIPE_GAIN: f64 = 2.5;
/// Loss rate above which losses are attributed to the link rather than to our own queueing.
const LOSSY: f64 = 1e-3;
const SLACK_CHUNKS: f64 = 2.0;
/// Later packets of the same path that must arrive before a loss is detected (RFC 9260, 7.2.4: three miss
/// indications).
const REPORTS: f64 = 3.0;

/// A path is dropped when each chunk it carries costs the others more than this share of a chunk. The value
/// is well below 1 because the cost is underestimated: it leaves out windows that stop growing and lost
/// retransmissions.
const HARM_LIMIT: f64 = 0.25;

/// State of the shared receive window.
#[derive(Clone, Copy, Debug)]
pub struct SharedWindow {
    /// The peer's whole receive buffer, bytes.
    pub buffer: u64,
    /// Size of a full chunk, bytes.
    pub chunk: u64,
    /// Bytes cumulatively acknowledged so far.
    pub acknowledged: u64,
    /// Whether there is data to send.
    pub busy: bool,
    /// Whether the scheduler shares the window itself. Rules 1 to 3 then do not apply to ordered data.
    pub shared: bool,
    /// Whether out-of-order data waits in the buffer. If it does not, the guard still shares the window, but
    /// no data comes too late and no loss delays later data: rules 2 and 3 do not apply.
    pub in_order: bool,
}

/// Estimates for a path. Times are in nanoseconds, rates in bytes per nanosecond.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    index: usize,
    rate: f64,
    /// Measured delivery rate; the potential rate if there is no measurement.
    seen: f64,
    /// Rate that the window would allow without queueing, if that is higher.
    most: f64,
    /// Time until a packet that is sent now arrives, behind the data in flight.
    forward: f64,
    round_trip: f64,
    /// The round trip without queueing.
    pipe_time: f64,
    /// The same with acknowledgements on the same path, which is assumed to be symmetric.
    own_round_trip: f64,
    loss: f64,
}

/// Limits that the guard sets for a path.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    window_most: u64,
    earliest_position: u64,
}

impl Verdict {
    const FREE: Self = Self { window_most: u64::MAX, earliest_position: 0 };
}

/// Evaluations per shortest round trip. Estimates do not change faster.
const RENEWALS_PER_ROUND_TRIP: u64 = 16;

/// The receive-window guard.
#[derive(Clone, Debug)]
pub struct Guard {
    on: bool,
    known: Vec<Estimate>,
    verdicts: Vec<Verdict>,
    /// Dropped paths. To return, a path must stay below a lower cost limit than the one for dropping it.
    dropped: PathSet,
    trial: SinglePathProbe,
    valid_until: Time,
    valid_for: (u64, u64),
}

impl Guard {
    /// A guard that is enabled or disabled.
    pub fn new(on: bool) -> Self {
        Self {
            on,
            known: Vec::new(),
            verdicts: Vec::new(),
            dropped: PathSet::EMPTY,
            trial: SinglePathProbe::default(),
            valid_until: Time::ZERO,
            valid_for: (0, 0),
        }
    }

    /// Whether the guard is enabled.
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Sets `window` and `earliest_position` of each path. `epoch` counts losses and changes of paths; a new
    /// epoch invalidates the previous limits.
    #[inline]
    pub fn apply(&mut self, now: Time, epoch: u64, shared: SharedWindow, views: &mut [PathView]) {
        if !self.on || views.len() < 2 {
            return;
        }
        if now >= self.valid_until || self.valid_for != (epoch, shared.buffer) {
            self.renew(now, shared, views);
            let shortest = views.iter().filter_map(|p| p.srtt).min().unwrap_or(Duration::ZERO);
            self.valid_until = now + shortest / RENEWALS_PER_ROUND_TRIP;
            self.valid_for = (epoch, shared.buffer);
        }
        for (view, verdict) in views.iter_mut().zip(&self.verdicts) {
            view.window = view.window.min(verdict.window_most);
            view.earliest_position = verdict.earliest_position;
        }
    }

    fn renew(&mut self, now: Time, shared: SharedWindow, views: &[PathView]) {
        self.verdicts.clear();
        self.verdicts.resize(views.len(), Verdict::FREE);
        self.known.clear();
        self.known.extend(views.iter().enumerate().filter_map(|(i, p)| Estimate::of(i, p)));
        if self.known.len() < 2 || self.is_ample(shared) {
            return;
        }
        if self.on_trial(now, shared) {
            return;
        }
        if !shared.in_order {
            let verdicts = &mut self.verdicts;
            let mut claims: Vec<ShareRequest> = self.known.iter().map(Estimate::claim).collect();
            share(shared.buffer, shared.chunk, &mut claims, |index, part| {
                verdicts[index].window_most = part;
            });
            return;
        }
        if shared.shared {
            return;
        }
        self.known.sort_by(|a, b| a.forward.total_cmp(&b.forward));
        self.drop_harmful(shared);
        if self.known.len() >= 2 {
            self.share_window(shared);
            self.set_positions(shared);
        }
    }

    /// Whether the buffer holds all data that the paths can have outstanding over the longest round trip and
    /// the repair of a loss. Order does not matter then (Kuhn et al., 2014, Eq 3).
    fn is_ample(&self, shared: SharedWindow) -> bool {
        let longest = self.known.iter().map(|p| p.round_trip).fold(0.0, f64::max);
        let rates: f64 = self.known.iter().map(|p| p.most).sum();
        let lossy = self.known.iter().any(|p| p.loss > 0.0);
        rates * longest * if lossy { 2.0 } else { 1.0 } <= shared.buffer as f64
    }

    /// Return delay of an acknowledgement on the fastest path, which reports for all paths.
    fn way_back(&self) -> f64 {
        self.known.iter().map(|p| (p.round_trip - p.forward).max(0.0)).fold(f64::MAX, f64::min)
    }

    /// Bytes of the buffer that remain beside data that arrives in order on a path with delay `forward`.
    fn spare(&self, shared: SharedWindow, forward: f64) -> f64 {
        let rates: f64 = self.known.iter().map(|p| p.rate).sum();
        (shared.buffer as f64 - rates * (forward + self.way_back())).max(0.0)
    }

    /// Rule 4: whether a single path carries all data for now.
    fn on_trial(&mut self, now: Time, shared: SharedWindow) -> bool {
        let longest = self.known.iter().map(|p| p.round_trip).fold(0.0, f64::max);
        let at = Progress {
            now,
            acknowledged: shared.acknowledged,
            longest: Duration::from_nanos(longest as u64),
            busy: shared.busy,
        };
        let promise = |path: &Estimate| ExpectedRate {
            path: PathId::from_index(path.index),
            rate: path.rate.min(shared.buffer as f64 / path.own_round_trip),
        };
        self.trial.step(&at, self.known.iter().map(promise));
        let Some(alone) = self.trial.alone() else { return false };
        if !self.known.iter().any(|path| path.index == alone.index()) {
            // The probed path has failed: continue with all others.
            self.trial = SinglePathProbe::default();
            return false;
        }
        for path in self.known.iter().filter(|path| path.index != alone.index()) {
            self.verdicts[path.index].window_most = 0;
        }
        true
    }

    /// The longest forward delay of the paths within reach of the window. A path is out of reach, and gets no
    /// data, if faster paths deliver more than the whole buffer before its data arrives.
    fn longest_in_reach(&self, shared: SharedWindow) -> f64 {
        let (mut rates, mut weighted, mut longest) = (0.0, 0.0, 0.0);
        for path in &self.known {
            // Bytes that faster paths deliver before this path does: the sum of their rate x difference of
            // forward delays.
            if rates * path.forward - weighted > shared.buffer as f64 {
                break;
            }
            rates += path.rate;
            weighted += path.rate * path.forward;
            longest = path.forward;
        }
        longest
    }

    /// Rule 3. The path with the highest rate is never dropped.
    fn drop_harmful(&mut self, shared: SharedWindow) {
        let quickest = self.known.iter().map(|p| p.forward).fold(f64::MAX, f64::min);
        let most = self.known.iter().map(|p| p.rate).fold(0.0, f64::max);
        let chunk = shared.chunk as f64;
        let total: f64 = self.known.iter().map(|p| p.rate).sum();
        let spare = self.spare(shared, self.longest_in_reach(shared));
        let Self { known, verdicts, dropped, .. } = self;
        known.retain(|path| {
            let id = PathId::from_index(path.index);
            let detect = path.round_trip + REPORTS * chunk / path.rate.max(1e-12);
            let hole = (detect - path.forward + quickest).max(0.0);
            let cost = path.loss * ((total - path.rate) * hole - spare).max(0.0);
            let limit = if dropped.contains(id) { HARM_LIMIT / 4.0 } else { HARM_LIMIT };
            let keep = path.rate >= most || cost < limit * chunk;
            if keep {
                *dropped = dropped.without(id);
            } else {
                *dropped = dropped.with(id);
                verdicts[path.index].window_most = 0;
            }
            keep
        });
    }

    /// Rule 1: each path gets its BDP from what is left of the window, the fastest path first.
    fn share_window(&mut self, shared: SharedWindow) {
        let mut left = shared.buffer as f64;
        for path in &self.known {
            let pipe = path.rate * path.pipe_time;
            let lossy = path.loss > LOSSY;
            let gain = if lossy { LOSSY_PIPE_GAIN } else { PIPE_GAIN };
            let limit = gain * pipe + SLACK_CHUNKS * shared.chunk as f64;
            self.verdicts[path.index].window_most = limit.min(left) as u64;
            // While a loss is repaired, the data behind it waits in the buffer for one more round trip.
            let need = if lossy { 2.0 * path.rate * path.round_trip } else { pipe };
            left = (left - need).max(0.0);
        }
    }

    /// Rule 2: positions in the queue at which data is not too late.
    fn set_positions(&mut self, shared: SharedWindow) {
        for path in &self.known {
            let sooner = |other: &&Estimate| other.forward < path.forward;
            let before: f64 = (self.known.iter().filter(sooner))
                .map(|other| other.rate * (path.forward - other.forward))
                .sum();
            let spare = self.spare(shared, path.forward);
            let earliest = (before - spare).max(0.0) / shared.chunk as f64;
            self.verdicts[path.index].earliest_position = earliest as u64;
        }
    }
}

impl Estimate {
    fn claim(&self) -> ShareRequest {
        let Self { index, seen: rate, pipe_time, round_trip, .. } = *self;
        ShareRequest { index, rate, pipe_time, round_trip }
    }

    fn of(index: usize, path: &PathView) -> Option<Self> {
        if !path.usable {
            return None;
        }
        let rate = path.potential_rate();
        let nanos = |d: Duration| d.as_nanos() as f64;
        let round_trip = nanos(path.srtt?);
        let pipe_time = nanos(path.srtt?.saturating_sub(path.queueing)).max(1.0);
        let forward = nanos(path.forward_delay?);
        // The measured delay lags behind what has been sent since.
        let backlog = path.in_flight as f64 / rate.max(1e-12) - pipe_time;
        let unqueued = (forward - nanos(path.queueing)).max(0.0);
        Some(Self {
            index,
            rate,
            seen: path.rate.map_or(rate, |seen| seen.as_bps() as f64 / 8e9),
            most: rate.max(path.cwnd as f64 / pipe_time),
            forward: forward.max(unqueued + backlog),
            round_trip,
            pipe_time,
            own_round_trip: pipe_time.max(2.0 * unqueued),
            loss: path.loss,
        })
    }
}

/// The queueing delay that our own data explains while rule 1 holds, plus two chunks. A larger delay means
/// that the path itself has become longer.
pub fn explained_queueing(least: Duration, rate: Rate, chunk: u64) -> Duration {
    let chunks = rate.time_for((SLACK_CHUNKS as u64 + 2) * chunk);
    least.mul_f64(PIPE_GAIN * 1.1 - 1.0) + chunks
}
