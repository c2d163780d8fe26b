//! One byte stream, as the machine keeps it.

use bytes::Bytes;

use super::buffer::Buffer;
use super::credit::{Budget, Window};
use super::message::Refusal;
use super::ring::Turn;

/// How far the two ends have come.
#[derive(Debug)]
pub enum Phase {
    /// We want it; the peer has not answered.
    Opening,
    /// The peer wants it; nobody here has answered. Where to.
    Offered(Bytes),
    /// Both want it.
    Open,
    /// One end did not want it.
    Refused(Refusal),
    /// One end broke it off.
    Reset,
}

/// Our bytes to the peer.
#[derive(Debug)]
pub enum Outbound {
    /// More may come.
    Open(Sending),
    /// All were written; the end is still to be told.
    Finishing(Sending),
    /// Told that nothing follows, by a RESET or REFUSED that waits to leave.
    Closing,
    /// The peer was told that nothing follows.
    Ended,
}

/// Bytes that wait to leave.
#[derive(Debug, Default)]
pub struct Sending {
    pub queue: Buffer,
    /// Bytes that have left, and how many may.
    pub sent: u64,
    pub credit: u64,
}

impl Sending {
    /// Bytes that may leave now.
    pub fn ready(&self) -> u64 {
        (self.queue.len() as u64).min(self.credit.saturating_sub(self.sent))
    }
}

/// The peer's bytes to us.
#[derive(Debug)]
pub enum Inbound {
    /// More may come.
    Open { buffer: Buffer, window: Window },
    /// All came; some may be unread, and for it so much of the shared memory is reserved.
    Finished { buffer: Buffer, shared: u64 },
    /// Nobody reads any more; the peer has not ended it yet.
    Discarding,
    /// Over.
    Ended,
}

/// A byte stream.
#[derive(Debug)]
pub struct Entry {
    pub id: u16,
    /// Whether we opened it.
    pub ours: bool,
    /// Whether somebody holds it.
    pub held: bool,
    pub phase: Phase,
    pub outbound: Outbound,
    pub inbound: Inbound,
    pub turn: Turn,
}

impl Entry {
    /// Both ends have said, on this stream, that they are done.
    pub const fn is_settled(&self) -> bool {
        matches!(self.outbound, Outbound::Ended)
            && matches!(self.inbound, Inbound::Finished { .. } | Inbound::Ended)
    }

    /// Whether it has bytes, or an end, that may leave.
    pub fn has_turn(&self) -> bool {
        match &self.outbound {
            Outbound::Open(sending) => sending.ready() > 0,
            Outbound::Finishing(sending) => sending.ready() > 0 || sending.queue.is_empty(),
            Outbound::Closing | Outbound::Ended => false,
        }
    }

    /// Nothing is read any more.
    pub fn stop_reading(&mut self, then: Inbound, budget: &mut Budget) {
        match std::mem::replace(&mut self.inbound, then) {
            Inbound::Open { window, .. } => budget.give(window.shared()),
            Inbound::Finished { shared, .. } => budget.give(shared),
            Inbound::Discarding | Inbound::Ended => {}
        }
    }

    /// The peer sends no more; what came is kept for the reader. False: it had said so before.
    pub fn finish_reading(&mut self, budget: &mut Budget) -> bool {
        match std::mem::replace(&mut self.inbound, Inbound::Ended) {
            Inbound::Open { buffer, window } => {
                let shared = window.shared().min(buffer.len() as u64);
                budget.give(window.shared() - shared);
                self.inbound = Inbound::Finished { buffer, shared };
                true
            }
            Inbound::Discarding => true,
            before @ (Inbound::Finished { .. } | Inbound::Ended) => {
                self.inbound = before;
                false
            }
        }
    }

    /// Nothing is sent any more, not even what waits. True: the peer is still to be told.
    pub fn stop_writing(&mut self) -> bool {
        let open = matches!(self.outbound, Outbound::Open(_) | Outbound::Finishing(_));
        if open {
            self.outbound = Outbound::Closing;
        }
        open
    }
}
