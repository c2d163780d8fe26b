//! Heartbeats: they confirm addresses and test idle and failed paths (RFC 9260, 5.4, 8.3; RFC 7829).

use ropewalk_base::{Duration, PathId, Rng, Time};

use crate::deadline::CachedDeadline;
use crate::multipath::TxPath;
use crate::path::{PathStatus, PathUse};
use crate::scheduler::PathSet;
use crate::sctp::chunk::{Chunk, HeartbeatInfo};
use crate::sctp::config::Config;
use crate::sctp::tx::Path;

/// Minimum interval between two HEARTBEATs on a path that is not in use.
const UNUSED_INTERVAL: Duration = Duration::from_secs(10);

/// The heartbeats of all paths.
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Heartbeats {
    /// The earliest timer.
    deadline: CachedDeadline,
    /// Whether any [`Heartbeat::forced`] may be set.
    any_forced: bool,
    paths: Vec<Heartbeat>,
    /// HB.interval (RFC 9260, 16).
    pub interval: Duration,
    /// HB.Max.Burst; 0: no limit.
    pub burst: u32,
    /// Maximum time between HEARTBEATs to a failed path.
    probe_interval: Duration,
    /// End of the current RTO, and the HEARTBEATs to unconfirmed addresses sent in it, to enforce HB.Max.Burst
    /// (RFC 9260, 5.4).
    until: Time,
    sent: u32,
}

/// The heartbeats of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Heartbeat {
    /// The nonce of the pending HEARTBEAT, and when it counts as unanswered.
    pending: Option<(u64, Time)>,
    /// The previous nonces: a path that has become longer than the wait answers late.
    earlier: [u64; 8],
    /// Send HEARTBEATs even with data in flight, because all data in flight was lost or the path's
    /// address changed. Reset when data is acknowledged on this path.
    forced: bool,
    /// T3 has expired while the HEARTBEAT was pending, so the silence has been counted.
    counted: bool,
    /// When the next one is due.
    due: Option<Time>,
    /// When the last one was sent.
    sent_at: Time,
}

impl Heartbeat {
    /// Whether the next HEARTBEAT tests an idle path at the user's interval.
    fn is_periodic(&self, tx: &TxPath) -> bool {
        matches!(tx.state.status(), PathStatus::Active | PathStatus::Inactive) && !self.forced
    }
}

impl Heartbeats {
    pub fn new(config: &Config) -> Self {
        Self {
            paths: vec![Heartbeat::default(); config.paths.len()],
            interval: config.heartbeat_interval,
            burst: config.heartbeat_burst,
            probe_interval: config.probe_interval,
            until: Time::ZERO,
            sent: 0,
            deadline: CachedDeadline::STALE,
            any_forced: false,
        }
    }

    /// Adds a path.
    pub fn add_path(&mut self) {
        self.paths.push(Heartbeat::default());
    }

    /// Keeps only these paths and renumbers them.
    pub fn retain_paths(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        self.paths.retain(|_| kept.next().is_some_and(|kept| *kept));
        self.deadline.invalidate();
    }

    /// Stops all heartbeats.
    pub fn stop(&mut self) {
        self.paths.fill(Heartbeat::default());
        self.deadline.invalidate();
    }

    /// Stops the heartbeats of a path.
    pub fn stop_path(&mut self, id: PathId) {
        self.paths[id.index()] = Heartbeat::default();
        self.deadline.invalidate();
    }

    /// The earliest timer; [`Time::FAR_FUTURE`] if none runs.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.deadline.get(|| self.earliest_timer())
    }

    fn earliest_timer(&self) -> Time {
        let timers = |of: &Heartbeat| {
            let pending = of.pending.map_or(Time::FAR_FUTURE, |(_, at)| at);
            pending.min(of.due.unwrap_or(Time::FAR_FUTURE))
        };
        self.paths.iter().map(timers).min().unwrap_or(Time::FAR_FUTURE)
    }

    /// Stores the earliest timer once an input has been drained.
    #[inline]
    pub fn settle_timers(&mut self) {
        if self.deadline.is_stale() {
            self.deadline.store(self.earliest_timer());
        }
    }

    /// Whether a timer of the path has expired.
    pub fn has_expired(&self, now: Time, id: PathId) -> bool {
        let heartbeat = &self.paths[id.index()];
        let pending = heartbeat.pending.is_some_and(|(_, at)| at <= now);
        pending || heartbeat.due.is_some_and(|at| at <= now)
    }

    /// Whether the next HEARTBEAT to a path is due.
    pub fn is_due(&self, now: Time, id: PathId) -> bool {
        self.paths[id.index()].due.is_some_and(|at| at <= now)
    }

    /// Sets when the next HEARTBEAT to a path is due.
    pub fn set_due(&mut self, id: PathId, at: Time) {
        self.paths[id.index()].due = Some(at);
        self.deadline.invalidate();
    }

    /// The association is established: unconfirmed paths get a HEARTBEAT immediately, others when they
    /// are idle.
    pub fn start(&mut self, now: Time, paths: &[Path], rng: &mut Rng) {
        let used = |(_, path): &(usize, &Path)| !path.retired && !path.announcing;
        for (i, path) in paths.iter().enumerate().filter(used) {
            let unproved = path.tx.state.status() == PathStatus::Unconfirmed;
            let due = if unproved { now } else { self.next(now, &path.tx, rng) };
            self.set_due(PathId::from_index(i), due);
        }
    }

    /// Sets when the next HEARTBEAT is due after one was sent or answered.
    pub fn schedule(&mut self, now: Time, id: PathId, paths: &[Path], rng: &mut Rng) {
        let due = self.next(now, &paths[id.index()].tx, rng);
        self.set_due(id, due);
    }

    /// Restarts the interval to the next HEARTBEAT of an idle path.
    pub fn restart_interval(&mut self, now: Time, id: PathId, paths: &[Path], rng: &mut Rng) {
        let heartbeat = &self.paths[id.index()];
        if heartbeat.is_periodic(&paths[id.index()].tx) && heartbeat.due.is_some() {
            self.schedule(now, id, paths, rng);
        }
    }

    /// HB.interval of a path.
    pub fn interval_of(&self, tx: &TxPath) -> Duration {
        tx.config.heartbeat_interval.unwrap_or(self.interval)
    }

    /// Time from a path's failure to its first probe. HB.interval bounds it: the probe interval may be
    /// infinite.
    pub fn first_probe_after(&self, tx: &TxPath) -> Duration {
        self.probe_interval.min(self.interval_of(tx))
    }

    /// When the next HEARTBEAT is due. For an idle path, RFC 9260, 8.3: after RTO plus HB.interval, with
    /// jitter of half an RTO either way.
    fn next(&self, now: Time, tx: &TxPath, rng: &mut Rng) -> Time {
        let jitter = 0.5 + rng.unit();
        let rto = tx.rtt.rto().mul_f64(jitter);
        let idle = rto + self.interval_of(tx);
        // A path that is not in use may cost money, and nothing waits for its recovery.
        let unused = !tx.config.usage.is_regular() && tx.idle(now) >= UNUSED_INTERVAL;
        if unused && tx.state.status() != PathStatus::Unconfirmed {
            return now + idle.max(UNUSED_INTERVAL);
        }
        match tx.state.status() {
            PathStatus::Active => now + idle,
            PathStatus::Inactive => now + idle.min(self.probe_interval),
            // RFC 9260, 5.4: after Path.Max.Retrans failures an unconfirmed address is probed as seldom as an
            // idle path.
            PathStatus::Unconfirmed if tx.state.has_failed() => now + idle,
            // At most one per RTO to an unconfirmed or potentially failed path.
            PathStatus::Unconfirmed => now + tx.rtt.rto(),
            PathStatus::PotentiallyFailed => now + self.patience(tx),
        }
    }

    /// How long to wait for the answer to a HEARTBEAT. The RTO of a failed path has been doubled many times,
    /// so the wait is shorter there: its recovery should be noticed earlier.
    fn patience(&self, tx: &TxPath) -> Duration {
        let rto = tx.rtt.rto();
        match tx.state.status() {
            PathStatus::PotentiallyFailed | PathStatus::Inactive => {
                let trip = tx.rtt.srtt().map_or(rto, |srtt| srtt * 2);
                rto.min(self.probe_interval.max(trip))
            }
            PathStatus::Active | PathStatus::Unconfirmed => rto,
        }
    }

    /// Ends the wait for an overdue answer. Returns whether this is an error of an idle path (RFC 9260,
    /// 8.2). While data is in flight on the path, T3 detects the same silence. Each silence counts as one
    /// error.
    pub fn take_unanswered(&mut self, now: Time, id: PathId, tx: &TxPath) -> bool {
        let heartbeat = &mut self.paths[id.index()];
        if heartbeat.pending.is_none_or(|(_, deadline)| deadline > now) {
            return false;
        }
        heartbeat.pending = None;
        self.deadline.invalidate();
        let forced = std::mem::take(&mut heartbeat.forced);
        !heartbeat.counted && (forced || tx.flights.is_empty())
    }

    /// Whether to send the HEARTBEAT that is due: the path is idle, or it has to be tested.
    pub fn is_wanted(&self, now: Time, id: PathId, tx: &TxPath) -> bool {
        let heartbeat = &self.paths[id.index()];
        let in_use = !tx.flights.is_empty() || tx.idle(now) < self.interval_of(tx);
        let busy = tx.state.status() == PathStatus::Active && !heartbeat.forced && in_use;
        // The user may have disabled the HEARTBEATs that test idle paths.
        let probed = tx.config.heartbeats && tx.config.usage != PathUse::Never;
        let disabled = heartbeat.is_periodic(tx) && !probed;
        !busy && !disabled && heartbeat.pending.is_none()
    }

    /// When a HEARTBEAT that is due on `id` may be sent, if not now. At most HB.Max.Burst per RTO go to
    /// unconfirmed addresses (RFC 9260, 5.4). The address with the oldest last HEARTBEAT comes first.
    pub fn postponed(&mut self, now: Time, id: PathId, paths: &[Path]) -> Option<Time> {
        let confirms = |i: usize| {
            let heartbeat = &self.paths[i];
            let due = heartbeat.due.is_some_and(|due| due <= now);
            due && paths[i].tx.state.status() == PathStatus::Unconfirmed && !heartbeat.forced
        };
        if self.burst == 0 || !confirms(id.index()) {
            return None;
        }
        let waiting = (0..paths.len()).filter(|i| confirms(*i));
        let first = waiting.min_by_key(|i| self.paths[*i].sent_at)?;
        if now >= self.until {
            (self.until, self.sent) = (now + paths[first].tx.rtt.rto(), 0);
        }
        if self.sent >= self.burst || first != id.index() {
            return Some(self.until);
        }
        self.sent += 1;
        None
    }

    /// Builds a HEARTBEAT with a fresh nonce for `id`. Its answer is pending from now on.
    pub fn build(&mut self, now: Time, id: PathId, tx: &TxPath, nonce: u64) -> Chunk {
        let deadline = now + self.patience(tx);
        let heartbeat = &mut self.paths[id.index()];
        heartbeat.pending = Some((nonce, deadline));
        heartbeat.earlier.rotate_right(1);
        heartbeat.earlier[0] = nonce;
        heartbeat.counted = false;
        heartbeat.sent_at = now;
        self.deadline.invalidate();
        Chunk::Heartbeat(HeartbeatInfo { nonce, sent: now, probe: None }.to_bytes())
    }

    /// Like [`Heartbeats::build`], but an earlier HEARTBEAT without an answer keeps its deadline, so that
    /// repeated requests of the user do not postpone the detection of a failure.
    pub fn build_beside(&mut self, now: Time, id: PathId, tx: &TxPath, nonce: u64) -> Chunk {
        let awaited = self.paths[id.index()].pending;
        let chunk = self.build(now, id, tx, nonce);
        let heartbeat = &mut self.paths[id.index()];
        heartbeat.pending = awaited.or(heartbeat.pending);
        chunk
    }

    /// The path on which the HEARTBEAT with this nonce was sent, if it has not been answered yet.
    pub fn take_nonce(&mut self, nonce: u64) -> Option<PathId> {
        if nonce == 0 {
            return None;
        }
        for (index, heartbeat) in self.paths.iter_mut().enumerate() {
            if let Some(at) = heartbeat.earlier.iter().position(|known| *known == nonce) {
                // A HEARTBEAT sent after the answered one stays pending. The newest nonce comes first.
                let later = |awaited: u64| heartbeat.earlier[..at].contains(&awaited);
                heartbeat.pending = heartbeat.pending.filter(|(awaited, _)| later(*awaited));
                heartbeat.earlier[at] = 0;
                self.deadline.invalidate();
                return Some(PathId::from_index(index));
            }
        }
        None
    }

    /// The path's address changed: a HEARTBEAT must be answered from there even with data in flight.
    pub fn force(&mut self, id: PathId) {
        let heartbeat = &mut self.paths[id.index()];
        (heartbeat.pending, heartbeat.forced) = (None, true);
        self.any_forced = true;
        self.deadline.invalidate();
    }

    /// Acknowledgements show that these paths work.
    #[inline]
    pub fn on_heard(&mut self, heard: PathSet) {
        if self.any_forced {
            for (i, heartbeat) in self.paths.iter_mut().enumerate() {
                heartbeat.forced &= !heard.contains(PathId::from_index(i));
            }
            self.any_forced = self.paths.iter().any(|heartbeat| heartbeat.forced);
        }
    }

    /// All data in flight on the path was lost.
    pub fn on_silent(&mut self, now: Time, id: PathId) {
        let heartbeat = &mut self.paths[id.index()];
        if heartbeat.pending.is_none() {
            heartbeat.forced = true;
            self.any_forced = true;
            self.set_due(id, now);
        }
    }

    /// T3 has expired and counts the silence of the path.
    pub fn on_timeout(&mut self, id: PathId) {
        self.paths[id.index()].counted = true;
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;
    use crate::sctp::config::PathConfig;
    use crate::sctp::preset::Preset;

    const ONE: PathId = PathId(0);
    const TWO: PathId = PathId(1);

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Heartbeats of confirmed or unconfirmed paths, and the paths.
    fn heartbeats(count: usize, confirmed: bool) -> (Heartbeats, Vec<Path>, Rng) {
        let paths = vec![PathConfig::default(); count];
        let config = Config { heartbeat_burst: 1, ..Config::preset(Preset::Rfc9260, paths, 65536) };
        let mut paths: Vec<_> = config.paths.iter().map(|path| Path::new(path, &config)).collect();
        if confirmed {
            paths.iter_mut().for_each(|path| {
                path.tx.state.on_confirmed();
            });
        }
        (Heartbeats::new(&config), paths, Seed::root(1).rng())
    }

    #[test]
    fn unconfirmed_paths_are_tested_at_once_and_idle_ones_after_the_interval() {
        let (mut of, paths, mut rng) = heartbeats(2, false);
        of.start(at(5), &paths, &mut rng);
        assert_eq!(of.deadline(), at(5));
        let (mut of, paths, mut rng) = heartbeats(2, true);
        of.start(at(5), &paths, &mut rng);
        of.settle_timers();
        assert!(of.deadline() >= at(5) + of.interval, "{}", of.deadline());
        of.stop();
        assert_eq!(of.deadline(), Time::FAR_FUTURE);
    }

    #[test]
    fn one_heartbeat_per_timeout_goes_to_an_unconfirmed_address_and_the_turns_change() {
        let (mut of, paths, mut rng) = heartbeats(2, false);
        of.start(at(5), &paths, &mut rng);
        assert_eq!(of.postponed(at(5), ONE, &paths), None);
        of.build(at(5), ONE, &paths[0].tx, 7);
        of.set_due(ONE, at(5));
        let later = of.postponed(at(5), TWO, &paths).expect("the burst is used up");
        assert_eq!(later, at(5) + paths[0].tx.rtt.rto());
        // The path that has waited longer comes first.
        assert!(of.postponed(later, ONE, &paths).is_some());
        assert_eq!(of.postponed(later, TWO, &paths), None);
    }

    #[test]
    fn the_nonce_of_an_answer_names_the_path_and_counts_once() {
        let (mut of, paths, _) = heartbeats(2, true);
        of.build(at(0), ONE, &paths[0].tx, 7);
        of.build(at(0), TWO, &paths[1].tx, 8);
        assert_eq!(of.take_nonce(8), Some(TWO));
        assert_eq!((of.take_nonce(8), of.take_nonce(9), of.take_nonce(0)), (None, None, None));
        let deadline = of.deadline();
        assert!(of.take_unanswered(deadline, ONE, &paths[0].tx), "an idle path");
        assert!(!of.take_unanswered(deadline, TWO, &paths[1].tx), "it was answered");
    }

    #[test]
    fn a_silence_that_a_timeout_has_counted_is_no_second_error() {
        let (mut of, paths, _) = heartbeats(1, true);
        of.build(at(0), ONE, &paths[0].tx, 7);
        of.on_timeout(ONE);
        assert!(!of.take_unanswered(of.deadline(), ONE, &paths[0].tx));
    }

    #[test]
    fn a_path_on_which_all_was_lost_is_tested_until_it_is_heard() {
        let (mut of, paths, mut rng) = heartbeats(2, true);
        of.start(at(0), &paths, &mut rng);
        assert!(!of.is_wanted(at(0), TWO, &paths[1].tx), "it was used just now");
        of.on_silent(at(1), TWO);
        assert_eq!(of.deadline(), at(1));
        assert!(of.is_wanted(at(1), TWO, &paths[1].tx));
        of.on_heard(PathSet::EMPTY.with(TWO));
        assert!(!of.is_wanted(at(1), TWO, &paths[1].tx));
    }
}
