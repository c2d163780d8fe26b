//! Noise_IK_25519_ChaChaPoly_SHA256: both ends prove their static keys in one round trip. With a pre-shared key it is
//! Noise_IKpsk2_25519_ChaChaPoly_SHA256.
//!
//! IK, because the initiator knows the responder's key and hides its own identity. ChaChaPoly, because it is
//! constant-time without hardware support; it seals only two messages per session, so its speed does not matter.
//! SHA-256, because the MACs and the ratchet use it too. psk2, because the responder learns from the first message
//! which peer's pre-shared key it needs, and uses it in the second.

use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::curve::ContributoryResolver;
use super::keys::{PublicKey, SecretKey};
use super::psk::PresharedKey;
use super::wire::PREFIX_LEN;

const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_SHA256";
const PATTERN_WITH_PSK: &str = "Noise_IKpsk2_25519_ChaChaPoly_SHA256";
/// Position of the pre-shared key in psk2: at the end of the second message.
const PSK_POSITION: u8 = 2;

/// The secrets that both ends share after the handshake.
pub(super) struct SessionSecrets {
    /// Root key of the initiator's datagrams.
    pub(super) from_initiator: Zeroizing<[u8; 32]>,
    /// Root key of the responder's datagrams.
    pub(super) from_responder: Zeroizing<[u8; 32]>,
    /// Hash of the handshake.
    pub(super) transcript: [u8; 32],
}

/// The initiator's handshake state. `prefix`, the beginning of the first datagram, is authenticated too.
pub(super) fn initiator(
    secret: &SecretKey,
    peer: &PublicKey,
    psk: Option<&PresharedKey>,
    prefix: &[u8; PREFIX_LEN],
) -> Result<HandshakeState, snow::Error> {
    let mut builder = builder(psk.is_some()).prologue(prefix)?;
    builder = builder.local_private_key(secret.bytes())?.remote_public_key(peer.as_bytes())?;
    if let Some(psk) = psk {
        builder = builder.psk(PSK_POSITION, psk.bytes())?;
    }
    builder.build_initiator()
}

/// The responder's handshake state. With a pre-shared key, [`set_psk`] provides the key after the first message.
pub(super) fn responder(
    secret: &SecretKey,
    with_psk: bool,
    prefix: &[u8; PREFIX_LEN],
) -> Result<HandshakeState, snow::Error> {
    builder(with_psk).prologue(prefix)?.local_private_key(secret.bytes())?.build_responder()
}

/// Sets the pre-shared key that the responder shares with this initiator.
pub(super) fn set_psk(state: &mut HandshakeState, psk: &PresharedKey) -> Result<(), snow::Error> {
    state.set_psk(usize::from(PSK_POSITION), psk.bytes())
}

fn builder<'a>(with_psk: bool) -> Builder<'a> {
    let pattern = if with_psk { PATTERN_WITH_PSK } else { PATTERN };
    let pattern: NoiseParams = pattern.parse().expect("a pattern that the crate knows");
    Builder::with_resolver(pattern, Box::new(ContributoryResolver))
}

/// Appends the next message, with `payload`, to `out`.
pub(super) fn write(
    state: &mut HandshakeState,
    payload: &[u8],
    overhead: usize,
    out: &mut Vec<u8>,
) -> Result<(), snow::Error> {
    let start = out.len();
    out.resize(start + overhead + payload.len(), 0);
    let written = state.write_message(payload, &mut out[start..])?;
    debug_assert_eq!(start + written, out.len(), "the overhead is as long as it was said to be");
    Ok(())
}

/// The payload of the peer's next message. An invalid message changes nothing.
pub(super) fn read(state: &mut HandshakeState, message: &[u8]) -> Option<Vec<u8>> {
    let mut payload = vec![0; message.len()];
    let length = state.read_message(message, &mut payload).ok()?;
    payload.truncate(length);
    Some(payload)
}

/// The result, after the second message.
pub(super) fn secrets(mut state: HandshakeState) -> SessionSecrets {
    let (from_initiator, from_responder) = state.dangerously_get_raw_split();
    let transcript = state.get_handshake_hash().try_into().expect("32 bytes of SHA-256");
    SessionSecrets {
        from_initiator: Zeroizing::new(from_initiator),
        from_responder: Zeroizing::new(from_responder),
        transcript,
    }
}
