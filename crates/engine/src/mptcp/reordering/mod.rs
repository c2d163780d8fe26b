//! How a TCP sender detects that it mistook reordering for loss, and undoes a needless reduction.

mod d_sack;
mod eifel;
mod f_rto;
mod spurious;
mod tcp_door;

pub use d_sack::DSack;
pub use eifel::Eifel;
pub use f_rto::FRto;
pub use spurious::{Report, SpuriousDetector};
pub use tcp_door::TcpDoor;
