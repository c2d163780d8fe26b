//! Noise_IK_25519_ChaChaPoly_SHA256: both ends prove their static keys in one round trip.
//!
//! IK, because the initiator knows whom it wants to reach and hides who it is. ChaChaPoly, because it
//! is of constant time without help by the machine, and seals two messages per session: its speed does not
//! matter. SHA-256, because the MACs and the ratchet use it too: one hash to trust.

use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::keys::{PublicKey, SecretKey};
use super::wire::PREFIX_LEN;

const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_SHA256";

/// What both ends have in common after the handshake.
pub(super) struct Agreed {
    /// Root of what the initiator sends.
    pub(super) from_initiator: Zeroizing<[u8; 32]>,
    /// Root of what the responder sends.
    pub(super) from_responder: Zeroizing<[u8; 32]>,
    /// Hash of all that was said.
    pub(super) transcript: [u8; 32],
}

/// The initiator's end. `prefix` is the beginning of the first datagram: it is authenticated too.
pub(super) fn initiator(
    secret: &SecretKey,
    peer: &PublicKey,
    prefix: &[u8; PREFIX_LEN],
) -> Result<HandshakeState, snow::Error> {
    let builder = Builder::new(pattern()).prologue(prefix)?;
    builder.local_private_key(secret.bytes())?.remote_public_key(peer.as_bytes())?.build_initiator()
}

/// The responder's end.
pub(super) fn responder(
    secret: &SecretKey,
    prefix: &[u8; PREFIX_LEN],
) -> Result<HandshakeState, snow::Error> {
    Builder::new(pattern()).prologue(prefix)?.local_private_key(secret.bytes())?.build_responder()
}

fn pattern() -> NoiseParams {
    PATTERN.parse().expect("a pattern that the crate knows")
}

/// Writes the next message with `payload` at the end of `out`.
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

/// The payload of the peer's next message. A message that is not the peer's changes nothing.
pub(super) fn read(state: &mut HandshakeState, message: &[u8]) -> Option<Vec<u8>> {
    let mut payload = vec![0; message.len()];
    let length = state.read_message(message, &mut payload).ok()?;
    payload.truncate(length);
    Some(payload)
}

/// The outcome, after the second message.
pub(super) fn agreed(mut state: HandshakeState) -> Agreed {
    let (from_initiator, from_responder) = state.dangerously_get_raw_split();
    let transcript = state.get_handshake_hash().try_into().expect("32 bytes of SHA-256");
    Agreed {
        from_initiator: Zeroizing::new(from_initiator),
        from_responder: Zeroizing::new(from_responder),
        transcript,
    }
}
