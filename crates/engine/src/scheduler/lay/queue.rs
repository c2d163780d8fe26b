//! Detects whether the queue on a path is our own or belongs to other flows.
//!
//! Delay measurements cannot distinguish the two. A sender gets the share of the bottleneck rate that
//! corresponds to its share of the queued packets, so the data in flight explains the queue in both
//! cases. But our own queue drains within some round trips, because data in flight is limited to the BDP.
//! A queue that persists may belong to other flows. `lay` then runs an experiment: it stops sending until
//! all but one packet has arrived, then sends a few packets and measures their delay. If the bottleneck
//! is empty, the estimates of the path were wrong. If not, other flows fill the queue as far as they can,
//! and a sender limited to its BDP would get almost no throughput. (Copa, by Arun and Balakrishnan 2018,
//! attributes queues that never drain to other flows. With `lay`, queues drain completely only during a
//! pause, so this criterion does not apply.)

use ropewalk_base::{Duration, Time};

use super::nanos;
use crate::scheduler::{PathView, View};

/// A queue is long if it exceeds the queue that our own data beyond the BDP explains by this share of the
/// round trip without queueing.
const LONG: f64 = 0.25;
/// Round trips over which the mean queue must be long before a pause.
const ROUND_TRIPS: u64 = 10;
/// Minimum time between two pauses, which cost about a round trip each: one second and 40 round trips.
/// The time doubles each time that the queue turns out to be our own, up to [`DOUBLED`] times.
const SELDOM: Duration = Duration::from_secs(1);
const ROUND_TRIPS_BETWEEN: u64 = 40;
const DOUBLED: u32 = 3;
/// A persistent queue of this share of the round trip without queueing may not be a queue if the rate has
/// fallen to [`FALLEN`] of its maximum while only the BDP limits it. If the path has become longer, less
/// data in flight does not shorten the round trip. It lowers the rate, and thus the next limit.
const STAYS: f64 = 0.1;
const FALLEN: f64 = 0.6;
/// Share of the queue that must be left after a pause to attribute it to other flows. Our own part has
/// drained by then, and the other flows may have just halved theirs.
const LEFT: f64 = 0.3;
/// Number of chunks sent after a pause to measure the delay. The receiver may delay the acknowledgement
/// until the second one.
const ASKED_WITH: u64 = 2;
/// Time for which a queue is attributed to other flows before the next pause.
const HOLD: Duration = Duration::from_secs(40);
/// Round trips, and minimum time, after which an experiment without a result ends because a packet was
/// lost.
const PATIENCE: u64 = 4;
const LEAST_PATIENCE: Duration = Duration::from_millis(300);

/// State of the queue of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    phase: Phase,
    /// Mean queueing delay, nanoseconds.
    mean: f64,
    /// Mean rate, bytes per nanosecond, and its maximum since the last pause.
    rate: f64,
    highest: f64,
    /// When the link was last seen to have become slower, which explains that the rate falls.
    slowed: Time,
    looked: Time,
    asked: Time,
    /// Number of successive times that the queue was our own, up to [`DOUBLED`].
    ours: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    /// The queue is assumed to be our own.
    #[default]
    Ours,
    /// Nothing is sent until all but one packet has arrived. `queueing`: the delay before the pause,
    /// nanoseconds.
    Pausing { queueing: f64 },
    /// Only a few packets are in flight.
    Asking { queueing: f64, since: Time },
    /// Other flows fill the queue.
    Theirs { until: Time },
}

/// Limit of the data in flight.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Limit {
    /// The BDP with its margin.
    BdpFilter,
    /// Less than this number of bytes.
    Bytes(u64),
    /// The congestion window.
    Window,
}

impl Queue {
    /// Processes the current estimates of the path: its `rate` in bytes per nanosecond, its round trip
    /// without queueing `pipe_time` in nanoseconds, and its limit `pipe` in bytes. Returns the limit of
    /// the data in flight.
    pub fn look(
        &mut self,
        view: &View<'_>,
        path: &PathView,
        (rate, pipe_time, pipe): (f64, f64, f64),
    ) -> Limit {
        let now = view.now;
        let round_trip = path.srtt.unwrap_or(Duration::ZERO);
        let queueing = nanos(path.queueing);
        let last = path.last_rtt.unwrap_or(Duration::ZERO);
        let long = pipe / rate - pipe_time + LONG * pipe_time;
        match self.phase {
            Phase::Ours => {
                let over = round_trip.saturating_mul(ROUND_TRIPS);
                let part = nanos(now.since(self.looked)) / nanos(over).max(1.0);
                // The queue of a probe for bandwidth is our own, and drains without further action.
                let counted = if path.probing { queueing.min(self.mean) } else { queueing };
                self.mean += (counted - self.mean) * part.min(1.0);
                let between = round_trip.saturating_mul(ROUND_TRIPS_BETWEEN);
                let seldom = between.max(SELDOM).saturating_mul(1 << self.ours);
                let fallen = self.has_fallen(now, path, rate, (seldom, part.min(1.0)));
                let limits = (pipe as u64..path.cwnd).contains(&path.in_flight);
                let stays = self.mean > STAYS * pipe_time && fallen && limits;
                if (self.mean > long || stays) && now.since(self.asked) >= seldom {
                    (self.rate, self.highest) = (rate, rate);
                    self.pause(now, queueing);
                }
            }
            Phase::Theirs { until } if now >= until => {
                if queueing > long {
                    self.pause(now, queueing)
                } else {
                    self.settle(now, false)
                }
            }
            // The acknowledgement of the last packet may be delayed until another packet arrives.
            Phase::Pausing { queueing } if path.in_flight <= view.chunk_bytes => {
                self.phase = Phase::Asking { queueing, since: now };
            }
            // This measurement began after the pause.
            Phase::Asking { queueing, since }
                if path.rtt_age.saturating_add(last) <= now.since(since) =>
            {
                let left = nanos(last) - pipe_time;
                // The packets of the measurement may queue behind each other.
                let own = (ASKED_WITH * view.chunk_bytes) as f64 / rate;
                self.settle(now, left > (LEFT * queueing).max(own));
            }
            Phase::Pausing { .. } | Phase::Asking { .. } => {
                let patience = round_trip.saturating_mul(PATIENCE).max(LEAST_PATIENCE);
                if now.since(self.asked) > patience {
                    self.settle(now, false);
                }
            }
            Phase::Theirs { .. } => {}
        }
        self.looked = now;
        match self.phase {
            Phase::Ours => Limit::BdpFilter,
            Phase::Pausing { .. } => Limit::Bytes(0),
            Phase::Asking { .. } => Limit::Bytes(ASKED_WITH * view.chunk_bytes),
            Phase::Theirs { .. } => Limit::Window,
        }
    }

    /// Whether the mean rate has fallen without a sign that the link became slower within `seldom`. `part` is
    /// the weight of this rate in the mean.
    fn has_fallen(
        &mut self,
        now: Time,
        path: &PathView,
        rate: f64,
        (seldom, part): (Duration, f64),
    ) -> bool {
        if path.drain.is_some() {
            self.slowed = now;
        }
        if now.since(self.slowed) < seldom {
            (self.rate, self.highest) = (rate, rate);
        }
        self.rate += (rate - self.rate) * part;
        self.highest = self.highest.max(self.rate);
        self.rate < FALLEN * self.highest
    }

    const fn pause(&mut self, now: Time, queueing: f64) {
        self.asked = now;
        self.phase = Phase::Pausing { queueing };
    }

    fn settle(&mut self, now: Time, theirs: bool) {
        self.phase =
            if theirs { Phase::Theirs { until: now.saturating_add(HOLD) } } else { Phase::Ours };
        self.mean = 0.0;
        self.ours = if theirs { 0 } else { DOUBLED.min(self.ours + 1) };
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Rate;

    use super::super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    const RATE: f64 = 1e-3;
    const PIPE_TIME: f64 = 20e6;

    /// The limit at time `at` in ms for a path with a queueing delay and a last round trip of `millis`, and
    /// `chunks` chunks in flight.
    fn look(queue: &mut Queue, at: u64, millis: (u64, u64), chunks: u64) -> Limit {
        let path = PathView {
            queueing: Duration::from_millis(millis.0),
            last_rtt: Some(Duration::from_millis(millis.1)),
            in_flight: chunks * CHUNK,
            ..path_view(0)
        };
        let now = Time::from_millis(at);
        queue.look(&View { now, ..view(&[]) }, &path, (RATE, PIPE_TIME, 1.25 * RATE * PIPE_TIME))
    }

    /// The first time at which a queue of `queueing` ms causes a pause, if any. The path is checked every 10
    /// ms.
    fn paused(queue: &mut Queue, between: (u64, u64), queueing: u64) -> Option<u64> {
        let mut times = (between.0..between.1).step_by(10);
        times.find(|at| look(queue, *at, (queueing, 40), 20) == Limit::Bytes(0))
    }

    /// The result for a queue of 20 ms whose measurement after the pause gives a round trip of `last_rtt` ms.
    fn asked(last_rtt: u64) -> (Queue, u64, Limit) {
        let mut queue = Queue::default();
        let at = paused(&mut queue, (0, 9_000), 20).expect("it stays");
        assert_eq!(look(&mut queue, at + 30, (20, 40), 2), Limit::Bytes(0));
        assert_eq!(look(&mut queue, at + 50, (20, 40), 1), Limit::Bytes(2 * CHUNK));
        // This packet was sent before the pause.
        assert_eq!(look(&mut queue, at + 60, (20, 40), 2), Limit::Bytes(2 * CHUNK));
        let answer = look(&mut queue, at + 90, (20, last_rtt), 0);
        (queue, at + 90, answer)
    }

    #[test]
    fn after_a_pause_the_bottleneck_is_empty_or_not() {
        assert_eq!(asked(23).2, Limit::BdpFilter);
        assert_eq!(asked(38).2, Limit::Window);
    }

    #[test]
    fn others_are_asked_for_again_after_a_while() {
        let (mut queue, at, _) = asked(38);
        assert_eq!(look(&mut queue, at + 39_900, (20, 40), 20), Limit::Window);
        assert_eq!(look(&mut queue, at + 40_000, (20, 40), 20), Limit::Bytes(0));
        let (mut queue, at, _) = asked(38);
        assert_eq!(look(&mut queue, at + 40_000, (1, 21), 20), Limit::BdpFilter, "no queue");
    }

    #[test]
    fn a_queue_that_goes_or_is_short_is_no_reason_to_ask() {
        assert_eq!(paused(&mut Queue::default(), (0, 60_000), 9), None, "short");
        let mut queue = Queue::default();
        for second in (0..60_000).step_by(1_000) {
            // Long for one and a half round trips, as after a burst.
            assert_eq!(paused(&mut queue, (second, second + 30), 40), None, "{second}");
            assert_eq!(paused(&mut queue, (second + 30, second + 1_000), 2), None, "{second}");
        }
    }

    /// When a short queue causes a pause if the rate falls to `share` at 2 s, with `in_flight` bytes.
    fn paused_after_a_fall(share: f64, drain: Option<Rate>, in_flight: u64) -> Option<u64> {
        let mut queue = Queue::default();
        (0..9_000).step_by(10).find(|&at| {
            let path = PathView {
                queueing: Duration::from_millis(5),
                cwnd: 1_000_000,
                in_flight,
                drain: drain.filter(|_| at >= 2_000),
                ..path_view(0)
            };
            let view = View { now: Time::from_millis(at), ..view(&[]) };
            let rate = if at < 2_000 { RATE } else { share * RATE };
            let limit = queue.look(&view, &path, (rate, PIPE_TIME, 1.25 * rate * PIPE_TIME));
            limit == Limit::Bytes(0)
        })
    }

    #[test]
    fn pauses_if_a_short_queue_stays_while_the_rate_falls() {
        let full = (1.25 * RATE * PIPE_TIME) as u64;
        assert_eq!(paused_after_a_fall(0.7, None, full), None, "it falls by little");
        let paused = paused_after_a_fall(0.5, None, full).expect("the limit lowers the rate");
        assert!((2_100..3_000).contains(&paused), "{paused}: the mean rate has to fall");
        assert_eq!(paused_after_a_fall(0.5, None, full / 3), None, "the limit has no effect");
        let slower = Some(Rate::from_bps(4_000_000));
        assert_eq!(paused_after_a_fall(0.5, slower, full), None, "the link became slower");
    }

    #[test]
    fn each_answer_that_it_is_ours_makes_the_next_question_rarer_up_to_a_limit() {
        let mut queue = Queue::default();
        let mut at = 0;
        let waits: Vec<_> = (0..6)
            .map(|_| {
                let asked = paused(&mut queue, (at, at + 60_000), 20).expect("it stays");
                look(&mut queue, asked + 40, (20, 40), 0);
                assert_eq!(look(&mut queue, asked + 80, (20, 21), 0), Limit::BdpFilter);
                (asked - std::mem::replace(&mut at, asked)) / 1_000
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 8, 8]);
    }

    #[test]
    fn a_question_that_nobody_answers_is_dropped() {
        let mut queue = Queue::default();
        let at = paused(&mut queue, (0, 9_000), 20).expect("it stays");
        assert_eq!(look(&mut queue, at + 290, (20, 40), 20), Limit::Bytes(0));
        assert_eq!(look(&mut queue, at + 310, (20, 40), 20), Limit::BdpFilter);
    }
}
