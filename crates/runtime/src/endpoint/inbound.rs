//! From sockets to associations.

use bytes::Bytes;
use ropewalk_base::{PathId, Time};
use ropewalk_engine::sctp::wire::{self, Checksum, Ports};
use ropewalk_engine::sctp::{Chunk, Packet};

use super::core::{Core, Key};
use super::peer::Route;
use super::socket::{Row, Rows};

impl Core {
    /// All that one call brought. Datagrams of a row are taken in before any is answered: they came at
    /// one time, and one SACK answers them all.
    pub(super) fn take_rows(&mut self, now: Time, socket: usize, rows: &Rows) {
        let mut packet = std::mem::take(&mut self.packet);
        for row in rows.iter() {
            self.take_row(now, socket, row, &mut packet);
        }
        self.packet = packet;
    }

    fn take_row(&mut self, now: Time, socket: usize, row: Row<'_>, packet: &mut Packet) {
        let route = Route { socket, remote: row.from };
        // One copy for all: what is delivered shares it, and nobody holds more than was sent.
        let bytes = Bytes::copy_from_slice(row.bytes);
        let mut from = 0;
        while from < bytes.len() {
            let to = (from + row.stride).min(bytes.len());
            self.counters.received += 1;
            match wire::decode(&bytes.slice(from..to), Checksum::Crc32c, packet) {
                Ok(ports) => self.take_plain(now, route, ports, packet),
                Err(_) => self.counters.unknown += 1,
            }
            from = to;
        }
    }

    fn take_plain(&mut self, now: Time, route: Route, ports: Ports, packet: &mut Packet) {
        let Some(key) = self.find(route, packet) else {
            self.take_stranger(now, route, ports, packet);
            return;
        };
        let Some(peer) = self.peer(key) else { return };
        // From an address that is not known, but with the right tag: a path that the peer listed and
        // that was not seen yet, or one whose address a translator has changed.
        let path = peer.path_to(route).or_else(|| peer.first_unknown(route));
        peer.machine.handle_in_place(now, path.unwrap_or(PathId(0)), packet);
        self.touch(key);
    }

    /// Whom a packet is for: by its tag, or, where that is not known yet, by where it comes from.
    fn find(&self, route: Route, packet: &Packet) -> Option<Key> {
        if let Some(key) = self.by_tag.get(&packet.tag) {
            return Some(*key);
        }
        let opens = matches!(packet.chunks.first(), Some(Chunk::Init(_) | Chunk::CookieEcho(_)));
        let known = || self.by_address.get(&(route.socket, route.remote)).copied();
        if opens { known() } else { None }
    }
}
