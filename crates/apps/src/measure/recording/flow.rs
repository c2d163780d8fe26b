//! The flow of a capture that has the most data.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::RecordedProtocol;
use super::chunks::{Chunk, chunks, tag};
use super::packets::{Content, Packet};

/// Maximum number of flows that are distinguished; data of further ones is not counted.
const FLOWS_LIMIT: usize = 1 << 16;

/// Data in one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flow {
    /// From the first address to the second.
    Tcp(SocketAddr, SocketAddr),
    /// To the end with this verification tag, over any addresses.
    Sctp { tag: u32 },
}

/// Counts the bytes of each flow.
#[derive(Debug, Default)]
pub(super) struct Flows {
    bytes: BTreeMap<Flow, u64>,
}

impl Flow {
    pub(super) const fn protocol(self) -> RecordedProtocol {
        match self {
            Self::Tcp(..) => RecordedProtocol::Tcp,
            Self::Sctp { .. } => RecordedProtocol::Sctp,
        }
    }
}

impl Flows {
    pub(super) fn count(&mut self, packet: &Packet<'_>) {
        let flow = match &packet.content {
            Content::Tcp(segment) if segment.payload > 0 => Flow::Tcp(packet.from, packet.to),
            Content::Sctp(bytes) => {
                let data = chunks(bytes).iter().any(|chunk| matches!(chunk, Chunk::Data { .. }));
                match tag(bytes).filter(|_| data) {
                    Some(tag) => Flow::Sctp { tag },
                    None => return,
                }
            }
            Content::Tcp(_) => return,
        };
        if self.bytes.len() < FLOWS_LIMIT || self.bytes.contains_key(&flow) {
            *self.bytes.entry(flow).or_default() += u64::from(packet.bytes);
        }
    }

    /// The largest flow, and the number of the others.
    pub(super) fn largest(&self) -> Option<(Flow, usize)> {
        let (flow, _) = self.bytes.iter().max_by_key(|(_, bytes)| **bytes)?;
        Some((*flow, self.bytes.len() - 1))
    }
}
