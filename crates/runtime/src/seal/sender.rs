//! The sending half of a session: a counter for each path, and the key of the epoch.

use core::ops::Range;

use super::ratchet::{DatagramKey, Ratchet};
use super::renewal::Renewed;
use super::wire::{COUNTER_BITS, HEADER_LEN, Header, epoch_bits};

/// Maximum number of datagrams that one key may seal: the limit for AES-GCM in RFC 9001, section 6.6.
pub(super) const KEY_LIMIT: u64 = 1 << 23;

/// Why a datagram could not be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key has sealed {KEY_LIMIT} datagrams, and the peer is at no newer one")]
pub enum SealError {
    /// The key has sealed 2^23 datagrams, and the peer has not followed to the next epoch: it is gone or receives
    /// nothing. Changing to the next epoch solves this.
    KeyWornOut,
}

/// Seals datagrams.
pub(super) struct Sender {
    /// The session's number at the peer.
    peer_session: u32,
    ratchet: Ratchet,
    key: DatagramKey,
    epoch: u64,
    sealed_in_epoch: u64,
    /// The next counter of each path, up to the highest path used. Counters continue over epochs and while a path is
    /// absent.
    counters: Vec<u64>,
}

impl Sender {
    pub(super) fn new(peer_session: u32, mut ratchet: Ratchet) -> Self {
        let key = ratchet.turn();
        Self { peer_session, ratchet, key, epoch: 0, sealed_in_epoch: 0, counters: Vec::new() }
    }

    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) const fn sealed_in_epoch(&self) -> u64 {
        self.sealed_in_epoch
    }

    /// Advances to the next epoch; the old key is overwritten.
    pub(super) fn turn(&mut self) {
        self.key = self.ratchet.turn();
        self.epoch += 1;
        self.sealed_in_epoch = 0;
    }

    /// Mixes a new Diffie-Hellman into the keys from the next epoch on.
    pub(super) fn renew(&mut self, renewed: &Renewed) {
        self.ratchet.renew(renewed);
    }

    /// Appends a sealed datagram with this form and the content that `write` appends. Returns its byte range.
    #[inline]
    pub(super) fn seal(
        &mut self,
        path: u8,
        form: u8,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Range<usize>, SealError> {
        if self.sealed_in_epoch >= KEY_LIMIT {
            return Err(SealError::KeyWornOut);
        }
        let next = self.counter(path);
        let counter = *next;
        // 2^64 datagrams cannot be reached.
        *next += 1;
        self.sealed_in_epoch += 1;
        let header = Header {
            epoch: epoch_bits(self.epoch),
            form,
            path,
            session: self.peer_session,
            counter: counter as u32 & ((1 << COUNTER_BITS) - 1),
        };
        let header = header.to_bytes();
        let start = out.len();
        out.extend_from_slice(&header);
        write(out);
        let body = out.get_mut(start + HEADER_LEN..).expect("`write` only appends");
        let tag = self.key.seal(path, counter, &header, body);
        out.extend_from_slice(tag.as_ref());
        Ok(start..out.len())
    }

    /// The next counter of a path.
    #[inline]
    fn counter(&mut self, path: u8) -> &mut u64 {
        let path = usize::from(path);
        if path >= self.counters.len() {
            self.counters.reserve_exact(path + 1 - self.counters.len());
            self.counters.resize(path + 1, 0);
        }
        &mut self.counters[path]
    }

    /// The state that a thief of the memory would have for later epochs.
    #[cfg(test)]
    pub(super) fn stolen(&self) -> Ratchet {
        self.ratchet.stolen()
    }

    /// Simulates that the key has sealed this number of datagrams.
    #[cfg(test)]
    pub(super) fn set_sealed(&mut self, datagrams: u64) {
        self.sealed_in_epoch = datagrams;
    }

    /// Simulates that this number of datagrams were sealed on a path.
    #[cfg(test)]
    pub(super) fn set_counter(&mut self, path: u8, counter: u64) {
        *self.counter(path) = counter;
    }
}
