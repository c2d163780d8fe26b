//! The receiving half of an association: one bounded buffer, reassembly, delivery in order, and SACKs.

mod acknowledgement;
mod buffer;
mod early;
mod gaps;
mod marks;
mod partial_chunks;
mod receiver;
mod stream;

pub use acknowledgement::{SACK_DELAY_LIMIT, SackMode};
pub use buffer::{Message, Part, ReceiveBuffer};
pub use marks::MarkEchoes;
pub use receiver::{DataOutcome, DataSummary, Receiver};
