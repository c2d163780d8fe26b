//! A proxy in two halves: programs talk to the near end, their connections leave at the far end, the
//! exit, and between the two all paths carry them.
//!
//! Each connection has a stream of the association to itself, so that what one loses holds up none of
//! the others. Names are resolved at the exit.

pub mod exit;
pub mod live;
pub mod near;

mod descriptors;
mod notice;
mod quota;
mod reason;
mod relay;
mod target;

pub use self::descriptors::raise_file_limit;
pub use self::notice::{Notice, NoticeSink};
pub use self::reason::Reason;
pub use self::target::{Host, Target, TargetError};
