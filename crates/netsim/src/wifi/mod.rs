//! IEEE 802.11: stations that contend for one channel by the distributed coordination function (DCF).
//!
//! A [`Channel`] is one actor of the world, regardless of the number of stations. Slots are not events:
//! backoffs expire on a clock that counts idle slots and stops during transmissions, so a transmission costs
//! two events, its start and its end. Every station hears every other one, and all share the same slot
//! boundaries.
//!
//! Source: IEEE Std 802.11-2012, Clause 9.3 (DCF), Clauses 16 and 17 (DSSS, CCK), Clause 19 (ERP).

mod backoff;
mod channel;
mod phy;
mod radio;
mod station;
mod timing;

pub use crate::ids::{ChannelId, StationId};
pub use backoff::ATTEMPTS;
pub use channel::Channel;
pub use phy::{Phy, PhyError, Preamble, Standard};
pub use radio::{RadioConfig, RadioError};
pub use station::{StationConfig, StationStats};
pub use timing::Timing;

/// Bytes that a data frame adds to a packet: MAC header (24), LLC and SNAP (8), frame check sequence (4).
pub const FRAME_OVERHEAD: u32 = 24 + 8 + 4;
