//! What an association remembers of the chunks that it has sent: their states, which gap blocks are news, and the reports of
//! missing chunks.

mod gap_diff;
mod miss_indications;
mod scoreboard;

pub use gap_diff::GapDiff;
pub use miss_indications::MissIndications;
pub use scoreboard::{Launched, Record, RecordState, Scoreboard};
