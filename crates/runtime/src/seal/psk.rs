//! Pre-shared keys: 32 random bytes that both ends of an association have in addition to their static keys.

use core::fmt;
use core::str::FromStr;

use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::keys::{KEY_LEN, KeyError, decode, encode};

/// A secret that two peers share. Erased when dropped, and never printed.
#[derive(Clone)]
pub struct PresharedKey(Zeroizing<[u8; KEY_LEN]>);

impl PresharedKey {
    /// Generates a key from the system's random numbers.
    ///
    /// # Errors
    /// [`KeyError::NoRandomness`].
    pub fn generate() -> Result<Self, KeyError> {
        let mut bytes = Zeroizing::new([0; KEY_LEN]);
        SystemRandom::new().fill(&mut *bytes).map_err(|_| KeyError::NoRandomness)?;
        Ok(Self(bytes))
    }

    /// The secret bytes, for Noise.
    pub(super) fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// The secret as text, erased when dropped.
    pub(super) fn text(&self) -> Zeroizing<String> {
        encode(&self.0)
    }
}

impl FromStr for PresharedKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bytes = decode(text)?;
        // In Noise, 32 zero bytes mean that there is no pre-shared key.
        if *bytes == [0; KEY_LEN] { Err(KeyError::Zero) } else { Ok(Self(bytes)) }
    }
}

impl PartialEq for PresharedKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&*other.0).into()
    }
}

impl Eq for PresharedKey {}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey(hidden)")
    }
}
