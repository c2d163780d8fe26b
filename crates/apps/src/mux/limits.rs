//! How much memory byte streams may use.

/// Bytes that whoever opens a stream may send before the answer: known to both ends, so that a
/// request travels with the wish to connect.
pub const EARLY: u64 = 16 << 10;

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
            send_queue: 64 << 10,
        }
    }
}
