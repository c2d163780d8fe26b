//! Points of low order: a Diffie-Hellman with one of them is zero, regardless of the secret.

use ropewalk_base::Time;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{BoxedCryptoResolver, CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error};

use super::*;
use crate::seal::keys::KeyError;
use crate::seal::mac::MacKey;
use crate::seal::wire::VERSION;

const NOW: Time = Time::from_secs(1000);
const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_SHA256";

/// All 32-byte strings that X25519 reads as a point of the small subgroup: 0, 1, the two points of order 8, and
/// p - 1, p, p + 1; each with the highest bit, which X25519 ignores, clear and set.
fn low_order_points() -> Vec<[u8; 32]> {
    let hex = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ];
    let bytes = hex.map(|hex| {
        core::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex"))
    });
    let with_high_bit = bytes.map(|mut point: [u8; 32]| {
        point[31] |= 0x80;
        point
    });
    bytes.into_iter().chain(with_high_bit).collect()
}

/// Noise of a hostile peer that uses a point of low order as its key and knows the result.
struct Hostile {
    point: [u8; 32],
    /// Whether the point replaces every key, or only ephemeral ones.
    everywhere: bool,
}

/// Its key pair.
struct HostileDh {
    point: [u8; 32],
    genuine: Box<dyn Dh>,
    /// Whether it uses the point instead of the key pair.
    hostile: bool,
}

impl CryptoResolver for Hostile {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        DefaultResolver.resolve_rng()
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let genuine = DefaultResolver.resolve_dh(choice)?;
        Some(Box::new(HostileDh { point: self.point, genuine, hostile: self.everywhere }))
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

impl Dh for HostileDh {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, privkey: &[u8]) {
        self.genuine.set(privkey);
    }

    /// Only ephemeral keys are generated.
    fn generate(&mut self, _: &mut dyn Random) -> Result<(), Error> {
        self.hostile = true;
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        if self.hostile { &self.point } else { self.genuine.pubkey() }
    }

    fn privkey(&self) -> &[u8] {
        self.genuine.privkey()
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), Error> {
        if self.hostile {
            // The result that the other end computes with the point.
            out[..32].fill(0);
            return Ok(());
        }
        self.genuine.dh(pubkey, out)
    }
}

fn builder<'a>(resolver: BoxedCryptoResolver) -> Builder<'a> {
    Builder::with_resolver(PATTERN.parse().expect("a pattern"), resolver)
}

#[test]
fn an_initiator_without_a_secret_gets_no_session_from_one_who_takes_anyone() {
    for (point, everywhere) in low_order_points().into_iter().flat_map(|p| [(p, true), (p, false)])
    {
        let client = secret();
        let mut pair = Pair::with(client.clone(), Allowed::Anyone);
        let mut first = vec![1, VERSION];
        first.extend(CLIENT.to_be_bytes());
        let prefix = first.clone();
        let builder =
            builder(Box::new(Hostile { point, everywhere })).prologue(&prefix).expect("once");
        let builder = builder.local_private_key(client.bytes()).expect("once");
        let peer = pair.server_key;
        let mut noise = builder
            .remote_public_key(peer.as_bytes())
            .expect("once")
            .build_initiator()
            .expect("all");
        let mut message = vec![0; 96 + 120];
        let mut content = vec![0; 120];
        content[..9].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 9, 3]);
        let length = noise.write_message(&content, &mut message).expect("written");
        let sign = |token: &[u8]| {
            let mut first = prefix.clone();
            first.extend(token);
            first.extend(&message[..length]);
            MacKey::of(&peer).sign_first(&mut first);
            first
        };
        let retry = reply(pair.answer(NOW, home(), &sign(&[0; 24])));
        let answer = pair.answer(NOW, home(), &sign(&retry[6..30]));
        assert!(is_drop(&answer), "{point:02x?}: {answer:?}");
        assert_eq!(pair.server.remembered(), 0);
    }
}

#[test]
fn a_responder_that_contributes_nothing_gets_no_session() {
    for point in low_order_points() {
        let (client, server) = (secret(), secret());
        let date = Timestamp::from_unix_nanos(1);
        let (mut initiator, first) =
            Initiator::new(&client, server.public(), date, CLIENT, b"").expect("a datagram");
        let prefix: [u8; 6] = *first.first_chunk().expect("a prefix");
        let builder = builder(Box::new(Hostile { point, everywhere: false }));
        let builder = builder.prologue(&prefix).expect("once");
        let mut noise = builder
            .local_private_key(server.bytes())
            .expect("once")
            .build_responder()
            .expect("all");
        let mut content = vec![0; 1200];
        noise.read_message(&first[30..first.len() - 16], &mut content).expect("readable");
        let mut reply = vec![2, 1];
        reply.extend(CLIENT.to_be_bytes());
        let mut message = [0; 53];
        noise.write_message(&[0, 0, 0, 7, 1], &mut message).expect("written");
        reply.extend(message);
        let mac = *first.last_chunk().expect("a MAC");
        MacKey::of(&server.public()).sign_answer(&mac, &mut reply);
        assert!(initiator.finish(NOW, &reply).is_err(), "{point:02x?}");
    }
}

#[test]
fn a_public_key_of_low_order_is_refused_where_it_is_configured() {
    for point in low_order_points() {
        assert_eq!(PublicKey::from_bytes(point), Err(KeyError::LowOrder), "{point:02x?}");
        // A neighbouring value is an ordinary key.
        let mut other = point;
        other[15] ^= 1;
        PublicKey::from_bytes(other).expect("a key");
    }
}
