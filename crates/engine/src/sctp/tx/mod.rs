//! What an association stores about sent chunks: their states, the gap ack blocks already known, and miss
//! indications.

mod gap_diff;
mod miss_indications;
mod scoreboard;

pub use gap_diff::GapDiff;
pub use miss_indications::MissIndications;
pub use scoreboard::{Launched, Record, RecordState, Scoreboard};
