//! The time of a first message, by which its replay is known.

#![allow(
    clippy::disallowed_methods,
    reason = "a first message must be newer than those of an earlier process: only the date knows"
)]

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970 by the initiator's clock. Compared only with others of the same key, so
/// the clocks of two machines need not agree; one machine's clock must not go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The machine's date; 1970 where its clock says something earlier.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(since.as_nanos() as u64)
    }

    /// `nanos` nanoseconds since 1970.
    pub const fn from_unix_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since 1970.
    pub const fn as_unix_nanos(self) -> u64 {
        self.0
    }
}
