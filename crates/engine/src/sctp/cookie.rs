//! The state cookie (RFC 9260, 5.1.3): all state of a handshake, authenticated with a key that only the
//! responder has. The responder therefore keeps no state before the cookie returns.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use hmac::{Hmac, Mac};
use ropewalk_base::{Duration, PathId, Serial32, Time};
use sha2::Sha256;

use super::extensions::Extensions;
use super::extensions::authentication::AuthParameters;
use super::init::{Init, InitOptions};

/// Content of a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieContent {
    /// The responder's tag, as in its INIT ACK.
    pub local_tag: u32,
    /// The responder's initial TSN.
    pub local_tsn: Serial32,
    /// The initiator's INIT, reduced to what an association needs: of the extensions, the types and the
    /// parameters for authenticated chunks.
    pub peer: Init,
    /// Time of creation by the responder's clock.
    pub created: Time,
    /// Tie-tags of an existing association, from [`CookieKey::tie_tags`] (5.2.2); 0 if there is none.
    pub tie_tags: (u32, u32),
    /// The path on which the INIT ACK was sent (5.4 (2)).
    pub path: PathId,
}

/// The cookie was not made with this key for this source, or was modified. It is silently discarded (5.1.5
/// (1)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgedCookie;

/// The responder's key.
#[derive(Clone)]
pub struct CookieKey([u8; 32]);

impl core::fmt::Debug for CookieKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("CookieKey(..)")
    }
}

/// Length of the fixed part, bytes.
const FIXED: usize = 48;
/// Length of the message authentication code, bytes: half of SHA-256's output, the minimum that RFC 2104, 5,
/// recommends.
const CODE: usize = 16;
/// Minimum length of a cookie, bytes. A shorter one would reveal that there are few addresses. In
/// simulations, handshakes over one and six paths take equally long.
const LEAST: usize = 88;
/// Maximum number of peer addresses per address family in a cookie. Further ones are not used.
pub const ADDRESSES_LIMIT: usize = 32;
/// Byte before an adaptation indication; padding is 0.
const HAS_ADAPTATION: u8 = 1;
/// Bits of the number of addresses of a family.
const COUNT_BITS: u32 = 6;

impl CookieContent {
    /// How much the cookie is older than `life`, if it is.
    pub fn staleness(&self, now: Time, life: Duration) -> Option<Duration> {
        let age = now.since(self.created);
        (age > life).then(|| age - life)
    }

    fn write(&self) -> Vec<u8> {
        let peer = &self.peer;
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for address in &peer.addresses {
            match address {
                IpAddr::V4(one) if v4.len() < 4 * ADDRESSES_LIMIT => v4.extend(one.octets()),
                IpAddr::V6(one) if v6.len() < 16 * ADDRESSES_LIMIT => v6.extend(one.octets()),
                _ => {}
            }
        }
        let mut out = Vec::with_capacity((FIXED + CODE + v4.len() + v6.len()).max(LEAST));
        // The two highest bits of each count are free: together they hold the path.
        let path = self.path.0;
        let count = |addresses: usize, bits: u8| addresses as u8 | bits << COUNT_BITS;
        out.extend([count(v4.len() / 4, path >> 2 & 3), count(v6.len() / 16, path & 3)]);
        out.extend(peer.extensions().bits().to_be_bytes());
        for word in [self.local_tag, self.local_tsn.0, peer.tag, peer.window] {
            out.extend(word.to_be_bytes());
        }
        out.extend(peer.outbound_streams.to_be_bytes());
        out.extend(peer.inbound_streams.to_be_bytes());
        for word in [peer.initial_tsn.0, peer.preserve_millis, self.tie_tags.0, self.tie_tags.1] {
            out.extend(word.to_be_bytes());
        }
        out.extend(self.created.as_nanos().to_be_bytes());
        out.extend(v4);
        out.extend(v6);
        let (auth, adaptation) = (&peer.options.authentication, peer.options.adaptation);
        if auth.is_some() || adaptation.is_some() {
            let vector = auth.as_ref().map_or(Vec::new(), |auth| auth.key_vector());
            out.extend((vector.len() as u16).to_be_bytes());
            out.extend(vector);
        }
        if let Some(layer) = adaptation {
            out.push(HAS_ADAPTATION);
            out.extend(layer.to_be_bytes());
        }
        out.resize(out.len().max(LEAST - CODE), 0);
        out
    }

    /// Reads the output of [`CookieContent::write`], `None` if it is malformed.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (fixed, rest) = bytes.split_first_chunk::<FIXED>()?;
        let word = |at: usize| {
            u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        };
        let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let count = |at: usize| (fixed[at] & ((1 << COUNT_BITS) - 1)) as usize;
        let path = PathId(fixed[0] >> COUNT_BITS << 2 | fixed[1] >> COUNT_BITS);
        let (v4, rest) = rest.split_at_checked(4 * count(0))?;
        let (v6, rest) = rest.split_at_checked(16 * count(1))?;
        let v4 = v4.as_chunks::<4>().0.iter().map(|one| IpAddr::V4(Ipv4Addr::from(*one)));
        let v6 = v6.as_chunks::<16>().0.iter().map(|one| IpAddr::V6(Ipv6Addr::from(*one)));
        let extensions = Extensions::from_bits(half(2));
        let (authentication, rest) = read_auth(rest)?;
        let ecn = half(2) & Extensions::ECN.bits() != 0;
        let peer = Init {
            tag: word(12),
            window: word(16),
            outbound_streams: half(20),
            inbound_streams: half(22),
            initial_tsn: Serial32(word(24)),
            addresses: v4.chain(v6).collect(),
            preserve_millis: word(28),
            options: InitOptions {
                extensions,
                ecn,
                authentication,
                adaptation: read_adaptation(rest),
                ..InitOptions::default()
            },
        };
        Some(Self {
            local_tag: word(4),
            local_tsn: Serial32(word(8)),
            peer,
            created: Time::from_nanos((word(40) as u64) << 32 | word(44) as u64),
            tie_tags: (word(32), word(36)),
            path,
        })
    }
}

/// Reads the parameters for authenticated chunks after the addresses of a cookie: the length of their key
/// vector, and the vector. Without parameters, only padding follows, which is a length of 0. Also returns
/// the remaining bytes.
fn read_auth(rest: &[u8]) -> Option<(Option<Box<AuthParameters>>, &[u8])> {
    let Some(([a, b], rest)) = rest.split_first_chunk::<2>() else { return Some((None, &[])) };
    let length = usize::from(u16::from_be_bytes([*a, *b]));
    let (vector, rest) = rest.split_at_checked(length)?;
    let auth = match length {
        0 => None,
        _ => Some(Box::new(AuthParameters::of_key_vector(vector)?)),
    };
    Some((auth, rest))
}

/// Reads the adaptation indication at the end of a cookie. Without one, only padding follows.
fn read_adaptation(rest: &[u8]) -> Option<u32> {
    let layer = rest.strip_prefix(&[HAS_ADAPTATION])?.first_chunk()?;
    Some(u32::from_be_bytes(*layer))
}

impl CookieKey {
    /// A key from 32 random bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn mac(&self, purpose: &[u8], context: &[u8]) -> Hmac<Sha256> {
        // HMAC accepts keys of any length, so this cannot fail.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| unreachable!());
        mac.update(purpose);
        mac.update(&(context.len() as u64).to_be_bytes());
        mac.update(context);
        mac
    }

    /// Makes a cookie that is valid only with `context`, which identifies its destination, such as
    /// address and port. Empty: valid everywhere.
    pub fn seal(&self, content: &CookieContent, context: &[u8]) -> Bytes {
        let mut cookie = content.write();
        let mut mac = self.mac(b"cookie", context);
        mac.update(&cookie);
        cookie.extend_from_slice(&mac.finalize().into_bytes()[..CODE]);
        cookie.into()
    }

    /// Opens a returned cookie. The caller checks its age with [`CookieContent::staleness`].
    ///
    /// # Errors
    /// [`ForgedCookie`]; the comparison takes constant time.
    pub fn open(&self, cookie: &[u8], context: &[u8]) -> Result<CookieContent, ForgedCookie> {
        let (content, code) = cookie.split_last_chunk::<CODE>().ok_or(ForgedCookie)?;
        let mut mac = self.mac(b"cookie", context);
        mac.update(content);
        mac.verify_truncated_left(code).map_err(|_| ForgedCookie)?;
        CookieContent::read(content).ok_or(ForgedCookie)
    }

    /// The tie-tags of the association between these tags (5.2.2): nonzero numbers that only this key can
    /// compute. Any host can request and read a cookie, so it must not reveal the verification tags of an
    /// existing association (5.1.3).
    pub fn tie_tags(&self, local: u32, peer: u32) -> (u32, u32) {
        let mut mac = self.mac(b"tie", &[]);
        mac.update(&local.to_be_bytes());
        mac.update(&peer.to_be_bytes());
        let code: [u8; 32] = mac.finalize().into_bytes().into();
        let [a, b, c, d, e, f, g, h, ..] = code;
        (u32::from_be_bytes([a, b, c, d]).max(1), u32::from_be_bytes([e, f, g, h]).max(1))
    }

    /// The random number of an INIT ACK for authenticated chunks (RFC 4895, 3.1). It follows from the cookie's content and need
    /// not be in the cookie.
    pub(super) fn auth_random(&self, content: &CookieContent, context: &[u8]) -> [u8; 32] {
        let mut mac = self.mac(b"random", context);
        for word in [content.local_tag, content.local_tsn.0, content.peer.tag] {
            mac.update(&word.to_be_bytes());
        }
        mac.update(&content.created.as_nanos().to_be_bytes());
        mac.finalize().into_bytes().into()
    }

    /// Tag and initial TSN for a new association: different for each INIT, without any stored state, not
    /// even that of a generator. The tag is neither 0 nor `current`, the tag of the association that it
    /// may replace (5.2.2).
    pub fn fresh(&self, peer: &Init, now: Time, current: u32, context: &[u8]) -> (u32, Serial32) {
        let mut mac = self.mac(b"tag", context);
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

    fn content(addresses: &[&str]) -> CookieContent {
        let peer = Init {
            tag: 2,
            window: 65_536,
            outbound_streams: 1,
            inbound_streams: 7,
            initial_tsn: Serial32(9),
            addresses: addresses.iter().map(|one| one.parse().expect("an address")).collect(),
            preserve_millis: 5,
            options: InitOptions {
                extensions: Extensions::DELAY,
                ecn: true,
                ..InitOptions::default()
            },
        };
        let created = Time::from_secs(5);
        CookieContent {
            local_tag: 1,
            local_tsn: Serial32(8),
            peer,
            created,
            tie_tags: (3, 4),
            path: PathId(13),
        }
    }

    #[test]
    fn a_cookie_gives_back_what_was_put_into_it_and_few_addresses_do_not_make_it_longer() {
        let key = CookieKey::new([7; 32]);
        let lists: [&[&str]; 4] =
            [&[], &["10.0.0.1"; 6], &["10.0.0.1", "2001:db8::7"], &["2001:db8::7"; 9]];
        for (list, size) in lists.into_iter().zip([88, 88, 88, 48 + 16 * 9 + 16]) {
            let content = content(list);
            let cookie = key.seal(&content, b"");
            assert_eq!(cookie.len(), size, "{list:?}");
            assert_eq!(key.open(&cookie, b""), Ok(content));
        }
    }

    #[test]
    fn a_cookie_keeps_the_adaptation_indication_with_authenticated_chunks_and_without() {
        let key = CookieKey::new([7; 32]);
        let auth = AuthParameters { random: Some(vec![9; 32].into()), ..AuthParameters::default() };
        for authentication in [None, Some(Box::new(auth))] {
            for adaptation in [None, Some(0), Some(u32::MAX)] {
                for list in [&[][..], &["2001:db8::7"; 9]] {
                    let mut content = content(list);
                    content.peer.options.adaptation = adaptation;
                    content.peer.options.authentication.clone_from(&authentication);
                    let cookie = key.seal(&content, b"");
                    assert_eq!(key.open(&cookie, b""), Ok(content), "{adaptation:?}");
                }
            }
        }
    }

    #[test]
    fn a_cookie_passes_unchanged_only_and_from_where_it_went_only() {
        let key = CookieKey::new([7; 32]);
        let cookie = key.seal(&content(&["10.0.0.1"]), b"10.0.0.1:9899");
        assert!(key.open(&cookie, b"10.0.0.1:9899").is_ok());
        for at in 0..cookie.len() {
            for bit in 0..8 {
                let mut changed = cookie.to_vec();
                changed[at] ^= 1 << bit;
                assert_eq!(key.open(&changed, b"10.0.0.1:9899"), Err(ForgedCookie), "{at}");
            }
            assert_eq!(key.open(&cookie[..at], b"10.0.0.1:9899"), Err(ForgedCookie), "{at}");
        }
        let longer = [&cookie[..], &[0]].concat();
        assert_eq!(key.open(&longer, b"10.0.0.1:9899"), Err(ForgedCookie));
        for elsewhere in [&b"10.0.0.1:9898"[..], b"", b"10.0.0.1:98990"] {
            assert_eq!(key.open(&cookie, elsewhere), Err(ForgedCookie));
        }
        assert_eq!(CookieKey::new([8; 32]).open(&cookie, b"10.0.0.1:9899"), Err(ForgedCookie));
    }

    #[test]
    fn a_cookie_is_stale_once_its_life_is_over_and_by_as_much() {
        let life = Duration::from_secs(60);
        let table = [(5, None), (65, None), (66, Some(Duration::from_secs(1)))];
        for (at, expected) in table {
            assert_eq!(content(&[]).staleness(Time::from_secs(at), life), expected, "{at} s");
        }
    }

    #[test]
    fn fresh_tags_are_never_zero_nor_the_current_one_and_differ_by_place_and_time() {
        let key = CookieKey::new([7; 32]);
        let peer = content(&[]).peer;
        let mut tags: Vec<_> = (0..1000)
            .map(|i| key.fresh(&peer, Time::from_millis(i / 10), 5, &[(i % 10) as u8]).0)
            .collect();
        assert!(tags.iter().all(|tag| *tag != 0 && *tag != 5));
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 1000);
    }
}
