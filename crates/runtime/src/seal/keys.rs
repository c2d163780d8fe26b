//! Static keys: X25519, as 44 characters of base64.

use core::fmt;
use core::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use super::curve::{is_low_order, key_pair};

/// Size of a key, bytes.
pub(super) const KEY_LEN: usize = 32;
/// Characters of a key: base64 of 32 bytes, with one `=` at the end.
const TEXT_LEN: usize = 44;

/// A peer's public key, which identifies it. Not secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; KEY_LEN]);

/// A secret key, which proves an identity. Erased when dropped, and never printed.
#[derive(Clone)]
pub struct SecretKey {
    bytes: Zeroizing<[u8; KEY_LEN]>,
    public: PublicKey,
}

/// How to get a valid key.
const HINT: &str = "`ropewalk keygen FILE` creates a key and prints its public half";

/// Why a text is not a key, or why no key could be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text does not have 44 characters; its length.
    #[error("a key has {TEXT_LEN} characters, and this has {0}; {HINT}")]
    Length(usize),
    /// The text has 44 characters, but is not base64 of 32 bytes.
    #[error(
        "a key is base64 of {KEY_LEN} bytes: {} of A-Z a-z 0-9 + / and one =; {HINT}",
        TEXT_LEN - 1
    )]
    NotBase64,
    /// All bytes of a pre-shared key are zero, so it is not secret.
    #[error("a pre-shared key of zeros only is not secret; {HINT}")]
    Zero,
    /// A public key of low order: it has no secret, and a handshake with it proves nothing.
    #[error(
        "a point of low order, which is not a valid public key: a handshake with it proves nothing; {HINT}"
    )]
    LowOrder,
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    NoRandomness,
}

impl SecretKey {
    /// Generates a key from the system's random numbers.
    ///
    /// # Errors
    /// [`KeyError::NoRandomness`].
    pub fn generate() -> Result<Self, KeyError> {
        let mut bytes = Zeroizing::new([0; KEY_LEN]);
        SystemRandom::new().fill(&mut *bytes).map_err(|_| KeyError::NoRandomness)?;
        Ok(Self::from_bytes(bytes))
    }

    fn from_bytes(bytes: Zeroizing<[u8; KEY_LEN]>) -> Self {
        let mut curve = key_pair(&bytes);
        let public = curve.pubkey().try_into().expect("32 bytes");
        // Overwrites the crate's copy of the secret.
        curve.set(&[0; KEY_LEN]);
        Self { bytes, public: PublicKey(public) }
    }

    /// The public key.
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// The secret bytes, for Noise.
    pub(super) fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.bytes
    }

    /// The secret as text, erased when dropped.
    pub(super) fn text(&self) -> Zeroizing<String> {
        encode(&self.bytes)
    }
}

impl PublicKey {
    /// Creates a key from its bytes.
    ///
    /// # Errors
    /// [`KeyError::LowOrder`].
    pub fn from_bytes(bytes: [u8; KEY_LEN]) -> Result<Self, KeyError> {
        if is_low_order(&bytes) { Err(KeyError::LowOrder) } else { Ok(Self(bytes)) }
    }

    /// Creates a key from a completed handshake, whose Diffie-Hellman has ruled out low order.
    pub(super) const fn of_handshake(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The key's bytes.
    pub const fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Ok(Self::from_bytes(decode(text)?))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::from_bytes(*decode(text)?)
    }
}

/// Decodes a key. Surrounding white space is ignored.
pub(super) fn decode(text: &str) -> Result<Zeroizing<[u8; KEY_LEN]>, KeyError> {
    let text = text.trim();
    let length = text.chars().count();
    if length != TEXT_LEN {
        return Err(KeyError::Length(length));
    }
    let decoded = STANDARD.decode(text).map(Zeroizing::new).map_err(|_| KeyError::NotBase64)?;
    let bytes = decoded.as_slice().try_into().map_err(|_| KeyError::NotBase64)?;
    Ok(Zeroizing::new(bytes))
}

/// Encodes a secret as text, erased when dropped.
pub(super) fn encode(bytes: &[u8; KEY_LEN]) -> Zeroizing<String> {
    Zeroizing::new(STANDARD.encode(bytes))
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(hidden, public {})", self.public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_text_and_blanks_around_it() {
        let secret = SecretKey::generate().expect("random numbers");
        let text = secret.text();
        assert_eq!(text.len(), TEXT_LEN);
        let parsed: SecretKey = format!(" {}\n", *text).parse().expect("a key");
        assert_eq!(parsed.bytes(), secret.bytes());
        let public: PublicKey = secret.public().to_string().parse().expect("a public key");
        assert_eq!(public, parsed.public());
        assert_ne!(public.as_bytes(), secret.bytes());
    }

    #[test]
    fn the_public_key_is_that_of_rfc_7748_section_6_1() {
        // Alice's key pair in that section, in base64.
        let secret = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
        let public = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
        let secret: SecretKey = secret.parse().expect("a key");
        assert_eq!(secret.public().to_string(), public);
    }

    #[test]
    fn what_is_no_key_is_refused_with_the_reason() {
        let good = SecretKey::generate().expect("random numbers").public().to_string();
        for (text, error) in [
            (String::new(), KeyError::Length(0)),
            (good[..43].to_owned(), KeyError::Length(43)),
            (format!("{good}="), KeyError::Length(45)),
            ("*".repeat(44), KeyError::NotBase64),
            ("é".repeat(44), KeyError::NotBase64),
            ("A".repeat(44), KeyError::NotBase64),
            // The last character encodes bits beyond the key.
            (format!("{}B=", "A".repeat(42)), KeyError::NotBase64),
            (format!("{}=", "A".repeat(43)), KeyError::LowOrder),
        ] {
            assert_eq!(text.parse::<PublicKey>(), Err(error), "{text}");
            assert!(error.to_string().contains("ropewalk keygen"), "{error}");
        }
    }

    #[test]
    fn the_secret_is_not_in_what_is_printed_for_debugging() {
        let secret = SecretKey::generate().expect("random numbers");
        let shown = format!("{secret:?}");
        assert!(!shown.contains(secret.text().as_str()), "{shown}");
        assert!(shown.contains(&secret.public().to_string()), "{shown}");
    }
}
