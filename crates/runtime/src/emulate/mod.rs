//! A scenario's links in real time between two network namespaces, for any program.
//!
//! The links are the simulator's, in one world with whatever shares them: rates, queues, delays, losses,
//! schedules, cross traffic, cells of stations. [`Links`] moves packets through that world and never reads
//! a clock; [`run`] gives it the clock, two namespaces whose interfaces are the ends of the paths, and
//! the programs that use them.
//!
//! Everything is bound to the process: namespaces and interfaces have no name outside it, and programs
//! live in a PID namespace whose first process dies when the pipe to us closes. Nothing is left behind,
//! not even by `kill -9`.

mod addresses;
mod device;
mod ecn;
mod error;
mod forwarder;
mod lateness;
mod links;
mod listening;
mod namespace;
mod namespace_init;
mod process;
mod session;
mod signals;

pub use addresses::{Address, Addresses, device_names};
pub use error::EmulateError;
pub use forwarder::Report;
pub use lateness::Lateness;
pub use links::{Arrival, Carried, End, Frame, Links, PathCarried, PathWay, Side};
pub use ropewalk_netsim::DropCause;
pub use session::{Outcome, Programs, run};

/// Why links drop packets.
pub const DROP_CAUSES: [DropCause; 6] = DropCause::ALL;
