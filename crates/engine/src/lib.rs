//! Sans-I/O multipath transport engines: they never read a clock, a socket, a file or a global random
//! number. Time is an argument; datagrams, events and deadlines are results.

pub mod congestion;
mod deadline;
mod measurements;
#[doc(hidden)]
pub mod meter;
pub mod mptcp;
mod multipath;
pub mod path;
pub mod payload;
pub mod receive;
pub mod record;
pub mod recovery;
pub mod scheduler;
pub mod sctp;
mod transmit_info;
pub mod window;

pub use measurements::{PathCounters, SenderStats};
pub use payload::Payload;
pub use transmit_info::{PacketSize, TransmitInfo};

/// The valid name that is most similar to an invalid one.
pub(crate) fn nearest_name(name: &str, valid: &[&'static str]) -> &'static str {
    // No valid name is nearly this long. Only the beginning of longer names is compared.
    const LONGEST: usize = 64;
    let beginning: String = name.chars().take(LONGEST).collect();
    let nearest = valid.iter().min_by_key(|known| strsim::levenshtein(&beginning, known));
    nearest.copied().unwrap_or_default()
}
