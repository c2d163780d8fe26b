//! The newest first message of each key. An older or equal message is a replay.

use std::collections::BTreeMap;

use ropewalk_base::{Duration, Time};

use super::keys::PublicKey;
use super::timestamp::Timestamp;
use super::token::TOKEN_LIFETIME;

/// Maximum number of unlisted keys that are remembered at a time.
pub(super) const UNLISTED_KEYS_MAX: usize = 16_384;
/// Interval of searches for removable entries while the memory is full.
const SEARCH: Duration = Duration::from_secs(1);

/// Why a first message is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    /// The message is older than another one of the same key.
    Old {
        /// How far its date is behind the date that the key's clock should show by now.
        behind: Duration,
        /// The date of the newer one.
        newest: Timestamp,
    },
    /// The message repeats the newest one of its key.
    Known,
    /// Too many keys are remembered.
    Full,
}

/// The remembered first messages.
pub(super) struct HandshakeReplay {
    newest: BTreeMap<PublicKey, (Timestamp, Time)>,
    /// Maximum number of keys, and when to search again for entries to remove. `None` if only listed keys are admitted.
    bound: Option<(usize, Time)>,
}

impl HandshakeReplay {
    /// For listed keys: their number is limited, and entries stay forever.
    pub(super) const fn of_listed() -> Self {
        Self { newest: BTreeMap::new(), bound: None }
    }

    /// For any key: at most `max` keys, each until its token has expired.
    pub(super) const fn of_unlisted(max: usize) -> Self {
        Self { newest: BTreeMap::new(), bound: Some((max, Time::ZERO)) }
    }

    /// Records a first message, if it is newer than all others of its key and there is room.
    pub(super) fn admit(
        &mut self,
        now: Time,
        key: PublicKey,
        sent: Timestamp,
    ) -> Result<(), Rejection> {
        if let Some((newest, at)) = self.newest.get(&key) {
            if sent == *newest {
                return Err(Rejection::Known);
            }
            if sent < *newest {
                let behind = newest.as_unix_nanos() - sent.as_unix_nanos();
                let since = now.since(*at).as_nanos();
                let behind = Duration::from_nanos(behind.saturating_add(since));
                return Err(Rejection::Old { behind, newest: *newest });
            }
        } else if !self.has_room(now) {
            return Err(Rejection::Full);
        }
        self.newest.insert(key, (sent, now));
        Ok(())
    }

    fn has_room(&mut self, now: Time) -> bool {
        let Some((max, search_at)) = &mut self.bound else { return true };
        if self.newest.len() >= *max && now >= *search_at {
            *search_at = now.saturating_add(SEARCH);
            self.newest.retain(|_, (_, at)| now.since(*at) <= TOKEN_LIFETIME);
        }
        self.newest.len() < *max
    }

    /// Removes the keys for which `keep` is false.
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
        let mut replay = HandshakeReplay::of_listed();
        let old = |nanos, newest| {
            let newest = Timestamp::from_unix_nanos(newest);
            Err(Rejection::Old { behind: Duration::from_nanos(nanos), newest })
        };
        for (at, number, sent, admitted) in [
            (0, 1, 5, Ok(())),
            (0, 1, 5, Err(Rejection::Known)),
            (0, 1, 4, old(1, 5)),
            (100, 1, 5, Err(Rejection::Known)),
            (100, 1, 4, old(101, 5)),
            (100, 2, 4, Ok(())),
            (100, 1, 6, Ok(())),
            (100, 1, 5, old(1, 6)),
        ] {
            let (now, date) = (Time::from_nanos(at), Timestamp::from_unix_nanos(sent));
            assert_eq!(replay.admit(now, key(number), date), admitted, "{at}: {number} {sent}");
        }
    }

    #[test]
    fn unlisted_keys_never_exceed_their_limit() {
        let mut replay = HandshakeReplay::of_unlisted(3);
        let at = |seconds, number| (Time::from_secs(seconds), key(number));
        for (seconds, number, admitted) in [
            (100, 1, true),
            (101, 2, true),
            (102, 3, true),
            (102, 4, false),
            // The first entry has been removed by now.
            (111, 4, true),
            (111, 5, false),
            (130, 5, true),
        ] {
            let (now, key) = at(seconds, number);
            let sent = Timestamp::from_unix_nanos(1);
            let expected = if admitted { Ok(()) } else { Err(Rejection::Full) };
            assert_eq!(replay.admit(now, key, sent), expected, "{seconds} s, key {number}");
            assert!(replay.len() <= 3);
        }
    }
}
