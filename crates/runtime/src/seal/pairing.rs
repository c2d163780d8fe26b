//! Pairing: two ends that share a short code learn each other's public keys.
//!
//! SPAKE2 (Abdalla and Pointcheval 2005; RFC 9382 describes the same exchange over other groups) turns the code into
//! a key of full strength. A peer can check one guess of the code per exchange, and none afterwards. That key is the
//! pre-shared key of a Noise_XXpsk0 handshake, in which both ends prove their static keys and seal an introduction.
//!
//! ```text
//! initiator                                  responder
//!   StartedPairing      -- SPAKE2 A ------->
//!                       <-- SPAKE2 B -------   AnsweredPairing
//!   ConfirmedPairing    -- e --------------->   wrong code: the exchange and the code end
//!                       <-- e, ee, s, es ----   ConfirmedPairing
//!   IntroducedPairing   -- s, se ----------->   paired
//!   paired              <-- confirmation ----
//! ```
//!
//! The initiator proves the code first. A responder that sent its proof first would let a peer that never answers
//! check one guess in each exchange without the responder's knowledge.
//!
//! Each step consumes its state, so that no secret is used twice. This module does not handle datagrams or
//! addresses.

use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, TransportState};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use zeroize::Zeroizing;

use super::curve::ContributoryResolver;
use super::keys::{KEY_LEN, PublicKey, SecretKey};
use super::noise;

const PATTERN: &str = "Noise_XXpsk0_25519_ChaChaPoly_SHA256";
/// Position of the pre-shared key in psk0: before the first message, so that this message proves the code.
const PSK_POSITION: u8 = 0;
/// Names of the two ends in SPAKE2, and the start of Noise's prologue. They bind the exchange to this protocol.
const INITIATOR: &[u8] = b"ropewalk pairing 1, initiator";
const RESPONDER: &[u8] = b"ropewalk pairing 1, responder";

/// Size of a SPAKE2 message, bytes: the side, and a point of the curve.
pub const PAKE_LEN: usize = 33;
/// Maximum size of an introduction, bytes.
pub const INTRODUCTION_MAX: usize = 512;
/// Size of an authentication tag, bytes.
const TAG_LEN: usize = 16;
/// Bytes that the messages add to their payloads.
const FIRST_LEN: usize = KEY_LEN + TAG_LEN;
const SECOND_LEN: usize = KEY_LEN + KEY_LEN + TAG_LEN + TAG_LEN;
const THIRD_LEN: usize = KEY_LEN + TAG_LEN + TAG_LEN;

/// An initiator that has sent its SPAKE2 message.
pub struct StartedPairing {
    secret: SecretKey,
    pake: Spake2<Ed25519Group>,
    message: [u8; PAKE_LEN],
}

/// A responder that has sent its SPAKE2 message.
pub struct AnsweredPairing(HandshakeState);

/// An end that waits for the peer's key: the initiator after it has proved the code, the responder after it has
/// checked it.
pub struct ConfirmedPairing(HandshakeState);

/// An initiator that has sent everything and waits for the responder's confirmation.
pub struct IntroducedPairing(TransportState);

/// The peer, which has proved the code and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairedPeer {
    /// Its public key.
    pub key: PublicKey,
    /// The introduction that it sealed.
    pub introduction: Vec<u8>,
}

/// Why a message does not continue a pairing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// The message is invalid at this step, or was not created with the same code.
    #[error("the other end used another code")]
    WrongCode,
    /// The introduction does not fit into a message; its size in bytes.
    #[error("an introduction of {0} bytes; at most {INTRODUCTION_MAX} fit")]
    IntroductionTooLong(usize),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    NoRandomness,
}

impl StartedPairing {
    /// Starts a pairing. Returns it with the initiator's SPAKE2 message.
    pub fn new(code: &str, secret: &SecretKey) -> (Self, [u8; PAKE_LEN]) {
        let (a, b) = (Identity::new(INITIATOR), Identity::new(RESPONDER));
        let (pake, message) = Spake2::<Ed25519Group>::start_a(&Password::new(code), &a, &b);
        let message = message.try_into().expect("the crate's length");
        (Self { secret: secret.clone(), pake, message }, message)
    }

    /// Handles the responder's SPAKE2 message. Returns the message that proves the code.
    ///
    /// # Errors
    /// [`PairingError::WrongCode`] or [`PairingError::NoRandomness`].
    pub fn confirm(self, answer: &[u8]) -> Result<(ConfirmedPairing, Vec<u8>), PairingError> {
        let psk = strong_key(self.pake, answer)?;
        let prologue = prologue(&self.message, answer);
        let builder = builder(&self.secret, &psk, &prologue)?;
        let mut state = builder.build_initiator().map_err(|_| PairingError::NoRandomness)?;
        let message = write(&mut state, &[], FIRST_LEN)?;
        Ok((ConfirmedPairing(state), message))
    }
}

impl AnsweredPairing {
    /// Handles an initiator's SPAKE2 message. Returns the state with the responder's SPAKE2 message.
    ///
    /// # Errors
    /// [`PairingError`].
    pub fn new(
        code: &str,
        secret: &SecretKey,
        message: &[u8],
    ) -> Result<(Self, [u8; PAKE_LEN]), PairingError> {
        let (a, b) = (Identity::new(INITIATOR), Identity::new(RESPONDER));
        let (pake, answer) = Spake2::<Ed25519Group>::start_b(&Password::new(code), &a, &b);
        let psk = strong_key(pake, message)?;
        let prologue = prologue(message, &answer);
        let state = builder(secret, &psk, &prologue)?.build_responder();
        let state = state.map_err(|_| PairingError::NoRandomness)?;
        Ok((Self(state), answer.try_into().expect("the crate's length")))
    }

    /// Checks the message that proves the code. Returns this end's key and introduction, sealed.
    ///
    /// # Errors
    /// [`PairingError`].
    pub fn check_code(
        mut self,
        message: &[u8],
        introduction: &[u8],
    ) -> Result<(ConfirmedPairing, Vec<u8>), PairingError> {
        noise::read(&mut self.0, message).ok_or(PairingError::WrongCode)?;
        let answer = write(&mut self.0, introduction, SECOND_LEN)?;
        Ok((ConfirmedPairing(self.0), answer))
    }
}

impl ConfirmedPairing {
    /// The initiator's next step: reads the responder's key and introduction. Returns this end's, sealed.
    ///
    /// # Errors
    /// [`PairingError`].
    pub fn introduce(
        mut self,
        message: &[u8],
        introduction: &[u8],
    ) -> Result<(IntroducedPairing, PairedPeer, Vec<u8>), PairingError> {
        let received = noise::read(&mut self.0, message).ok_or(PairingError::WrongCode)?;
        let peer = peer(&self.0, received)?;
        let answer = write(&mut self.0, introduction, THIRD_LEN)?;
        let transport = self.0.into_transport_mode().map_err(|_| PairingError::WrongCode)?;
        Ok((IntroducedPairing(transport), peer, answer))
    }

    /// The responder's last step: reads the initiator's key and introduction. Returns them with the confirmation.
    ///
    /// # Errors
    /// [`PairingError::WrongCode`].
    pub fn finish(mut self, message: &[u8]) -> Result<(PairedPeer, Vec<u8>), PairingError> {
        let received = noise::read(&mut self.0, message).ok_or(PairingError::WrongCode)?;
        let peer = peer(&self.0, received)?;
        let mut transport = self.0.into_transport_mode().map_err(|_| PairingError::WrongCode)?;
        let mut confirmation = vec![0; TAG_LEN];
        let written = transport.write_message(&[], &mut confirmation);
        written.map_err(|_| PairingError::WrongCode)?;
        Ok((peer, confirmation))
    }
}

impl IntroducedPairing {
    /// Whether the message is the responder's confirmation. Another message changes nothing.
    pub fn is_confirmed_by(&mut self, message: &[u8]) -> bool {
        message.len() == TAG_LEN && self.0.read_message(message, &mut [0; TAG_LEN]).is_ok()
    }
}

/// The key of full strength that both ends derive from the same code.
fn strong_key(
    pake: Spake2<Ed25519Group>,
    message: &[u8],
) -> Result<Zeroizing<[u8; KEY_LEN]>, PairingError> {
    let key = Zeroizing::new(pake.finish(message).map_err(|_| PairingError::WrongCode)?);
    let mut bytes = Zeroizing::new([0; KEY_LEN]);
    bytes.copy_from_slice(&key);
    Ok(bytes)
}

/// The key already depends on both messages. The prologue repeats them, so that the handshake does not depend on how
/// the crate derives the key.
fn prologue(a: &[u8], b: &[u8]) -> Vec<u8> {
    [INITIATOR, RESPONDER, a, b].concat()
}

fn builder<'a>(
    secret: &'a SecretKey,
    psk: &'a [u8; KEY_LEN],
    prologue: &'a [u8],
) -> Result<Builder<'a>, PairingError> {
    let pattern: NoiseParams = PATTERN.parse().expect("a pattern that the crate knows");
    Builder::with_resolver(pattern, Box::new(ContributoryResolver))
        .local_private_key(secret.bytes())
        .and_then(|builder| builder.psk(PSK_POSITION, psk))
        .and_then(|builder| builder.prologue(prologue))
        .map_err(|_| PairingError::NoRandomness)
}

fn write(
    state: &mut HandshakeState,
    payload: &[u8],
    overhead: usize,
) -> Result<Vec<u8>, PairingError> {
    if payload.len() > INTRODUCTION_MAX {
        return Err(PairingError::IntroductionTooLong(payload.len()));
    }
    let mut message = Vec::new();
    let written = noise::write(state, payload, overhead, &mut message);
    written.map_err(|_| PairingError::NoRandomness)?;
    Ok(message)
}

fn peer(state: &HandshakeState, introduction: Vec<u8>) -> Result<PairedPeer, PairingError> {
    let key = state.get_remote_static().and_then(|key| key.try_into().ok());
    let key = key.ok_or(PairingError::WrongCode)?;
    Ok(PairedPeer { key: PublicKey::of_handshake(key), introduction })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ends {
        initiator: SecretKey,
        responder: SecretKey,
    }

    impl Ends {
        fn new() -> Self {
            let secret = || SecretKey::generate().expect("random numbers");
            Self { initiator: secret(), responder: secret() }
        }

        /// Both ends after the SPAKE2 messages, and the message that proves the initiator's code.
        fn begin(&self, codes: [&str; 2]) -> (ConfirmedPairing, AnsweredPairing, Vec<u8>) {
            let (started, first) = StartedPairing::new(codes[0], &self.initiator);
            let (answered, second) =
                AnsweredPairing::new(codes[1], &self.responder, &first).expect("a point");
            let (confirmed, proof) = started.confirm(&second).expect("a point");
            (confirmed, answered, proof)
        }
    }

    #[test]
    fn both_ends_learn_the_key_and_the_introduction_of_the_other() {
        let ends = Ends::new();
        for length in [0, 1, INTRODUCTION_MAX] {
            let (ours, theirs) = (vec![1; length], vec![2; length]);
            let (confirmed, answered, proof) = ends.begin(["7Q", "7Q"]);
            let (checked, message) = answered.check_code(&proof, &theirs).expect("the code");
            let (mut introduced, responder, message) =
                confirmed.introduce(&message, &ours).expect("the responder");
            let (initiator, last) = checked.finish(&message).expect("the initiator");
            assert_eq!(initiator.key, ends.initiator.public());
            assert_eq!(initiator.introduction, ours);
            assert_eq!(responder.key, ends.responder.public());
            assert_eq!(responder.introduction, theirs);
            assert!(!introduced.is_confirmed_by(&[0; TAG_LEN]));
            assert!(introduced.is_confirmed_by(&last));
        }
        let (_, answered, proof) = ends.begin(["7Q", "7Q"]);
        let long = answered.check_code(&proof, &[0; INTRODUCTION_MAX + 1]).err();
        assert_eq!(long, Some(PairingError::IntroductionTooLong(INTRODUCTION_MAX + 1)));
    }

    #[test]
    fn another_code_ends_at_the_first_proof() {
        let (_, answered, proof) = Ends::new().begin(["7Q", "7R"]);
        assert_eq!(answered.check_code(&proof, &[]).err(), Some(PairingError::WrongCode));
    }

    /// A responder without the code learns nothing that it could use: its answer is refused.
    #[test]
    fn a_responder_without_the_code_is_refused() {
        let ends = Ends::new();
        let (confirmed, _, _) = ends.begin(["7Q", "7R"]);
        let (_, answered, proof) = ends.begin(["7R", "7R"]);
        let (_, message) = answered.check_code(&proof, &[]).expect("its own code");
        assert_eq!(confirmed.introduce(&message, &[]).err(), Some(PairingError::WrongCode));
    }

    #[test]
    fn a_message_with_any_byte_changed_is_refused() {
        let ends = Ends::new();
        for position in 0.. {
            let (confirmed, answered, mut proof) = ends.begin(["7Q", "7Q"]);
            if position < proof.len() {
                proof[position] ^= 1;
                let refused = answered.check_code(&proof, &[]).err();
                assert_eq!(refused, Some(PairingError::WrongCode), "proof, byte {position}");
                continue;
            }
            let position = position - proof.len();
            let (checked, mut second) = answered.check_code(&proof, b"me").expect("the code");
            if let Some(byte) = second.get_mut(position) {
                *byte ^= 1;
                let refused = confirmed.introduce(&second, &[]).err();
                assert_eq!(refused, Some(PairingError::WrongCode), "second, byte {position}");
                continue;
            }
            let position = position - second.len();
            let (_, _, mut third) = confirmed.introduce(&second, b"you").expect("the responder");
            let Some(byte) = third.get_mut(position) else { break };
            *byte ^= 1;
            let refused = checked.finish(&third).err();
            assert_eq!(refused, Some(PairingError::WrongCode), "third, byte {position}");
        }
    }

    #[test]
    fn what_is_no_point_of_the_curve_is_refused() {
        let secret = Ends::new().initiator;
        let (_, good) = StartedPairing::new("7Q", &secret);
        let mut other_side = good;
        other_side[0] = b'B';
        for bad in [&[][..], &good[..PAKE_LEN - 1], &[0xff; PAKE_LEN], &other_side] {
            let refused = AnsweredPairing::new("7Q", &secret, bad).err();
            assert_eq!(refused, Some(PairingError::WrongCode), "{bad:?}");
        }
    }
}
