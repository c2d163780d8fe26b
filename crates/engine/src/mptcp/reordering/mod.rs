//! How a TCP sender finds out that it took reordering for loss, and takes a needless reduction back.

mod d_sack;
mod door;
mod eifel;
mod f_rto;
mod undo;

pub use d_sack::DSack;
pub use door::Door;
pub use eifel::Eifel;
pub use f_rto::FRto;
pub use undo::{Report, Undo};
