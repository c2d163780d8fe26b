//! Reasons why one association's part of a transfer ends early.

use std::fmt;

use ropewalk_base::PeerText;

use super::wire::WireError;

/// Start of the reason with which a receiver refuses a sender.
pub const REFUSES: &str = "receiver refuses: ";

/// Why an association's part of a transfer ended early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransferError {
    /// The association has ended.
    AssociationEnded(PeerText),
    /// Nothing was received for this many seconds.
    Silent(u64),
    /// The peer has kept the association alive for this many seconds without progress of the transfer.
    Stalled(u64),
    /// The peer sent invalid bytes.
    Wire(WireError),
    /// The peer violated the protocol.
    Violation(&'static str),
    /// The peer gave up, for this reason.
    Peer(PeerText),
    /// This end does not accept transfers of this peer.
    Refused(String),
    /// This end cannot continue this transfer; another transfer may succeed.
    Transfer(String),
    /// This end cannot continue any transfer.
    Local(String),
}

impl TransferError {
    /// Whether a new association may succeed.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::AssociationEnded(_) | Self::Silent(_))
    }

    /// Whether the peer can and should receive the reason. A stalled peer may try again immediately.
    pub const fn is_reportable(&self) -> bool {
        !matches!(
            self,
            Self::AssociationEnded(_) | Self::Silent(_) | Self::Stalled(_) | Self::Peer(_)
        )
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AssociationEnded(why) => why.fmt(f),
            Self::Silent(seconds) => write!(f, "nothing received for {seconds} s"),
            Self::Stalled(seconds) => {
                write!(f, "no progress for {seconds} s, although the other side is alive")
            }
            Self::Wire(error) => error.fmt(f),
            Self::Violation(what) => write!(f, "the other side violated the protocol: {what}"),
            Self::Peer(why) => write!(f, "the other side gave up: {why}"),
            Self::Refused(why) | Self::Transfer(why) | Self::Local(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for TransferError {}

impl From<WireError> for TransferError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}
