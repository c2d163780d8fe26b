//! What two ends have after the handshake: datagrams are sealed and opened in place.

use core::fmt;
use core::ops::Range;

use ropewalk_base::{Duration, Time};

use super::cipher::Cipher;
use super::keys::PublicKey;
use super::noise::Agreed;
use super::ratchet::Ratchet;
use super::receiver::{OpenError, Receiver};
use super::sender::{KEY_LIMIT, SealError, Sender};
use super::wire::{HEADER_LEN, TAG_LEN};

/// When keys are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Datagrams of one direction and epoch after which the initiator goes on to the next epoch. At
    /// most 2^23 (RFC 9001, section 6.6); half of it, so that the peer has time to follow.
    pub rekey_packets: u64,
    /// Time after which it does so. Who takes the keys from a machine's memory reads nothing that
    /// is older than this and `keep_old` together, as long as both ends send.
    pub rekey_after: Duration,
    /// How long the previous epoch's datagrams are still opened: longer than the slowest path's
    /// delay.
    pub keep_old: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rekey_packets: KEY_LIMIT / 2,
            rekey_after: Duration::from_secs(120),
            keep_old: Duration::from_secs(30),
        }
    }
}

/// An opened datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The path on which the peer sent it, by the peer's word.
    pub path: u8,
    /// Where its content stands in the buffer that it was opened in.
    pub body: Range<usize>,
}

/// What became of the datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Datagrams that were sealed.
    pub sealed: u64,
    /// Datagrams that were opened.
    pub opened: u64,
    /// Refused: opened before.
    pub replayed: u64,
    /// Refused: from behind the replay window, or of an epoch whose key is gone.
    pub too_old: u64,
    /// Refused: not sealed by the peer.
    pub forged: u64,
}

/// Which end of the handshake this was. The initiator alone decides when keys change: so the two
/// ends are never more than one epoch apart, whatever is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Initiator,
    Responder,
}

/// The two ends of a session, as one of them sees it.
pub(super) struct Ends {
    pub(super) role: Role,
    pub(super) id: u32,
    pub(super) peer_id: u32,
    pub(super) peer: PublicKey,
}

/// Keys, counters and replay windows of one association. It knows no addresses.
pub struct Session {
    ends: Ends,
    cipher: Cipher,
    limits: Limits,
    sender: Sender,
    receiver: Receiver,
    /// The peer has sealed something with the keys of this session.
    confirmed: bool,
    epoch_since: Time,
    forget_at: Option<Time>,
    tally: Tally,
}

impl Session {
    /// The two halves, for tests.
    #[cfg(test)]
    pub(super) const fn halves(&mut self) -> (&mut Sender, &mut Receiver) {
        (&mut self.sender, &mut self.receiver)
    }

    pub(super) fn new(ends: Ends, cipher: Cipher, agreed: &Agreed, now: Time) -> Self {
        let ratchet = |root| Ratchet::new(cipher, root, &agreed.transcript);
        let initiator = ratchet(&agreed.from_initiator);
        let responder = ratchet(&agreed.from_responder);
        let (mine, theirs) = match ends.role {
            Role::Initiator => (initiator, responder),
            Role::Responder => (responder, initiator),
        };
        Self {
            cipher,
            limits: Limits::default(),
            sender: Sender::new(ends.peer_id, mine),
            receiver: Receiver::new(ends.id, cipher, theirs),
            confirmed: ends.role == Role::Initiator,
            epoch_since: now,
            forget_at: None,
            tally: Tally::default(),
            ends,
        }
    }

    /// Changes when keys are changed.
    ///
    /// # Panics
    /// If a key were to seal more than 2^23 datagrams, or none.
    pub fn set_limits(&mut self, limits: Limits) {
        assert!((1..=KEY_LIMIT).contains(&limits.rekey_packets), "{limits:?}");
        self.limits = limits;
    }

    /// Appends a sealed datagram to `out`: its header, what `write` appends, and the tag. Says where
    /// it stands in `out`. Several may be sealed one after another into one buffer.
    ///
    /// # Errors
    /// [`SealError`]; nothing was appended.
    ///
    /// # Panics
    /// If `write` takes away what was in the buffer.
    #[inline]
    pub fn seal(
        &mut self,
        path: u8,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Range<usize>, SealError> {
        let sealed = self.sender.seal(path, out, write)?;
        self.tally.sealed += 1;
        Ok(sealed)
    }

    /// Decrypts a datagram in place. Where it is refused, the buffer's content is lost.
    ///
    /// # Errors
    /// [`OpenError`]; the session is as it was before, but for the tally.
    #[inline]
    pub fn open(&mut self, now: Time, datagram: &mut [u8]) -> Result<Opened, OpenError> {
        let accepted = self.receiver.open(datagram).inspect_err(|error| self.count(*error))?;
        self.tally.opened += 1;
        self.confirmed = true;
        if accepted.new_epoch {
            self.follow(now);
        }
        self.turn_if_due(now);
        Ok(Opened { path: accepted.path, body: HEADER_LEN..datagram.len() - TAG_LEN })
    }

    /// Changes keys and forgets old ones, where it is time.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.forget_at.is_some_and(|at| at <= now) {
            self.receiver.forget_previous();
            self.forget_at = None;
        }
        self.turn_if_due(now);
    }

    /// When [`Self::handle_timeout`] is to be called next.
    pub fn next_deadline(&self) -> Option<Time> {
        let turn =
            self.may_turn().then(|| self.epoch_since.saturating_add(self.limits.rekey_after));
        self.forget_at.into_iter().chain(turn).min()
    }

    /// The number by which the peer addresses this session.
    pub const fn id(&self) -> u32 {
        self.ends.id
    }

    /// The number by which this end addresses the peer's session.
    pub const fn peer_id(&self) -> u32 {
        self.ends.peer_id
    }

    /// Who the peer is.
    pub const fn peer(&self) -> PublicKey {
        self.ends.peer
    }

    /// Whether the peer has shown that it has the session's keys. Until then a responder must not
    /// send more than three times the bytes it got to an address, and may drop the session.
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// The AEAD that both agreed on.
    pub const fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// How often the keys of what this end sends were changed.
    pub const fn epoch(&self) -> u64 {
        self.sender.epoch()
    }

    /// What became of the datagrams.
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    fn count(&mut self, error: OpenError) {
        match error {
            OpenError::Replayed => self.tally.replayed += 1,
            OpenError::TooOld | OpenError::UnknownEpoch => self.tally.too_old += 1,
            OpenError::Forged => self.tally.forged += 1,
            OpenError::NotSealed | OpenError::OtherSession(_) => {}
        }
    }

    /// The peer seals with the next epoch's keys: so does this end from now on.
    fn follow(&mut self, now: Time) {
        if self.sender.epoch() < self.receiver.epoch() {
            self.sender.turn();
        }
        debug_assert_eq!(self.sender.epoch(), self.receiver.epoch());
        self.epoch_since = now;
        self.forget_at = Some(now.saturating_add(self.limits.keep_old));
    }

    /// Only after the peer has followed: then it has the key of the next epoch ready.
    fn may_turn(&self) -> bool {
        self.ends.role == Role::Initiator && self.sender.epoch() == self.receiver.epoch()
    }

    #[inline]
    fn turn_if_due(&mut self, now: Time) {
        let packets = self.limits.rekey_packets;
        let due = self.sender.sealed_in_epoch() >= packets
            || self.receiver.opened_in_epoch() >= packets
            || now.since(self.epoch_since) >= self.limits.rekey_after;
        if due && self.may_turn() {
            self.sender.turn();
            self.epoch_since = now;
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.ends.id)
            .field("peer", &self.ends.peer)
            .field("cipher", &self.cipher)
            .field("epoch", &self.sender.epoch())
            .field("tally", &self.tally)
            .finish_non_exhaustive()
    }
}
