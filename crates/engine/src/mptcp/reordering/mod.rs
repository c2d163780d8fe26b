//! How a TCP sender detects that it mistook reordering for loss, and undoes a needless reduction.

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
