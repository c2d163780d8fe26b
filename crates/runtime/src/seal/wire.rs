//! Layout of the datagrams. All numbers are big-endian.
//!
//! ```text
//! sealed   kind 0x80 | form | epoch (1)  path (1)    session (4)  counter (3)   ciphertext  tag (16)
//! first    kind 0x01 or 0x05 (1)        version (1)  session (4)  token (24)    Noise       MAC (16)
//! reply    kind 0x02 (1)                version (1)  session (4)                Noise       MAC (16)
//! retry    kind 0x03 (1)                version (1)  session (4)  token (24)                MAC (16)
//! versions kind 0x04 (1)                version (1)  session (4)  versions (n)              MAC (16)
//! clock    kind 0x06 (1)                version (1)  session (4)                Noise       MAC (16)
//! ```
//!
//! `session` is the receiver's number; in the first datagram it is the sender's. A first datagram of kind 0x05 mixes
//! a pre-shared key into the handshake (Noise IKpsk2), one of kind 0x01 does not (IK). The kinds, versions, sessions
//! and MACs in these rows stay the same in all future versions, so that versions can be distinguished.
//!
//! The first byte of a sealed datagram has the kind in its first bit, the form of the content in the next five, and the
//! last two bits of the epoch. The form is for the layer above.

/// The version of handshake and datagrams.
pub const VERSION: u8 = 3;
/// Bytes that sealing adds to a datagram.
pub const OVERHEAD: usize = HEADER_LEN + TAG_LEN;
/// Minimum size of the first datagram, bytes. It is padded, so that no answer is larger than it.
pub const FIRST_MIN: usize = 256;
/// Maximum size of the first datagram, bytes, so that every path carries it unfragmented.
pub const FIRST_MAX: usize = 1200;
/// Maximum payload of a first datagram, bytes.
pub const PAYLOAD_MAX: usize = FIRST_MAX - FIRST_LEAST;

/// Header of a sealed datagram.
pub(super) const HEADER_LEN: usize = 9;
/// Tag of either AEAD.
pub(super) const TAG_LEN: usize = 16;
/// Kind, version and session: the beginning of every handshake datagram.
pub(super) const PREFIX_LEN: usize = 6;
/// The MAC at the end of every handshake datagram.
pub(super) const MAC_LEN: usize = 16;
/// A token: the time of issue, and its MAC.
pub(super) const TOKEN_LEN: usize = 8 + MAC_LEN;
/// Content of the first Noise message before the caller's payload: timestamp, ciphers, length.
pub(super) const OFFER_LEN: usize = 8 + 1 + 2;
/// The second Noise message's content: the responder's session, and the cipher.
pub(super) const CHOICE_LEN: usize = 4 + 1;
/// Content of the second Noise message in a Clock: the responder's date, and that of the newest handshake of the key.
pub(super) const CLOCK_CONTENT_LEN: usize = 8 + 8;
/// Noise IK, first message: ephemeral key, sealed static key, tag of the payload.
pub(super) const NOISE_FIRST_LEN: usize = 32 + (32 + TAG_LEN) + TAG_LEN;
/// Noise IK, second message: ephemeral key, tag of the payload.
pub(super) const NOISE_REPLY_LEN: usize = 32 + TAG_LEN;

/// A first datagram without payload and padding.
const FIRST_LEAST: usize = PREFIX_LEN + TOKEN_LEN + NOISE_FIRST_LEN + OFFER_LEN + MAC_LEN;
/// Size of a Reply.
pub(super) const REPLY_LEN: usize = PREFIX_LEN + NOISE_REPLY_LEN + CHOICE_LEN + MAC_LEN;
/// Size of a Clock.
pub(super) const CLOCK_LEN: usize = PREFIX_LEN + NOISE_REPLY_LEN + CLOCK_CONTENT_LEN + MAC_LEN;
/// Size of a Retry, which requests a token.
pub(super) const RETRY_LEN: usize = PREFIX_LEN + TOKEN_LEN + MAC_LEN;
/// Size of the answer to another version, which lists only ours.
pub(super) const VERSIONS_LEN: usize = PREFIX_LEN + 1 + MAC_LEN;

// An answer to an unproved address may be at most three times as large as the first datagram.
const _: () = assert!(REPLY_LEN <= 3 * FIRST_MIN);
// A Clock is no larger than the datagram it answers, and its content never has the length of a Reply's.
const _: () = assert!(CLOCK_LEN <= FIRST_MIN && CLOCK_CONTENT_LEN != CHOICE_LEN);
const _: () = assert!(RETRY_LEN <= 3 * FIRST_MIN && VERSIONS_LEN <= 3 * FIRST_MIN);
const _: () = assert!(FIRST_LEAST <= FIRST_MIN && FIRST_MIN < FIRST_MAX);

/// Set in the first byte of sealed datagrams only.
const SEALED: u8 = 0x80;
/// The bits of the epoch that a sealed datagram contains.
const EPOCH_MASK: u8 = 0x03;
/// Number of these bits.
const EPOCH_BITS: u32 = 2;
/// Largest form of a content.
const FORM_MAX: u8 = 0x1f;
/// The bits of a counter that a sealed datagram contains.
pub(super) const COUNTER_BITS: u32 = 24;

/// Kinds of handshake datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    First = 1,
    Reply = 2,
    Retry = 3,
    Versions = 4,
    /// A first datagram of a handshake with a pre-shared key.
    FirstWithPsk = 5,
    /// The answer to a first datagram with an old date.
    Clock = 6,
}

impl Kind {
    /// The kind of a handshake datagram.
    pub(super) fn of(datagram: &[u8]) -> Option<Self> {
        let kinds = [
            Self::First,
            Self::Reply,
            Self::Retry,
            Self::Versions,
            Self::FirstWithPsk,
            Self::Clock,
        ];
        let first = *datagram.first()?;
        kinds.into_iter().find(|kind| *kind as u8 == first)
    }

    /// Whether the initiator sends it.
    pub(super) const fn is_first(self) -> bool {
        matches!(self, Self::First | Self::FirstWithPsk)
    }
}

/// The receiver's session number in a datagram. `None` for a first datagram, which belongs to no session yet, and for
/// unknown formats. The number is not authenticated.
#[inline]
pub fn session_id(datagram: &[u8]) -> Option<u32> {
    let sealed = datagram.first()? & SEALED != 0 && datagram.len() >= OVERHEAD;
    let answer = matches!(Kind::of(datagram), Some(kind) if !kind.is_first());
    if sealed || answer { Some(u32::from_be_bytes(bytes_at(datagram, 2)?)) } else { None }
}

/// Whether a datagram is marked as a first datagram, for the responder.
#[inline]
pub fn is_first(datagram: &[u8]) -> bool {
    Kind::of(datagram).is_some_and(Kind::is_first)
}

/// The first bytes of a handshake datagram.
pub(super) fn prefix(kind: Kind, session: u32) -> [u8; PREFIX_LEN] {
    let [a, b, c, d] = session.to_be_bytes();
    [kind as u8, VERSION, a, b, c, d]
}

/// `N` bytes from position `at`, if the datagram is long enough.
#[inline]
pub(super) fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The header of a sealed datagram, which is authenticated with the ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The epoch's last two bits.
    pub(super) epoch: u8,
    /// The form of the content, at most 31.
    pub(super) form: u8,
    pub(super) path: u8,
    pub(super) session: u32,
    /// The last 24 bits of the counter.
    pub(super) counter: u32,
}

impl Header {
    #[inline]
    pub(super) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        debug_assert!(self.form <= FORM_MAX, "form {}", self.form);
        bytes[0] = SEALED | (self.form & FORM_MAX) << EPOCH_BITS | self.epoch;
        bytes[1] = self.path;
        bytes[2..6].copy_from_slice(&self.session.to_be_bytes());
        bytes[6..].copy_from_slice(&self.counter.to_be_bytes()[1..]);
        bytes
    }

    /// Parses the header of a possibly sealed datagram.
    #[inline]
    pub(super) fn parse(datagram: &[u8]) -> Option<Self> {
        let header: [u8; HEADER_LEN] = bytes_at(datagram, 0)?;
        if datagram.len() < OVERHEAD || header[0] & SEALED == 0 {
            return None;
        }
        Some(Self {
            epoch: header[0] & EPOCH_MASK,
            form: header[0] >> EPOCH_BITS & FORM_MAX,
            path: header[1],
            session: u32::from_be_bytes(bytes_at(&header, 2)?),
            counter: u32::from_be_bytes([0, header[6], header[7], header[8]]),
        })
    }
}

/// The bits of an epoch that a header contains.
#[inline]
pub(super) const fn epoch_bits(epoch: u64) -> u8 {
    epoch as u8 & EPOCH_MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_its_bytes() {
        let header = Header {
            epoch: 3,
            form: FORM_MAX - 1,
            path: 255,
            session: 0xdead_beef,
            counter: (1 << COUNTER_BITS) - 2,
        };
        let mut datagram = header.to_bytes().to_vec();
        assert_eq!(Header::parse(&datagram), None, "nothing is sealed in it");
        datagram.extend([0; TAG_LEN]);
        assert_eq!(Header::parse(&datagram), Some(header));
        assert_eq!(session_id(&datagram), Some(0xdead_beef));
    }

    #[test]
    fn the_session_is_found_in_what_is_for_one_and_in_nothing_else() {
        let of_kind = |kind| prefix(kind, 7).to_vec();
        for (datagram, session) in [
            (vec![], None),
            (vec![0x80; OVERHEAD - 1], None),
            (vec![0x80; OVERHEAD], Some(0x8080_8080)),
            (vec![0xff; OVERHEAD], Some(u32::MAX)),
            (of_kind(Kind::First), None),
            (of_kind(Kind::FirstWithPsk), None),
            (of_kind(Kind::Reply), Some(7)),
            (of_kind(Kind::Retry), Some(7)),
            (of_kind(Kind::Versions), Some(7)),
            (of_kind(Kind::Clock), Some(7)),
            (vec![2, 1, 0], None),
            (vec![0; 100], None),
            (vec![7; 100], None),
        ] {
            assert_eq!(session_id(&datagram), session, "{datagram:?}");
        }
    }

    #[test]
    fn only_a_first_datagram_is_one() {
        assert!(is_first(&prefix(Kind::First, 7)) && is_first(&prefix(Kind::FirstWithPsk, 7)));
        for other in [&[][..], &[2], &[0x80], &[0x81]] {
            assert!(!is_first(other), "{other:?}");
        }
    }
}
