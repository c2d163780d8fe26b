//! Whose queue is it that a path's packets stand in?
//!
//! Delays do not tell: whoever holds so many packets at a bottleneck gets so much of its rate, and explains so
//! much of its queue, be the rate all there is or what others leave of it. A pause tells. When a path
//! delivers much less than it did, and still queues, nothing is sent until all has arrived; then a few packets
//! go, and find the bottleneck empty or not. If it is empty, the path has become slower. If not, others fill
//! it as far as they can, and whoever keeps to his pipe beside them is left with next to nothing.
//! (Copa, by Arun and Balakrishnan 2018, takes queues that are never empty for others'; those that `lay` leaves
//! never are.)

use ropewalk_base::{Duration, Time};

use super::nanos;
use crate::scheduler::{PathView, View};

/// The rate has to fall below this share of what it was.
const FALLEN: f64 = 0.75;
/// Less queueing than this share of the empty round trip is jitter, or what `lay` itself leaves.
const LITTLE: f64 = 0.25;
/// More than this share of it is left after the pause if it is others'.
const LEFT: f64 = 0.5;
/// Chunks that are sent to ask: an acknowledgement may wait for the second one.
const ASKED_WITH: u64 = 2;
/// A pause costs about a round trip, so it is made no more often than this, and than each so many round
/// trips; twice as seldom each time that the queue is found to be our own, up to eight times.
const SELDOM: Duration = Duration::from_secs(1);
const ROUND_TRIPS: u64 = 10;
const DOUBLED: u32 = 3;
/// Others are taken to be there for so long before they are asked for again.
const HOLD: Duration = Duration::from_secs(20);
/// Round trips, of at least a quarter of a second, after which a question that was not answered is dropped.
const PATIENCE: u64 = 4;
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// What is known of the queue of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    phase: Phase,
    /// The largest rate since it was last asked, bytes per nanosecond.
    rate: f64,
    asked: Time,
    /// How often in a row it was our own, up to [`DOUBLED`].
    ours: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    /// Our own, as far as is known.
    #[default]
    Ours,
    /// Nothing is sent until all has arrived. Packets queued for so long, nanoseconds.
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
    Pipe,
    /// Less than this, bytes.
    Bytes(u64),
    /// The congestion window.
    Window,
}

impl Queue {
    /// Takes what is known now of a path of `rate`, bytes per nanosecond, and an empty round trip of
    /// `pipe_time` nanoseconds.
    pub fn look(&mut self, view: &View<'_>, path: &PathView, rate: f64, pipe_time: f64) -> Limit {
        let now = view.now;
        let round_trip = path.srtt.unwrap_or(Duration::ZERO);
        let queueing = nanos(path.queueing);
        let queued = queueing > LITTLE * pipe_time;
        match self.phase {
            Phase::Ours => {
                self.rate = self.rate.max(rate);
                let seldom = round_trip.saturating_mul(ROUND_TRIPS).max(SELDOM);
                let seldom = seldom.saturating_mul(1 << self.ours);
                if rate < FALLEN * self.rate && queued && now.since(self.asked) >= seldom {
                    self.pause(now, queueing);
                }
            }
            Phase::Theirs { until } if now >= until => {
                if queued {
                    self.pause(now, queueing)
                } else {
                    self.settle(now, false, rate)
                }
            }
            Phase::Pausing { queueing } if path.in_flight == 0 => {
                self.phase = Phase::Asking { queueing, since: now };
            }
            Phase::Asking { queueing, since } if path.rtt_age < now.since(since) => {
                let left = path.last_rtt.map_or(0.0, nanos) - pipe_time;
                // What was sent to ask may queue behind itself.
                let own = (ASKED_WITH * view.chunk_bytes) as f64 / rate;
                self.settle(now, left > (LEFT * queueing).max(own), rate);
            }
            Phase::Pausing { .. } | Phase::Asking { .. } => {
                let patience = round_trip.saturating_mul(PATIENCE).max(LEAST_PATIENCE);
                if now.since(self.asked) > patience {
                    self.settle(now, false, rate);
                }
            }
            Phase::Theirs { .. } => {}
        }
        match self.phase {
            Phase::Ours => Limit::Pipe,
            Phase::Pausing { .. } => Limit::Bytes(0),
            Phase::Asking { .. } => Limit::Bytes(ASKED_WITH * view.chunk_bytes),
            Phase::Theirs { .. } => Limit::Window,
        }
    }

    const fn pause(&mut self, now: Time, queueing: f64) {
        self.asked = now;
        self.phase = Phase::Pausing { queueing };
    }

    fn settle(&mut self, now: Time, theirs: bool, rate: f64) {
        self.phase =
            if theirs { Phase::Theirs { until: now.saturating_add(HOLD) } } else { Phase::Ours };
        self.rate = rate;
        self.ours = if theirs { 0 } else { DOUBLED.min(self.ours + 1) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::kit::{CHUNK, path_view, view};
    use super::*;

    const RATE: f64 = 1e-3;
    const PIPE_TIME: f64 = 20e6;

    /// What a path may have in flight at a time, in ms, that has this rate, queueing, last round trip, and
    /// so many chunks in flight.
    fn look(queue: &mut Queue, at: u64, rate: f64, millis: (u64, u64), chunks: u64) -> Limit {
        let path = PathView {
            queueing: Duration::from_millis(millis.0),
            last_rtt: Some(Duration::from_millis(millis.1)),
            in_flight: chunks * CHUNK,
            ..path_view(0)
        };
        let now = Time::from_millis(at);
        queue.look(&View { now, ..view(&[]) }, &path, rate, PIPE_TIME)
    }

    /// A queue that was asked from 10 s on, when the rate fell to half; the answer came in a
    /// round trip of so many ms.
    fn asked(last_rtt: u64) -> (Queue, Limit) {
        let mut queue = Queue::default();
        assert_eq!(look(&mut queue, 9_000, RATE, (20, 40), 20), Limit::Pipe);
        assert_eq!(look(&mut queue, 10_000, RATE / 2.0, (20, 40), 20), Limit::Bytes(0));
        assert_eq!(look(&mut queue, 10_030, RATE / 2.0, (20, 40), 2), Limit::Bytes(0));
        assert_eq!(look(&mut queue, 10_050, RATE / 2.0, (20, 40), 0), Limit::Bytes(2 * CHUNK));
        let answer = look(&mut queue, 10_090, RATE / 2.0, (20, last_rtt), 0);
        (queue, answer)
    }

    #[test]
    fn after_a_pause_the_bottleneck_is_empty_or_not() {
        assert_eq!(asked(23).1, Limit::Pipe);
        assert_eq!(asked(38).1, Limit::Window);
    }

    #[test]
    fn others_are_asked_for_again_after_a_while() {
        let (mut queue, _) = asked(38);
        assert_eq!(look(&mut queue, 30_000, RATE / 2.0, (20, 40), 20), Limit::Window);
        assert_eq!(look(&mut queue, 30_100, RATE / 2.0, (20, 40), 20), Limit::Bytes(0));
        let (mut queue, _) = asked(38);
        assert_eq!(look(&mut queue, 30_100, RATE / 2.0, (1, 21), 20), Limit::Pipe, "no queue");
    }

    #[test]
    fn a_rate_that_stays_a_queue_that_is_short_or_a_recent_answer_are_no_reason_to_ask() {
        for (rate, queueing) in [(RATE * 0.8, 20), (RATE / 2.0, 2)] {
            let mut queue = Queue::default();
            look(&mut queue, 9_000, RATE, (20, 40), 20);
            assert_eq!(look(&mut queue, 10_000, rate, (queueing, 40), 20), Limit::Pipe);
        }
        let (mut queue, _) = asked(23);
        assert_eq!(look(&mut queue, 11_900, RATE / 4.0, (20, 40), 20), Limit::Pipe);
        assert_eq!(look(&mut queue, 12_100, RATE / 4.0, (20, 40), 20), Limit::Bytes(0));
    }

    #[test]
    fn a_question_that_nobody_answers_is_dropped() {
        let mut queue = Queue::default();
        look(&mut queue, 9_000, RATE, (20, 40), 20);
        look(&mut queue, 10_000, RATE / 2.0, (20, 40), 20);
        assert_eq!(look(&mut queue, 11_500, RATE / 2.0, (20, 40), 20), Limit::Pipe);
    }
}
