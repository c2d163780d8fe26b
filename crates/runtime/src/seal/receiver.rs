//! The receiving half of a session: the keys of three epochs, and a replay window for each path.

use core::mem::replace;

use super::cipher::Cipher;
use super::ratchet::{DatagramKey, Ratchet};
use super::renewal::Renewed;
use super::replay::{ReplayWindow, Verdict, whole_counter};
use super::wire::{HEADER_LEN, Header, epoch_bits};

/// Why a datagram was not opened. Callers should only count these errors, because any sender can cause them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The datagram is not sealed.
    #[error("no sealed datagram")]
    NotSealed,
    /// The datagram belongs to another session.
    #[error("a datagram for session {0:08x}")]
    OtherSession(u32),
    /// There is no key for its epoch.
    #[error("a datagram of an epoch without a key")]
    UnknownEpoch,
    /// The datagram was already opened.
    #[error("a datagram that was opened before")]
    Replayed,
    /// The datagram is too old to determine whether it was already opened.
    #[error("a datagram from behind the replay window")]
    TooOld,
    /// The peer did not seal it, or it was modified.
    #[error("a datagram that the peer did not seal")]
    Forged,
}

/// Opens received datagrams.
pub(super) struct Receiver {
    session: u32,
    cipher: Cipher,
    /// Derives the keys of the next epoch.
    ratchet: Ratchet,
    /// Number of the epoch of `current`.
    epoch: u64,
    /// Key of the previous epoch while late datagrams may still arrive; otherwise a placeholder.
    previous: DatagramKey,
    has_previous: bool,
    current: DatagramKey,
    /// Key of the next epoch. Derived in advance, so that forged datagrams of that epoch cost no more than others.
    next: DatagramKey,
    opened_in_epoch: u64,
    /// By path. Created when the first datagram of a path is opened, never for a forged one.
    windows: Vec<Option<ReplayWindow>>,
}

/// Properties of an opened datagram.
pub(super) struct Accepted {
    pub(super) path: u8,
    /// The form of the content.
    pub(super) form: u8,
    /// The number of the datagram on its path, from 0.
    pub(super) counter: u64,
    /// Whether it is the first datagram of the next epoch.
    pub(super) new_epoch: bool,
}

impl Receiver {
    pub(super) fn new(session: u32, cipher: Cipher, mut ratchet: Ratchet) -> Self {
        let (current, next) = (ratchet.turn(), ratchet.next_key());
        Self {
            session,
            cipher,
            ratchet,
            epoch: 0,
            previous: DatagramKey::blank(cipher.algorithm()),
            has_previous: false,
            current,
            next,
            opened_in_epoch: 0,
            windows: Vec::new(),
        }
    }

    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) const fn opened_in_epoch(&self) -> u64 {
        self.opened_in_epoch
    }

    /// Overwrites the key of the previous epoch.
    pub(super) fn forget_previous(&mut self) {
        self.previous = DatagramKey::blank(self.cipher.algorithm());
        self.has_previous = false;
    }

    /// Decrypts a datagram in place. Its content is from [`HEADER_LEN`] to the tag.
    #[inline]
    pub(super) fn open(&mut self, datagram: &mut [u8]) -> Result<Accepted, OpenError> {
        let header = Header::parse(datagram).ok_or(OpenError::NotSealed)?;
        if header.session != self.session {
            return Err(OpenError::OtherSession(header.session));
        }
        let key = self.key(header.epoch).ok_or(OpenError::UnknownEpoch)?;
        let window = self.windows.get(usize::from(header.path)).and_then(Option::as_ref);
        let expected = window.map_or(0, ReplayWindow::next);
        let counter = whole_counter(header.counter, expected);
        match window.map_or(Verdict::New, |window| window.check(counter)) {
            Verdict::New => {}
            Verdict::Seen => return Err(OpenError::Replayed),
            Verdict::TooOld => return Err(OpenError::TooOld),
        }
        let (bytes, body) = datagram.split_at_mut(HEADER_LEN);
        key.open(header.path, counter, bytes, body).map_err(|_| OpenError::Forged)?;
        self.window(header.path).mark(counter);
        let new_epoch = header.epoch == epoch_bits(self.epoch + 1);
        if new_epoch {
            self.turn();
        }
        self.opened_in_epoch += 1;
        Ok(Accepted { path: header.path, form: header.form, counter, new_epoch })
    }

    /// Mixes a new Diffie-Hellman into the keys from the next epoch on.
    pub(super) fn renew(&mut self, renewed: &Renewed) {
        self.ratchet.renew(renewed);
        self.next = self.ratchet.next_key();
    }

    /// The replay window of a path, created if necessary.
    #[inline]
    fn window(&mut self, path: u8) -> &mut ReplayWindow {
        let path = usize::from(path);
        if path >= self.windows.len() {
            // Exact, because most sessions have one or two paths.
            self.windows.reserve_exact(path + 1 - self.windows.len());
            self.windows.resize_with(path + 1, || None);
        }
        self.windows[path].get_or_insert_with(ReplayWindow::new)
    }

    /// The key of the epoch with these last bits.
    #[inline]
    fn key(&self, bits: u8) -> Option<&DatagramKey> {
        if bits == epoch_bits(self.epoch) {
            Some(&self.current)
        } else if bits == epoch_bits(self.epoch + 1) {
            Some(&self.next)
        } else if self.has_previous && bits == epoch_bits(self.epoch.wrapping_sub(1)) {
            Some(&self.previous)
        } else {
            None
        }
    }

    /// Advances to the next epoch, as the peer did. Each key is overwritten by the next one.
    fn turn(&mut self) {
        self.previous = replace(&mut self.current, self.ratchet.turn());
        self.next = self.ratchet.next_key();
        self.has_previous = true;
        self.epoch += 1;
        self.opened_in_epoch = 0;
    }

    /// Number of paths with an opened datagram.
    #[cfg(test)]
    pub(super) fn windows(&self) -> usize {
        self.windows.iter().flatten().count()
    }

    /// The state that a thief of the memory would have for later epochs.
    #[cfg(test)]
    pub(super) fn stolen(&self) -> Ratchet {
        self.ratchet.stolen()
    }

    /// Simulates that this number of datagrams of the epoch were opened.
    #[cfg(test)]
    pub(super) fn set_opened(&mut self, datagrams: u64) {
        self.opened_in_epoch = datagrams;
    }
}
