//! The sender of a connection with several paths, shared by SCTP and Multipath TCP.
//!
//! ```text
//!   Sender ---- asks --> Scheduler            which path carries the next chunk, and when
//!     |   \--- bounds -> WindowManager        limits of the data in flight per path
//!     |   \--- reads --> [TxPath]             round trip, rate, loss, flights of each path
//!     \------- asks ---> Outstanding          unassigned and unacknowledged data, and the peer's window
//! ```
//!
//! A protocol implements [`Outstanding`] and encodes the decisions. Loss detection and the choice of lost
//! data to retransmit belong to the protocol: SCTP chunks can move between paths, segments of a subflow
//! cannot.

mod ack_requests;
mod bottleneck;
mod outstanding;
mod path;
mod reduction;
mod sender;
mod unblock;
mod view;

pub(crate) use ack_requests::{Occasion, PeerAcks};
pub(crate) use outstanding::{Oldest, Outstanding};
pub(crate) use path::TxPath;
pub(crate) use sender::{Assignment, Sender, SenderConfig, nothing_in_flight};
pub(crate) use view::fallback_path;
