//! Extensions of SCTP that users choose by their names.

use ropewalk_runtime::endpoint::{Association, ChunkTypes, Transport};

/// An extension that an end offers to its peer. It is used if the peer offers it as well. Stream reconfiguration is
/// not included: no command resets streams, and requests of peers are denied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extension {
    /// Messages of different streams alternate (I-DATA, RFC 8260).
    Interleaving,
    /// Data that will not be dropped is reported as such (NR-SACK, draft-natarajan-tsvwg-sctp-nrsack).
    NrSack,
    /// Chunks are authenticated (AUTH, RFC 4895).
    Authentication,
    /// Addresses are added and removed (ASCONF, RFC 5061).
    AddressReconfiguration,
}

impl Extension {
    /// All extensions with their names.
    pub const NAMES: [(&str, Self); 4] = [
        ("interleaving", Self::Interleaving),
        ("nr-sack", Self::NrSack),
        ("authentication", Self::Authentication),
        ("address-reconfiguration", Self::AddressReconfiguration),
    ];

    /// The extension of this name.
    ///
    /// # Errors
    /// The name is unknown; the message lists the valid ones.
    pub fn from_name(name: &str) -> Result<Self, UnknownExtension> {
        let found = Self::NAMES.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, extension)| extension).ok_or(UnknownExtension)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.into_iter().find(|(_, known)| *known == self);
        found.map_or("", |(name, _)| name)
    }

    /// Why a sealed association cannot use it. `None` if it can.
    pub const fn not_sealed(self) -> Option<&'static str> {
        match self {
            Self::Authentication => Some("a seal authenticates whole packets"),
            Self::AddressReconfiguration => {
                Some("a sealed association follows addresses without it")
            }
            Self::Interleaving | Self::NrSack => None,
        }
    }

    /// Whether both ends of an association have offered it.
    pub fn is_used(self, association: &Association) -> bool {
        match self {
            Self::Interleaving => association.interleaves(),
            Self::NrSack => association.reports_non_renegable(),
            Self::Authentication => association.authenticates(),
            Self::AddressReconfiguration => association.reconfigures_addresses(),
        }
    }

    /// Offers it.
    pub const fn offer(self, transport: &mut Transport) {
        match self {
            Self::Interleaving => transport.interleaving = true,
            Self::NrSack => transport.nr_sack = true,
            Self::Authentication => transport.authentication = true,
            Self::AddressReconfiguration => transport.address_reconfiguration = true,
        }
    }
}

/// No extension has this name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} are known", Extension::NAMES.map(|(name, _)| name).join(", "))]
pub struct UnknownExtension;

/// The types of chunks that an end can have authenticated, by the names of their RFCs.
const CHUNKS: [(&str, u8); 19] = [
    ("data", 0),
    ("sack", 3),
    ("heartbeat", 4),
    ("heartbeat-ack", 5),
    ("abort", 6),
    ("shutdown", 7),
    ("shutdown-ack", 8),
    ("error", 9),
    ("cookie-echo", 10),
    ("cookie-ack", 11),
    ("ecne", 12),
    ("cwr", 13),
    ("nr-sack", 0x10),
    ("i-data", 0x40),
    ("re-config", 0x82),
    ("pad", 0x84),
    ("forward-tsn", 0xc0),
    ("i-forward-tsn", 0xc2),
    ("asconf", 0xc1),
];

/// All types that can be authenticated, by their common name.
const ALL: &str = "all";

/// The set of the types with these names; `all` stands for all of them.
///
/// # Errors
/// A name is unknown; the message contains it, and lists the valid ones.
pub fn chunk_types<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Result<ChunkTypes, UnknownChunk> {
    let number = |name: &str| {
        let found = CHUNKS.iter().find(|(known, _)| *known == name);
        found.map(|(_, number)| *number).ok_or_else(|| UnknownChunk(name.to_owned()))
    };
    let mut types = ChunkTypes::NONE;
    for name in names {
        types = types.and(match name {
            ALL => all_chunk_types(),
            name => ChunkTypes::of(&[number(name)?]),
        });
    }
    Ok(types)
}

/// All types that can be authenticated.
pub fn all_chunk_types() -> ChunkTypes {
    ChunkTypes::of(&CHUNKS.map(|(_, number)| number))
}

/// The names of the types in a set, as far as they have one.
pub fn chunk_names(types: ChunkTypes) -> Vec<&'static str> {
    let name = |kind: u8| CHUNKS.iter().find(|(_, number)| *number == kind).map(|(name, _)| *name);
    types.iter().filter_map(name).collect()
}

/// No chunk that can be authenticated has this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no chunk that can be authenticated; {all} are", all = CHUNKS.map(|(name, _)| name).join(", "))]
pub struct UnknownChunk(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_extension_has_a_name_and_sets_something_of_its_own() {
        let mut all = Vec::new();
        for (name, extension) in Extension::NAMES {
            assert_eq!((Extension::from_name(name), extension.name()), (Ok(extension), name));
            let mut transport = Transport::default();
            extension.offer(&mut transport);
            assert_ne!(transport, Transport::default(), "{name}");
            assert!(!all.contains(&transport), "{name}");
            all.push(transport);
        }
        let unknown = Extension::from_name("asconf").expect_err("not a name").to_string();
        assert!(unknown.contains("address-reconfiguration"), "{unknown}");
    }

    #[test]
    fn every_named_chunk_can_be_authenticated_and_others_are_refused_with_their_names() {
        for (name, number) in CHUNKS {
            let set = chunk_types([name]).expect("known");
            assert_eq!(set.iter().collect::<Vec<_>>(), [number], "{name}");
        }
        for name in ["init", "auth", "DATA", ""] {
            let error = chunk_types(["data", name]).expect_err(name).to_string();
            assert!(error.contains(&format!("`{name}`")) && error.contains("sack"), "{error}");
        }
    }
}
