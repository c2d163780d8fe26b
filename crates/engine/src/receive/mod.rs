//! The receiving side: one bounded buffer, reassembly, release in order, and what it measures.

mod buffer;
mod bytes;
mod early;
mod gaps;
mod stats;
mod stream;

pub use buffer::{Arrival, Message, Part, ReceiveBuffer};
pub use bytes::ByteBuffer;
pub use stats::ReceiveStats;
