//! Authenticated chunks of an association (AUTH, RFC 4895) and the secrets that both ends were given.

use ropewalk_engine::sctp::{ChunkTypes, SharedKeyError};

use super::association::Association;

impl Association {
    /// Whether chunks can be authenticated: both ends offered it. False before the handshake.
    pub fn authenticates(&self) -> bool {
        self.inspect(|peer, _| peer.machine.authenticates()).unwrap_or(false)
    }

    /// Types of chunks that the peer accepts in authenticated packets only, as far as this end knows them. None before the
    /// handshake.
    pub fn peer_authenticated_chunks(&self) -> ChunkTypes {
        self.inspect(|peer, _| peer.machine.peer_authenticated_chunks()).unwrap_or(ChunkTypes::NONE)
    }

    /// What the peer says about the layer above SCTP (RFC 5061, 4.2.6). None before the handshake, and if it says nothing.
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

    /// Authenticates what is sent with this secret from now on. The peer needs to have it.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Deactivated`].
    pub fn activate_shared_key(&self, id: u16) -> Result<(), SharedKeyError> {
        self.with(|peer, _| peer.machine.activate_shared_key(id)).unwrap_or(Ok(()))
    }

    /// Does not use this secret for what is sent any more, until it is set again. What the peer authenticates with it is
    /// accepted, until it is deleted.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Active`].
    pub fn deactivate_shared_key(&self, id: u16) -> Result<(), SharedKeyError> {
        self.with(|peer, _| peer.machine.deactivate_shared_key(id)).unwrap_or(Ok(()))
    }

    /// Deletes a secret: what the peer authenticates with it is discarded.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Active`].
    pub fn delete_shared_key(&self, id: u16) -> Result<(), SharedKeyError> {
        self.with(|peer, _| peer.machine.delete_shared_key(id)).unwrap_or(Ok(()))
    }
}
