//! The sending half of an association: messages become chunks, chunks are assigned to paths, and SACKs
//! and timers determine which have arrived.
//!
//! ```text
//!   send() -> SendQueue -> Scoreboard -> packets        chunks.rs, choose.rs, transmit.rs, bundling.rs
//!                              ^
//!               SACK ----------+  sack.rs               acknowledged, or reported missing
//!               timers --------+  loss.rs               lost, to be sent again
//! ```

mod abandon;
mod bundling;
mod choose;
mod chunks;
mod config;
mod delivery_delays;
mod ecn;
mod gap_acks;
mod gap_diff;
mod held;
mod loss;
mod message_ids;
mod miss_indications;
mod path;
mod path_mtu;
mod priority;
mod queue;
mod record;
mod rescue;
mod reserve;
mod sack;
mod scoreboard;
mod send_times;
mod stream_order;
mod timers;
mod transmit;
mod undelivered;
mod urgent;
mod view;
mod zero_window;

pub use choose::Next;
pub use chunks::{Chunks, PathReports};
pub use config::TxConfig;
pub use delivery_delays::DeliveryDelays;
pub use ecn::Ecn;
pub use gap_diff::GapDiff;
pub use loss::T3Expiry;
pub use miss_indications::MissIndications;
pub use path::Path;
pub use queue::ChunkSizes;
pub use record::{RecordState, SentRecord};
pub use sack::InvalidSack;
pub use scoreboard::Scoreboard;
pub use undelivered::Undelivered;
pub use view::Backlog;

/// The sender of an association.
pub type Sender = crate::multipath::Sender<Chunks>;
