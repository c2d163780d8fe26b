//! Emulates a scenario's links in real time, between two network namespaces, for arbitrary programs.
//!
//! The links are those of the simulator, in one world with everything that shares them: rates, queues, delays,
//! losses, schedules, cross traffic, Wi-Fi cells. [`Links`] moves packets through that world and reads no clock.
//! [`run`] provides the clock, two namespaces whose interfaces are the ends of the paths, and the programs that use
//! them.
//!
//! Everything ends with this process: namespaces and interfaces have no names outside of it, and programs run in a
//! PID namespace whose first process exits when a pipe from this process closes. Nothing remains, not even after
//! `kill -9`.

mod addresses;
mod cpu;
mod device;
mod ecn;
mod error;
mod forwarder;
mod lateness;
mod links;
mod namespace;
mod namespace_init;
mod process;
mod session;
mod signals;

pub use addresses::{Address, Addresses, device_names};
pub use cpu::{CpuTime, ProgramsCpu};
pub use error::EmulateError;
pub use forwarder::Report;
pub use lateness::Lateness;
pub use links::{
    Arrival, End, Frame, Links, LiveTraffic, PathRoutes, PathTraffic, Side, Traffic,
    TrafficSnapshot,
};
pub use namespace::Namespace;
pub use ropewalk_netsim::DropCause;
pub use session::{Outcome, Programs, run};

/// Why links drop packets.
pub const DROP_CAUSES: [DropCause; 6] = DropCause::ALL;
