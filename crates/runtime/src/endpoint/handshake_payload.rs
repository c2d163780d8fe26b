//! What the initiator says beside its handshake, sealed.

use ropewalk_engine::sctp::Association;

/// The version of what travels inside the seal.
const VERSION: u8 = 1;

/// Most paths that one may announce: as many as an association can have.
const PATHS_LIMIT: u8 = Association::PATHS_LIMIT as u8;

/// Which paths there are going to be. More may come later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// How many.
    pub paths: u8,
}

impl Hello {
    /// As bytes: version, paths. What follows is for later versions.
    pub const fn encode(self) -> [u8; 2] {
        [VERSION, self.paths]
    }

    /// From bytes; none if the version is another, or a number makes no sense.
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
