//! X25519 for Noise, with low-order points refused.
//!
//! With a point of low order, the result of a Diffie-Hellman is zero, regardless of the secret. A peer could
//! complete a handshake without the secret of the key that it claims, with session keys that do not depend on this
//! end.

use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use subtle::ConstantTimeEq;

use super::keys::KEY_LEN;

/// The algorithms of the `snow` crate, except that a Diffie-Hellman fails if its result is zero.
pub(super) struct ContributoryResolver;

/// RFC 7748, 6.1: "check, without leaking extra information about the value of K, whether K is the
/// all-zero value and abort if so".
struct CheckedDh(Box<dyn Dh>);

impl CryptoResolver for ContributoryResolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        DefaultResolver.resolve_rng()
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let inner = DefaultResolver.resolve_dh(choice)?;
        Some(Box::new(CheckedDh(inner)))
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

impl Dh for CheckedDh {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn pub_len(&self) -> usize {
        self.0.pub_len()
    }

    fn priv_len(&self) -> usize {
        self.0.priv_len()
    }

    fn set(&mut self, privkey: &[u8]) {
        self.0.set(privkey);
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        self.0.generate(rng)
    }

    fn pubkey(&self) -> &[u8] {
        self.0.pubkey()
    }

    fn privkey(&self) -> &[u8] {
        self.0.privkey()
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), Error> {
        self.0.dh(pubkey, out)?;
        let shared = out.get(..KEY_LEN).ok_or(Error::Dh)?;
        if bool::from(shared.ct_eq(&[0; KEY_LEN])) { Err(Error::Dh) } else { Ok(()) }
    }
}

/// The X25519 key pair of these secret bytes.
pub(super) fn key_pair(secret: &[u8; KEY_LEN]) -> Box<dyn Dh> {
    let curve = ContributoryResolver.resolve_dh(&DHChoice::Curve25519);
    let mut curve = curve.expect("X25519 is compiled in");
    curve.set(secret);
    curve
}

/// Whether every Diffie-Hellman with this public key is zero. X25519 multiplies by multiples of 8, the order of the
/// small subgroup, so one test with any secret suffices.
pub(super) fn is_low_order(public: &[u8; KEY_LEN]) -> bool {
    let mut shared = [0; KEY_LEN];
    key_pair(&[1; KEY_LEN]).dh(public, &mut shared).is_err()
}
