//! Errors of a run.

use core::fmt;

use ropewalk_base::Time;

/// Error of a run.
#[derive(Clone, Debug)]
pub enum RunError {
    /// The scheduler is unknown.
    Scheduler(String),
    /// A custom scheduler made an illegal decision or failed.
    CustomScheduler {
        /// Name of the scheduler.
        name: String,
        /// Description of the error.
        text: String,
    },
    /// The network cannot be built.
    Network(String),
    /// No event is pending although the transfer is not complete.
    Stuck {
        /// Time of the last event.
        at: Time,
        /// Delivered bytes.
        delivered: u64,
        /// Likely cause.
        diagnosis: String,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduler(text) | Self::Network(text) => f.write_str(text),
            Self::CustomScheduler { name, text } => {
                write!(f, "the scheduler {name:?} failed: {text}")
            }
            Self::Stuck { at, delivered, diagnosis } => {
                write!(f, "the transfer stopped at {at} with {delivered} B delivered: {diagnosis}")
            }
        }
    }
}

impl core::error::Error for RunError {}

impl RunError {
    /// The part `name` of the network cannot be built.
    pub(crate) fn network(name: &str, error: impl fmt::Display) -> Self {
        Self::Network(format!("{name}: {error}"))
    }
}
