//! Byte streams over the streams of an association.
//!
//! Each byte stream has an SCTP stream of its own, with one number both ways, so that what is lost of
//! one never holds up another. The machine ([`Mux`]) reads no clock and no socket; a
//! [`Connection`] runs it over an association and hands out streams that read and write like any
//! other.
//!
//! What keeps one byte stream from harming the rest:
//! - the reader of the association takes whatever comes, at once; a slow reader of one byte stream
//!   stops the peer by *credit*, never by the association's receive buffer, which all share;
//! - the writer hands the association one packet's worth at a time, from each stream in turn;
//! - a number is used again only after both ends have said, on that very stream, that they are done.

mod association;
mod buffer;
mod carrier;
mod connection;
mod credit;
mod entry;
mod limits;
mod machine;
mod message;
mod receive;
mod ring;
mod stream;
mod transmit;

pub use self::carrier::{Arrived, CarrierEnded, MessageTransport, pair};
pub use self::connection::{Connection, EndReason, Incoming, OpenError};
pub use self::limits::Limits;
pub use self::machine::{Event, Key, Mux, NoRoom, Read, Role, StreamError};
pub use self::message::{Message, Refusal, Violation};
pub use self::stream::Stream;
