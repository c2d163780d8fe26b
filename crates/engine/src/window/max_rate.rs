//! Maximum delivery rate of a path, measured while the path has a standing queue.

use ropewalk_base::{Duration, Rate, Time};

use super::manager::{ManagedPath, others};

/// A queue is standing if even the packet with the minimum queueing delay waited for this part of the
/// round trip and for this many chunks. Bursts queue behind themselves, but the first packet of a burst
/// does not.
const STANDING: u64 = 16;
const STANDING_CHUNKS: u64 = 2;
/// Period over which the minimum queueing delay is taken, in round trips.
const WHILE_ROUND_TRIPS: u64 = 2;
/// Rate of a path that has been full. On a path that was never full, window and round trip determine the
/// delivery rate, and a limit computed from that rate would keep the window at its current size.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxRateFilter {
    rate: Option<Rate>,
    since: Time,
    quickest: Duration,
}

impl MaxRateFilter {
    pub const UNKNOWN: Self = Self { rate: None, since: Time::ZERO, quickest: Duration::MAX };

    /// Updates the rate after an acknowledgement on the path.
    pub fn note(&mut self, now: Time, path: &ManagedPath, chunk: u64) {
        let (Some(rate), Some(least), Some(last)) =
            (path.rate, path.round_trip, path.last_queueing)
        else {
            return;
        };
        self.quickest = self.quickest.min(last);
        if now.since(self.since) > least * WHILE_ROUND_TRIPS {
            let standing = (least / STANDING).max(rate.time_for(STANDING_CHUNKS * chunk));
            if self.quickest > standing {
                self.rate = Some(rate);
            }
            (self.since, self.quickest) = (now, Duration::MAX);
        }
        if self.rate.is_some_and(|known| rate > known) {
            self.rate = Some(rate);
        }
    }

    /// The rate, once known.
    pub const fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The BDP, bytes.
    fn pipe(&self, path: &ManagedPath, chunk: u64) -> Option<u64> {
        Some(self.rate?.bytes_in(pipe_time(path)?) + chunk)
    }
}

/// Round trip of an empty path: the minimum round trip, unless acknowledgements now take clearly longer
/// because they return on another path. Small differences are noise, and each additional packet in flight
/// takes space from another path.
fn pipe_time(path: &ManagedPath) -> Option<Duration> {
    let (least, now) = (path.round_trip?, path.empty_round_trip?);
    Some(if now > least + least / STANDING { now } else { least })
}

/// Limit of the data in flight on path `i`, bytes, `None` while its rate is unknown. Beyond its BDP, a
/// path may use space that the others leave, up to the share `queue` of the BDP, so that its window is
/// larger after the next loss. The queue delays all data, so data that the others deliver during that
/// delay must fit into the buffer as well.
pub(super) fn in_flight_most(
    i: usize,
    buffer: u64,
    chunk: u64,
    paths: &[ManagedPath],
    ceilings: &[MaxRateFilter],
    queue: f64,
) -> Option<u64> {
    let pipe = ceilings[i].pipe(&paths[i], chunk)? as f64;
    let rate = ceilings[i].rate?.as_bps() as f64 / 8e9;
    let (mut room, mut per_byte) = (buffer as f64 - pipe, 1.0);
    for (path, ceiling) in others(i, paths).zip(others(i, ceilings)) {
        let used = ceiling.pipe(path, chunk).map_or(path.window, |pipe| path.window.min(pipe));
        room -= used as f64;
        if let Some(round_trip) = path.round_trip {
            per_byte += used as f64 / round_trip.as_nanos().max(1) as f64 / rate;
        }
    }
    Some((pipe + (room.max(0.0) / per_byte).min(queue * pipe)) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::manager::tests::{CHUNK, path};
    use super::*;

    /// The filter after repeated periods with these queueing delays in ms.
    fn after(millis: &[u64]) -> MaxRateFilter {
        let mut ceiling = MaxRateFilter::UNKNOWN;
        for (at, queueing) in (0..200).zip(millis.iter().cycle()) {
            let last_queueing = Some(Duration::from_millis(*queueing));
            let seen = ManagedPath { last_queueing, ..path(20, 40, 60) };
            ceiling.note(Time::from_millis(at * 5), &seen, CHUNK);
        }
        ceiling
    }

    #[test]
    fn only_a_queue_that_stands_shows_the_rate() {
        for (queueing, known) in
            [(&[0][..], false), (&[0, 10, 20, 30], false), (&[4, 10, 20], true), (&[1], false)]
        {
            assert_eq!(after(queueing).rate().is_some(), known, "{queueing:?}");
        }
    }

    #[test]
    fn a_path_that_delivers_more_than_it_was_thought_to_is_believed_at_once() {
        let mut ceiling = after(&[10]);
        ceiling.note(Time::from_secs(2), &path(30, 40, 60), CHUNK);
        assert_eq!(ceiling.rate(), path(30, 40, 60).rate);
        ceiling.note(Time::from_secs(2), &path(10, 40, 60), CHUNK);
        assert_eq!(ceiling.rate(), path(30, 40, 60).rate, "no queue shows that it is less");
    }

    #[test]
    fn a_path_may_exceed_its_pipe_only_into_what_the_others_leave() {
        let full = after(&[10]);
        // BDP: 20 Mbit/s for 40 ms are 100 chunks, plus one that is being sent. 29 chunks of space are free.
        // Each queued chunk needs space for another 60 / 100 of a chunk of the other path.
        for (buffer, other, most) in
            [(150, 60, 101), (300, 60, 126), (300, 200, 126), (190, 60, 119)]
        {
            let paths = [path(20, 40, 120), path(20, 40, other)];
            let found = in_flight_most(0, buffer * CHUNK, CHUNK, &paths, &[full, full], 0.25);
            assert_eq!(found.map(|b| b / CHUNK), Some(most), "{buffer} chunks, {other} taken");
        }
        let paths = [path(20, 40, 120), path(20, 40, 60)];
        assert_eq!(
            in_flight_most(0, 0, CHUNK, &paths, &[MaxRateFilter::UNKNOWN, full], 0.25),
            None
        );
    }
}
