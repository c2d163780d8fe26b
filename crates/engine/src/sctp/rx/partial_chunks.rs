//! DATA chunks that are too long for their path.
//!
//! A chunk is cut when it gets its TSN, and never again. If no path can carry it any longer, RFC 9260,
//! 6.9, leaves fragmentation to IP. But a network that silently drops large packets may also drop
//! fragments, and over IPv6 only the sending host may fragment, without knowing the right size. If both
//! ends support DATA FRAGMENT, a chunk type of this project, they avoid both problems: the pieces are
//! sent together and count as one transmission.

use std::collections::BTreeMap;

use crate::meter::{self, Defect};
use crate::payload::Payload;
use crate::sctp::extension_chunk::DataFragment;

/// Memory limit for chunks with missing pieces, bytes. A chunk that does not fit has to be retransmitted.
const WAITING_LIMIT: u64 = 256 << 10;
/// Part of [`WAITING_LIMIT`] that is available even with a full receive buffer: this many bytes, or 1/32
/// of the buffer if that is more. All other chunks may wait for one that arrives in pieces.
const WAITING_LEAST: u64 = 12 << 10;
const WAITING_LEAST_PART: u64 = 32;
/// Bookkeeping of a chunk in addition to its user data and the bitmap of received bytes, bytes.
const CHUNK_COST: u64 = 256;

/// Chunks with missing pieces, by TSN.
#[derive(Clone, Debug, Default)]
pub struct PartialChunks {
    waiting: BTreeMap<u64, PartialChunk>,
    bytes: u64,
}

/// A chunk with missing pieces. A sender that cuts a chunk twice may cut it at other offsets. So each
/// piece carries its offset, and received bytes are recorded individually.
#[derive(Clone, Debug)]
struct PartialChunk {
    /// The user data, `None` if the pieces have lengths only.
    bytes: Option<Vec<u8>>,
    /// One bit per received byte.
    come: Vec<u64>,
    missing: u32,
    total: u32,
}

/// Memory of an incomplete chunk with `total` bytes of user data, bytes.
const fn cost_of(total: u32) -> u64 {
    total as u64 + total as u64 / 8 + CHUNK_COST
}

impl PartialChunk {
    fn new(total: u32) -> Self {
        let words = total.div_ceil(64) as usize;
        meter::count(meter::moved(words * 8) + 1);
        Self { bytes: None, come: vec![0; words], missing: total, total }
    }

    /// Adds a piece that lies within the chunk. The work is proportional to the piece's length,
    /// regardless of earlier pieces.
    fn take(&mut self, offset: u32, payload: &Payload) {
        let end = offset + payload.len();
        if let Payload::Bytes(piece) = payload {
            let whole = self.bytes.get_or_insert_with(|| {
                meter::count(meter::moved(self.total as usize));
                vec![0; self.total as usize]
            });
            whole[offset as usize..end as usize].copy_from_slice(piece);
        }
        let mut at = offset;
        while at < end {
            let word = at / 64;
            let until = ((word + 1) * 64).min(end);
            let mask = (u64::MAX >> (64 - (until - at))) << (at % 64);
            let word = &mut self.come[word as usize];
            self.missing -= (mask & !*word).count_ones();
            *word |= mask;
            at = until;
            meter::count(1);
        }
        if meter::has(Defect::QuadraticPieces) {
            meter::count(self.total as usize);
        }
    }

    fn into_payload(self) -> Payload {
        match self.bytes {
            Some(bytes) => bytes::Bytes::from(bytes).into(),
            None => Payload::Length(self.total),
        }
    }
}

impl PartialChunks {
    /// Memory of all incomplete chunks, bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a piece; `free` and `capacity` are those of the receive buffer. Returns the user data of the
    /// chunk once it is complete.
    pub fn take(
        &mut self,
        tsn: u64,
        piece: &DataFragment,
        free: u64,
        capacity: u64,
    ) -> Option<Payload> {
        let room = free.max(capacity / WAITING_LEAST_PART);
        let (offset, total) = (u32::from(piece.offset), u32::from(piece.total));
        let payload = &piece.part.payload;
        if payload.is_empty() || offset + payload.len() > total {
            return None;
        }
        if !self.waiting.contains_key(&tsn) {
            let most = room.clamp(WAITING_LEAST, WAITING_LIMIT);
            if self.bytes + cost_of(total) > most {
                return None;
            }
            self.bytes += cost_of(total);
            self.waiting.insert(tsn, PartialChunk::new(total));
        }
        let chunk = self.waiting.get_mut(&tsn).filter(|chunk| chunk.total == total)?;
        chunk.take(offset, payload);
        if chunk.missing > 0 {
            return None;
        }
        self.forget(tsn).map(PartialChunk::into_payload)
    }

    fn forget(&mut self, tsn: u64) -> Option<PartialChunk> {
        let chunk = self.waiting.remove(&tsn)?;
        self.bytes -= cost_of(chunk.total);
        Some(chunk)
    }

    /// Drops the chunks up to `cumulative`, which have arrived in other packets.
    pub fn forget_up_to(&mut self, cumulative: u64) {
        while let Some(tsn) = self.waiting.keys().next().copied().filter(|tsn| *tsn <= cumulative) {
            self.forget(tsn);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ropewalk_base::Seed;

    use super::*;
    use crate::sctp::chunk::Data;

    fn piece(offset: usize, whole: &Bytes, size: usize) -> DataFragment {
        let payload = Payload::from(whole.slice(offset..offset + size));
        let part = Data { payload, ..Data::BLANK };
        DataFragment { part, offset: offset as u16, total: whole.len() as u16 }
    }

    #[test]
    fn pieces_in_any_order_cut_anywhere_and_repeated_make_the_chunk_once() {
        for case in 0..200 {
            let mut rng = Seed::root(case).child("pieces").rng();
            let total = 1 + rng.below(300) as usize;
            let whole: Bytes = (0..total).map(|_| rng.below(256) as u8).collect();
            let (mut pieces, mut come) = (PartialChunks::default(), vec![false; total]);
            let made = loop {
                let offset = rng.below(total as u64) as usize;
                let size = 1 + rng.below((total - offset) as u64) as usize;
                come[offset..offset + size].fill(true);
                let made = pieces.take(7, &piece(offset, &whole, size), 1 << 16, 1 << 16);
                assert_eq!(made.is_some(), come.iter().all(|there| *there), "case {case}");
                if let Some(made) = made {
                    break made;
                }
            };
            assert_eq!((made, pieces.bytes()), (Payload::from(whole), 0), "case {case}");
        }
    }

    #[test]
    fn a_piece_costs_as_much_work_as_it_has_bytes_whatever_came_before() {
        let whole = Bytes::from(vec![7; 60_000]);
        let mut pieces = PartialChunks::default();
        for at in 0..4_000 {
            pieces.take(7, &piece(2 * at, &whole, 1), 1 << 20, 1 << 20);
        }
        meter::take();
        for at in [1, 4_000, 59_999, 0, 0, 0] {
            assert_eq!(pieces.take(7, &piece(at, &whole, 1), 1 << 20, 1 << 20), None);
        }
        assert!(meter::take() <= 6);
    }

    #[test]
    fn a_chunk_that_finds_no_room_is_not_kept() {
        let whole = Bytes::from(vec![7; 9_000]);
        let mut pieces = PartialChunks::default();
        // The first chunk is kept in a full buffer, because others may wait for it.
        pieces.take(1, &piece(0, &whole, 1_000), 0, 0);
        let held = pieces.bytes();
        assert!(held > 9_000);
        for tsn in 2..100 {
            pieces.take(tsn, &piece(0, &whole, 1_000), 0, 0);
        }
        assert_eq!(pieces.bytes(), held);
        for tsn in 2..100 {
            pieces.take(tsn, &piece(0, &whole, 1_000), u64::MAX, u64::MAX);
        }
        assert!(pieces.bytes() <= WAITING_LIMIT);
        pieces.forget_up_to(99);
        assert_eq!(pieces.bytes(), 0);
    }
}
