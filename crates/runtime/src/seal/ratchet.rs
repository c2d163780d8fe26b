//! The keys of one direction, by epoch. Each key is derived from the previous one and does not reveal it.

use ring::aead::{Aad, Algorithm, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use zeroize::Zeroizing;

use super::cipher::Cipher;
use super::renewal::Renewed;

/// Derives the key of each epoch in turn. Its state does not reveal earlier keys.
pub(super) struct Ratchet {
    cipher: Cipher,
    secret: Zeroizing<[u8; 32]>,
}

/// The key of one direction in one epoch.
pub(super) struct DatagramKey {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
}

struct IvLen;

impl KeyType for IvLen {
    fn len(&self) -> usize {
        NONCE_LEN
    }
}

impl Ratchet {
    /// Derives the first epoch from the Noise root key of this direction and the hash of the handshake.
    pub(super) fn new(cipher: Cipher, root: &[u8; 32], transcript: &[u8; 32]) -> Self {
        let prk = Salt::new(HKDF_SHA256, transcript).extract(root);
        let number = [cipher.number()];
        let secret = expanded(&prk, &[b"ropewalk 1 epoch 0", &number]);
        Self { cipher, secret }
    }

    /// Returns the key of the next epoch, and advances to it. The first call returns that of epoch 0.
    pub(super) fn turn(&mut self) -> DatagramKey {
        let key = self.next_key();
        let prk = Prk::new_less_safe(HKDF_SHA256, &*self.secret);
        self.secret = expanded(&prk, &[b"ropewalk 1 next"]);
        key
    }

    /// Mixes a new Diffie-Hellman into the key of the next epoch and all later ones.
    pub(super) fn renew(&mut self, renewed: &Renewed) {
        let prk = Salt::new(HKDF_SHA256, &*self.secret).extract(&*renewed.shared);
        self.secret = expanded(&prk, &[b"ropewalk 1 renewed", &renewed.offer, &renewed.answer]);
    }

    /// The state that a thief of the memory would have.
    #[cfg(test)]
    pub(super) fn stolen(&self) -> Self {
        Self { cipher: self.cipher, secret: self.secret.clone() }
    }

    /// The key of the next epoch.
    pub(super) fn next_key(&self) -> DatagramKey {
        let prk = Prk::new_less_safe(HKDF_SHA256, &*self.secret);
        let algorithm = self.cipher.algorithm();
        let info = [&b"ropewalk 1 key"[..]];
        let key = prk.expand(&info, algorithm).expect("a key is short");
        let mut iv = [0; NONCE_LEN];
        let info = [&b"ropewalk 1 iv"[..]];
        let filled = prk.expand(&info, IvLen).and_then(|okm| okm.fill(&mut iv));
        filled.expect("a nonce is short");
        DatagramKey { key: LessSafeKey::new(UnboundKey::from(key)), iv }
    }
}

fn expanded(prk: &Prk, info: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut out = Zeroizing::new([0; 32]);
    let filled = prk.expand(info, HKDF_SHA256).and_then(|okm| okm.fill(&mut *out));
    filled.expect("32 bytes are one block of the hash");
    out
}

impl DatagramKey {
    /// A placeholder that overwrites another key.
    pub(super) fn blank(algorithm: &'static Algorithm) -> Self {
        let zeros = [0; 32];
        let key = UnboundKey::new(algorithm, &zeros[..algorithm.key_len()]);
        Self { key: LessSafeKey::new(key.expect("of the right length")), iv: [0; NONCE_LEN] }
    }

    /// The nonce: path and counter, XORed with the epoch's IV as in RFC 8446, section 5.3.
    #[inline]
    fn nonce(&self, path: u8, counter: u64) -> Nonce {
        let mut nonce = self.iv;
        nonce[3] ^= path;
        for (byte, count) in nonce[4..].iter_mut().zip(counter.to_be_bytes()) {
            *byte ^= count;
        }
        Nonce::assume_unique_for_key(nonce)
    }

    /// Encrypts `body` in place. A counter must not be used twice on a path.
    #[inline]
    pub(super) fn seal(&self, path: u8, counter: u64, header: &[u8], body: &mut [u8]) -> Tag {
        let nonce = self.nonce(path, counter);
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(header), body);
        tag.expect("a datagram is shorter than an AEAD allows")
    }

    /// Decrypts `body` in place; its last bytes are the tag.
    ///
    /// # Errors
    /// If it was not sealed with this key, path, counter and header.
    #[inline]
    pub(super) fn open(
        &self,
        path: u8,
        counter: u64,
        header: &[u8],
        body: &mut [u8],
    ) -> Result<(), Unspecified> {
        self.key.open_in_place(self.nonce(path, counter), Aad::from(header), body).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratchet(cipher: Cipher, root: u8) -> Ratchet {
        Ratchet::new(cipher, &[root; 32], &[9; 32])
    }

    fn tag(key: &DatagramKey) -> Vec<u8> {
        key.seal(0, 0, b"", &mut []).as_ref().to_vec()
    }

    #[test]
    fn both_ends_turn_to_the_same_keys_and_no_two_epochs_have_one() {
        for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
            let (mut one, mut other) = (ratchet(cipher, 1), ratchet(cipher, 1));
            let tags: Vec<Vec<u8>> = (0..10).map(|_| tag(&one.turn())).collect();
            for (index, mine) in tags.iter().enumerate() {
                assert_eq!(*mine, tag(&other.turn()));
                assert!(!tags[..index].contains(mine), "epoch {index} repeats a key");
            }
            assert_ne!(tags[0], tag(&ratchet(cipher, 2).turn()), "another root, another key");
        }
    }

    #[test]
    fn every_path_and_counter_has_its_own_nonce() {
        let key = ratchet(Cipher::Aes128Gcm, 1).turn();
        let pairs = [(0, 0), (1, 0), (0, 1), (255, 0), (0, 1 << 32), (1, 1 << 56), (0, u64::MAX)];
        let nonces = pairs.map(|(path, counter)| *key.nonce(path, counter).as_ref());
        for (index, nonce) in nonces.iter().enumerate() {
            assert!(!nonces[..index].contains(nonce), "{:?}", pairs[index]);
        }
    }
}
