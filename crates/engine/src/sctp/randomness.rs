//! Source of unpredictable numbers: verification tags, initial TSNs, cookie keys, and nonces of heartbeats
//! (RFC 9260, 5.3.1; RFC 4086).
//!
//! The engine uses no global generator. The driver passes the randomness of each end as an argument: a seed
//! in simulations, which makes them reproducible, and a [`Secret`] on real networks.

use hmac::{Hmac, Mac};
use ropewalk_base::{Rng, Seed};
use sha2::Sha256;

/// 32 bytes from the operating system's generator, for one listener or one association.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Creates a secret from bytes that no other party knows.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Source of the unpredictable numbers of an endpoint.
#[derive(Clone, Debug)]
pub enum Randomness {
    /// Reproducible numbers, for simulations and tests.
    Seeded(Seed),
    /// Numbers that cannot be predicted from other numbers of the same end.
    Secret(Secret),
}

impl From<Seed> for Randomness {
    fn from(seed: Seed) -> Self {
        Self::Seeded(seed)
    }
}

impl From<Secret> for Randomness {
    fn from(secret: Secret) -> Self {
        Self::Secret(secret)
    }
}

/// A stream of unpredictable numbers.
#[derive(Clone, Debug)]
pub(super) enum Generator {
    Seeded(Rng),
    /// HMAC-SHA-256 of a counter. No output can be computed without the key.
    Keyed {
        key: Secret,
        drawn: u64,
    },
}

impl Generator {
    /// Creates the stream for one purpose.
    pub fn new(randomness: Randomness, purpose: &str) -> Self {
        match randomness {
            Randomness::Seeded(seed) => Self::Seeded(seed.child(purpose).rng()),
            Randomness::Secret(secret) => {
                Self::Keyed { key: Secret(keyed_hash(&secret, purpose.as_bytes())), drawn: 0 }
            }
        }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        match self {
            Self::Seeded(rng) => rng.next_u64(),
            Self::Keyed { key, drawn } => {
                *drawn += 1;
                let [a, b, c, d, e, f, g, h, ..] = keyed_hash(key, &drawn.to_be_bytes());
                u64::from_be_bytes([a, b, c, d, e, f, g, h])
            }
        }
    }

    /// The next 32 bytes, for a key.
    pub fn key(&mut self) -> [u8; 32] {
        let mut key = [0; 32];
        for piece in key.as_chunks_mut::<8>().0 {
            *piece = self.next_u64().to_le_bytes();
        }
        key
    }

    /// A generator for numbers that need not be secret, such as jitter. A seeded one continues this stream.
    pub fn public(&mut self) -> Rng {
        match self {
            Self::Seeded(rng) => rng.clone(),
            Self::Keyed { .. } => Seed::root(self.next_u64()).rng(),
        }
    }
}

fn keyed_hash(key: &Secret, message: &[u8]) -> [u8; 32] {
    // HMAC accepts keys of any length, so this cannot fail.
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).unwrap_or_else(|_| unreachable!());
    mac.update(message);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_secret_and_by_purpose_and_repeat_with_both() {
        let drawn = |secret: u8, purpose: &str| {
            let mut generator = Generator::new(Secret::new([secret; 32]).into(), purpose);
            [(); 4].map(|()| generator.next_u64())
        };
        assert_eq!(drawn(1, "listener"), drawn(1, "listener"));
        let mut all: Vec<_> = [(1, "listener"), (1, "association"), (2, "listener")]
            .iter()
            .flat_map(|(secret, purpose)| drawn(*secret, purpose))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 12);
    }

    #[test]
    fn a_seeded_stream_is_that_of_its_seed() {
        let seed = Seed::root(7);
        let mut generator = Generator::new(seed.into(), "association");
        let mut rng = seed.child("association").rng();
        assert_eq!(generator.next_u64(), rng.next_u64());
        assert_eq!(generator.public().next_u64(), rng.next_u64());
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new([7; 32])), "Secret(..)");
    }
}
