//! Operations that both ends use on an association.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::error::TransferError;
use super::link::{AssociationEnded, Link};

/// Silence after which the peer counts as gone. Both ends send something every second.
pub const SILENCE: Duration = Duration::from_secs(10);

/// Maximum time of an orderly shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for messages.
///
/// # Errors
/// [`TransferError`]: no message arrived in time, or the association has ended.
pub async fn next_messages<L: Link>(link: &L, into: &mut Vec<Bytes>) -> Result<(), TransferError> {
    match timeout(SILENCE, link.receive_all(into)).await {
        Err(_) => Err(TransferError::Silent(SILENCE.as_secs())),
        Ok(()) if into.is_empty() => Err(TransferError::AssociationEnded(link.end_reason().await)),
        Ok(()) => Ok(()),
    }
}

/// Sends a block, message by message.
///
/// # Errors
/// [`AssociationEnded`].
pub async fn send_block<L: Link>(link: &L, mut block: Bytes) -> Result<(), AssociationEnded> {
    let size = link.message_size().max(1);
    let mut messages = std::iter::from_fn(|| {
        let len = size.min(block.len());
        (len > 0).then(|| block.split_to(len))
    });
    link.send_all(&mut messages).await
}

/// Ends the association: in an orderly way, for which the peer has a few seconds, or immediately.
pub async fn end<L: Link>(link: &L, in_order: bool) {
    if in_order && timeout(CLOSE_TIMEOUT, link.finish()).await.is_ok() {
        return;
    }
    link.abort();
}
