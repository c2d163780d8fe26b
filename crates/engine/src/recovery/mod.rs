//! Recovery code shared by SCTP and TCP: transmissions in flight on each path, and loss detection by time.

mod flight;
mod prr;
mod rack;
mod tail_probe;

pub use flight::{Flight, Flights};
pub use prr::{Progress as PrrProgress, Prr};
pub use rack::{Rack, RoundTrips};
pub use tail_probe::TailProbe;

/// Method of loss detection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossDetection {
    /// By counted miss indications, and by the timer if there are too few (RFC 9260, 7.2.4).
    MissingReports,
    /// By time, with tail loss probes (RFC 8985, applied to the paths of an association).
    #[default]
    RackTlp,
}
