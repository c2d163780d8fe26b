//! Observation of a running command: metrics, status, a live page, and the events of its log.
//!
//! A separate thread does all of it, so that the thread that carries packets never waits for an observer:
//!
//! ```text
//!   endpoints --snapshots--> Ledger --+--> status socket (JSON lines)
//!       \------events------> Monitor -+--> metrics (OpenMetrics)
//!   application --events--/           +--> live page (server-sent events)
//!                                     +--> Sink: log, notes, JSON stream
//! ```

mod event;
mod history;
mod http;
mod ledger;
mod links;
mod metrics;
mod monitor;
#[cfg(unix)]
pub mod socket;
mod status;

pub use self::event::{Event, EventRecord, PeerIdentity, Severity, clock};
pub use self::http::{EncodeMetrics, MetricsServer};
pub use self::ledger::{Growth, Ledger, Track};
pub use self::links::{EmulationFigures, LinkFigures};
pub use self::monitor::{
    BindError, Monitor, Observation, Reporter, Settings, Sink, Sources, WebSettings,
};
pub use self::status::{
    AssociationStatus, ClientVolume, EventStatus, LinkCap, LinkStatus, Refused, SCHEMA, Status,
    Transfer, TunnelFigures, state_word,
};
