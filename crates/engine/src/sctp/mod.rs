//! SCTP (RFC 9260), single-homed and multihomed, with concurrent multipath transfer (Iyengar et
//! al., 2006; draft-tuexen-tsvwg-sctp-multipath).

pub mod association;
mod chunk;
mod config;
mod cookie;
pub(crate) mod gaps;
mod packet;
mod preset;

pub use association::{Association, Departure, Event, Transmit};
pub use chunk::{
    AbortCause, Chunk, Data, DataFlags, DelayEcho, DelayStamp, HeartbeatInfo, Init, Sack,
};
pub use config::{CmtOptions, Config, CwndUpdate, PathConfig, SackOptions, WindowUnit};
pub use cookie::{Cookie, CookieError, CookieKey};
pub use gaps::{GapBlock, GapList};
pub use packet::Packet;
pub use preset::Preset;
