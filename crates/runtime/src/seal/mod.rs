//! Sealing of datagrams: authenticates the peer, encrypts, and protects against modification.
//!
//! A handshake of one round trip (Noise IK: both ends prove a static key) creates a [`Session`], which seals and
//! opens datagrams in place. A session belongs to an association and does not depend on addresses. Each path has its
//! own counter and its own replay window. This module uses no sockets and no monotonic clock: time is an argument.
//!
//! The format in bytes, and the threat model: `docs/reference/sealing.md`.

mod allowed;
mod cipher;
mod clock_refusal;
mod curve;
mod handshake_replay;
mod initiator;
mod key_file;
mod keys;
mod mac;
mod noise;
mod pairing;
mod psk;
mod ratchet;
mod rate_limiter;
mod receiver;
mod renewal;
mod replay;
mod reply_cache;
mod responder;
mod sender;
mod session;
#[cfg(test)]
mod tests;
mod timestamp;
mod token;
mod trusted_file;
mod wire;

pub use allowed::{Allowed, Grant, Refusal, Refused};
pub use cipher::Cipher;
pub use clock_refusal::{CLOCK_TOLERANCE, ClockRefusal};
pub use initiator::{Finish, HandshakeError, Initiator};
pub use key_file::{KeyFileError, KeyFileProblem, write_new_secret};
pub use keys::{KeyError, PublicKey, SecretKey};
pub use pairing::{
    AnsweredPairing, ConfirmedPairing, INTRODUCTION_MAX, IntroducedPairing, PAKE_LEN, PairedPeer,
    PairingError, StartedPairing,
};
pub use psk::PresharedKey;
pub use receiver::OpenError;
pub use renewal::{RenewalMessage, is_renewal};
pub use responder::{Answer, Established, Responder};
pub use sender::SealError;
pub use session::{Limits, Opened, Session, SessionCounters};
pub use timestamp::{Timestamp, difference};
pub use trusted_file::{Secrecy, read_trusted};
pub use wire::{FIRST_MAX, FIRST_MIN, OVERHEAD, PAYLOAD_MAX, VERSION, is_first, session_id};
