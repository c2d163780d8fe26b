//! Single-path probes: if one path alone is expected to deliver more than the bundle was measured to deliver,
//! that path is tried alone, and the better of the two continues.
//!
//! Estimates of delay, rate and loss can all be slightly wrong at once. The other rules of the guard then let
//! a bundle run below its best path. This rule relies only on measured delivery. After a failed probe the
//! time to the next one doubles, so probes soon cost almost nothing on steady paths.

use ropewalk_base::{Duration, PathId, Time};

/// Length of a measurement period in round trips of the slowest path.
const PERIOD_ROUND_TRIPS: u64 = 16;
/// Least length of a measurement period.
const PERIOD_MIN: Duration = Duration::from_millis(500);
/// Greatest length of a measurement period.
const PERIOD_MAX: Duration = Duration::from_secs(5);
/// Round trips of the slowest path that are not measured after a change.
const SETTLING_ROUND_TRIPS: u64 = 3;
/// Each probe with the same result as the one before doubles the time to the next probe, at most this many
/// times.
const DOUBLINGS_MAX: u32 = 6;

/// Rate that one path is expected to deliver alone.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedRate {
    /// The path.
    pub path: PathId,
    /// Bytes per nanosecond.
    pub rate: f64,
}

/// State of the transfer at an instant.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The time.
    pub now: Time,
    /// Bytes cumulatively acknowledged so far.
    pub acknowledged: u64,
    /// Longest round trip of the paths in use.
    pub longest: Duration,
    /// Whether there was always data to send.
    pub busy: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// All paths.
    Bundle,
    /// One path, to measure what it delivers.
    Trying(PathId),
    /// One path, which delivered more than the bundle, until the given time of the next comparison.
    Alone(PathId, Time),
}

/// Probes a path alone if it is expected to deliver more than the bundle.
#[derive(Clone, Debug)]
pub struct SinglePathProbe {
    mode: Mode,
    /// Start of the current measurement (after settling), and the bytes acknowledged by then.
    began: Option<(Time, u64)>,
    settled_at: Time,
    /// Last measured rate of the bundle, bytes per nanosecond.
    bundle: f64,
    /// No probe before this time.
    next: Time,
    /// Expected delivery of each path since the start of the measurement, bytes, by path identifier.
    promised: Vec<f64>,
    heard: Time,
    /// Whether the last probe won, and how many times in a row probes had ended like that before.
    last_won: bool,
    repeats: u32,
}

impl Default for SinglePathProbe {
    fn default() -> Self {
        Self {
            mode: Mode::Bundle,
            began: None,
            settled_at: Time::ZERO,
            bundle: 0.0,
            next: Time::ZERO,
            promised: Vec::new(),
            heard: Time::ZERO,
            last_won: false,
            repeats: 0,
        }
    }
}

impl SinglePathProbe {
    /// The path that is to carry everything, if one is.
    pub const fn alone(&self) -> Option<PathId> {
        match self.mode {
            Mode::Bundle => None,
            Mode::Trying(path) | Mode::Alone(path, _) => Some(path),
        }
    }

    /// Takes the current progress and the expected rate of each path alone.
    pub fn step(&mut self, at: &Progress, promises: impl Iterator<Item = ExpectedRate>) {
        if !at.busy {
            // A measurement while the application limits the transfer says nothing.
            self.began = None;
            return;
        }
        if at.now < self.settled_at {
            return;
        }
        let Some((began, acknowledged)) = self.began else {
            self.begin(at);
            return;
        };
        self.hear(at.now, promises);
        let period = (at.longest * PERIOD_ROUND_TRIPS).max(PERIOD_MIN).min(PERIOD_MAX);
        let lasted = at.now.since(began);
        if lasted < period {
            return;
        }
        let rate = (at.acknowledged - acknowledged) as f64 / lasted.as_nanos() as f64;
        let best = self.best(lasted);
        self.begin(at);
        match self.mode {
            Mode::Bundle => self.judge_bundle(at, rate, best),
            Mode::Trying(path) => self.judge_trial(at, rate > self.bundle, path, period),
            Mode::Alone(_, until) if until <= at.now || rate < self.bundle => {
                self.bundle = 0.0;
                self.change(at, Mode::Bundle);
            }
            Mode::Alone(..) => {}
        }
    }

    fn begin(&mut self, at: &Progress) {
        self.began = Some((at.now, at.acknowledged));
        self.heard = at.now;
        self.promised.clear();
    }

    fn hear(&mut self, now: Time, promises: impl Iterator<Item = ExpectedRate>) {
        let since = now.since(self.heard).as_nanos() as f64;
        self.heard = now;
        for ExpectedRate { path, rate } in promises {
            if self.promised.len() <= path.index() {
                self.promised.resize(path.index() + 1, 0.0);
            }
            self.promised[path.index()] += rate * since;
        }
    }

    /// The path with the highest mean expected rate over the measurement. The mean matters because a varying
    /// rate is sometimes above and sometimes below what the bundle delivered.
    fn best(&self, lasted: Duration) -> Option<ExpectedRate> {
        let (index, bytes) =
            self.promised.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let rate = bytes / lasted.as_nanos() as f64;
        Some(ExpectedRate { path: PathId::from_index(index), rate })
    }

    fn judge_bundle(&mut self, at: &Progress, rate: f64, best: Option<ExpectedRate>) {
        self.bundle = if self.bundle == 0.0 { rate } else { (self.bundle + rate) / 2.0 };
        let promising = best.filter(|best| best.rate > self.bundle && at.now >= self.next);
        if let Some(best) = promising {
            self.change(at, Mode::Trying(best.path));
        }
    }

    fn judge_trial(&mut self, at: &Progress, won: bool, path: PathId, period: Duration) {
        self.repeats = if won == self.last_won { (self.repeats + 1).min(DOUBLINGS_MAX) } else { 0 };
        self.last_won = won;
        let wait_until = at.now + period * (1 << self.repeats);
        if won {
            self.mode = Mode::Alone(path, wait_until);
        } else {
            self.next = wait_until;
            self.change(at, Mode::Bundle);
        }
    }

    fn change(&mut self, at: &Progress, mode: Mode) {
        self.mode = mode;
        self.began = None;
        self.settled_at = at.now + at.longest * SETTLING_ROUND_TRIPS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of the time alone, and of the possible delivery, over `seconds`, if the bundle and the path
    /// alone deliver these numbers of bytes per second.
    fn play(bundle: f64, alone: f64, promised: f64, seconds: u64) -> (f64, f64) {
        let mut trial = SinglePathProbe::default();
        let (mut acknowledged, mut time_alone) = (0.0, 0u64);
        let steps = seconds * 100;
        for step in 0..steps {
            let is_alone = trial.alone().is_some();
            acknowledged += if is_alone { alone } else { bundle } / 100.0;
            time_alone += u64::from(is_alone);
            let now = Time::from_millis(step * 10);
            let longest = Duration::from_millis(50);
            let at = Progress { now, acknowledged: acknowledged as u64, longest, busy: true };
            let best = ExpectedRate { path: PathId(1), rate: promised / 1e9 };
            trial.step(&at, [best].into_iter());
        }
        let most = bundle.max(alone) * seconds as f64;
        (time_alone as f64 / steps as f64, acknowledged / most)
    }

    #[test]
    fn whichever_delivers_more_soon_has_nearly_all_of_the_time() {
        for (bundle, alone, promised) in [(1e6, 1.5e6, 2e6), (1.5e6, 1e6, 2e6), (1e6, 1.1e6, 1.2e6)]
        {
            // Long enough that the cost of the first comparison does not matter.
            let (_, share) = play(bundle, alone, promised, 600);
            assert!(share > 0.98, "bundle {bundle}, alone {alone}: {share}");
        }
    }

    #[test]
    fn a_bundle_that_beats_every_promise_is_never_interrupted() {
        assert_eq!(play(3e6, 1e6, 2e6, 60).0, 0.0);
    }

    #[test]
    fn a_rate_that_swings_about_what_the_bundle_delivers_is_no_promise() {
        let mut trial = SinglePathProbe::default();
        for step in 0..20_000_u64 {
            let now = Time::from_millis(step * 10);
            let longest = Duration::from_millis(50);
            let at = Progress { now, acknowledged: step * 10_000, longest, busy: true };
            // The rate is above that of the bundle for 0.3 s of each second.
            let rate = if step % 100 < 30 { 2e6 } else { 0.3e6 } / 1e9;
            trial.step(&at, [ExpectedRate { path: PathId(1), rate }].into_iter());
            assert_eq!(trial.alone(), None, "at {now:?}");
        }
    }

    #[test]
    fn nothing_is_concluded_while_the_application_is_the_limit() {
        let mut trial = SinglePathProbe::default();
        for second in 0..100 {
            let longest = Duration::from_millis(50);
            let now = Time::from_secs(second);
            let at = Progress { now, acknowledged: second, longest, busy: false };
            trial.step(&at, [ExpectedRate { path: PathId(0), rate: 1.0 }].into_iter());
            assert_eq!(trial.alone(), None);
        }
    }
}
