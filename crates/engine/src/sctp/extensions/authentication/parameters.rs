//! The parameters of INIT and INIT ACK from which both ends compute their keys (RFC 4895, 3).

use bytes::Bytes;

use super::{ChunkTypes, HmacId, HmacList};
use crate::sctp::cause::ErrorCause;
use crate::sctp::wire::kind;

/// Parameter types (RFC 4895, 3).
pub const RANDOM: u16 = 0x8002;
/// See [`RANDOM`].
pub const CHUNKS: u16 = 0x8003;
/// See [`RANDOM`].
pub const HMAC_ALGO: u16 = 0x8004;

/// Length of a random number, bytes (RFC 4895, 3.1).
pub const RANDOM_LEN: usize = 32;
/// Maximum number of chunk types in a list: all that exist.
const CHUNKS_LIMIT: usize = 256;
/// Maximum length of the list of HMAC identifiers, bytes. Three of them are registered.
const HMACS_LIMIT: usize = 32;
/// Header of a parameter, bytes.
const HEADER: usize = 4;

/// An end's parameters for authenticated chunks in its INIT or INIT ACK, as on the wire: the key vector
/// contains these bytes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AuthParameters {
    /// RANDOM (3.1).
    pub random: Option<Bytes>,
    /// CHUNKS (3.2): the types that the sender accepts only in authenticated packets, `None` if absent.
    pub chunks: Option<Bytes>,
    /// HMAC-ALGO (3.3): identifiers of 16 bits, the preferred one first.
    pub hmacs: Option<Bytes>,
}

impl AuthParameters {
    /// The parameters of an end that draws `random`, requires authentication of `types`, and offers these algorithms.
    pub(in crate::sctp) fn new(
        random: [u8; RANDOM_LEN],
        types: ChunkTypes,
        offered: HmacList,
    ) -> Self {
        let listed: Vec<u8> = types.iter().collect();
        let hmacs: Vec<u8> = offered.iter().flat_map(|one| one.number().to_be_bytes()).collect();
        Self {
            random: Some(Bytes::copy_from_slice(&random)),
            // RFC 4895, 6.1: an empty list may be omitted.
            chunks: (!listed.is_empty()).then(|| listed.into()),
            hmacs: Some(hmacs.into()),
        }
    }

    /// Whether chunks can be authenticated with the sender: this end supports one of its algorithms.
    pub fn is_offer(&self) -> bool {
        self.random.is_some() && self.hmac().is_some()
    }

    /// The reason for refusing an INIT or INIT ACK with these parameters. RFC 4895, 6.1: unless the
    /// random number has 32 bytes, the association is aborted with a protocol violation. The same applies
    /// to lists longer than the maximum.
    pub(in crate::sctp) fn fault(&self) -> Option<ErrorCause> {
        let random = self.random.as_ref().is_none_or(|random| random.len() == RANDOM_LEN);
        let chunks = self.chunks.as_ref().is_none_or(|chunks| chunks.len() <= CHUNKS_LIMIT);
        let hmacs = self
            .hmacs
            .as_ref()
            .is_none_or(|list| list.len() <= HMACS_LIMIT && list.len().is_multiple_of(2));
        (!(random && chunks && hmacs)).then_some(ErrorCause::VIOLATION)
    }

    /// The types of chunks that the sender has listed.
    pub(in crate::sctp) fn listed_types(&self) -> ChunkTypes {
        ChunkTypes::of(self.chunks.as_deref().unwrap_or_default())
    }

    /// The types of chunks that the sender accepts only in authenticated packets.
    pub(in crate::sctp) fn types(&self) -> ChunkTypes {
        let listed = self.listed_types();
        // A part of a DATA chunk is also data.
        match listed.has(kind::DATA) || listed.has(kind::I_DATA) {
            true => listed.with(kind::DATA_FRAGMENT),
            false => listed,
        }
    }

    fn listed(&self) -> impl Iterator<Item = u16> {
        let listed = self.hmacs.as_deref().unwrap_or_default().as_chunks::<2>().0;
        listed.iter().map(|id| u16::from_be_bytes(*id))
    }

    /// The algorithm for chunks to this end. RFC 4895, 6.1: the first one listed that is supported.
    pub(in crate::sctp) fn hmac(&self) -> Option<HmacId> {
        self.listed().find_map(HmacId::from_number)
    }

    /// Like [`Self::hmac`], among the algorithms that this end has offered.
    pub(in crate::sctp) fn hmac_among(&self, offered: HmacList) -> Option<HmacId> {
        self.listed().filter_map(HmacId::from_number).find(|id| offered.has(*id))
    }

    /// The algorithms that this end offers.
    pub(in crate::sctp) fn offered(&self) -> Option<HmacList> {
        HmacList::of(&self.listed().collect::<Vec<_>>()).ok()
    }

    fn each(&self) -> impl Iterator<Item = (u16, &Bytes)> {
        let all = [(RANDOM, &self.random), (CHUNKS, &self.chunks), (HMAC_ALGO, &self.hmacs)];
        all.into_iter().filter_map(|(kind, value)| Some((kind, value.as_ref()?)))
    }

    /// The parameters as `(type, value)`.
    pub(in crate::sctp) fn parameters(&self) -> impl Iterator<Item = (u16, &Bytes)> {
        self.each()
    }

    /// Length on the wire, padding included, bytes.
    pub(in crate::sctp) fn wire_len(&self) -> u32 {
        self.each().map(|(_, value)| (HEADER + value.len()).next_multiple_of(4) as u32).sum()
    }

    /// The key vector (RFC 4895, 6.1): the parameters that were sent, in this order, with their headers and without padding.
    pub(in crate::sctp) fn key_vector(&self) -> Vec<u8> {
        let mut vector = Vec::new();
        for (kind, value) in self.each() {
            vector.extend(kind.to_be_bytes());
            vector.extend(((HEADER + value.len()) as u16).to_be_bytes());
            vector.extend_from_slice(value);
        }
        vector
    }

    /// Reads the output of [`Self::key_vector`], `None` if it is malformed.
    pub(in crate::sctp) fn of_key_vector(mut vector: &[u8]) -> Option<Self> {
        let mut all = Self::default();
        while let Some(([a, b, c, d], _)) = vector.split_first_chunk::<HEADER>() {
            let length = usize::from(u16::from_be_bytes([*c, *d]));
            let (one, rest) = vector.split_at_checked(length)?;
            all.take(u16::from_be_bytes([*a, *b]), Bytes::copy_from_slice(one.get(HEADER..)?));
            vector = rest;
        }
        vector.is_empty().then_some(all)
    }

    /// Takes a parameter of an INIT or INIT ACK, if it is one of these. The first one of its kind counts.
    pub(in crate::sctp) fn take(&mut self, kind: u16, value: Bytes) -> bool {
        let place = match kind {
            RANDOM => &mut self.random,
            CHUNKS => &mut self.chunks,
            HMAC_ALGO => &mut self.hmacs,
            _ => return false,
        };
        place.get_or_insert(value);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(random: usize, chunks: Option<usize>, hmacs: &[u16]) -> AuthParameters {
        AuthParameters {
            random: Some(vec![9; random].into()),
            chunks: chunks.map(|count| vec![0xc1; count].into()),
            hmacs: Some(hmacs.iter().flat_map(|id| id.to_be_bytes()).collect::<Vec<_>>().into()),
        }
    }

    #[test]
    fn the_key_vector_has_the_parameters_in_order_and_gives_them_back() {
        let own =
            AuthParameters::new([7; 32], ChunkTypes::of(&[0xc1, 0x80, 0]), HmacList::default());
        let expected = [
            &[0x80, 0x02, 0, 36][..],
            &[7; 32],
            &[0x80, 0x03, 0, 7, 0, 0x80, 0xc1],
            &[0x80, 0x04, 0, 8, 0, 3, 0, 1],
        ]
        .concat();
        assert_eq!(own.key_vector(), expected);
        assert_eq!(own.wire_len(), 36 + 8 + 8);
        let none = AuthParameters::new([8; 32], ChunkTypes::NONE, HmacList::default());
        assert_eq!(none.key_vector().len(), 36 + 8);
        for one in [own, none, parameters(32, Some(0), &[1]), AuthParameters::default()] {
            assert_eq!(AuthParameters::of_key_vector(&one.key_vector()), Some(one));
        }
        for cut in 1..4 {
            assert_eq!(AuthParameters::of_key_vector(&expected[..expected.len() - cut]), None);
        }
        assert_eq!(AuthParameters::of_key_vector(&[0x80, 2, 0, 3]), None);
    }

    #[test]
    fn a_wrong_random_number_or_a_list_that_is_too_long_is_a_violation() {
        for (random, chunks, hmacs, good) in [
            (32, None, &[1][..], true),
            (32, Some(256), &[7, 3, 1], true),
            (31, None, &[1], false),
            (33, None, &[1], false),
            (0, None, &[1], false),
            (32, Some(257), &[1], false),
            (32, None, &[3], true),
            (32, None, &[], true),
            (32, None, &[1; 17], false),
        ] {
            let fault = parameters(random, chunks, hmacs).fault();
            assert_eq!(fault.is_none(), good, "{random} {chunks:?} {hmacs:?}");
        }
        let odd = AuthParameters { hmacs: Some(vec![0, 1, 0].into()), ..AuthParameters::default() };
        assert!(odd.fault().is_some());
        assert!(AuthParameters::default().fault().is_none());
    }

    #[test]
    fn the_first_algorithm_that_is_known_is_used() {
        for (list, expected) in [
            (&[3, 1][..], Some(HmacId::Sha256)),
            (&[1, 3], Some(HmacId::Sha1)),
            (&[2, 9, 3], Some(HmacId::Sha256)),
            (&[2], None),
        ] {
            let peer = parameters(32, None, list);
            assert_eq!(peer.hmac(), expected, "{list:?}");
            assert_eq!(peer.is_offer(), expected.is_some());
        }
    }
}
