//! What is around an SCTP packet in a datagram.

use ropewalk_base::PathId;
use ropewalk_engine::sctp::Packet;
use ropewalk_engine::sctp::wire::{self, Checksum, Ports};

/// Around the packets of one association.
#[derive(Debug)]
pub enum Cover {
    /// Nothing: SCTP in UDP (RFC 6951).
    Plain(Ports),
}

impl Cover {
    /// Appends the datagram with this packet.
    pub fn write(&mut self, _path: PathId, packet: &Packet, out: &mut Vec<u8>) {
        match self {
            Self::Plain(ports) => wire::encode(packet, *ports, Checksum::Crc32c, out),
        }
    }
}
