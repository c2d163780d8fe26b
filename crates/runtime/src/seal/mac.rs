//! The MACs of the handshake's datagrams: cheap to check before anything costly is done.

use ring::digest::{SHA256, digest};
use ring::hmac::{Context, HMAC_SHA256, Key};
use subtle::ConstantTimeEq;

use super::keys::PublicKey;
use super::wire::MAC_LEN;

/// What a MAC is made of: the first half of HMAC-SHA-256.
pub(super) type Mac = [u8; MAC_LEN];

/// A key for the datagrams of one responder. Whoever knows its public key can make it: it keeps out
/// those who do not, and proves nothing else.
#[derive(Clone)]
pub(super) struct MacKey(Key);

impl MacKey {
    /// The key of the responder that is known by `public`.
    pub(super) fn of(public: &PublicKey) -> Self {
        let mut input = b"ropewalk 1 first".to_vec();
        input.extend(public.as_bytes());
        Self(Key::new(HMAC_SHA256, digest(&SHA256, &input).as_ref()))
    }

    /// Appends the MAC of a first datagram to it, and returns it.
    pub(super) fn sign_first(&self, datagram: &mut Vec<u8>) -> Mac {
        let mac = half(&self.0, &[datagram]);
        datagram.extend(mac);
        mac
    }

    /// The MAC of a first datagram, if it is right.
    pub(super) fn check_first(&self, datagram: &[u8]) -> Option<Mac> {
        self.check(&[], datagram)
    }

    /// A name for a first message: who sends the same one with another token sends the same session's.
    pub(super) fn name(&self, prefix: &[u8], message: &[u8]) -> Mac {
        half(&self.0, &[b"message", prefix, message])
    }

    /// Appends the MAC of an answer to the first datagram that had the MAC `first`: nobody can make
    /// it who has not seen that.
    pub(super) fn sign_answer(&self, first: &Mac, answer: &mut Vec<u8>) {
        let mac = half(&self.0, &[first, answer]);
        answer.extend(mac);
    }

    /// Whether an answer is one to the first datagram that had the MAC `first`.
    pub(super) fn check_answer(&self, first: &Mac, answer: &[u8]) -> bool {
        self.check(first, answer).is_some()
    }

    fn check(&self, before: &[u8], datagram: &[u8]) -> Option<Mac> {
        let (body, mac) = datagram.split_last_chunk()?;
        let right = half(&self.0, &[before, body]);
        same(&right, mac).then_some(right)
    }
}

/// HMAC-SHA-256 of the parts one after another, its first half.
pub(super) fn half(key: &Key, parts: &[&[u8]]) -> Mac {
    let mut context = Context::with_key(key);
    for part in parts {
        context.update(part);
    }
    *context.sign().as_ref().first_chunk().expect("32 bytes")
}

/// Whether two MACs are the same, in a time that does not tell where they differ.
pub(super) fn same(a: &Mac, b: &Mac) -> bool {
    a.ct_eq(b).into()
}
