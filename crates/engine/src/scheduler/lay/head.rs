//! Detects which path holds up the head of the stream, and how much data it carries.
//!
//! Data is delivered in order, so everything sent after a late chunk waits for it. If the chunks of a
//! path arrive when they are due, the path holds the oldest unacknowledged chunk for about as large a
//! share of the time as its share of the data. The share of the time is larger if the chunks are late,
//! because the path becomes silent, loses packets, or has a queue.
//!
//! While the receive window is closed, no path sends. If that happens because one path holds the head for
//! a larger share of the time than its share of the data, the bundle is faster without that path.

use std::collections::VecDeque;

use ropewalk_base::{Duration, PathId, Time};

use super::nanos;

/// Time constant of the means of both shares.
const MEMORY: Duration = Duration::from_secs(10);
/// A path with less than this share of the data is dispensable.
const SMALL_SHARE: f64 = 0.05;
/// Excess of the share of the time over the share of the data above which waits for this path determine
/// the 99th percentile of delays.
const OFTEN: f64 = 0.01;
/// Excess of the share of the time with a closed window over the share of the data above which a path
/// costs more than it carries. A closed window costs less where the paths have data in flight.
const BLOCKED: f64 = 0.1;
/// Duration of the first rest. Each further rest is twice as long, up to [`LONGEST_REST`], unless the
/// path was in use for longer than its last rest.
const FIRST_REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(80);
/// Maximum number of chunks whose path is remembered.
const CHUNK_LIMIT: usize = 1 << 16;

/// The chunk has not been sent or reported yet.
const UNSENT: u8 = u8::MAX;
/// The chunk was sent on several paths.
const SEVERAL: u8 = u8::MAX - 1;

/// The path on which each unacknowledged chunk was first sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Holders {
    /// Number of the oldest unacknowledged chunk.
    base: u64,
    /// For each chunk from `base` on: an identifier of a path, [`UNSENT`] or [`SEVERAL`].
    paths: VecDeque<u8>,
}

impl Holders {
    /// The peer has received all chunks before number `acknowledged`.
    pub fn advance(&mut self, acknowledged: u64) {
        let known = acknowledged.saturating_sub(self.base).min(self.paths.len() as u64);
        self.paths.drain(..known as usize);
        self.base = self.base.max(acknowledged);
    }

    /// Chunk number `sequence` was sent on `path`.
    pub fn on_sent(&mut self, sequence: u64, path: PathId) {
        let at = sequence.checked_sub(self.base).map_or(CHUNK_LIMIT, |at| at as usize);
        if at >= CHUNK_LIMIT {
            return;
        }
        if at >= self.paths.len() {
            self.paths.resize(at + 1, UNSENT);
        }
        let holder = &mut self.paths[at];
        if *holder == UNSENT {
            *holder = path.0;
        } else if *holder != path.0 {
            *holder = SEVERAL;
        }
    }

    /// The path that holds the oldest unacknowledged chunk, if it is a single path.
    pub fn oldest(&self) -> Option<PathId> {
        self.paths.front().filter(|holder| **holder < SEVERAL).map(|holder| PathId(*holder))
    }
}

/// Data carried by one path, and time during which it holds the head of the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// Bytes carried, decaying with time constant [`MEMORY`].
    carried: f64,
    /// Share of the time during which the path held the head, with the same time constant.
    held: f64,
    /// Share of the time during which the receive window was closed while the path held the head.
    blocked: f64,
    /// Bytes delivered at the last update.
    delivered: u64,
    looked: Time,
    /// Duration of the last rest.
    rest: Duration,
    rests_until: Time,
}

impl Share {
    /// Updates all shares. `delivered`: total number of bytes that the path has delivered. `held`: whether
    /// it has held the head since the last call. `blocked`: whether the receive window was also closed.
    pub fn look(&mut self, now: Time, delivered: u64, (held, blocked): (bool, bool)) {
        let part = (nanos(now.since(self.looked)) / nanos(MEMORY)).min(1.0);
        self.looked = now;
        self.carried += delivered.saturating_sub(self.delivered) as f64 - self.carried * part;
        self.delivered = delivered;
        self.held += (f64::from(u8::from(held)) - self.held) * part;
        self.blocked += (f64::from(u8::from(blocked)) - self.blocked) * part;
    }

    /// Bytes carried recently.
    pub const fn carried(&self) -> f64 {
        self.carried
    }

    /// Whether the path delays the others and carries little of the `all` bytes that all paths together
    /// carried, or costs more than it carries.
    pub fn hinders(&self, all: f64) -> bool {
        let share = self.carried / all.max(1.0);
        (share < SMALL_SHARE && self.held > share + OFTEN) || self.blocked > share + BLOCKED
    }

    /// Starts a rest.
    pub fn begin_rest(&mut self, now: Time) {
        let lasted = now.since(self.rests_until) > self.rest;
        let longer = self.rest.saturating_mul(if lasted { 1 } else { 2 });
        self.rest = longer.clamp(FIRST_REST, LONGEST_REST);
        self.rests_until = now.saturating_add(self.rest);
        (self.carried, self.held, self.blocked) = (0.0, 0.0, 0.0);
    }

    /// Whether the path rests.
    pub fn rests(&self, now: Time) -> bool {
        now < self.rests_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holders(sent: &[(u64, u8)], acknowledged: u64) -> Option<u8> {
        let mut holders = Holders::default();
        for (sequence, path) in sent {
            holders.on_sent(*sequence, PathId(*path));
        }
        holders.advance(acknowledged);
        holders.oldest().map(|path| path.0)
    }

    #[test]
    fn the_oldest_chunk_is_held_by_the_path_on_which_it_left() {
        let sent = [(0, 0), (2, 1), (3, 0), (3, 1)];
        let held = [Some(0), None, Some(1), None, None];
        for (acknowledged, path) in held.into_iter().enumerate() {
            assert_eq!(holders(&sent, acknowledged as u64), path, "{acknowledged}");
        }
        assert_eq!(holders(&[(u64::MAX, 0), (1 << 16, 0)], 0), None, "what is kept is bounded");
        assert_eq!(holders(&[], 1 << 40), None);
    }

    /// Whether a path hinders that for 20 s has these shares of the data and of the time, in thousandths.
    /// `closed`: whether the window is closed while it holds the head.
    fn hinders(data: u64, time: u64, closed: bool) -> bool {
        let mut share = Share::default();
        for ms in 1..=20_000 {
            let held = ms % 1000 < time;
            share.look(Time::from_millis(ms), ms * data, (held, held && closed));
        }
        share.hinders(8_647_000.0)
    }

    #[test]
    fn a_path_hinders_that_holds_the_head_for_longer_than_its_share_and_carries_little() {
        for (data, time, expected) in
            [(20, 20, false), (20, 60, true), (0, 40, true), (70, 200, false), (40, 30, false)]
        {
            assert_eq!(hinders(data, time, false), expected, "{data} and {time}");
        }
    }

    #[test]
    fn a_path_hinders_that_closes_the_window_for_longer_than_its_share() {
        for (data, time, expected) in
            [(70, 150, false), (70, 250, true), (300, 400, false), (300, 550, true)]
        {
            assert_eq!(hinders(data, time, true), expected, "{data} and {time}");
        }
    }

    #[test]
    fn rests_grow_longer_unless_the_path_was_of_use_in_between() {
        let mut share = Share::default();
        let mut now = Time::from_secs(5);
        let mut lengths = Vec::new();
        for in_use in [1, 1, 1, 1, 1, 100, 1] {
            share.begin_rest(now);
            let seconds = (1..200).take_while(|s| share.rests(now + Duration::from_secs(*s)));
            let length = seconds.count() as u64 + 1;
            lengths.push(length);
            now += Duration::from_secs(length + in_use);
        }
        assert_eq!(lengths, [10, 20, 40, 80, 80, 80, 80]);
        let mut share = Share::default();
        share.begin_rest(Time::from_secs(5));
        share.begin_rest(Time::from_secs(30));
        assert!(!share.rests(Time::from_secs(41)), "in use for 15 s after 10 s");
    }
}
