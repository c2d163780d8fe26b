//! Which initiators a responder admits.

use core::fmt;
use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};

use super::keys::PublicKey;
use super::psk::PresharedKey;
use super::timestamp::Timestamp;

/// Who may have a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// Those with these keys.
    Keys(BTreeSet<PublicKey>),
    /// Those with these keys, each on its own terms.
    Peers(BTreeMap<PublicKey, Grant>),
    /// Everybody; who it is, is known nevertheless. Each proves its address first, which costs one
    /// more round trip.
    Anyone,
}

/// On which terms a peer may have a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The pre-shared key that it must use. None: the responder's own, if it has one.
    pub psk: Option<PresharedKey>,
    /// From this date on it gets no new session.
    pub expires: Option<Timestamp>,
}

/// An initiator that proved its key and got no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its key, proved up to replay of the first datagram.
    pub peer: PublicKey,
    /// Where the first datagram came from.
    pub from: SocketAddr,
    /// Why.
    pub why: Refusal,
}

/// Why an initiator got no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its key is not listed.
    NotListed,
    /// Its entry has expired.
    Expired,
    /// It uses no pre-shared key, and has to.
    PskMissing,
    /// It uses a pre-shared key, and there is none for it.
    PskUnexpected,
}

impl Allowed {
    /// Whether a peer with this key is listed, expired or not.
    pub fn lists(&self, peer: &PublicKey) -> bool {
        match self {
            Self::Keys(keys) => keys.contains(peer),
            Self::Peers(peers) => peers.contains_key(peer),
            Self::Anyone => true,
        }
    }

    /// The peer's own pre-shared key, if it may have a session now. `date` is asked only where it matters.
    pub(super) fn admit(
        &self,
        peer: &PublicKey,
        date: impl FnOnce() -> Timestamp,
    ) -> Result<Option<&PresharedKey>, Refusal> {
        match self {
            Self::Peers(peers) => {
                let grant = peers.get(peer).ok_or(Refusal::NotListed)?;
                let expired = grant.expires.is_some_and(|expires| expires <= date());
                if expired { Err(Refusal::Expired) } else { Ok(grant.psk.as_ref()) }
            }
            _ if self.lists(peer) => Ok(None),
            _ => Err(Refusal::NotListed),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotListed => "the key is not allowed",
            Self::Expired => "the entry of this key has expired",
            Self::PskMissing => "the peer did not use the pre-shared key that is required",
            Self::PskUnexpected => "the peer used a pre-shared key, and none is configured for it",
        })
    }
}
