//! Lost or merely late? What is in flight on each path, and the detection of losses by time, as far as SCTP and TCP share it.

mod flight;
mod rack;
mod tail_probe;

pub use flight::{Flight, Flights};
pub use rack::{Rack, RoundTrips};
pub use tail_probe::TailProbe;

/// How losses are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossDetection {
    /// By counted reports, and by the timer where too little comes to count (RFC 9260, 7.2.4).
    MissingReports,
    /// By time, with a probe of the tail (RFC 8985, carried over to the paths of an association).
    #[default]
    RackTlp,
}
