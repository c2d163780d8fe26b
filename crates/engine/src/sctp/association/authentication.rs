//! Authenticated chunks (AUTH, RFC 4895): negotiation, keys, and packets that must be authenticated.

use ropewalk_base::PathId;

use super::super::cause::ErrorCause;
use super::super::chunk::Chunk;
use super::super::cookie::CookieContent;
use super::super::extensions::Extensions;
use super::super::extensions::authentication::{
    Authentication, ChunkTypes, Filtered, SharedKeyError, SharedKeys,
};
use super::super::init::Init;
use super::super::packet::Packet;
use super::super::wire::kind;
use super::handshake::Handshake;
use super::{Association, Event};

impl Association {
    /// Whether chunks can be authenticated: both ends offered it. False before the handshake.
    pub const fn authenticates(&self) -> bool {
        self.handshake.auth.is_some()
    }

    /// Chunk types that the peer accepts only in authenticated packets, as far as this end knows. Empty
    /// unless both ends offer authenticated chunks.
    pub fn peer_authenticated_chunks(&self) -> ChunkTypes {
        self.handshake.auth.as_ref().map_or(ChunkTypes::NONE, |auth| auth.peer_listed())
    }

    /// Computes the keys of the association from the parameters of both ends (RFC 4895, 6.1).
    pub(super) fn settle_authentication(&mut self, peer: &Init) {
        let agreed = self.handshake.peer.agreed.has(Extensions::AUTH);
        let own = self.handshake.auth_random.as_deref().filter(|_| agreed);
        let own = own.map(|random| self.config.own_auth(*random));
        let theirs = peer.options.authentication.as_deref();
        let both = own.as_ref().zip(theirs);
        let auth = both
            .and_then(|(own, theirs)| Authentication::agree(own, theirs, &self.config.shared_keys));
        self.handshake.auth = auth.map(Box::new);
    }

    /// The random number of an INIT ACK with this cookie (RFC 4895, 6.1: it goes with the verification
    /// tag). `None` if the peer does not offer authenticated chunks.
    pub(super) fn auth_random_for(&self, content: &CookieContent) -> Option<[u8; 32]> {
        let offered = content.peer.extensions().has(Extensions::AUTH);
        let own = self.handshake.auth_random.as_deref().filter(|_| offered)?;
        Some(match self.state.is_up() {
            true => self.handshake.fresh_auth_random(content),
            false => *own,
        })
    }

    /// Removes all chunks that may not be processed from a packet, and counts the packet if there were
    /// any. Returns the identifier of an unsupported algorithm, if any.
    pub(super) fn filter_packet(&mut self, packet: &mut Packet) -> Option<u16> {
        let auth = self.handshake.auth.as_mut()?;
        let others = |packet: &Packet| {
            packet.chunks.iter().filter(|chunk| chunk.kind() != kind::AUTH).count()
        };
        let before = others(packet);
        let Filtered { unsupported, new_key } = auth.filter(packet);
        if let Some(id) = new_key {
            self.push_event(Event::PeerUsesKey(id));
        }
        self.control.unauthenticated += u64::from(others(packet) < before);
        unsupported
    }

    /// Number of packets received since the last call with chunks that were discarded for lack of a valid
    /// code.
    pub const fn take_unauthenticated(&mut self) -> u64 {
        core::mem::replace(&mut self.control.unauthenticated, 0)
    }

    /// Whether an INIT ACK comes from an end that cannot authenticate, although this end requires
    /// authenticated COOKIE ECHOs. Such an INIT ACK may be forged: any attacker on the path can remove
    /// the parameters.
    pub(super) fn lacks_authentication(&self, init: &Init) -> bool {
        let agreed = self.config.agreed(init.extensions()).has(Extensions::AUTH);
        self.config.requires_cookie_authentication()
            && !(agreed && init.options.authentication.is_some())
    }

    /// Checks the authentication of a COOKIE ECHO that arrives before the association has keys. Returns
    /// whether the packet has a valid AUTH chunk, which is removed, or `None` if the packet must be
    /// discarded.
    ///
    /// RFC 4895, 6.3: the keys follow from the parameters in the cookie.
    #[cold]
    pub(super) fn authenticate_cookie(&self, packet: &mut Packet) -> Option<bool> {
        let Some(Chunk::CookieEcho(cookie)) = packet.leading() else { return Some(false) };
        let paths = self.sender.paths.len();
        let (content, _) = self.handshake.open_cookie(cookie, PathId(0), paths)?;
        let own = self.auth_random_for(&content).map(|random| self.config.own_auth(random));
        let theirs = content.peer.options.authentication.as_deref();
        let keys = &self.config.shared_keys;
        let auth =
            own.zip(theirs).and_then(|(own, theirs)| Authentication::agree(&own, theirs, keys));
        let first = packet.chunks.first().map(Chunk::kind) == Some(kind::AUTH);
        match auth {
            Some(auth) if first && auth.is_authentic(packet) => {
                packet.chunks.retain(|chunk| chunk.kind() != kind::AUTH);
                Some(true)
            }
            _ => (!first && !self.config.requires_cookie_authentication()).then_some(false),
        }
    }

    /// Sets an endpoint pair shared key (RFC 4895, 2) for this association only. Does not change which
    /// key is active.
    ///
    /// # Errors
    /// [`SharedKeyError`]; nothing is changed then.
    pub fn set_shared_key(&mut self, id: u16, key: &[u8]) -> Result<(), SharedKeyError> {
        self.change_keys(|keys| keys.set(id, key))
    }

    /// Authenticates outgoing packets with this key from now on. The peer must have it.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Deactivated`].
    pub fn activate_shared_key(&mut self, id: u16) -> Result<(), SharedKeyError> {
        self.change_keys(|keys| keys.activate(id))
    }

    /// Stops using this key for outgoing packets until it is set again (RFC 6458, 8.3.4). Packets that
    /// the peer authenticates with it are still accepted. Packets are authenticated when they are sent,
    /// so the key is free immediately.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Active`].
    pub fn deactivate_shared_key(&mut self, id: u16) -> Result<(), SharedKeyError> {
        self.change_keys(|keys| keys.deactivate(id))
    }

    /// Deletes a shared key: packets that the peer authenticates with it are discarded.
    ///
    /// # Errors
    /// [`SharedKeyError::Unknown`], [`SharedKeyError::Active`].
    pub fn delete_shared_key(&mut self, id: u16) -> Result<(), SharedKeyError> {
        self.change_keys(|keys| keys.delete(id))
    }

    fn change_keys(
        &mut self,
        change: impl Fn(&mut SharedKeys) -> Result<(), SharedKeyError>,
    ) -> Result<(), SharedKeyError> {
        change(&mut self.config.shared_keys)?;
        self.handshake.auth.as_mut().map_or(Ok(()), |auth| change(&mut auth.keys))
    }

    /// Adds the AUTH chunk to a packet that the driver has made, if the peer requires it.
    pub fn sign_packet(&self, packet: &mut Packet) {
        if let Some(auth) = &self.handshake.auth {
            auth.sign(packet);
        }
    }

    /// Length of the AUTH chunk that a packet with this chunk needs, bytes.
    pub(super) fn auth_len_of(&self, chunk: &Chunk) -> u32 {
        let auth = self.handshake.auth.as_ref().filter(|auth| auth.peer_requires(chunk.kind()));
        auth.map_or(0, |auth| auth.chunk_len())
    }

    /// RFC 4895, 6.3: an AUTH chunk with an algorithm that this end did not offer is reported by an ERROR.
    #[cold]
    pub(super) fn report_unsupported_hmac(&mut self, path: PathId, id: u16) {
        if self.state.is_up() {
            let path = self.sender.reply_path(path);
            self.reply_to_peer(path, Chunk::error(ErrorCause::UnsupportedHmac(id)));
        }
    }
}

impl Handshake {
    /// Takes the random number of the INIT ACK whose cookie has restarted the association.
    pub(super) fn renew_auth_random(&mut self, content: &CookieContent) {
        if self.auth_random.is_some() {
            self.auth_random = Some(Box::new(self.fresh_auth_random(content)));
        }
    }
}
