//! How a TCP sender finds out that it took reordering for loss, and takes a needless reduction back.

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
