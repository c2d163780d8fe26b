//! Packets: a size, the marks that a network may read, and an opaque payload.

use ropewalk_base::Ecn;

/// A packet. The network reads the header fields and does not interpret the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet<P> {
    /// Bytes on the wire, all headers included.
    pub size: u32,
    /// Flow of the packet; per-round loss keeps its state per flow.
    pub flow: u32,
    /// Opaque tag of the sender's round, for correlated loss.
    pub round: u64,
    /// The ECN field, which a queue reads and may set to CE.
    pub ecn: Ecn,
    /// Current step of the packet's route, for the world. Stored here because the header has unused space.
    pub(crate) step: u32,
    /// Contents for the hosts.
    pub payload: P,
}

impl<P> Packet<P> {
    /// A packet of `size` bytes of flow `flow`, in round 0, not capable of ECN.
    pub const fn new(size: u32, flow: u32, payload: P) -> Self {
        Self { size, flow, round: 0, ecn: Ecn::NotEct, step: 0, payload }
    }
}
