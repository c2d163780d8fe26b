//! The time in a first message, which identifies replays.

#![allow(
    clippy::disallowed_methods,
    reason = "a first message must be newer than those of an earlier process: only the date knows"
)]

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970 by the initiator's clock. Timestamps are only compared with others of the same key, so the
/// clocks of two machines need not agree. The clock of one machine must not go backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The system's date; 1970 if its clock is set to an earlier date.
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
