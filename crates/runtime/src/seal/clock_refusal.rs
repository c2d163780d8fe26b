//! Clock: the answer to a first datagram whose date is behind that of an earlier one.
//!
//! ```text
//! Clock    kind 0x06 (1)  version (1)  session (4)  Noise, sealed: date (8)  newest (8)  MAC (16)
//! ```
//!
//! The answer is the second Noise message, with other content than a Reply. Only the holder of the initiator's static
//! and ephemeral secrets can read it, and only the responder can create it. An attacker that repeats a recorded first
//! datagram cannot read the answer. The length of the sealed content distinguishes it from a Reply.

use core::fmt;

use ropewalk_base::Duration;

use super::allowed::rounded;
use super::timestamp::{Timestamp, difference};
use super::wire::{CLOCK_CONTENT_LEN, bytes_at};

/// A first datagram that is behind by less than this is not answered: it is late, or its clock will soon pass the
/// newest date. Clocks that differ by less are not reported as wrong.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(10);

/// A handshake that the peer refused because of its date. The peer has authenticated these dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRefusal {
    /// The date of the refused handshake, by the clock of this machine.
    pub own: Timestamp,
    /// The date of the peer when it refused.
    pub peer: Timestamp,
    /// The date of the newest handshake with this key, which the next one must exceed.
    pub newest: Timestamp,
}

/// The content of a Clock, in wire order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockContent {
    pub(super) peer: Timestamp,
    pub(super) newest: Timestamp,
}

impl ClockContent {
    pub(super) fn to_bytes(self) -> [u8; CLOCK_CONTENT_LEN] {
        let mut bytes = [0; CLOCK_CONTENT_LEN];
        bytes[..8].copy_from_slice(&self.peer.as_unix_nanos().to_be_bytes());
        bytes[8..].copy_from_slice(&self.newest.as_unix_nanos().to_be_bytes());
        bytes
    }

    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let date =
            |at| Some(Timestamp::from_unix_nanos(u64::from_be_bytes(bytes_at(content, at)?)));
        Some(Self { peer: date(0)?, newest: date(8)? })
    }
}

impl ClockRefusal {
    /// How far the peer's clock is ahead of this machine's, seconds; negative if it is behind. The one-way delay of
    /// the first datagram is included.
    pub fn difference_s(&self) -> f64 {
        difference(self.peer, self.own)
    }
}

impl fmt::Display for ClockRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { own, peer, newest } = self;
        write!(
            f,
            "the peer refused the handshake: its date, {own}, is before {newest}, that of an earlier handshake with this \
             key; the peer's clock says {peer}"
        )?;
        let apart = own.apart_from(*peer);
        if apart < CLOCK_TOLERANCE {
            return f.write_str(
                ", as this machine's does; was this machine's clock ahead before, or does another machine use the same \
                 key? Until that date has passed, only a restart of the peer helps",
            );
        }
        let side = if own < peer { "behind" } else { "ahead of" };
        let apart = rounded(apart);
        write!(f, ", and this machine's clock is {apart} {side} it; set the clock that is wrong")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_are_named_with_the_remedy() {
        const HOUR: u64 = 3600;
        let refusal = |own, peer, newest| {
            let at = |seconds: u64| {
                Timestamp::from_unix_nanos((1_801_440_000 + seconds) * 1_000_000_000)
            };
            ClockRefusal { own: at(own), peer: at(peer), newest: at(newest) }
        };
        let behind = refusal(0, 7 * HOUR, 6 * HOUR);
        assert_eq!(behind.difference_s(), 25_200.0);
        let text = behind.to_string();
        for part in [
            "its date, 2027-02-01 00:00:00 UTC, is before 2027-02-01 06:00:00 UTC,",
            "the peer's clock says 2027-02-01 07:00:00 UTC",
            "this machine's clock is 7 hours behind it",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let ahead = refusal(2 * HOUR, 0, 3 * HOUR);
        assert_eq!(ahead.difference_s(), -7200.0);
        assert!(ahead.to_string().contains("2 hours ahead of it"), "{ahead}");
        let alike = refusal(0, 1, HOUR).to_string();
        assert!(alike.contains("another machine") && !alike.contains("set the clock"), "{alike}");
    }

    #[test]
    fn the_content_survives_its_bytes() {
        let date = Timestamp::from_unix_nanos;
        let content = ClockContent { peer: date(u64::MAX), newest: date(7) };
        assert_eq!(ClockContent::parse(&content.to_bytes()), Some(content));
        assert_eq!(ClockContent::parse(&content.to_bytes()[..15]), None);
    }
}
