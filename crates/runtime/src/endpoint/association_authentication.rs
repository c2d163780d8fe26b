//! Authenticated chunks of an association (AUTH, RFC 4895) and the secrets that both ends were given.

use ropewalk_engine::sctp::SharedKeyError;

use super::association::Association;

impl Association {
    /// Whether chunks can be authenticated: both ends offered it. False before the handshake.
    pub fn authenticates(&self) -> bool {
        self.inspect(|peer, _| peer.machine.authenticates()).unwrap_or(false)
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
    /// [`SharedKeyError::Unknown`].
    pub fn activate_shared_key(&self, id: u16) -> Result<(), SharedKeyError> {
        self.with(|peer, _| peer.machine.activate_shared_key(id)).unwrap_or(Ok(()))
    }

    /// Deletes a secret: what the peer authenticates with it is discarded.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Active`].
    pub fn delete_shared_key(&self, id: u16) -> Result<(), SharedKeyError> {
        self.with(|peer, _| peer.machine.delete_shared_key(id)).unwrap_or(Ok(()))
    }
}
