//! Selects the AEAD that seals the datagrams: the fastest one that both machines support well.

use core::fmt;

use ring::aead::{AES_128_GCM, Algorithm, CHACHA20_POLY1305};

/// The AEAD of a session.
///
/// AES uses 128 bits, because X25519 provides no more security than that, and 256 bits cost a tenth of the speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128-GCM: faster if both machines have instructions for it.
    Aes128Gcm,
    /// ChaCha20-Poly1305: fast and constant-time on every machine.
    ChaCha20Poly1305,
}

/// A set of ciphers, one byte on the wire. Unknown bits are ignored, for future ciphers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CipherOffer(u8);

impl Cipher {
    /// All ciphers, in order of preference.
    const ALL: [Self; 2] = [Self::Aes128Gcm, Self::ChaCha20Poly1305];

    /// The cipher's number on the wire.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Aes128Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
        }
    }

    /// The cipher with that number, if it is in `offer`.
    pub(super) fn chosen(number: u8, offer: CipherOffer) -> Option<Self> {
        let cipher = Self::ALL.into_iter().find(|cipher| cipher.number() == number)?;
        offer.contains(cipher).then_some(cipher)
    }

    pub(super) fn algorithm(self) -> &'static Algorithm {
        match self {
            Self::Aes128Gcm => &AES_128_GCM,
            Self::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aes128Gcm => "AES-128-GCM",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        })
    }
}

impl CipherOffer {
    /// The ciphers that are fast on this machine.
    pub(super) fn of_this_machine() -> Self {
        let chacha = Cipher::ChaCha20Poly1305.number();
        Self(if has_aes() { chacha | Cipher::Aes128Gcm.number() } else { chacha })
    }

    pub(super) const fn of_byte(byte: u8) -> Self {
        Self(byte)
    }

    pub(super) const fn byte(self) -> u8 {
        self.0
    }

    /// An offer of only this cipher.
    #[cfg(test)]
    pub(super) const fn only(cipher: Cipher) -> Self {
        Self(cipher.number())
    }

    const fn contains(self, cipher: Cipher) -> bool {
        self.0 & cipher.number() != 0
    }

    /// The preferred cipher in both sets; `None` if they have none in common.
    pub(super) fn common(self, other: Self) -> Option<Cipher> {
        Cipher::ALL.into_iter().find(|cipher| self.contains(*cipher) && other.contains(*cipher))
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_cipher_that_both_offer_is_taken() {
        let (aes, chacha) = (Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305);
        let both = CipherOffer(3);
        for (one, other, common) in [
            (both, both, Some(aes)),
            (both, CipherOffer::only(chacha), Some(chacha)),
            (CipherOffer::only(aes), both, Some(aes)),
            (CipherOffer::only(aes), CipherOffer::only(chacha), None),
            (CipherOffer(0xff), both, Some(aes)),
            (CipherOffer(0xfc), both, None),
        ] {
            assert_eq!(one.common(other), common, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_cipher_that_was_not_offered_is_not_taken() {
        assert_eq!(Cipher::chosen(1, CipherOffer(3)), Some(Cipher::Aes128Gcm));
        assert_eq!(Cipher::chosen(1, CipherOffer::only(Cipher::ChaCha20Poly1305)), None);
        for number in [0, 3, 4, 255] {
            assert_eq!(Cipher::chosen(number, CipherOffer(0xff)), None, "{number}");
        }
    }
}
