//! Reasons why one association's part of a transfer ends early.

use ropewalk_base::PeerText;

use super::wire::WireError;

/// Start of the reason with which a receiver refuses a sender.
pub const REFUSES: &str = "receiver refuses: ";

/// Why an association's part of a transfer ended early.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TransferError {
    /// The association has ended.
    #[error("{0}")]
    AssociationEnded(PeerText),
    /// Nothing was received for this many seconds.
    #[error("nothing received for {0} s")]
    Silent(u64),
    /// The peer has kept the association alive for this many seconds without progress of the transfer.
    #[error("no progress for {0} s, although the other side is alive")]
    Stalled(u64),
    /// The peer sent invalid bytes.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The peer violated the protocol.
    #[error("the other side violated the protocol: {0}")]
    Violation(&'static str),
    /// The peer gave up, for this reason.
    #[error("the other side gave up: {0}")]
    Peer(PeerText),
    /// This end does not accept transfers of this peer.
    #[error("{0}")]
    Refused(String),
    /// This end cannot continue this transfer; another transfer may succeed.
    #[error("{0}")]
    Transfer(String),
    /// This end cannot continue any transfer.
    #[error("{0}")]
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
