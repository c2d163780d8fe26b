//! How much memory byte streams may use.

/// Bytes that whoever opens a stream may send before the answer: known to both ends, so that a
/// request travels with the wish to connect.
pub const EARLY: u64 = 16 << 10;

/// What a stream takes besides its bytes, bytes: its entry, its place in queues, an answer to it.
pub const ENTRY_COST: u64 = 1 << 10;

/// Bounds of one connection's byte streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What a fresh stream may have unread, bytes (256 KiB). Less while memory is short, never less
    /// than 16 KiB, which every stream has of its own. It doubles whenever the sender has had to wait
    /// although the reader kept up.
    pub first_window: u64,
    /// Most that a stream may have unread, bytes (16 MiB: 1 Gbit/s over 128 ms).
    pub largest_window: u64,
    /// Most that all streams together may have unread beyond the 16 KiB that each has, bytes (128 MiB).
    /// It bounds what a peer can make us keep. None gets more than an eighth of what is left.
    pub shared: u64,
    /// Most streams that the peer has opened and that are not forgotten at both ends (1024). Each may have 16 KiB unread
    /// and costs `ENTRY_COST` besides; more are refused as [`BUSY`](super::Refusal::BUSY).
    pub peer_streams: usize,
    /// What a stream keeps of its writer's bytes before it makes it wait, bytes (64 KiB): enough to
    /// bridge the moments until the writer is asked for more.
    pub send_queue: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            first_window: 256 << 10,
            largest_window: 16 << 20,
            shared: 128 << 20,
            peer_streams: 1024,
            send_queue: 64 << 10,
        }
    }
}

impl Limits {
    /// Most memory that a peer can make one connection take with what it sends, bytes, over so many numbers: what is
    /// unread, in buffers that may be twice as large as what is in them, and what streams take besides.
    pub const fn memory(&self, numbers: u16) -> u64 {
        let unread = self.shared + self.peer_streams as u64 * EARLY;
        let entries = self.peer_streams as u64 + numbers as u64;
        2 * unread + entries * ENTRY_COST
    }
}
