//! The data that the initiator sends sealed in its handshake.

use ropewalk_engine::sctp::Association;

/// Version of the protocol inside the seal.
const VERSION: u8 = 1;

/// Maximum number of paths that an initiator may announce: as many as an association can have.
const PATHS_LIMIT: u8 = Association::PATHS_LIMIT as u8;

/// Announces the initiator's paths. More may be added later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Number of paths.
    pub paths: u8,
}

impl Hello {
    /// Encodes the payload: version, paths. Later versions may append more.
    pub const fn encode(self) -> [u8; 2] {
        [VERSION, self.paths]
    }

    /// Decodes the payload. `None` if the version differs or the number of paths is invalid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [VERSION, paths, ..] if (1..=PATHS_LIMIT).contains(paths) => {
                Some(Self { paths: *paths })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_comes_back_and_nonsense_is_refused() {
        for paths in [1, 2, 16] {
            assert_eq!(Hello::decode(&Hello { paths }.encode()), Some(Hello { paths }));
        }
        for nonsense in [&[][..], &[1], &[1, 0], &[1, 17], &[2, 2]] {
            assert_eq!(Hello::decode(nonsense), None, "{nonsense:?}");
        }
    }
}
