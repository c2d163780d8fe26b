//! The receiving side of a session: one bounded buffer of a byte stream.

mod bytes;
mod linux_window;
mod out_of_order;

pub use bytes::ByteBuffer;
pub use linux_window::{BufferSize, LinuxWindow, Progress, window_limit};
