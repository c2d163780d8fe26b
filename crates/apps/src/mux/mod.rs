//! Byte streams over the streams of an association.
//!
//! Each byte stream uses a separate SCTP stream, with the same number in both directions, so that a loss on one
//! stream never delays another. The multiplexer ([`Mux`]) uses no clock and no socket. A [`Connection`] runs it over
//! an association and provides streams with the usual read and write interfaces.
//!
//! How byte streams are isolated from each other:
//! - every received message is read from the association immediately; a slow reader of one byte stream stops the
//!   peer by *flow control* of that stream, never by the association's shared receive buffer;
//! - the sender passes one packet's worth at a time to the association, from each stream in turn;
//! - a number is reused only after both ends have signalled on that stream that they have finished.

mod association;
mod buffer;
mod connection;
mod flow_control;
mod limits;
mod machine;
mod message;
mod receive;
mod stream;
mod stream_scheduler;
mod stream_state;
mod transmit;
mod transport;

pub use self::connection::{Connection, EndReason, Incoming, OpenError};
pub use self::limits::Limits;
pub use self::machine::{Event, Mux, NoFreeStream, Read, Role, StreamError, StreamKey};
pub use self::message::{Message, Refusal, Violation};
pub use self::stream::Stream;
pub use self::transport::{MessageTransport, TransportEnded, TransportMessage, pair};
