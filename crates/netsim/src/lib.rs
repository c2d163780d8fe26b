//! A deterministic, protocol-free, discrete-event network.
//!
//! A [`World`] has [`Host`]s, [`Link`]s and routes. It does not interpret the payload of packets. Time is in
//! whole nanoseconds, randomness comes from a seed tree, and simultaneous events are handled in the order of
//! scheduling: two runs with the same seed are equal event by event.
//!
//! ```
//! use ropewalk_base::{Duration, Rate, Seed, Time};
//! use ropewalk_netsim::{Host, LinkConfig, Outbox, Packet, Port, World};
//!
//! #[derive(Default)]
//! struct Sink(Vec<Time>);
//!
//! impl Host<&'static str> for Sink {
//!     fn receive(&mut self, now: Time, _: Port, _: Packet<&'static str>, _: &mut Outbox<'_, &'static str>) {
//!         self.0.push(now);
//!     }
//!     fn wake(&mut self, _: Time, _: &mut Outbox<'_, &'static str>) {}
//!     fn next_wake(&self) -> Option<Time> {
//!         None
//!     }
//! }
//!
//! let mut world = World::new(Seed::root(1));
//! let host = world.add_host(Sink::default());
//! // 1500 bytes take 12 ms at 1 Mbit/s, and then 10 ms to get there.
//! let config = LinkConfig::new(Rate::from_bps(1_000_000), Duration::from_millis(10));
//! let link = world.add_link("lte/up", &config)?;
//! let route = world.add_route(&[link], host, Port(0));
//! world.inject(route, Packet::new(1500, 0, "hello"));
//! world.run_until(Time::from_secs(1));
//! assert_eq!(world.host(host).0, [Time::from_millis(22)]);
//! # Ok::<(), ropewalk_netsim::link::ConfigError>(())
//! ```

pub mod cross;
mod event_queue;
mod host;
mod ids;
pub mod link;
pub mod mahimahi;
mod network;
mod packet;
mod route;
mod schedule;
pub mod topology;
pub mod wifi;
mod world;

pub use cross::{CrossConfig, CrossError, CrossPayload, CrossStats};
pub use host::{Host, Outbox};
pub use ids::{ChannelId, CrossId, HostId, LinkId, Port, RouteId, StationId};
pub use link::{
    Admission, DropCause, Link, LinkConfig, LinkStats, LossModel, QueueModel, RateModel,
};
pub use mahimahi::{Trace, TraceError, parse_mahimahi, to_mahimahi};
pub use packet::Packet;
pub use schedule::{OutOfOrder, Schedule};
pub use world::World;
