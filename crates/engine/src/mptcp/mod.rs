//! TCP and Multipath TCP (RFC 9293, RFC 8684): one session of one or more subflows, with the same
//! schedulers, congestion control, windows and measurements as SCTP.

mod chihani;
mod config;
mod preset;
mod reordering;
mod rx;
mod segment;
pub mod session;
mod subflow;

pub use chihani::{AckBurstLoss, Quirks};
pub use config::{BufferSize, Config, ReceiveRules, Reinjection, SubflowAck};
pub use preset::Preset;
pub use reordering::Reordering;
pub use segment::{MpOption, Sacks, Segment, Stamps};
pub use session::{Event, Session};
