//! How a TCP sender detects that it mistook reordering for loss, and undoes a needless reduction.

mod d_sack;
mod door;
mod eifel;
mod f_rto;
mod spurious;

pub use d_sack::DSack;
pub use door::TcpDoor;
pub use eifel::Eifel;
pub use f_rto::FRto;
pub use spurious::{Report, SpuriousDetector};
