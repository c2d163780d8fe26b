//! Lost or merely late? What is in flight on each path, what the peer has reported, and the
//! algorithms that tell a loss from reordering.

mod d_sack;
mod door;
mod eifel;
mod f_rto;
mod flight;
mod gap_memory;
mod miss_count;
mod rack;
mod scoreboard;
mod tail_probe;
mod undo;

pub use d_sack::DSack;
pub use door::Door;
pub use eifel::Eifel;
pub use f_rto::FRto;
pub use flight::{Flight, Flights};
pub use gap_memory::GapMemory;
pub use miss_count::MissCount;
pub use rack::{Rack, RoundTrips};
pub use scoreboard::{Launched, Popped, Record, RecordState, Scoreboard};
pub use tail_probe::TailProbe;
pub use undo::{Report, Undo};

/// How losses are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossDetection {
    /// By counted reports, and by the timer where too little comes to count (RFC 9260, 7.2.4).
    MissingReports,
    /// By time, with a probe of the tail (RFC 8985, carried over to the paths of an association).
    #[default]
    RackTlp,
}
