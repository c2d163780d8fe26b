//! A proxy in two parts: programs connect to the near end, their connections leave at the far end (the exit), and all
//! paths between the two carry them.
//!
//! Each connection uses a stream of the association of its own, so that a loss on one does not delay the others.
//! Names are resolved at the exit.

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
