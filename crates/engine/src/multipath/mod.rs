//! The sender of a connection with several paths: what SCTP and Multipath TCP have in common.
//!
//! ```text
//!   Sender ---- asks --> Scheduler            which path carries the next chunk, and when
//!     |   \--- bounds -> Guard, WindowManager what each path may have in flight
//!     |   \--- reads --> [TxPath]             round trip, rate, loss, flights of each path
//!     \------- asks ---> Outstanding          what is unassigned or unacknowledged, and the peer's window
//! ```
//!
//! A protocol implements [`Outstanding`] and puts what was decided on the wire. Which lost data is sent again, and how losses are
//! detected, is the protocol's own business: chunks of SCTP move between paths, segments of a subflow do not.

mod outstanding;
mod path;
mod sender;
mod unblock;
mod view;

pub(crate) use outstanding::{Oldest, Outstanding};
pub(crate) use path::TxPath;
pub(crate) use sender::{Assignment, Sender, SenderConfig, nothing_in_flight};
pub(crate) use view::fallback_path;
