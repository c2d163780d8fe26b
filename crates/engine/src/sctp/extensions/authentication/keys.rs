//! Shared keys and message authentication codes (RFC 4895, 6).

use bytes::Bytes;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::Sha256;

/// An HMAC algorithm (RFC 4895, 8.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HmacId {
    /// HMAC with SHA-1.
    Sha1,
    /// HMAC with SHA-256.
    Sha256,
}

impl HmacId {
    /// The identifier.
    pub const fn number(self) -> u16 {
        match self {
            Self::Sha1 => 1,
            Self::Sha256 => 3,
        }
    }

    /// The algorithm with this identifier, if it is supported.
    pub const fn from_number(number: u16) -> Option<Self> {
        match number {
            1 => Some(Self::Sha1),
            3 => Some(Self::Sha256),
            _ => None,
        }
    }

    /// Length of a code, bytes.
    pub(super) const fn code_len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// The code of a message in pieces.
    pub(super) fn code(self, key: &[u8], message: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Sha1 => start::<Hmac<Sha1>>(key, message).finalize().into_bytes().to_vec(),
            Self::Sha256 => start::<Hmac<Sha256>>(key, message).finalize().into_bytes().to_vec(),
        }
    }

    /// Whether `code` is the code of the message, in constant time.
    pub(super) fn verifies(self, key: &[u8], message: &[&[u8]], code: &[u8]) -> bool {
        match self {
            Self::Sha1 => start::<Hmac<Sha1>>(key, message).verify_slice(code).is_ok(),
            Self::Sha256 => start::<Hmac<Sha256>>(key, message).verify_slice(code).is_ok(),
        }
    }
}

fn start<M: Mac + hmac::digest::KeyInit>(key: &[u8], message: &[&[u8]]) -> M {
    // HMAC accepts keys of any length, so this cannot fail.
    let mut mac = <M as Mac>::new_from_slice(key).unwrap_or_else(|_| unreachable!());
    message.iter().for_each(|piece| mac.update(piece));
    mac
}

/// Why a shared key was not set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SharedKeyError {
    /// There are [`SharedKeys::LIMIT`] keys.
    #[error("there are as many shared keys as there may be; delete one first")]
    TooMany,
    /// The key is longer than [`SharedKeys::KEY_LEN_LIMIT`].
    #[error("a shared key has at most 256 bytes")]
    TooLong,
    /// There is no key with this identifier.
    #[error("there is no shared key with this identifier")]
    Unknown,
    /// The active key cannot be deleted or deactivated.
    #[error("the active shared key cannot be deleted or deactivated; activate another one first")]
    Active,
    /// The key was deactivated.
    #[error("the shared key was deactivated; set it again to use it")]
    Deactivated,
}

/// Endpoint pair shared keys (RFC 4895, 2): secrets configured at both ends, by their identifiers. The
/// key 0 is empty unless it is set.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SharedKeys(Option<Box<KeyList>>);

/// The keys after the first change.
#[derive(Clone, PartialEq, Eq)]
struct KeyList {
    keys: Vec<SharedKey>,
    active: u16,
}

#[derive(Clone, PartialEq, Eq)]
struct SharedKey {
    id: u16,
    secret: Bytes,
    /// Whether it must not become active.
    is_deactivated: bool,
    /// Whether the peer has authenticated a packet with it.
    is_used_by_peer: bool,
}

impl SharedKey {
    const fn new(id: u16, secret: Bytes) -> Self {
        Self { id, secret, is_deactivated: false, is_used_by_peer: false }
    }
}

impl Default for KeyList {
    fn default() -> Self {
        Self { keys: vec![SharedKey::new(0, Bytes::new())], active: 0 }
    }
}

impl KeyList {
    fn find(&mut self, id: u16) -> Option<&mut SharedKey> {
        self.keys.iter_mut().find(|key| key.id == id)
    }
}

impl core::fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let count = self.0.as_ref().map_or(1, |list| list.keys.len());
        write!(f, "SharedKeys({count} keys, active {})", self.active())
    }
}

impl SharedKeys {
    /// Maximum number of keys.
    pub const LIMIT: usize = 16;
    /// Maximum length of a key, bytes.
    pub const KEY_LEN_LIMIT: usize = 256;

    /// Sets the key `id`, or replaces it.
    ///
    /// # Errors
    /// [`SharedKeyError::TooMany`], [`SharedKeyError::TooLong`].
    pub fn set(&mut self, id: u16, key: &[u8]) -> Result<(), SharedKeyError> {
        if key.len() > Self::KEY_LEN_LIMIT {
            return Err(SharedKeyError::TooLong);
        }
        let key = SharedKey::new(id, Bytes::copy_from_slice(key));
        let list = self.0.get_or_insert_default();
        if let Some(old) = list.find(id) {
            *old = key;
            return Ok(());
        }
        if list.keys.len() == Self::LIMIT {
            return Err(SharedKeyError::TooMany);
        }
        list.keys.push(key);
        Ok(())
    }

    /// Authenticates outgoing packets with the key `id` from now on.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Deactivated`].
    pub fn activate(&mut self, id: u16) -> Result<(), SharedKeyError> {
        let list = self.0.get_or_insert_default();
        if list.find(id).ok_or(SharedKeyError::Unknown)?.is_deactivated {
            return Err(SharedKeyError::Deactivated);
        }
        list.active = id;
        Ok(())
    }

    /// Stops using the key `id` for outgoing packets until it is set again (RFC 6458, 8.3.4). Packets
    /// that the peer authenticates with it are still accepted.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Active`].
    pub fn deactivate(&mut self, id: u16) -> Result<(), SharedKeyError> {
        let list = self.0.get_or_insert_default();
        let active = list.active;
        let key = list.find(id).ok_or(SharedKeyError::Unknown)?;
        if active == id {
            return Err(SharedKeyError::Active);
        }
        key.is_deactivated = true;
        Ok(())
    }

    /// Deletes the key `id`: chunks that are authenticated with it are discarded from now on.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Active`].
    pub fn delete(&mut self, id: u16) -> Result<(), SharedKeyError> {
        self.get(id).ok_or(SharedKeyError::Unknown)?;
        if self.active() == id {
            return Err(SharedKeyError::Active);
        }
        self.0.get_or_insert_default().keys.retain(|key| key.id != id);
        Ok(())
    }

    /// The identifier of the key that authenticates outgoing packets.
    pub fn active(&self) -> u16 {
        self.0.as_ref().map_or(0, |list| list.active)
    }

    pub(super) fn get(&self, id: u16) -> Option<&[u8]> {
        match &self.0 {
            Some(list) => list.keys.iter().find(|key| key.id == id).map(|key| &key.secret[..]),
            None => (id == 0).then_some(&[]),
        }
    }

    /// Records that the peer uses the key `id`. Returns whether it does so for the first time.
    pub(super) fn note_use_by_peer(&mut self, id: u16) -> bool {
        let list = self.0.get_or_insert_default();
        list.find(id).is_some_and(|key| !core::mem::replace(&mut key.is_used_by_peer, true))
    }
}

/// Both key vectors in the order in which they enter the association shared key.
#[derive(Clone, Debug)]
pub struct KeyVectors {
    joined: Vec<u8>,
}

impl KeyVectors {
    /// RFC 4895, 6.1: the numerically smaller vector comes first. A vector begins with a byte other than 0, so the shorter one
    /// is the smaller number.
    pub fn new(one: Vec<u8>, other: Vec<u8>) -> Self {
        let size = |vector: &Vec<u8>| (vector.len(), vector.clone());
        let (smaller, larger) =
            if size(&one) <= size(&other) { (one, other) } else { (other, one) };
        Self { joined: [smaller, larger].concat() }
    }

    /// The association shared key for an endpoint pair shared key.
    pub fn shared_key(&self, pair_key: &[u8]) -> Vec<u8> {
        [pair_key, &self.joined].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn codes_are_those_of_rfc_2202_and_rfc_4231() {
        let long = [0xaa; 80];
        let longer = [0xaa; 131];
        type Case<'a> = (HmacId, &'a [u8], &'a [u8], &'a str);
        let cases: [Case<'_>; 4] = [
            (
                HmacId::Sha1,
                b"Jefe",
                b"what do ya want for nothing?",
                "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
            ),
            (
                HmacId::Sha1,
                &long,
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "aa4ae5e15272d00e95705637ce8a3b55ed402112",
            ),
            (
                HmacId::Sha256,
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                HmacId::Sha256,
                &longer,
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (id, key, message, expected) in cases {
            let (before, after) = message.split_at(7);
            let code = id.code(key, &[before, after]);
            assert_eq!(hex(&code), expected);
            assert_eq!(code.len(), id.code_len());
            assert!(id.verifies(key, &[message], &code));
            assert!(
                !id.verifies(key, &[message], &code[1..]) && !id.verifies(key, &[before], &code)
            );
            assert_eq!(HmacId::from_number(id.number()), Some(id));
        }
    }

    #[test]
    fn both_ends_have_the_same_association_key_and_it_depends_on_all_its_parts() {
        let (short, low, high) = (vec![0x80, 9], vec![0x80, 2, 1], vec![0x80, 2, 2]);
        for (one, other) in [(&short, &low), (&low, &high), (&high, &high)] {
            let key = KeyVectors::new(one.clone(), other.clone()).shared_key(b"pair");
            assert_eq!(key, [&b"pair"[..], one, other].concat());
            assert_eq!(key, KeyVectors::new(other.clone(), one.clone()).shared_key(b"pair"));
        }
    }

    #[test]
    fn keys_are_set_activated_and_deleted_within_their_limits() {
        let mut keys = SharedKeys::default();
        assert_eq!((keys.get(0), keys.get(7), keys.active()), (Some(&b""[..]), None, 0));
        keys.set(7, b"seven").expect("room");
        assert_eq!(keys.activate(8), Err(SharedKeyError::Unknown));
        keys.activate(7).expect("it exists");
        assert_eq!(keys.delete(7), Err(SharedKeyError::Active));
        keys.delete(0).expect("it is not active");
        assert_eq!(keys.delete(0), Err(SharedKeyError::Unknown));
        assert_eq!(keys.get(0), None);
        assert_eq!(keys.set(9, &[0; 257]), Err(SharedKeyError::TooLong));
        for id in 100..115 {
            keys.set(id, b"key").expect("room");
        }
        assert_eq!(keys.set(200, b"key"), Err(SharedKeyError::TooMany));
        keys.set(7, b"another").expect("it replaces one");
        assert_eq!(keys.get(7), Some(&b"another"[..]));
        assert!(!format!("{keys:?}").contains("another"));
    }
}
