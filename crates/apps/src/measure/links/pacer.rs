//! Sends a train at its pace, and collects the arrivals of the peer's trains.

use std::collections::BTreeMap;

use ropewalk_base::{Duration, Time};
use ropewalk_runtime::endpoint::{Association, ProbeBurst, ReceivedProbe};

use super::message::{Arrival, TRAIN_LIMIT, Train};

/// Maximum time that a late pacer makes up for. A longer delay shifts the rest of the train: a longer burst would
/// fill queues that the train should leave empty.
const CATCH_UP: Duration = Duration::from_millis(4);
/// Maximum number of trains whose arrivals are kept.
const LOGS_LIMIT: usize = 64;
/// Maximum number of arrivals that are kept, over all trains.
const ARRIVALS_LIMIT: usize = 1 << 18;
/// A train ends if nothing has arrived for this multiple of its largest gap.
const QUIET_GAPS: u64 = 4;
const QUIET_MIN: Duration = Duration::from_millis(200);
const QUIET_MAX: Duration = Duration::from_millis(1500);
/// The same if no probe of the train has arrived.
const SILENT: Duration = Duration::from_millis(2500);

/// A train that is being sent.
#[derive(Debug)]
pub struct Pacer {
    train: Train,
    start: Time,
    sent_ns: Vec<u64>,
    is_over: bool,
}

impl Pacer {
    /// Starts a train at this time.
    pub fn new(train: Train, start: Time) -> Self {
        Self { train, start, sent_ns: Vec::new(), is_over: train.count == 0 }
    }

    /// The train's number.
    pub const fn id(&self) -> u32 {
        self.train.id
    }

    /// Whether all probes were sent, or the rest cannot be sent.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// When each probe was sent, nanoseconds of this endpoint's clock.
    pub fn sent_ns(&self) -> &[u64] {
        &self.sent_ns
    }

    /// Number of the groups that should have been sent by now. Shifts the train if it is late.
    fn due(&mut self, now: Time) -> u32 {
        let interval = self.train.interval_ns.max(1);
        let group = u64::from(self.train.group.max(1));
        let next = self.sent_ns.len() as u64 / group;
        let late = now.since(self.start).as_nanos().saturating_sub(next.saturating_mul(interval));
        let excess = late.saturating_sub(CATCH_UP.as_nanos());
        self.start = self.start.saturating_add(Duration::from_nanos(excess));
        let groups = now.since(self.start).as_nanos() / interval + 1;
        let probes = groups.saturating_mul(group).min(u64::from(self.train.count));
        (probes as u32).saturating_sub(self.sent_ns.len() as u32)
    }

    /// Sends the groups that are due.
    pub fn advance(&mut self, association: &Association, now: Time) {
        if self.is_over || now < self.start {
            return;
        }
        let mut rest = self.due(now);
        while rest > 0 {
            let burst = ProbeBurst {
                path: self.train.path.into(),
                train: self.train.id,
                first: self.sent_ns.len() as u32,
                count: rest,
                bytes: self.train.bytes.into(),
            };
            let Some(sent) = association.send_probes(burst) else {
                self.is_over = true;
                return;
            };
            self.is_over |= sent.too_long;
            self.sent_ns.extend(std::iter::repeat_n(sent.at.as_nanos(), sent.count as usize));
            if sent.count == 0 {
                break;
            }
            rest -= sent.count;
        }
        self.is_over |= self.sent_ns.len() as u32 >= self.train.count;
    }
}

/// Arrivals of one train.
#[derive(Debug, Default)]
pub struct Log {
    arrivals: Vec<Arrival>,
    /// When each was sent, nanoseconds of the sender's clock.
    sent_ns: Vec<u64>,
    largest_gap: Duration,
    /// The number of sent probes, and when this end learned it.
    ended: Option<(u32, Time)>,
}

impl Log {
    fn push(&mut self, probe: &ReceivedProbe) {
        if let Some(before) = self.arrivals.last() {
            let gap = probe.arrived.since(Time::from_nanos(before.at_ns));
            self.largest_gap = self.largest_gap.max(gap);
        }
        self.arrivals.push(Arrival { number: probe.number, at_ns: probe.arrived.as_nanos() });
        self.sent_ns.push(probe.sent.as_nanos());
    }

    /// Whether nothing more is expected: all probes have arrived, or none has for a while.
    fn is_complete(&self, now: Time) -> bool {
        let Some((sent, at)) = self.ended else { return false };
        let Some(last) = self.arrivals.last() else { return sent == 0 || now.since(at) >= SILENT };
        let since = at.max(Time::from_nanos(last.at_ns));
        let quiet = self.largest_gap.saturating_mul(QUIET_GAPS).max(QUIET_MIN).min(QUIET_MAX);
        self.arrivals.len() >= sent as usize || now.since(since) >= quiet
    }

    /// Arrivals in order.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// When each of [`Log::arrivals`] was sent, nanoseconds of the sender's clock.
    pub fn sent_ns(&self) -> &[u64] {
        &self.sent_ns
    }

    /// Number of probes that the sender has sent.
    pub fn sent(&self) -> u32 {
        self.ended.map_or(0, |(sent, _)| sent)
    }
}

/// Arrivals of all trains. If a peer sends more than the limits, the rest is dropped.
#[derive(Debug, Default)]
pub struct Logs {
    logs: BTreeMap<u32, Log>,
    arrivals: usize,
}

impl Logs {
    fn log(&mut self, train: u32) -> Option<&mut Log> {
        if self.logs.len() >= LOGS_LIMIT && !self.logs.contains_key(&train) {
            return None;
        }
        Some(self.logs.entry(train).or_default())
    }

    /// Records a probe.
    pub fn push(&mut self, probe: &ReceivedProbe) {
        if self.arrivals >= ARRIVALS_LIMIT || probe.number >= TRAIN_LIMIT {
            return;
        }
        let Some(log) = self.log(probe.train) else { return };
        if log.arrivals.len() < TRAIN_LIMIT as usize {
            log.push(probe);
            self.arrivals += 1;
        }
    }

    /// Records how many probes of a train the sender has sent.
    pub fn end(&mut self, train: u32, sent: u32, now: Time) {
        if let Some(log) = self.log(train) {
            log.ended.get_or_insert((sent.min(TRAIN_LIMIT), now));
        }
    }

    /// Removes and returns a train that is complete.
    pub fn take_complete(&mut self, now: Time) -> Option<(u32, Log)> {
        let id = *self.logs.iter().find(|(_, log)| log.is_complete(now))?.0;
        let log = self.logs.remove(&id)?;
        self.arrivals -= log.arrivals.len();
        Some((id, log))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn probe(train: u32, number: u32, arrived: Time) -> ReceivedProbe {
        ReceivedProbe { path: 0, train, number, sent: Time::ZERO, arrived, bytes: 100 }
    }

    #[test]
    fn a_pacer_makes_up_for_short_delays_and_shifts_after_long_ones() {
        let train =
            Train { id: 1, path: 0, bytes: 100, count: 1000, group: 2, interval_ns: 1_000_000 };
        let mut pacer = Pacer::new(train, ms(10));
        assert_eq!(pacer.due(ms(10)), 2);
        pacer.sent_ns = vec![0; 2];
        assert_eq!(pacer.due(ms(13)), 6, "three groups are due");
        pacer.sent_ns = vec![0; 8];
        assert_eq!(pacer.due(ms(114)), 10, "100 ms late: no more than 4 ms and the next group");
        pacer.sent_ns = vec![0; 18];
        assert_eq!(pacer.due(ms(115)), 2, "from then on at the old pace");
        pacer.sent_ns = vec![0; 999];
        assert_eq!(pacer.due(ms(10_000)), 1);
    }

    #[test]
    fn a_train_is_complete_with_its_last_probe_or_after_silence() {
        let mut logs = Logs::default();
        for number in 0..3 {
            logs.push(&probe(7, number, ms(100 + 10 * u64::from(number))));
        }
        assert!(logs.take_complete(ms(9000)).is_none(), "the sender may send more");
        logs.end(7, 4, ms(130));
        assert!(logs.take_complete(ms(300)).is_none());
        logs.end(7, 3, ms(140));
        let (id, log) = logs.take_complete(ms(331)).expect("silence");
        assert_eq!((id, log.sent(), log.arrivals().len()), (7, 4, 3), "the first end counts");
        logs.end(8, 1, ms(0));
        assert!(logs.take_complete(ms(2000)).is_none());
        assert!(logs.take_complete(ms(2500)).is_some());
        logs.push(&probe(9, 0, ms(0)));
        logs.end(9, 1, ms(0));
        assert!(logs.take_complete(ms(0)).is_some());
        assert_eq!(logs.arrivals, 0);
    }

    #[test]
    fn a_peer_cannot_make_logs_grow_without_limit() {
        let mut logs = Logs::default();
        for train in 0..1000 {
            logs.push(&probe(train, 0, ms(1)));
            logs.end(train, u32::MAX, ms(1));
        }
        assert_eq!(logs.logs.len(), LOGS_LIMIT);
        logs.push(&probe(0, TRAIN_LIMIT, ms(1)));
        for _ in 0..2 * ARRIVALS_LIMIT {
            logs.push(&probe(0, 5, ms(1)));
        }
        assert_eq!(logs.logs[&0].arrivals.len(), TRAIN_LIMIT as usize);
        for train in 0..64 {
            for _ in 0..TRAIN_LIMIT {
                logs.push(&probe(train, 5, ms(1)));
            }
        }
        assert_eq!(logs.arrivals, ARRIVALS_LIMIT);
    }
}
