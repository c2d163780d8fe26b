//! A new Diffie-Hellman within a session: an attacker that has copied the keys from a machine's memory cannot derive
//! those of the next epoch.
//!
//! Before the initiator switches to the next epoch, both ends exchange fresh X25519 keys, sealed with the keys of
//! this epoch:
//!
//! ```text
//! initiator                                          responder
//!     | offer: the next epoch, a fresh key  ----------->  |
//!     |                                                   |  mixes the result into the next epoch, in both directions
//!     | <-----------  answer: the same epoch, a fresh key |
//!     | mixes the result into the next epoch, switches    |
//!     | a datagram of the next epoch  ------------------->|  switches
//! ```
//!
//! An offer is repeated until it is answered, and the initiator does not switch earlier. The answer is repeated for
//! each repeated offer.

use ropewalk_base::{Duration, Time};
use snow::types::Dh;
use zeroize::Zeroizing;

use super::curve::key_pair;
use super::keys::{KEY_LEN, SecretKey};

/// First bytes of an offer and an answer: source port 0 (RFC 9260, 3.1: "The port number 0 MUST NOT be used."), and
/// the kind. The port distinguishes them from SCTP packets.
const OFFER: [u8; 4] = [0, 0, 0, 3];
const ANSWER: [u8; 4] = [0, 0, 0, 4];
/// Size of an offer or an answer, bytes.
pub(super) const MESSAGE_LEN: usize = 4 + 8 + KEY_LEN;
/// Interval of repeated offers.
const REPEAT: Duration = Duration::from_millis(250);

/// An offer or an answer, as the content of a sealed datagram.
pub type RenewalMessage = [u8; MESSAGE_LEN];

/// Whether the content of a sealed datagram renews the keys of its session.
#[inline]
pub fn is_renewal(content: &[u8]) -> bool {
    content.starts_with(&OFFER) || content.starts_with(&ANSWER)
}

/// A public key of one exchange.
type Public = [u8; KEY_LEN];

/// The result of an exchange, known to both ends.
pub(super) struct Renewed {
    /// The result of the Diffie-Hellman.
    pub shared: Zeroizing<[u8; KEY_LEN]>,
    pub offer: Public,
    pub answer: Public,
}

/// The state of one end.
#[derive(Default)]
pub(super) enum Renewal {
    #[default]
    Idle,
    /// The initiator waits for an answer.
    Offered { epoch: u64, secret: Box<dyn Dh>, public: Public, next: Time },
    /// The responder has answered, and repeats the answer for a repeated offer.
    Answered { epoch: u64, offer: Public, answer: Public },
}

impl Renewal {
    /// Starts an exchange for the keys of this epoch, unless one is in progress.
    pub fn begin(&mut self, epoch: u64, now: Time) {
        if matches!(self, Self::Idle)
            && let Some((secret, public)) = fresh_pair()
        {
            *self = Self::Offered { epoch, secret, public, next: now };
        }
    }

    /// Whether an offer is due.
    #[inline]
    pub const fn is_due(&self, now: Time) -> bool {
        matches!(self, Self::Offered { next, .. } if next.as_nanos() <= now.as_nanos())
    }

    /// The offer, if it is due.
    pub fn offer(&mut self, now: Time) -> Option<RenewalMessage> {
        match self {
            Self::Offered { epoch, public, next, .. } if *next <= now => {
                *next = now.saturating_add(REPEAT);
                Some(message(OFFER, *epoch, public))
            }
            _ => None,
        }
    }

    /// Handles an offer for the epoch `next` at the responder. Returns the answer, and the result if the offer is new
    /// and `may_begin` permits an exchange.
    pub fn answer(
        &mut self,
        content: &[u8],
        next: u64,
        may_begin: bool,
    ) -> Option<(RenewalMessage, Option<Renewed>)> {
        let (_, offer) = read(OFFER, content).filter(|(epoch, _)| *epoch == next)?;
        if let Self::Answered { epoch, offer: first, answer } = self
            && *epoch == next
        {
            return (*first == offer).then(|| (message(ANSWER, next, answer), None));
        }
        if !may_begin {
            return None;
        }
        let (secret, answer) = fresh_pair()?;
        let shared = agreed(&*secret, &offer)?;
        *self = Self::Answered { epoch: next, offer, answer };
        Some((message(ANSWER, next, &answer), Some(Renewed { shared, offer, answer })))
    }

    /// Handles an answer at the initiator, which ends the exchange. Returns its result.
    pub fn finish(&mut self, content: &[u8]) -> Option<Renewed> {
        let Self::Offered { epoch, secret, public, .. } = self else { return None };
        let (_, answer) = read(ANSWER, content).filter(|(answered, _)| answered == epoch)?;
        let renewed = Renewed { shared: agreed(&**secret, &answer)?, offer: *public, answer };
        *self = Self::Idle;
        Some(renewed)
    }
}

/// A fresh key pair; `None` if the system provides no random numbers.
fn fresh_pair() -> Option<(Box<dyn Dh>, Public)> {
    let secret = SecretKey::generate().ok()?;
    let pair = key_pair(secret.bytes());
    let public = pair.pubkey().try_into().ok()?;
    Some((pair, public))
}

/// The result of a Diffie-Hellman; `None` for a point of low order.
fn agreed(secret: &dyn Dh, public: &Public) -> Option<Zeroizing<[u8; KEY_LEN]>> {
    let mut shared = Zeroizing::new([0; KEY_LEN]);
    secret.dh(public, &mut *shared).ok()?;
    Some(shared)
}

fn message(kind: [u8; 4], epoch: u64, public: &Public) -> RenewalMessage {
    let mut out = [0; MESSAGE_LEN];
    out[..4].copy_from_slice(&kind);
    out[4..12].copy_from_slice(&epoch.to_be_bytes());
    out[12..].copy_from_slice(public);
    out
}

/// The epoch and the key of a message of this kind.
fn read(kind: [u8; 4], content: &[u8]) -> Option<(u64, Public)> {
    let rest = content.strip_prefix(&kind)?;
    let (epoch, public) = rest.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*epoch), public.try_into().ok()?))
}
