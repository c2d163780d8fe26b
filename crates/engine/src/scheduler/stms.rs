//! `stms`: slide together (Shi et al., 2018).

use std::collections::VecDeque;

use ropewalk_base::PathId;

use super::common::{belongs_to_others, chunks, counts, known_delay, known_round_trip};
use super::daps::oldest_first;
use super::{Decision, PathView, Reason, Schedule, SentReport, View};

/// Maximum number of transmissions per path whose arrival is tracked.
const OUTSTANDING: usize = 4096;

/// Options of `stms`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StmsOptions {
    /// Part of an observed misalignment by which the gap is corrected: 0 keeps the computed gap; a larger
    /// value follows changes faster and has more jitter.
    pub gain: f64,
}

impl Default for StmsOptions {
    fn default() -> Self {
        Self { gain: 1.0 / 8.0 }
    }
}

/// A chunk in flight on a slow path.
#[derive(Clone, Copy, Debug)]
struct Underway {
    sequence: u64,
    /// The chunk has arrived when the path has delivered this number of bytes.
    arrives_at: u64,
}

/// State of one path.
#[derive(Clone, Debug, Default)]
struct Track {
    /// Chunks to add to the computed gap.
    correction: f64,
    underway: VecDeque<Underway>,
}

/// The fast path sends from the head of the queue. A slower path sends from a gap behind the head, so that
/// the data of both arrives at the same time.
///
/// The gap starts as the amount that the faster paths carry in the difference of the forward delays. Arrivals
/// then correct it: a chunk of the slow path that arrives before its predecessors by n chunks was sent n
/// chunks too far ahead; a chunk for which n later chunks have waited was not sent far enough ahead by n. The
/// paper reads both from the data acknowledgement that the arrival of the chunk causes, and so does this
/// code. After a loss the data acknowledgement stalls for another reason, so chunks in flight are not
/// evaluated.
#[derive(Clone, Debug, Default)]
pub struct Stms {
    options: StmsOptions,
    /// By path identifier.
    tracks: Vec<Track>,
    epoch: u64,
    /// The path of the last decision, and the bytes delivered plus those in flight on it.
    chosen: Option<(PathId, u64)>,
}

impl Stms {
    /// Creates the scheduler with these options.
    pub fn new(options: StmsOptions) -> Self {
        Self { options, ..Self::default() }
    }

    fn observe(&mut self, view: &View<'_>) {
        let highest = view.paths.last().map_or(0, |p| p.id.index() + 1);
        if self.tracks.len() < highest {
            self.tracks.resize(highest, Track::default());
        }
        if self.epoch != view.epoch {
            self.epoch = view.epoch;
            self.tracks.iter_mut().for_each(|t| t.underway.clear());
        }
        for path in view.paths {
            let track = &mut self.tracks[path.id.index()];
            let mut last = None;
            while let Some(first) = track.underway.front() {
                if first.arrives_at > path.delivered {
                    break;
                }
                last = track.underway.pop_front();
            }
            // An acknowledgement of several chunks reports when the last of them arrived.
            if let Some(chunk) = last {
                let next = view.acknowledged_chunks as f64 - (chunk.sequence + 1) as f64;
                track.correction += self.options.gain * next;
            }
        }
    }

    /// Distance from the head at which `path` sends, in chunks.
    fn gap(&mut self, view: &View<'_>, path: &PathView) -> u64 {
        let delay = known_delay(view, path);
        let faster = || view.paths.iter().filter(|p| counts(p) && known_delay(view, p) < delay);
        let carried = |p: &PathView| {
            let round_trip = known_round_trip(view, p).as_nanos().max(1) as f64;
            let lead = (delay - known_delay(view, p)).as_nanos() as f64;
            chunks(view, p.window) as f64 * lead / round_trip
        };
        let computed: f64 = faster().map(carried).sum();
        let windows: u64 = faster().map(|p| chunks(view, p.window)).sum();
        // The correction keeps the gap at the head or beyond it, and at most at twice the computed gap or one
        // window further.
        let correction = &mut self.tracks[path.id.index()].correction;
        *correction = correction.max(-computed).min(computed.max(windows as f64));
        if faster().next().is_none() {
            *correction = 0.0;
        }
        (computed + *correction).round() as u64
    }
}

impl Schedule for Stms {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        self.observe(view);
        self.chosen = None;
        if !view.is_new_data() {
            return oldest_first(view);
        }
        let mut best: Option<(&PathView, u64)> = None;
        for path in view.open() {
            let gap = self.gap(view, path);
            let Some(position) = view.admit(gap) else { continue };
            let key = |p: &PathView, k: u64| (k, known_delay(view, p), p.in_flight, p.id.0);
            if best.is_none_or(|(p, k)| key(path, position) < key(p, k)) {
                best = Some((path, position));
            }
        }
        let Some((path, position)) = best else { return belongs_to_others(view) };
        if position > 0 {
            self.chosen = Some((path.id, path.delivered.saturating_add(path.in_flight)));
        }
        Decision::send(path.id, position, Reason::AcrossTheGap)
    }

    fn on_sent(&mut self, sent: &SentReport) {
        let Some((path, ahead)) = self.chosen.take().filter(|(path, _)| *path == sent.path) else {
            return;
        };
        let track = &mut self.tracks[path.index()];
        if track.underway.len() < OUTSTANDING {
            let arrives_at = ahead.saturating_add(sent.bytes);
            track.underway.push_back(Underway { sequence: sent.sequence, arrives_at });
        }
    }

    #[cfg(test)]
    fn claims(&self) -> super::conformance::Claims {
        super::conformance::Claims { predicts_arrivals: true, ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Duration;

    use super::super::Action;
    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    /// A full path with 10 chunks per 20 ms and 10 ms forward delay, and one with 50 ms forward delay.
    fn unequal() -> [PathView; 2] {
        let slow = PathView { forward_delay: Some(Duration::from_millis(50)), ..path_view(1) };
        [PathView { in_flight: 10 * CHUNK, ..path_view(0) }, slow]
    }

    fn position(stms: &mut Stms, view: &View<'_>, sequence: u64) -> u64 {
        let Action::Send { path, position } = stms.decide(view).action else { panic!("it waits") };
        stms.on_sent(&SentReport { path, position, sequence, bytes: CHUNK });
        position
    }

    #[test]
    fn the_gap_begins_as_what_the_fast_path_carries_in_the_difference() {
        let mut paths = unequal();
        assert_eq!(position(&mut Stms::default(), &view(&paths), 0), 20, "40 ms of 10 per 20");
        paths[0].in_flight = 0;
        let head = Decision::send(PathId(0), 0, Reason::AcrossTheGap);
        assert_eq!(Stms::default().decide(&view(&paths)), head);
    }

    #[test]
    fn a_chunk_that_comes_early_narrows_the_gap_and_a_late_one_widens_it() {
        for (acknowledged_chunks, expected) in [(12, 19), (21, 20), (29, 21), (1000, 40), (0, 17)] {
            let mut paths = unequal();
            let mut stms = Stms::default();
            assert_eq!(position(&mut stms, &view(&paths), 20), 20);
            paths[1].delivered = CHUNK - 1;
            let later = View { acknowledged_chunks, ..view(&paths) };
            assert_eq!(position(&mut stms, &later, 21), 20, "it has not arrived yet");
            paths[1].delivered = CHUNK;
            let later = View { acknowledged_chunks, ..view(&paths) };
            assert_eq!(position(&mut stms, &later, 22), expected, "{acknowledged_chunks}");
        }
    }

    #[test]
    fn a_loss_makes_what_is_on_its_way_worthless_as_a_measure() {
        let mut paths = unequal();
        let mut stms = Stms::default();
        position(&mut stms, &view(&paths), 20);
        paths[1].delivered = CHUNK;
        assert_eq!(position(&mut stms, &View { epoch: 1, ..view(&paths) }, 21), 20);
    }

    #[test]
    fn a_gap_beyond_what_may_be_sent_waits_for_the_fast_path() {
        let paths = unequal();
        let short = View { sendable: 20, ..view(&paths) };
        let waits = Decision::blocked(Reason::QueuedElsewhere);
        assert_eq!(Stms::default().decide(&short), waits);
    }
}
