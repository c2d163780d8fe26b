//! The reserve: room beyond a full send buffer that only streams with little unsent data may use. Without
//! it, a message that is longer than the buffer delays the messages of all other streams until most of it
//! has been acknowledged, whichever stream scheduler is used.
//!
//! ```text
//!   send buffer B      one message may exceed it     reserve R
//!  +------------------+-----------------------------+---------+
//!  0                  B                             A        A + R
//! ```
//!
//! Three rules keep it bounded and fair:
//!
//! - A message may use it if its stream then has at most a quarter of R unsent.
//! - Room taken from R is returned when data is acknowledged, one byte for every two. So long messages
//!   get at least half of the freed room and are not starved. The stream scheduler decides which stream
//!   sends next.
//! - R is restored completely when the buffer has had room for an ordinary message. So at most A + R
//!   bytes are in the buffer.
//!
//! Data with a TSN occupies the buffer together with the headers of its chunks, so R is also charged for
//! these.

use ropewalk_base::StreamId;

use super::Sender;

/// Divisor of the reserve: the part that one stream may have unsent.
const STREAM_PART: u32 = 4;

/// Bytes that must be acknowledged for each returned byte.
const FREED_PER_BYTE: u64 = 2;

/// The unused part of the reserve since the buffer last had room for an ordinary message.
#[derive(Clone, Copy, Debug)]
pub struct Reserve {
    left: u32,
    /// Length of the message that was refused last because too little was left, bytes, or 0.
    refused: u32,
    /// Minimum number of bytes in the send buffer since the last message was taken, with this message.
    seen: u64,
}

impl Reserve {
    /// The complete reserve of `size` bytes, while `all` bytes are in the send buffer.
    const fn whole(all: u64, size: u32) -> Self {
        Self { left: size, refused: 0, seen: all }
    }

    /// Returns a part of the freed bytes. `all`: bytes in the send buffer; `size`: bytes of the reserve.
    fn refill(&mut self, all: u64, size: u32) {
        // The buffer may hold more than before, because headers of chunks were added.
        let back = self.seen.saturating_sub(all) / FREED_PER_BYTE;
        if back > 0 {
            let left = u64::from(self.left) + back;
            (self.left, self.seen) = (left.min(u64::from(size)) as u32, all);
        }
    }

    /// Takes room for a message of `bytes`. Returns whether there is enough.
    fn take(&mut self, all: u64, size: u32, bytes: u32) -> bool {
        self.refill(all, size);
        let Some(left) = self.left.checked_sub(bytes) else {
            self.refused = bytes;
            return false;
        };
        (self.left, self.seen) = (left, self.seen + u64::from(bytes));
        true
    }
}

impl Sender {
    /// Takes room for a message from the reserve of `size` bytes, because the send buffer is full. Returns whether it may be queued.
    #[cold]
    pub fn take_from_reserve(&mut self, size: u32, stream: StreamId, length: u32) -> bool {
        let Some(most) = (size / STREAM_PART).checked_sub(length).filter(|_| size > 0) else {
            return false;
        };
        if self.outstanding.queue.bytes_of(stream) > u64::from(most) {
            return false;
        }
        let sizes = self.outstanding.queue.sizes();
        let bytes = length + length.div_ceil(sizes.payload) * (sizes.header + 3);
        let all = self.buffered();
        let whole = || Box::new(Reserve::whole(all, size));
        self.outstanding.reserve.get_or_insert_with(whole).take(all, size, bytes)
    }

    /// Whether the reserve of `size` bytes has room again for the message that it refused.
    #[inline]
    pub fn has_reserve_for_refused(&mut self, size: u32) -> bool {
        self.outstanding.reserve.is_some() && self.has_reserve(size)
    }

    #[cold]
    fn has_reserve(&mut self, size: u32) -> bool {
        let all = self.buffered();
        let Some(reserve) = &mut self.outstanding.reserve else { return false };
        reserve.refill(all, size);
        let has = reserve.refused > 0 && reserve.left >= reserve.refused;
        if has {
            reserve.refused = 0;
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_comes_back_by_halves() {
        // The buffer has room for 1000 bytes, and a long message is in it.
        let (mut all, size) = (5000, 400);
        let mut reserve = Reserve::whole(all, size);
        for _ in 0..4 {
            assert!(reserve.take(all, size, 100));
            all += 100;
        }
        assert!(!reserve.take(all, size, 100));
        // A part of the acknowledged bytes is returned, in steps of any size.
        for acknowledged in [150, 1, 1, 1, 47] {
            all -= acknowledged;
            reserve.refill(all, size);
        }
        assert!(reserve.take(all, size, 99));
        all += 99;
        assert!(!reserve.take(all, size, 2), "{reserve:?}");
        all -= 2;
        assert!(reserve.take(all, size, 2));
        // Headers of chunks do not return more room.
        assert!(!reserve.take(all + 900, size, 1));
        // However much is acknowledged, the reserve never exceeds its size.
        assert!(reserve.take(0, size, 400) && !reserve.take(400, size, 1));
    }
}
