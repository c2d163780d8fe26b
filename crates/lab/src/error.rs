//! Errors of a run.

use core::fmt;

use ropewalk_base::Time;

/// Error of a run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// The scheduler is unknown.
    #[error("{0}")]
    Scheduler(String),
    /// A custom scheduler made an illegal decision or failed.
    #[error("the scheduler {name:?} failed: {text}")]
    CustomScheduler {
        /// Name of the scheduler.
        name: String,
        /// Description of the error.
        text: String,
    },
    /// The network cannot be built.
    #[error("{0}")]
    Network(String),
    /// No event is pending although the transfer is not complete.
    #[error("the transfer stopped at {at} with {delivered} B delivered: {diagnosis}")]
    Stuck {
        /// Time of the last event.
        at: Time,
        /// Delivered bytes.
        delivered: u64,
        /// Likely cause.
        diagnosis: String,
    },
}

impl RunError {
    /// The part `name` of the network cannot be built.
    pub(crate) fn network(name: &str, error: impl fmt::Display) -> Self {
        Self::Network(format!("{name}: {error}"))
    }
}
