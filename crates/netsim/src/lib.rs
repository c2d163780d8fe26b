//! A deterministic, protocol-free, discrete-event network.
//!
//! A [`World`] has [`Host`]s, [`Link`](link::Link)s and routes; packets carry a payload that it never looks at. Time is whole
//! nanoseconds, randomness comes from a seed tree, equal times are taken in the order of scheduling: two runs with the same
//! seed agree event by event.

pub mod cross;
mod event_queue;
mod host;
pub mod link;
pub mod mahimahi;
mod network;
mod packet;
mod route;
mod schedule;
pub mod topology;
mod world;

pub use cross::{CrossConfig, CrossId, CrossPayload, CrossStats};
pub use host::{Host, HostId, Outbox, Port};
pub use link::{
    Admission, DropCause, Link, LinkConfig, LinkStats, LossModel, QueueModel, RateModel,
};
pub use mahimahi::{Trace, TraceError, parse_mahimahi, to_mahimahi};
pub use packet::Packet;
pub use route::{LinkId, RouteId};
pub use schedule::{OutOfOrder, Schedule};
pub use world::World;
