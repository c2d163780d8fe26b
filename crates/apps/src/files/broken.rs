//! How one association's part of a transfer can end before its time.

use std::fmt;

use ropewalk_base::PeerText;

use super::wire::WireError;

/// Why it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Broken {
    /// The association is no more.
    Gone(PeerText),
    /// Nothing has been heard for this many seconds.
    Silent(u64),
    /// The peer has kept the association alive for this many seconds without moving the transfer on.
    Stalled(u64),
    /// The peer's bytes make no sense.
    Wire(WireError),
    /// The peer does what its part does not allow.
    Violation(&'static str),
    /// The peer has given up, and says why.
    Peer(PeerText),
    /// This end does not take transfers of this peer.
    Refused(String),
    /// This end cannot go on with this transfer; the next one may succeed.
    Transfer(String),
    /// This end cannot go on with any transfer.
    Own(String),
}

impl Broken {
    /// Whether another association may get further.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Gone(_) | Self::Silent(_))
    }

    /// Whether the peer can and should be told why. One that has lost its place may try again at once.
    pub const fn can_be_told(&self) -> bool {
        !matches!(self, Self::Gone(_) | Self::Silent(_) | Self::Stalled(_) | Self::Peer(_))
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(why) => why.fmt(f),
            Self::Silent(seconds) => write!(f, "nothing was heard for {seconds} s"),
            Self::Stalled(seconds) => {
                write!(f, "no progress for {seconds} s, although the other side is alive")
            }
            Self::Wire(error) => error.fmt(f),
            Self::Violation(what) => write!(f, "the other side breaks the protocol: {what}"),
            Self::Peer(why) => write!(f, "the other side gave up: {why}"),
            Self::Refused(why) | Self::Transfer(why) | Self::Own(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Broken {}

impl From<WireError> for Broken {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}
