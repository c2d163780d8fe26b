//! Authenticated chunks of an association (AUTH, RFC 4895) and the secrets that both ends share.

use ropewalk_engine::sctp::{ChunkTypes, SharedKeyError};

use super::association::Association;

impl Association {
    /// Whether chunks can be authenticated: both ends offered it. False before the handshake.
    pub fn authenticates(&self) -> bool {
        self.inspect(|peer, _| peer.machine.authenticates()).unwrap_or(false)
    }

    /// Types of chunks that the peer accepts in authenticated packets only, as far as this end knows them. Empty
    /// before the handshake.
    pub fn peer_authenticated_chunks(&self) -> ChunkTypes {
        self.inspect(|peer, _| peer.machine.peer_authenticated_chunks()).unwrap_or(ChunkTypes::NONE)
    }

    /// The adaptation layer indication of the peer (RFC 5061, 4.2.6). `None` before the handshake, and if the peer
    /// sent none.
    pub fn peer_adaptation(&self) -> Option<u32> {
        self.inspect(|peer, _| peer.machine.peer_adaptation()).flatten()
    }

    /// Sets a secret of this association, or replaces it. Does not change which one is active.
    ///
    /// # Errors
    /// [`SharedKeyError`]; in that case nothing changes.
    pub fn set_shared_key(&self, id: u16, key: &[u8]) -> Result<(), SharedKeyError> {
        self.with(|peer, _| peer.machine.set_shared_key(id, key)).unwrap_or(Ok(()))
    }

    /// Authenticates sent packets with this secret from now on. The peer must have it.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Deactivated`].
    pub fn activate_shared_key(&self, id: u16) -> Result<(), SharedKeyError> {
        self.with(|peer, _| peer.machine.activate_shared_key(id)).unwrap_or(Ok(()))
    }

    /// Stops using this secret for sent packets until it is set again. Packets that the peer authenticates with it
    /// are accepted until it is deleted.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Active`].
    pub fn deactivate_shared_key(&self, id: u16) -> Result<(), SharedKeyError> {
        self.with(|peer, _| peer.machine.deactivate_shared_key(id)).unwrap_or(Ok(()))
    }

    /// Deletes a secret. Packets that the peer authenticates with it are discarded.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Active`].
    pub fn delete_shared_key(&self, id: u16) -> Result<(), SharedKeyError> {
        self.with(|peer, _| peer.machine.delete_shared_key(id)).unwrap_or(Ok(()))
    }
}
