//! The state cookie (RFC 9260, 5.1.3): all that the responder would have to remember, sealed with
//! a key that never leaves it, so that it remembers nothing before the cookie returns.

use hmac::{Hmac, Mac};
use ropewalk_base::{Duration, Serial32, Time};
use sha2::Sha256;

use super::chunk::Init;

/// State cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// The responder's own initiation, as its INIT ACK has it.
    pub local: Init,
    /// The initiator's, as its INIT has it.
    pub peer: Init,
    /// When it was made, by the responder's clock.
    pub created: Time,
    /// Tie-tags: local and peer tag of an association that existed already (5.2.2); 0 if none.
    pub tie_tags: (u32, u32),
    mac: [u8; 32],
}

/// Why a cookie is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieError {
    /// Not made with this key, or changed since: silently dropped (5.1.5, 1).
    Forged,
    /// Too old by this much: answered with ERROR (5.1.5, 3).
    Stale(Duration),
}

/// The responder's key.
#[derive(Clone)]
pub struct CookieKey([u8; 32]);

impl core::fmt::Debug for CookieKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("CookieKey(..)")
    }
}

impl Cookie {
    /// Bytes of the cookie parameter: two initiations with what they ask for, time, tie-tags, code.
    pub const WIRE_LEN: u32 = 2 * 20 + 8 + 8 + 32;
}

impl CookieKey {
    /// A key from 32 random bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn code(&self, cookie: &Cookie) -> Hmac<Sha256> {
        // Any length of key will do for this code, so making it cannot fail.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| unreachable!());
        for init in [&cookie.local, &cookie.peer] {
            mac.update(&init.tag.to_be_bytes());
            mac.update(&init.window.to_be_bytes());
            mac.update(&init.outbound_streams.to_be_bytes());
            mac.update(&init.inbound_streams.to_be_bytes());
            mac.update(&init.initial_tsn.0.to_be_bytes());
            mac.update(&[init.addresses]);
            mac.update(&init.preserve_millis.to_be_bytes());
        }
        mac.update(&cookie.created.as_nanos().to_be_bytes());
        mac.update(&cookie.tie_tags.0.to_be_bytes());
        mac.update(&cookie.tie_tags.1.to_be_bytes());
        mac
    }

    /// Makes a cookie.
    pub fn seal(&self, local: Init, peer: Init, created: Time, tie_tags: (u32, u32)) -> Cookie {
        let mut cookie = Cookie { local, peer, created, tie_tags, mac: [0; 32] };
        cookie.mac = self.code(&cookie).finalize().into_bytes().into();
        cookie
    }

    /// Checks a cookie that came back.
    ///
    /// # Errors
    /// [`CookieError`], with the comparison in constant time.
    pub fn check(&self, cookie: &Cookie, now: Time, lifetime: Duration) -> Result<(), CookieError> {
        self.code(cookie).verify_slice(&cookie.mac).map_err(|_| CookieError::Forged)?;
        let age = now.since(cookie.created);
        if age > lifetime {
            return Err(CookieError::Stale(age - lifetime));
        }
        Ok(())
    }

    /// Tag and initial TSN for an association that may follow one that is up (5.2.2): new ones for
    /// each INIT, yet nothing is kept for it, not even a step of the generator. The tag is not 0
    /// and not `current`.
    pub fn fresh(&self, peer: &Init, now: Time, current: u32) -> (u32, Serial32) {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| unreachable!());
        mac.update(b"tag");
        mac.update(&peer.tag.to_be_bytes());
        mac.update(&peer.initial_tsn.0.to_be_bytes());
        mac.update(&now.as_nanos().to_be_bytes());
        let code: [u8; 32] = mac.finalize().into_bytes().into();
        let word =
            |at: usize| u32::from_be_bytes([code[at], code[at + 1], code[at + 2], code[at + 3]]);
        let good = |tag: &u32| *tag != 0 && *tag != current;
        let tag = [word(0), word(4), word(8)].into_iter().find(good);
        (tag.unwrap_or(current ^ 1).max(1), Serial32(word(12)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init(tag: u32) -> Init {
        Init {
            tag,
            window: 65_536,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: Serial32(9),
            addresses: 2,
            preserve_millis: 0,
        }
    }

    #[test]
    fn a_cookie_passes_unchanged_and_in_time_only() {
        let key = CookieKey::new([7; 32]);
        let life = Duration::from_secs(60);
        let cookie = key.seal(init(1), init(2), Time::from_secs(5), (3, 4));
        assert_eq!(key.check(&cookie, Time::from_secs(65), life), Ok(()));
        let late = key.check(&cookie, Time::from_secs(66), life);
        assert_eq!(late, Err(CookieError::Stale(Duration::from_secs(1))));
        let forged = [
            Cookie { local: init(5), ..cookie.clone() },
            Cookie { peer: Init { window: 1, ..init(2) }, ..cookie.clone() },
            Cookie { peer: Init { preserve_millis: 9, ..init(2) }, ..cookie.clone() },
            Cookie { created: Time::from_secs(6), ..cookie.clone() },
            Cookie { tie_tags: (3, 5), ..cookie.clone() },
            Cookie { tie_tags: (0, 4), ..cookie.clone() },
        ];
        for changed in forged {
            let verdict = key.check(&changed, Time::from_secs(6), life);
            assert_eq!(verdict, Err(CookieError::Forged), "{changed:?}");
        }
        let other = CookieKey::new([8; 32]);
        assert_eq!(other.check(&cookie, Time::from_secs(6), life), Err(CookieError::Forged));
    }
}
