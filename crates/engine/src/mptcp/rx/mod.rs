//! The receiving side of a session: one bounded buffer of a byte stream.

mod bytes;
mod early;

pub use bytes::ByteBuffer;
