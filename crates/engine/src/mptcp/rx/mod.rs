//! The receiving side of a session: one bounded buffer of a byte stream.

mod bytes;
mod out_of_order;

pub use bytes::ByteBuffer;
