//! DATA that is too long for the path it has to go by.
//!
//! A chunk is cut when it gets its TSN, and never again. If no path carries it any more, RFC 9260, 6.9, has
//! IP cut it. But a network that loses large packets without a word may lose those as well, and over IPv6 only
//! the sending host may cut, which does not know to what size. Two ends that know PIECE, a chunk of
//! ours, need neither: the pieces leave together and count as one transmission.

use std::collections::BTreeMap;

use ropewalk_base::{PathId, Time};

use super::super::chunk::{Chunk, Data};
use super::super::extensions::Extensions;
use super::super::packet::Packet;
use super::super::rare::{Piece, Rare};
use super::inbound::{DataSummary, Reports};
use super::{Association, Departure, PacketSize};
use crate::payload::Payload;

/// Most bytes of pieces that wait for others; a chunk that finds no room is sent again.
const HELD_LIMIT: usize = 256 << 10;
/// What a piece costs beside its bytes.
const PIECE_COST: usize = 64;

/// Pieces whose like have not come yet, by TSN and place in the chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    waiting: BTreeMap<u64, BTreeMap<u16, Payload>>,
    held: usize,
}

impl Pieces {
    /// Takes a piece; the user data of the whole chunk, once it is there.
    fn take(&mut self, tsn: u64, piece: &Piece) -> Option<Payload> {
        let end = u32::from(piece.offset) + piece.part.payload.len();
        if piece.part.payload.is_empty() || end > u32::from(piece.total) {
            return None;
        }
        let cost = piece.part.payload.len() as usize + PIECE_COST;
        if self.held + cost > HELD_LIMIT {
            return None;
        }
        let chunk = self.waiting.entry(tsn).or_default();
        if let Some(old) = chunk.insert(piece.offset, piece.part.payload.clone()) {
            self.held -= old.len() as usize + PIECE_COST;
        }
        self.held += cost;
        let whole = assemble(chunk, u32::from(piece.total))?;
        self.forget(tsn);
        Some(whole)
    }

    fn forget(&mut self, tsn: u64) {
        let chunk = self.waiting.remove(&tsn).unwrap_or_default();
        let cost = |piece: &Payload| piece.len() as usize + PIECE_COST;
        self.held -= chunk.values().map(cost).sum::<usize>();
    }

    /// Nothing up to `cumulative` is awaited any more: it came some other way.
    fn forget_up_to(&mut self, cumulative: u64) {
        while let Some(tsn) = self.waiting.keys().next().copied().filter(|tsn| *tsn <= cumulative) {
            self.forget(tsn);
        }
    }
}

/// The pieces in a row, if they are all there. Who cuts a chunk twice may cut it elsewhere: each piece says where
/// it belongs, so what is put together is right whichever are taken.
fn assemble(pieces: &BTreeMap<u16, Payload>, total: u32) -> Option<Payload> {
    let (mut row, mut end) = (Vec::new(), 0);
    while end < total {
        let next = pieces.get(&u16::try_from(end).ok()?)?;
        end += next.len();
        row.push(next.clone());
    }
    (end == total).then(|| Payload::concat(&row))
}

impl Association {
    /// A path that carries `bytes` whole, if `path` does not but another one has room for them.
    pub(super) fn wide_enough(&self, path: PathId, bytes: u32) -> PathId {
        let bytes = bytes + self.stamp_len();
        if bytes <= self.packet_room(path) {
            return path;
        }
        let open = self.views.iter().filter(|view| view.usable && view.in_flight < view.window);
        let wide = open.filter(|view| bytes <= self.packet_room(view.id));
        wide.min_by_key(|view| view.forward_delay).map_or(path, |view| view.id)
    }

    /// Sends a chunk that is longer than the packets of `path`: in pieces if the peer can put them together, else
    /// whole, for IP to cut.
    #[cold]
    pub(super) fn send_too_long(
        &mut self,
        now: Time,
        path: PathId,
        tsn: u64,
        packet: &mut Packet,
    ) -> Departure {
        packet.begin(self.peer_tag);
        let bytes = self.launch(now, path, tsn, &mut packet.chunks).bytes;
        if !self.peer.agreed.has(Extensions::PIECE) {
            let departure = self.after_sending(now, path, bytes);
            return Departure { size: PacketSize::TooLong, ..departure };
        }
        let Some(Chunk::Data(data)) = packet.chunks.pop() else {
            unreachable!("what is launched is DATA")
        };
        let most = (self.packet_room(path) - Piece::HEADER) / 4 * 4;
        let (total, mut at) = (data.payload.len(), 0);
        while at < total {
            let size = most.min(total - at);
            let piece = Chunk::Rare(Box::new(Rare::Piece(Piece::of(&data, at as u16, size))));
            // Control chunks leave before anything else does.
            match at {
                0 => packet.chunks.push(piece),
                _ => self.control.push_back((path, self.peer_tag, piece)),
            }
            at += size;
        }
        self.after_sending(now, path, bytes)
    }

    /// A piece of a DATA chunk has come.
    #[cold]
    pub(super) fn on_piece(
        &mut self,
        now: Time,
        piece: &Piece,
        summary: &mut DataSummary,
        reports: &mut Reports,
    ) {
        if !self.state.receives_data() {
            return;
        }
        let cumulative = self.inbound.buffer.cumulative();
        let tsn = piece.part.tsn.unwrap_near(cumulative);
        let pieces = self.pieces.get_or_insert_default();
        pieces.forget_up_to(cumulative);
        // What is known already is for the receive buffer to report; what is far beyond it, to refuse.
        if let Some(payload) = pieces.take(tsn, piece) {
            self.on_data(now, Data { payload, ..piece.part.clone() }, summary, reports);
        }
    }
}
