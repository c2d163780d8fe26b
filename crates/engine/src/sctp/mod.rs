//! SCTP (RFC 9260), single-homed and multihomed, with concurrent multipath transfer (Iyengar et
//! al., 2006; draft-tuexen-tsvwg-sctp-multipath).

pub mod association;
mod cause;
mod chunk;
mod config;
mod cookie;
mod extension_chunk;
mod extensions;
pub(crate) mod gaps;
mod init;
mod listener;
mod multipath_options;
mod packet;
mod preset;
mod randomness;
mod rx;
mod tx;
pub mod wire;

pub use association::{Association, Event, Transmit, TransmitInfo};
pub use cause::{AbortCause, ErrorCause};
pub use chunk::{Chunk, Data, DataFlags, DelayEcho, DelayStamp, Echoed, HeartbeatInfo, Sack};
pub use config::{
    CmtOptions, Config, CwndUpdate, Negotiation, PathConfig, SackOptions, WindowCheck, WindowUnit,
};
pub use cookie::{CookieContent, CookieKey, ForgedCookie};
pub use extension_chunk::{
    Auth, Covered, DataFragment, ExtensionChunk, ForwardTsn, IForwardTsn, MarkCount, NrSack,
    RawParameter, Skipped,
};
pub use extensions::Extensions;
pub use extensions::abandoned::{AbandonedMessages, ReliabilityPolicy};
pub use extensions::address_reconfiguration::{AddressChange, AddressError, Refusal};
pub use extensions::authentication::{
    AuthParameters, ChunkTypes, HmacId, HmacList, HmacListError, SharedKeyError, SharedKeys,
};
pub use extensions::interleaving::StreamScheduler;
pub use extensions::partial_reliability::{Copies, Delivery, Urgency};
pub use extensions::stream_reconfiguration::{
    AcceptedRequests, Outcome, ReconfigurationError, Reconfigured, Streams,
};
pub use gaps::{GapBlock, GapList};
pub use init::{Families, Init, InitOptions};
pub use listener::{Accepted, Answer, Listener};
pub use packet::{Packet, PacketForm};
pub use preset::Preset;
pub use randomness::{Randomness, Secret};
pub use rx::{Message, Part};
pub use tx::Backlog;
