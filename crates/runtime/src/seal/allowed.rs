//! The initiators that a responder admits.

use core::fmt;
use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};

use ropewalk_base::Duration;

use super::keys::PublicKey;
use super::psk::PresharedKey;
use super::timestamp::Timestamp;

/// The peers that may have a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// Peers with these keys.
    Keys(BTreeSet<PublicKey>),
    /// Peers with these keys, each with its own conditions.
    Peers(BTreeMap<PublicKey, Grant>),
    /// All peers. Their keys are still authenticated. Each peer must first prove its address, which costs one
    /// more round trip.
    Anyone,
}

/// Conditions under which a peer may have a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The pre-shared key that the peer must use. `None` selects the responder's own, if it has one.
    pub psk: Option<PresharedKey>,
    /// The peer gets no new session from this date on.
    pub expires: Option<Timestamp>,
}

/// An initiator that proved its key but was refused a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its key, proved except for replay of the first datagram.
    pub peer: PublicKey,
    /// Source address of the first datagram.
    pub from: SocketAddr,
    /// The reason.
    pub why: Refusal,
}

/// Why an initiator was refused a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The initiator's key is not listed.
    NotListed,
    /// Its entry has expired.
    Expired,
    /// The initiator used no pre-shared key, but one is required.
    PskMissing,
    /// The initiator used a pre-shared key, but the responder has none for it.
    PskUnexpected,
    /// The date of its first datagram is behind the date that its clock should show by now, by this time.
    ClockBehind(Duration),
}

impl Allowed {
    /// Whether the key is listed, expired or not.
    pub fn lists(&self, peer: &PublicKey) -> bool {
        match self {
            Self::Keys(keys) => keys.contains(peer),
            Self::Peers(peers) => peers.contains_key(peer),
            Self::Anyone => true,
        }
    }

    /// The peer's own pre-shared key, if the peer may have a session now. `date` is called only if the entry expires.
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

/// Formats a time in the largest unit of which it contains at least two.
pub(super) fn rounded(time: Duration) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];
    let seconds = time.as_nanos() / 1_000_000_000;
    let unit = UNITS.iter().find(|(unit, _)| seconds >= 2 * unit);
    unit.map_or_else(
        || format!("{seconds} seconds"),
        |(unit, name)| format!("{} {name}", seconds / unit),
    )
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClockBehind(time) => {
                let time = rounded(*time);
                return write!(
                    f,
                    "the clock of this peer is {time} behind its own at the last handshake, or an old datagram was repeated; \
                     it gets no session until its clock is right"
                );
            }
            Self::NotListed => "the key is not allowed",
            Self::Expired => "the entry of this key has expired",
            Self::PskMissing => "the peer did not use the pre-shared key that is required",
            Self::PskUnexpected => "the peer used a pre-shared key, and none is configured for it",
        })
    }
}
