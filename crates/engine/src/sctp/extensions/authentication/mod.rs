//! Authenticated chunks (AUTH, RFC 4895): keys from the parameters of both ends in the handshake, codes
//! over the rest of a packet, and the chunks that are accepted only with a valid code.
//!
//! ```text
//!   common header | chunks without a code | AUTH: key, algorithm, code | chunks that the code covers
//! ```

mod hmac_list;
mod keys;
pub mod parameters;

use bytes::Bytes;

pub use self::hmac_list::{HmacList, HmacListError};
use self::keys::KeyVectors;
pub use self::keys::{HmacId, SharedKeyError, SharedKeys};
pub use self::parameters::AuthParameters;
use crate::sctp::chunk::Chunk;
use crate::sctp::extension_chunk::{Auth, Covered, ExtensionChunk};
use crate::sctp::packet::Packet;
use crate::sctp::wire::{self, kind};

/// A set of the chunk types that can be authenticated, among those that this implementation knows.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ChunkTypes(u32);

/// The possible members of such a set in ascending order. RFC 4895, 3.2: INIT, INIT ACK, SHUTDOWN
/// COMPLETE and AUTH must not be listed, and are ignored.
const TYPES: [u8; 23] = [
    kind::DATA,
    kind::SACK,
    kind::HEARTBEAT,
    kind::HEARTBEAT_ACK,
    kind::ABORT,
    kind::SHUTDOWN,
    kind::SHUTDOWN_ACK,
    kind::ERROR,
    kind::COOKIE_ECHO,
    kind::COOKIE_ACK,
    kind::ECNE,
    kind::CWR,
    kind::NR_SACK,
    kind::I_DATA,
    kind::ASCONF_ACK,
    kind::PACKET_DROP,
    kind::RE_CONFIG,
    kind::PAD,
    kind::DATA_FRAGMENT,
    kind::MARK_COUNT,
    kind::FORWARD_TSN,
    kind::ASCONF,
    kind::I_FORWARD_TSN,
];

impl core::fmt::Debug for ChunkTypes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl ChunkTypes {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// ASCONF and ASCONF-ACK. RFC 5061, 4.2.7: an end that supports them requires their authentication.
    pub(crate) const ASCONF: Self = Self::NONE.with(kind::ASCONF).with(kind::ASCONF_ACK);

    /// Creates a set of these types. Types that cannot be authenticated are ignored.
    pub fn of(types: &[u8]) -> Self {
        types.iter().fold(Self::NONE, |all, one| all.with(*one))
    }

    /// The bit of a type, 0 if it cannot be in a set.
    const fn bit(kind: u8) -> u32 {
        let mut at = 0;
        while at < TYPES.len() {
            if TYPES[at] == kind {
                return 1 << at;
            }
            at += 1;
        }
        0
    }

    /// The set with this type.
    #[must_use]
    pub(crate) const fn with(self, kind: u8) -> Self {
        Self(self.0 | Self::bit(kind))
    }

    /// Union of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set without those of `other`.
    #[must_use]
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the type is in the set.
    pub const fn has(self, kind: u8) -> bool {
        self.0 & Self::bit(kind) != 0
    }

    /// Whether the set is empty.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The types in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        TYPES.into_iter().filter(move |kind| self.has(*kind))
    }
}

/// The result of the negotiation.
#[derive(Clone, Debug)]
pub(in crate::sctp) struct Authentication {
    /// Types that this end accepts only in authenticated packets.
    own_types: ChunkTypes,
    /// Types that the peer accepts only in authenticated packets.
    peer_types: ChunkTypes,
    /// The types as listed by the peer.
    peer_listed: ChunkTypes,
    vectors: KeyVectors,
    /// The algorithms that this end has offered.
    offered: HmacList,
    /// The algorithm for outgoing packets.
    hmac: HmacId,
    /// Endpoint pair shared keys.
    pub keys: SharedKeys,
}

/// Result of checking a packet's AUTH chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Valid,
    Invalid,
    /// The algorithm was not offered.
    Unsupported(u16),
}

/// Findings from a packet's AUTH chunk that concern the association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Filtered {
    /// The identifier of an algorithm that is not supported, which is to be reported.
    pub unsupported: Option<u16>,
    /// A shared key that the peer uses for the first time.
    pub new_key: Option<u16>,
}

/// Header of an AUTH chunk, before the code, bytes.
const HEADER: usize = 8;

impl Authentication {
    /// The state of an association whose ends have sent these parameters, `None` if the peer's are
    /// incomplete.
    pub fn agree(own: &AuthParameters, peer: &AuthParameters, keys: &SharedKeys) -> Option<Self> {
        let offered = own.offered().filter(|_| own.is_offer() && peer.is_offer())?;
        let hmac = peer.hmac_among(offered)?;
        let mut keys = keys.clone();
        // The initial key of both ends is not new.
        keys.note_use_by_peer(keys.active());
        Some(Self {
            own_types: own.types(),
            peer_types: peer.types(),
            peer_listed: peer.listed_types(),
            vectors: KeyVectors::new(own.key_vector(), peer.key_vector()),
            offered,
            hmac,
            keys,
        })
    }

    /// Length of the AUTH chunks that this end sends, bytes.
    pub const fn chunk_len(&self) -> u32 {
        (HEADER + self.hmac.code_len()) as u32
    }

    /// Whether the peer requires authentication of chunks other than those of address reconfiguration,
    /// which may be in any packet.
    pub const fn covers_much(&self) -> bool {
        !self.peer_types.without(ChunkTypes::ASCONF).is_empty()
    }

    /// Chunk types that the peer has listed, among those that this end knows.
    pub const fn peer_listed(&self) -> ChunkTypes {
        self.peer_listed
    }

    /// Whether the peer requires authentication of chunks of this type.
    pub const fn peer_requires(&self, kind: u8) -> bool {
        self.peer_types.has(kind)
    }

    /// Whether a COOKIE ECHO is accepted only in authenticated packets.
    pub const fn requires_cookie(&self) -> bool {
        self.own_types.has(kind::COOKIE_ECHO)
    }

    /// Adds the AUTH chunk that a packet to the peer needs (RFC 4895, 6.2), before the first chunk that
    /// the peer requires to be authenticated. Returns its length, bytes.
    pub fn sign(&self, packet: &mut Packet) -> Option<u32> {
        let at = packet.chunks.iter().position(|chunk| self.peer_types.has(chunk.kind()))?;
        let pair_key = self.keys.get(self.keys.active())?;
        let mut auth = Auth {
            key: self.keys.active(),
            hmac: self.hmac.number(),
            code: vec![0; self.hmac.code_len()].into(),
            covered: Covered::default(),
        };
        packet.chunks.insert(at, Chunk::Extension(Box::new(ExtensionChunk::Auth(auth.clone()))));
        let mut bytes = Vec::new();
        wire::put_all(&packet.chunks[at..], &mut bytes);
        let code = self.hmac.code(&self.vectors.shared_key(pair_key), &[&bytes]);
        bytes[HEADER..HEADER + code.len()].copy_from_slice(&code);
        let bytes = Bytes::from(bytes);
        auth.code = bytes.slice(HEADER..HEADER + code.len());
        auth.covered = Covered(bytes);
        packet.chunks[at] = Chunk::Extension(Box::new(ExtensionChunk::Auth(auth)));
        Some(self.chunk_len())
    }

    /// Verifies an AUTH chunk with the chunks after it (RFC 4895, 6.3).
    fn verify(&self, auth: &Auth) -> Verdict {
        let known = HmacId::from_number(auth.hmac).filter(|id| self.offered.has(*id));
        let Some(hmac) = known else {
            return Verdict::Unsupported(auth.hmac);
        };
        let covered = &auth.covered.0;
        let end = HEADER + hmac.code_len();
        let whole = auth.code.len() == hmac.code_len() && covered.len() >= end;
        let Some(pair_key) = self.keys.get(auth.key).filter(|_| whole) else {
            return Verdict::Invalid;
        };
        // The code itself counts as zeros.
        let zeros = [0; 32];
        let message = [&covered[..HEADER], &zeros[..hmac.code_len()], &covered[end..]];
        match hmac.verifies(&self.vectors.shared_key(pair_key), &message, &auth.code) {
            true => Verdict::Valid,
            false => Verdict::Invalid,
        }
    }

    /// Removes all chunks that may not be processed from a packet: chunks without the authentication that
    /// this end requires, and everything after an invalid AUTH chunk.
    ///
    /// RFC 4895, 6.3: such chunks are silently discarded.
    pub fn filter(&mut self, packet: &mut Packet) -> Filtered {
        let (mut authenticated_from, mut unsupported, mut new_key) = (usize::MAX, None, None);
        if let Some((at, auth)) = find_auth(packet) {
            match self.verify(auth) {
                Verdict::Valid => {
                    authenticated_from = at;
                    new_key = Some(auth.key).filter(|key| self.keys.note_use_by_peer(*key));
                }
                Verdict::Invalid => packet.chunks.truncate(at),
                Verdict::Unsupported(id) => {
                    unsupported = Some(id);
                    packet.chunks.truncate(at);
                }
            }
        }
        let mut index = 0;
        packet.chunks.retain(|chunk| {
            let authenticated = index > authenticated_from;
            index += 1;
            let kind = chunk.kind();
            kind != kind::AUTH && (authenticated || !self.own_types.has(kind))
        });
        Filtered { unsupported, new_key }
    }

    /// Whether the AUTH chunk of a packet is valid.
    pub fn is_authentic(&self, packet: &Packet) -> bool {
        find_auth(packet).is_some_and(|(_, auth)| self.verify(auth) == Verdict::Valid)
    }
}

fn find_auth(packet: &Packet) -> Option<(usize, &Auth)> {
    packet.chunks.iter().enumerate().find_map(|(at, chunk)| match chunk {
        Chunk::Extension(extension) => match &**extension {
            ExtensionChunk::Auth(auth) => Some((at, auth)),
            _ => None,
        },
        _ => None,
    })
}

#[cfg(test)]
mod tests;
