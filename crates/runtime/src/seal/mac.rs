//! The MACs of the handshake's datagrams. They are cheap to check before any costly operation.

use ring::digest::{SHA256, digest};
use ring::hmac::{Context, HMAC_SHA256, Key};
use subtle::ConstantTimeEq;

use super::keys::PublicKey;
use super::wire::MAC_LEN;

/// A MAC: the first half of HMAC-SHA-256.
pub(super) type Mac = [u8; MAC_LEN];

/// The MAC key of one responder. It is derived from the responder's public key, so a MAC only shows that its author
/// knows that key.
#[derive(Clone)]
pub(super) struct MacKey(Key);

impl MacKey {
    /// The MAC key of the responder whose public key is `public`.
    pub(super) fn of(public: &PublicKey) -> Self {
        let mut input = b"ropewalk 1 first".to_vec();
        input.extend(public.as_bytes());
        Self(Key::new(HMAC_SHA256, digest(&SHA256, &input).as_ref()))
    }

    /// Appends the MAC of a first datagram to it. Returns the MAC.
    pub(super) fn sign_first(&self, datagram: &mut Vec<u8>) -> Mac {
        let mac = half(&self.0, &[datagram]);
        datagram.extend(mac);
        mac
    }

    /// The MAC of a first datagram, if it is valid.
    pub(super) fn check_first(&self, datagram: &[u8]) -> Option<Mac> {
        self.check(&[], datagram)
    }

    /// Identifies a first message. The same message with another token has the same name and leads to the same
    /// session.
    pub(super) fn name(&self, prefix: &[u8], message: &[u8]) -> Mac {
        half(&self.0, &[b"message", prefix, message])
    }

    /// Appends the MAC of an answer to the first datagram with the MAC `first`. Only a sender that has seen that
    /// datagram can create it.
    pub(super) fn sign_answer(&self, first: &Mac, answer: &mut Vec<u8>) {
        let mac = half(&self.0, &[first, answer]);
        answer.extend(mac);
    }

    /// Whether an answer belongs to the first datagram with the MAC `first`.
    pub(super) fn check_answer(&self, first: &Mac, answer: &[u8]) -> bool {
        self.check(first, answer).is_some()
    }

    fn check(&self, before: &[u8], datagram: &[u8]) -> Option<Mac> {
        let (body, mac) = datagram.split_last_chunk()?;
        let right = half(&self.0, &[before, body]);
        same(&right, mac).then_some(right)
    }
}

/// The first half of HMAC-SHA-256 over the concatenated parts.
pub(super) fn half(key: &Key, parts: &[&[u8]]) -> Mac {
    let mut context = Context::with_key(key);
    for part in parts {
        context.update(part);
    }
    *context.sign().as_ref().first_chunk().expect("32 bytes")
}

/// Compares two MACs in constant time.
pub(super) fn same(a: &Mac, b: &Mac) -> bool {
    a.ct_eq(b).into()
}
