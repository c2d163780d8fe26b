//! Whose queue is it that a path's packets stand in?
//!
//! Delays do not tell: whoever holds so many packets at a bottleneck gets so much of its rate, and explains so
//! much of its queue, be the rate all there is or what others leave of it. But a queue of our own goes within
//! some round trips, since no more is in flight than fills the pipe; one that stays may be others'. A pause
//! tells: nothing is sent until all but one packet has arrived; then a few go, and find the bottleneck empty or not.
//! If it is empty, the path was misjudged. If not, others fill it as far as they can, and whoever keeps to his
//! pipe beside them is left with next to nothing.
//! (Copa, by Arun and Balakrishnan 2018, takes queues that are never empty for others'; those that `lay` leaves
//! never are.)

use ropewalk_base::{Duration, Time};

use super::nanos;
use crate::scheduler::{PathView, View};

/// A queue is long if it exceeds what our own packets in excess of the pipe make of it by this share of the
/// empty round trip.
const LONG: f64 = 0.25;
/// It may be others' if it is that long in the mean over so many round trips.
const ROUND_TRIPS: u64 = 10;
/// A pause costs about a round trip, so it is made no more often than this, and than each so many round trips;
/// twice as seldom each time that the queue is found to be our own, up to eight times.
const SELDOM: Duration = Duration::from_secs(1);
const ROUND_TRIPS_BETWEEN: u64 = 40;
const DOUBLED: u32 = 3;
/// More than this share of it is left after the pause if it is others': ours is gone by then, and theirs may
/// just have been halved.
const LEFT: f64 = 0.3;
/// Chunks that are sent to ask: an acknowledgement may wait for the second one.
const ASKED_WITH: u64 = 2;
/// Others are taken to be there for so long before they are asked for again.
const HOLD: Duration = Duration::from_secs(40);
/// After so many round trips, and so long at least, a question that was not answered is dropped: something was lost.
const PATIENCE: u64 = 4;
const LEAST_PATIENCE: Duration = Duration::from_millis(300);

/// What is known of the queue of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    phase: Phase,
    /// Mean of what packets queued, nanoseconds.
    mean: f64,
    looked: Time,
    asked: Time,
    /// How often in a row it was our own, up to [`DOUBLED`].
    ours: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    /// Our own, as far as is known.
    #[default]
    Ours,
    /// Nothing is sent until all but one packet has arrived. They queued for so long, nanoseconds.
    Pausing { queueing: f64 },
    /// A few packets are on their way, alone.
    Asking { queueing: f64, since: Time },
    /// Others fill it.
    Theirs { until: Time },
}

/// What may be in flight.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Limit {
    /// What fills the pipe.
    BdpFilter,
    /// Less than this, bytes.
    Bytes(u64),
    /// The congestion window.
    Window,
}

impl Queue {
    /// Takes what is known now of a path of `rate`, bytes per nanosecond, and an empty round trip of
    /// `pipe_time` nanoseconds, which is given up to `pipe` bytes.
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
                self.mean += (queueing - self.mean) * part.min(1.0);
                let between = round_trip.saturating_mul(ROUND_TRIPS_BETWEEN);
                let seldom = between.max(SELDOM).saturating_mul(1 << self.ours);
                if self.mean > long && now.since(self.asked) >= seldom {
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
            // The last one may wait for another to be acknowledged with.
            Phase::Pausing { queueing } if path.in_flight <= view.chunk_bytes => {
                self.phase = Phase::Asking { queueing, since: now };
            }
            // What was measured left after the pause.
            Phase::Asking { queueing, since }
                if path.rtt_age.saturating_add(last) <= now.since(since) =>
            {
                let left = nanos(last) - pipe_time;
                // What was sent to ask may queue behind itself.
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
    use super::super::super::kit::{CHUNK, path_view, view};
    use super::*;

    const RATE: f64 = 1e-3;
    const PIPE_TIME: f64 = 20e6;

    /// What a path may have in flight at a time, in ms, that has this queueing, last round trip, and so
    /// many chunks in flight.
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

    /// When a queue of so many ms makes a path pause that is looked at each 10 ms between two times, if ever.
    fn paused(queue: &mut Queue, between: (u64, u64), queueing: u64) -> Option<u64> {
        let mut times = (between.0..between.1).step_by(10);
        times.find(|at| look(queue, *at, (queueing, 40), 20) == Limit::Bytes(0))
    }

    /// A queue of 20 ms that was asked after a while; the answer came in a round trip of so many ms.
    fn asked(last_rtt: u64) -> (Queue, u64, Limit) {
        let mut queue = Queue::default();
        let at = paused(&mut queue, (0, 9_000), 20).expect("it stays");
        assert_eq!(look(&mut queue, at + 30, (20, 40), 2), Limit::Bytes(0));
        assert_eq!(look(&mut queue, at + 50, (20, 40), 1), Limit::Bytes(2 * CHUNK));
        // That one left before the pause.
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
            // Long for a round trip and a half, as after a burst.
            assert_eq!(paused(&mut queue, (second, second + 30), 40), None, "{second}");
            assert_eq!(paused(&mut queue, (second + 30, second + 1_000), 2), None, "{second}");
        }
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
