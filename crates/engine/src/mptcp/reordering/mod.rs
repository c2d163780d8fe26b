//! Detection of reordering that a TCP sender mistook for loss, to undo unnecessary reductions.

mod d_sack;
mod duplicates_or_timestamps;
mod eifel;
mod f_rto;
mod registry;
mod rule;
mod tcp_door;

pub use d_sack::DSack;
pub use duplicates_or_timestamps::DuplicatesOrTimestamps;
pub use eifel::Eifel;
pub use f_rto::FRto;
pub use registry::{Reordering, SpuriousDetector};
pub use rule::{NoRule, Report, SpuriousRule};
pub use tcp_door::TcpDoor;
