//! The newest first message of each key: an older one, or the same, is a replay.

use std::collections::BTreeMap;

use ropewalk_base::{Duration, Time};

use super::keys::PublicKey;
use super::timestamp::Timestamp;
use super::token::TOKEN_LIFETIME;

/// Strangers that are remembered at a time.
pub(super) const STRANGERS_MAX: usize = 16_384;
/// How often a full memory is searched for what may be forgotten.
const SEARCH: Duration = Duration::from_secs(1);

/// What is remembered of handshakes.
pub(super) struct Seen {
    newest: BTreeMap<PublicKey, (Timestamp, Time)>,
    /// The most keys, and when to look again for some to forget; none where only keys that are
    /// listed come so far.
    bound: Option<(usize, Time)>,
}

impl Seen {
    /// For keys that are listed: as many as there are, and for ever.
    pub(super) const fn of_listed() -> Self {
        Self { newest: BTreeMap::new(), bound: None }
    }

    /// For anyone: at most `max` keys, each until the token that it came with counts no more.
    pub(super) const fn of_strangers(max: usize) -> Self {
        Self { newest: BTreeMap::new(), bound: Some((max, Time::ZERO)) }
    }

    /// Remembers a first message, if it is newer than all of its key and there is room.
    pub(super) fn admits(&mut self, now: Time, key: PublicKey, sent: Timestamp) -> bool {
        if let Some((newest, _)) = self.newest.get(&key) {
            if sent <= *newest {
                return false;
            }
        } else if !self.has_room(now) {
            return false;
        }
        self.newest.insert(key, (sent, now));
        true
    }

    fn has_room(&mut self, now: Time) -> bool {
        let Some((max, search_at)) = &mut self.bound else { return true };
        if self.newest.len() >= *max && now >= *search_at {
            *search_at = now.saturating_add(SEARCH);
            self.newest.retain(|_, (_, at)| now.since(*at) <= TOKEN_LIFETIME);
        }
        self.newest.len() < *max
    }

    /// Forgets the keys that are not to be kept.
    pub(super) fn retain(&mut self, keep: impl Fn(&PublicKey) -> bool) {
        self.newest.retain(|key, _| keep(key));
    }

    pub(super) fn len(&self) -> usize {
        self.newest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> PublicKey {
        PublicKey::from_bytes([number; 32]).expect("a key")
    }

    #[test]
    fn only_a_newer_message_of_a_key_is_admitted() {
        let mut seen = Seen::of_listed();
        for (number, nanos, admitted) in
            [(1, 5, true), (1, 5, false), (1, 4, false), (2, 4, true), (1, 6, true), (1, 5, false)]
        {
            let sent = Timestamp::from_unix_nanos(nanos);
            assert_eq!(seen.admits(Time::ZERO, key(number), sent), admitted, "{number} {nanos}");
        }
    }

    #[test]
    fn strangers_never_fill_more_than_their_room() {
        let mut seen = Seen::of_strangers(3);
        let at = |seconds, number| (Time::from_secs(seconds), key(number));
        for (seconds, number, admitted) in [
            (100, 1, true),
            (101, 2, true),
            (102, 3, true),
            (102, 4, false),
            // The first is forgotten by now.
            (111, 4, true),
            (111, 5, false),
            (130, 5, true),
        ] {
            let (now, key) = at(seconds, number);
            let sent = Timestamp::from_unix_nanos(1);
            assert_eq!(seen.admits(now, key, sent), admitted, "{seconds} s, key {number}");
            assert!(seen.len() <= 3);
        }
    }
}
