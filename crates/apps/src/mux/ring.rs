//! Whose turn it is: each stream that has something to send, one packet's worth at a time.
//!
//! Streams that were idle go first, once (as queues do in FQ-CoDel, RFC 8290, 4.1): the request
//! that follows an answer need not wait for a round of all downloads. Such a stream then takes its
//! place in the round before it may count as idle again, so that many of them starve nobody.

use std::collections::VecDeque;

use super::machine::Key;

/// Where a stream is in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Turn {
    /// Nowhere.
    #[default]
    Idle,
    /// Among those that go first.
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
    /// The stream has something to send.
    pub fn enter(&mut self, key: Key, turn: &mut Turn) {
        if *turn == Turn::Idle {
            *turn = Turn::Fresh;
            self.fresh.push_back(key);
        }
    }

    /// Whose turn it is; it is out of the ring then.
    pub fn next(&mut self) -> Option<(Key, Turn)> {
        let fresh = self.fresh.pop_front().map(|key| (key, Turn::Fresh));
        fresh.or_else(|| self.round.pop_front().map(|key| (key, Turn::Round)))
    }

    /// After its turn: back into the round, or out of the ring.
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
