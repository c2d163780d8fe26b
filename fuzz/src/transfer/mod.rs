//! Whole file transfers in memory: links that can be cut, and frames that can be changed on their way.

mod edits;
mod link;
mod room;
mod track;

pub use self::edits::{Edit, Vocabulary, edits};
pub use self::link::{Ends, Plan, watch_idle};
pub use self::room::{Room, Snapshot};
pub use self::track::{Claims, Digest};
