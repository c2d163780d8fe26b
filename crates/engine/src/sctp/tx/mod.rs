//! What an association remembers of the chunks that it has sent: their states, which gap blocks are news, and the reports of
//! missing chunks.

mod gap_memory;
mod miss_count;
mod scoreboard;

pub use gap_memory::GapMemory;
pub use miss_count::MissCount;
pub use scoreboard::{Launched, Record, RecordState, Scoreboard};
