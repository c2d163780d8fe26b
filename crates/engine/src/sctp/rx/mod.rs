//! The receiving side of an association: one bounded buffer, reassembly, and delivery in order.

mod buffer;
mod gaps;
mod stream;

pub use buffer::{Message, Part, ReceiveBuffer};
