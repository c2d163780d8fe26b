//! Replies to recent first datagrams, kept for retransmission.
//!
//! A first message leads to one session, but its datagram may arrive several times: the network duplicates it, the
//! initiator sends it again because of a forged Retry, or a third party sends a copy that overtakes it. Each arrival
//! is answered, so that the Reply reaches the initiator regardless of which copy arrives first.

use std::collections::{BTreeMap, VecDeque};

use ropewalk_base::{Duration, Time};

use super::mac::Mac;

/// Maximum number of Replies that are kept; the oldest is dropped first.
const LIMIT: usize = 256;
/// How long a Reply is kept: as long as a session waits for its first datagram.
const LIFETIME: Duration = Duration::from_secs(10);

/// Recent Replies, without their MACs, by a hash of the first message.
#[derive(Default)]
pub(super) struct ReplyCache {
    replies: BTreeMap<Mac, (Time, Vec<u8>)>,
    order: VecDeque<Mac>,
}

impl ReplyCache {
    /// Stores the Reply to a first message that was not answered before.
    pub(super) fn insert(&mut self, now: Time, message: Mac, reply: Vec<u8>) {
        if self.order.len() == LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.replies.remove(&oldest);
        }
        self.order.push_back(message);
        self.replies.insert(message, (now, reply));
    }

    /// The stored Reply to this first message.
    pub(super) fn get(&self, now: Time, message: &Mac) -> Option<&[u8]> {
        let (since, reply) = self.replies.get(message)?;
        (now.since(*since) <= LIFETIME).then_some(reply)
    }

    /// Removes all Replies.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_replies_are_kept_for_a_while() {
        let mut answered = ReplyCache::default();
        let now = Time::from_secs(100);
        let name = |number: usize| (number as u128).to_be_bytes();
        for number in 0..=LIMIT {
            answered.insert(now, name(number), vec![number as u8]);
        }
        assert_eq!(answered.get(now, &name(0)), None);
        assert_eq!(answered.get(now + LIFETIME, &name(LIMIT)), Some(&[0][..]));
        assert_eq!(answered.get(now + LIFETIME + Duration::from_nanos(1), &name(LIMIT)), None);
        assert_eq!((answered.replies.len(), answered.order.len()), (LIMIT, LIMIT));
    }
}
