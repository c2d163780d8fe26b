//! The state of one byte stream.

use bytes::Bytes;

use super::buffer::Buffer;
use super::flow_control::{Window, WindowMemory};
use super::message::Refusal;
use super::stream_scheduler::SchedulerList;

/// Progress of opening a stream.
#[derive(Debug)]
pub enum OpenState {
    /// This end opened it; the peer has not answered.
    Opening,
    /// The peer opened it, to this target; this end has not answered.
    Offered(Bytes),
    /// Both ends have accepted it.
    Open,
    /// One end refused it.
    Refused(Refusal),
    /// One end reset it.
    Reset,
}

/// State of the bytes to the peer.
#[derive(Debug)]
pub enum Outbound {
    /// More bytes may follow.
    Open(SendQueue),
    /// All bytes were written; the end has yet to be sent.
    Finishing(SendQueue),
    /// No more bytes follow; a RESET or REFUSED is queued to say so.
    Closing,
    /// The peer knows that no bytes follow.
    Ended,
}

/// Bytes that wait to be sent.
#[derive(Debug, Default)]
pub struct SendQueue {
    pub queue: Buffer,
    /// Bytes that were sent, and how many may be sent.
    pub sent: u64,
    pub credit: u64,
}

impl SendQueue {
    /// Number of bytes that may be sent now.
    pub fn ready(&self) -> u64 {
        (self.queue.len() as u64).min(self.credit.saturating_sub(self.sent))
    }
}

/// State of the bytes from the peer.
#[derive(Debug)]
pub enum Inbound {
    /// More bytes may follow.
    Open { buffer: Buffer, window: Window },
    /// All bytes have arrived. Some may be unread, for which `shared` bytes of the shared memory are reserved.
    Finished { buffer: Buffer, shared: u64 },
    /// Received bytes are discarded because no reader exists; the peer has not ended the stream yet.
    Discarding,
    /// The peer has ended the stream.
    Ended,
}

/// A byte stream.
#[derive(Debug)]
pub struct StreamState {
    pub id: u16,
    /// Whether this end opened it.
    pub is_local: bool,
    /// Whether a handle exists.
    pub has_handle: bool,
    pub open_state: OpenState,
    pub outbound: Outbound,
    pub inbound: Inbound,
    pub scheduler_list: SchedulerList,
}

impl StreamState {
    /// Whether both ends have signalled on this stream that they have finished.
    pub const fn has_ended(&self) -> bool {
        matches!(self.outbound, Outbound::Ended)
            && matches!(self.inbound, Inbound::Finished { .. } | Inbound::Ended)
    }

    /// Whether the stream has bytes or an end that may be sent.
    pub fn has_data_to_send(&self) -> bool {
        match &self.outbound {
            Outbound::Open(sending) => sending.ready() > 0,
            Outbound::Finishing(sending) => sending.ready() > 0 || sending.queue.is_empty(),
            Outbound::Closing | Outbound::Ended => false,
        }
    }

    /// Stops reading, and releases the memory.
    pub fn stop_reading(&mut self, then: Inbound, window_memory: &mut WindowMemory) {
        match std::mem::replace(&mut self.inbound, then) {
            Inbound::Open { window, .. } => window_memory.release(window.shared()),
            Inbound::Finished { shared, .. } => window_memory.release(shared),
            Inbound::Discarding | Inbound::Ended => {}
        }
    }

    /// Handles the peer's end of the stream; received bytes are kept for the reader. Returns false if the peer had
    /// ended it before.
    pub fn finish_reading(&mut self, window_memory: &mut WindowMemory) -> bool {
        match std::mem::replace(&mut self.inbound, Inbound::Ended) {
            Inbound::Open { buffer, window } => {
                let shared = window.shared().min(buffer.len() as u64);
                window_memory.release(window.shared() - shared);
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

    /// Stops sending, including queued bytes. Returns true if the peer must still be notified.
    pub fn stop_writing(&mut self) -> bool {
        let open = matches!(self.outbound, Outbound::Open(_) | Outbound::Finishing(_));
        if open {
            self.outbound = Outbound::Closing;
        }
        open
    }
}
