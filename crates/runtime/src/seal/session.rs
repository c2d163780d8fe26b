//! The result of a handshake: seals and opens datagrams in place.

use core::fmt;
use core::ops::Range;

use ropewalk_base::{Duration, Time};

use super::cipher::Cipher;
use super::keys::PublicKey;
use super::noise::SessionSecrets;
use super::ratchet::Ratchet;
use super::receiver::{OpenError, Receiver};
use super::renewal::{Renewal, RenewalMessage, Renewed};
use super::sender::{KEY_LIMIT, SealError, Sender};
use super::wire::{HEADER_LEN, TAG_LEN};

/// When keys are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of datagrams of one direction and epoch after which the initiator renews the keys. The maximum is 2^23
    /// (RFC 9001, section 6.6); the default is half of it, so that the peer has time to answer.
    pub rekey_packets: u64,
    /// Time after which the initiator renews the keys. An attacker that copies the keys from a machine's memory
    /// cannot read anything older than this plus `keep_old`, and nothing after the next renewal, as long as both ends
    /// send.
    pub rekey_after: Duration,
    /// Minimum interval between two renewals in which the responder participates: each costs it about 0.1 ms.
    pub rekey_pause: Duration,
    /// How long datagrams of the previous epoch are still opened. Must exceed the delay of the slowest path.
    pub keep_old: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rekey_packets: KEY_LIMIT / 2,
            rekey_after: Duration::from_secs(120),
            rekey_pause: Duration::from_secs(1),
            keep_old: Duration::from_secs(30),
        }
    }
}

/// An opened datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The path on which the peer claims to have sent it.
    pub path: u8,
    /// The form of its content: see [`Session::seal_form`].
    pub form: u8,
    /// The number of the datagram on its path, from 0.
    pub counter: u64,
    /// Byte range of its content in the buffer that was opened.
    pub body: Range<usize>,
}

/// Counters of sealed, opened and refused datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Sealed datagrams.
    pub sealed: u64,
    /// Opened datagrams.
    pub opened: u64,
    /// Refused: already opened before.
    pub replayed: u64,
    /// Refused: older than the replay window, or of an epoch whose key is gone.
    pub too_old: u64,
    /// Refused: not sealed by the peer.
    pub forged: u64,
}

/// The role of this end. Only the initiator decides when keys change, so the two ends are never more than one epoch
/// apart, regardless of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Initiator,
    Responder,
}

/// The two ends of a session, as seen from one of them.
pub(super) struct SessionEnds {
    pub(super) role: Role,
    pub(super) id: u32,
    pub(super) peer_id: u32,
    pub(super) peer: PublicKey,
}

/// Keys, counters and replay windows of one association. It does not depend on addresses.
pub struct Session {
    ends: SessionEnds,
    cipher: Cipher,
    limits: Limits,
    sender: Sender,
    receiver: Receiver,
    renewal: Renewal,
    /// Whether the peer has sealed a datagram with the keys of this session.
    confirmed: bool,
    epoch_since: Time,
    forget_at: Option<Time>,
    counters: SessionCounters,
}

impl Session {
    /// The two halves, for tests.
    #[cfg(test)]
    pub(super) const fn halves(&mut self) -> (&mut Sender, &mut Receiver) {
        (&mut self.sender, &mut self.receiver)
    }

    pub(super) fn new(
        ends: SessionEnds,
        cipher: Cipher,
        secrets: &SessionSecrets,
        now: Time,
    ) -> Self {
        let ratchet = |root| Ratchet::new(cipher, root, &secrets.transcript);
        let initiator = ratchet(&secrets.from_initiator);
        let responder = ratchet(&secrets.from_responder);
        let (mine, theirs) = match ends.role {
            Role::Initiator => (initiator, responder),
            Role::Responder => (responder, initiator),
        };
        Self {
            cipher,
            limits: Limits::default(),
            sender: Sender::new(ends.peer_id, mine),
            receiver: Receiver::new(ends.id, cipher, theirs),
            renewal: Renewal::default(),
            confirmed: ends.role == Role::Initiator,
            epoch_since: now,
            forget_at: None,
            counters: SessionCounters::default(),
            ends,
        }
    }

    /// Sets when keys are changed.
    ///
    /// # Panics
    /// If a key would seal more than 2^23 datagrams, or none.
    pub fn set_limits(&mut self, limits: Limits) {
        assert!((1..=KEY_LIMIT).contains(&limits.rekey_packets), "{limits:?}");
        self.limits = limits;
    }

    /// Appends a sealed datagram to `out`: its header, the content that `write` appends, and the tag. Returns its
    /// byte range in `out`. One buffer may hold several consecutive datagrams.
    ///
    /// # Errors
    /// [`SealError`]; in that case nothing is appended.
    ///
    /// # Panics
    /// If `write` removes bytes that were in the buffer.
    #[inline]
    pub fn seal(
        &mut self,
        path: u8,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Range<usize>, SealError> {
        self.seal_form(path, 0, out, write)
    }

    /// Like [`Self::seal`], for content of the form `form`, at most 31, which the peer receives with the content.
    /// Observers can see the form, but cannot change it.
    ///
    /// # Errors
    /// [`SealError`]. In that case nothing is appended.
    #[inline]
    pub fn seal_form(
        &mut self,
        path: u8,
        form: u8,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Range<usize>, SealError> {
        let sealed = self.sender.seal(path, form, out, write)?;
        self.counters.sealed += 1;
        Ok(sealed)
    }

    /// Decrypts a datagram in place. If it is refused, the buffer's content is undefined.
    ///
    /// # Errors
    /// [`OpenError`]; the session is unchanged except for its counters.
    #[inline]
    pub fn open(&mut self, now: Time, datagram: &mut [u8]) -> Result<Opened, OpenError> {
        let accepted = self.receiver.open(datagram).inspect_err(|error| self.count(*error))?;
        self.counters.opened += 1;
        self.confirmed = true;
        if accepted.new_epoch {
            self.follow_peer_epoch(now);
        }
        self.renew_if_due(now);
        Ok(Opened {
            path: accepted.path,
            form: accepted.form,
            counter: accepted.counter,
            body: HEADER_LEN..datagram.len() - TAG_LEN,
        })
    }

    /// Whether [`Self::offer`] has something to send to the peer.
    #[inline]
    pub const fn wants_renewal(&self, now: Time) -> bool {
        self.renewal.is_due(now)
    }

    /// The datagram that the initiator must send to renew the keys of both ends. It is repeated until it is answered,
    /// as long as datagrams of the peer show that the peer is present.
    pub fn offer(&mut self, now: Time) -> Option<RenewalMessage> {
        self.renewal.offer(now)
    }

    /// Handles an opened content for which [`is_renewal`](super::is_renewal) holds. Returns the answer for the peer.
    pub fn handle_renewal(&mut self, now: Time, content: &[u8]) -> Option<RenewalMessage> {
        // Both ends are in the same epoch, unless this one has just switched to the next.
        if self.sender.epoch() != self.receiver.epoch() {
            return None;
        }
        match self.ends.role {
            Role::Initiator => {
                let renewed = self.renewal.finish(content)?;
                self.mix(&renewed);
                self.sender.turn();
                self.epoch_since = now;
                None
            }
            Role::Responder => {
                let may_begin = now.since(self.epoch_since) >= self.limits.rekey_pause;
                let next = self.receiver.epoch() + 1;
                let (answer, renewed) = self.renewal.answer(content, next, may_begin)?;
                if let Some(renewed) = renewed {
                    self.mix(&renewed);
                }
                Some(answer)
            }
        }
    }

    fn mix(&mut self, renewed: &Renewed) {
        self.sender.renew(renewed);
        self.receiver.renew(renewed);
    }

    /// Erases old keys when they expire.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.forget_at.is_some_and(|at| at <= now) {
            self.receiver.forget_previous();
            self.forget_at = None;
        }
    }

    /// When [`Self::handle_timeout`] must be called next.
    pub const fn next_deadline(&self) -> Option<Time> {
        self.forget_at
    }

    /// The number by which the peer addresses this session.
    pub const fn id(&self) -> u32 {
        self.ends.id
    }

    /// The number by which this end addresses the peer's session.
    pub const fn peer_id(&self) -> u32 {
        self.ends.peer_id
    }

    /// The peer's public key.
    pub const fn peer(&self) -> PublicKey {
        self.ends.peer
    }

    /// Whether the peer has proved that it has the session's keys. Before that, a responder must not send more than
    /// three times the bytes that it received from an address, and may drop the session.
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// The AEAD that both ends agreed on.
    pub const fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Number of key changes for outgoing datagrams.
    pub const fn epoch(&self) -> u64 {
        self.sender.epoch()
    }

    /// Counters of sealed, opened and refused datagrams.
    pub const fn counters(&self) -> SessionCounters {
        self.counters
    }

    fn count(&mut self, error: OpenError) {
        match error {
            OpenError::Replayed => self.counters.replayed += 1,
            OpenError::TooOld | OpenError::UnknownEpoch => self.counters.too_old += 1,
            OpenError::Forged => self.counters.forged += 1,
            OpenError::NotSealed | OpenError::OtherSession(_) => {}
        }
    }

    /// Switches to the next epoch, whose keys the peer already uses.
    fn follow_peer_epoch(&mut self, now: Time) {
        if self.sender.epoch() < self.receiver.epoch() {
            self.sender.turn();
        }
        debug_assert_eq!(self.sender.epoch(), self.receiver.epoch());
        self.epoch_since = now;
        self.forget_at = Some(now.saturating_add(self.limits.keep_old));
    }

    /// Starts a renewal if it is due and the peer has followed to this epoch.
    #[inline]
    fn renew_if_due(&mut self, now: Time) {
        if self.ends.role == Role::Responder || self.sender.epoch() != self.receiver.epoch() {
            return;
        }
        let packets = self.limits.rekey_packets;
        let due = self.sender.sealed_in_epoch() >= packets
            || self.receiver.opened_in_epoch() >= packets
            || now.since(self.epoch_since) >= self.limits.rekey_after;
        if due {
            self.renewal.begin(self.sender.epoch() + 1, now);
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
            .field("tally", &self.counters)
            .finish_non_exhaustive()
    }
}
