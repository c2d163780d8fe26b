//! How one association's part of a transfer can end before its time.

use std::fmt;

use super::wire::WireError;

/// Why it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Broken {
    /// The association is no more.
    Gone(String),
    /// Nothing has been heard for this many seconds.
    Silent(u64),
    /// The peer's bytes make no sense.
    Wire(WireError),
    /// The peer does what its part does not allow.
    Violation(&'static str),
    /// The peer has given up, and says why.
    Peer(String),
    /// This end has given up.
    Own(String),
}

impl Broken {
    /// Whether another association may get further.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Gone(_) | Self::Silent(_))
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(why) => f.write_str(why),
            Self::Silent(seconds) => write!(f, "nothing was heard for {seconds} s"),
            Self::Wire(error) => error.fmt(f),
            Self::Violation(what) => write!(f, "the other side breaks the rules: {what}"),
            Self::Peer(why) => {
                write!(f, "the other side says: {}", super::names::shown(why.as_bytes()))
            }
            Self::Own(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Broken {}

impl From<WireError> for Broken {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}
