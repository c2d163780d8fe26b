//! What travels: a size, the few marks that a network may look at, and an opaque payload.

/// A packet. The network reads the header fields and carries the payload unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet<P> {
    /// Bytes on the wire, all headers included.
    pub size: u32,
    /// Whose packet it is; per-round loss keeps its state per flow.
    pub flow: u32,
    /// Opaque tag of the sender's round, for correlated loss.
    pub round: u64,
    /// ECN-capable transport: a queue may mark the packet where it would drop it (RFC 3168).
    pub ect: bool,
    /// Congestion experienced: set by a queue (RFC 3168).
    pub ce: bool,
    /// The step of its route that it is at. The world's own, and here because the header has room
    /// for it.
    pub(crate) step: u32,
    /// What the hosts make of it.
    pub payload: P,
}

impl<P> Packet<P> {
    /// A packet of `size` bytes of flow `flow`, in round 0, not capable of ECN.
    pub const fn new(size: u32, flow: u32, payload: P) -> Self {
        Self { size, flow, round: 0, ect: false, ce: false, step: 0, payload }
    }
}
