//! Stream scheduler: streams with data take turns, one packet's worth at a time.
//!
//! Streams that were idle go first, once (like queues in FQ-CoDel, RFC 8290, 4.1), so a request that follows an
//! answer need not wait for all downloads. Such a stream must then join the round before it counts as idle again, so
//! that many of them cannot starve the others.

use std::collections::VecDeque;

use super::machine::Key;

/// Place of a stream in the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Turn {
    /// It has nothing to send.
    #[default]
    Idle,
    /// Among the streams that go first.
    Fresh,
    /// In the round.
    Round,
}

/// The streams that wait for their turn.
#[derive(Debug, Default)]
pub struct StreamScheduler {
    fresh: VecDeque<Key>,
    round: VecDeque<Key>,
}

impl StreamScheduler {
    /// Adds a stream that has something to send.
    pub fn enter(&mut self, key: Key, turn: &mut Turn) {
        if *turn == Turn::Idle {
            *turn = Turn::Fresh;
            self.fresh.push_back(key);
        }
    }

    /// Removes and returns the next stream.
    pub fn next(&mut self) -> Option<(Key, Turn)> {
        let fresh = self.fresh.pop_front().map(|key| (key, Turn::Fresh));
        fresh.or_else(|| self.round.pop_front().map(|key| (key, Turn::Round)))
    }

    /// After a stream's turn, puts it back into the round or removes it.
    pub fn put_back(&mut self, key: Key, turn: &mut Turn, had: Turn, has_more: bool) {
        if has_more || had == Turn::Fresh {
            *turn = Turn::Round;
            self.round.push_back(key);
        } else {
            *turn = Turn::Idle;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.round.is_empty()
    }
}
