//! Memory limits of byte streams.

/// Bytes that the opener of a stream may send before the answer. Both ends know this constant, so that a request can
/// be sent together with the OPEN.
pub const MIN_WINDOW: u64 = 16 << 10;

/// Memory overhead of a stream: its entry, its places in queues, an answer, in bytes.
pub const ENTRY_COST: u64 = 1 << 10;

/// Limits of the byte streams of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Initial receive window of a stream, bytes (256 KiB). It is smaller while memory is short, but never below the
    /// 16 KiB that every stream has. It doubles whenever the sender had to wait although the reader kept up.
    pub first_window: u64,
    /// Maximum receive window of a stream, bytes (16 MiB: 1 Gbit/s over 128 ms).
    pub largest_window: u64,
    /// Maximum number of unread bytes of all streams together, beyond the 16 KiB of each (128 MiB). It limits the
    /// memory that a peer can make this end use. A single stream gets at most an eighth of the free memory.
    pub shared: u64,
    /// Maximum number of streams that the peer has opened and that either end still remembers (1024). Each may have
    /// 16 KiB unread and costs `ENTRY_COST` in addition. Further ones are refused as [`BUSY`](super::Refusal::BUSY).
    pub peer_streams: usize,
    /// Bytes of a stream that are queued before its writer has to wait (64 KiB): enough until the writer continues.
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
    /// Maximum memory that a peer can make one connection use, bytes, with this many stream numbers: unread bytes,
    /// in buffers that may be twice as large as their contents, and the streams' own memory.
    pub const fn memory(&self, numbers: u16) -> u64 {
        let unread = self.shared + self.peer_streams as u64 * MIN_WINDOW;
        let streams = self.peer_streams as u64 + numbers as u64;
        2 * unread + streams * ENTRY_COST
    }
}
