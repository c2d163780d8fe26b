//! Lost or merely late? What is in flight on each path, what the peer has reported, and the
//! algorithms that tell a loss from reordering.

mod flight;
mod gap_memory;
mod miss_count;
mod scoreboard;

pub use flight::{Flight, Flights};
pub use gap_memory::GapMemory;
pub use miss_count::MissCount;
pub use scoreboard::{Record, RecordState, Scoreboard};
