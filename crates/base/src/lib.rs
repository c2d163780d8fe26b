//! Base types: time, units, identifiers, serial numbers, the seed tree, range sets, statistics of pairs.
//!
//! This crate depends on no other crate of the workspace, and all of them depend on it.

pub mod date;
pub mod ecn;
pub mod histogram;
pub mod ids;
pub mod peer_text;
pub mod range_set;
pub mod rng;
pub mod seed;
pub mod serial;
pub mod statistics;
pub mod time;
pub mod units;

pub use ecn::Ecn;
pub use histogram::{Histogram, HistogramParts};
pub use ids::{PathId, StreamId};
pub use peer_text::PeerText;
pub use range_set::RangeSet;
pub use rng::Rng;
pub use seed::Seed;
pub use serial::{Serial16, Serial32};
pub use statistics::PairMoments;
pub use time::{Duration, Time};
pub use units::{Rate, RateClock, Serialisation};
