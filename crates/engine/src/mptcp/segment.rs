//! Typed TCP segments: the header with the options that Multipath TCP uses (RFC 9293, 3.1; RFC 7323; RFC
//! 2018; RFC 8684, 3).
//!
//! Sequence numbers are unwrapped and begin at 0 at both levels. A codec would wrap them and add random
//! initial numbers, which does not affect the engine.

use ropewalk_base::Time;
use smallvec::SmallVec;

use crate::payload::Payload;

/// Blocks of sequence numbers received beyond the acknowledgement, as first byte and end (exclusive), the
/// newest first (RFC 2018, 4).
pub type Sacks = SmallVec<[(u64, u64); 4]>;

/// The timestamps option (RFC 7323, 3.2). Values are nanoseconds of each end's own clock, rounded down to its
/// granularity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// The sender's clock.
    pub value: u64,
    /// The peer's clock, copied from the segment that this one acknowledges.
    pub echo: u64,
}

/// Options of Multipath TCP for the setup and the end of a session (RFC 8684, 3.1, 3.2, 3.5 to 3.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MpOption {
    /// None.
    #[default]
    None,
    /// The sender supports Multipath TCP; on SYN and SYN ACK, and once more with both keys.
    Capable {
        /// The sender's key.
        key: u64,
    },
    /// A further subflow of the session with that token.
    Join {
        /// Identifies the session.
        token: u64,
        /// The subflow is used only when no other is left.
        backup: bool,
    },
    /// Aborts the session.
    FastClose,
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Opens a subflow.
    pub syn: bool,
    /// Whether `ack` is valid: on all segments except the first.
    pub acks: bool,
    /// Resets the subflow.
    pub rst: bool,
    /// Subflow sequence number of the first byte; a SYN takes one number.
    pub seq: u64,
    /// Subflow acknowledgement: all data before it has arrived.
    pub ack: u64,
    /// Receive window, counted from the data-level acknowledgement, bytes after scaling.
    pub window: u64,
    /// Data sequence number of the first byte.
    pub dsn: u64,
    /// Whether the session's data ends with this segment (DATA_FIN), which takes a data sequence number.
    pub data_fin: bool,
    /// Data-level acknowledgement, `None` without Multipath TCP.
    pub data_ack: Option<u64>,
    /// The data.
    pub payload: Payload,
    /// Option for the setup or the end of a session.
    pub option: MpOption,
    /// Selective acknowledgements.
    pub sacks: Sacks,
    /// Whether the first block of `sacks` reports a duplicate (RFC 2883).
    pub duplicate: bool,
    /// Timestamps.
    pub stamps: Option<Stamps>,
    /// Data: number of the transmission on its subflow. Acknowledgements: number of earlier acknowledgements
    /// with the same acknowledgement number (TCP-DOOR; Wang and Zhang, 2002, 3.1).
    pub order: Option<u64>,
    /// Acknowledgements: data has been reordered since the last one (TCP-DOOR, 3.1). A bit of the option
    /// with `order`.
    pub disordered: bool,
    /// When the data was first sent, for measurements; not on the wire.
    pub first_sent: Time,
}

impl Default for Segment {
    fn default() -> Self {
        Self {
            syn: false,
            acks: false,
            rst: false,
            seq: 0,
            ack: 0,
            window: 0,
            dsn: 0,
            data_fin: false,
            data_ack: None,
            payload: Payload::Length(0),
            option: MpOption::None,
            sacks: Sacks::new(),
            duplicate: false,
            stamps: None,
            order: None,
            disordered: false,
            first_sent: Time::ZERO,
        }
    }
}

/// The fixed header, bytes.
pub const HEADER: u32 = 20;
/// Timestamps, padded, bytes.
pub const STAMPS: u32 = 12;
/// A mapping with a data-level acknowledgement: acknowledgement of 4 and sequence number of 8 bytes,
/// no checksum, padded (RFC 8684, 3.3).
pub const MAPPING: u32 = 24;
/// A data-level acknowledgement alone, bytes.
pub const DATA_ACK: u32 = 8;
/// Options of TCP-DOOR, padded, bytes.
pub const ORDER: u32 = 8;
/// Maximum total length of all options, bytes.
const OPTIONS_MAX: u32 = 40;

impl Segment {
    /// Resets to an empty segment, and keeps the heap allocation.
    pub fn clear(&mut self) {
        let mut sacks = std::mem::take(&mut self.sacks);
        sacks.clear();
        *self = Self { sacks, ..Self::default() };
    }

    /// Bytes of the segment, without lower headers.
    pub fn wire_len(&self) -> u32 {
        HEADER + self.options_len() + self.payload.len()
    }

    fn options_len(&self) -> u32 {
        let stamps = if self.stamps.is_some() { STAMPS } else { 0 };
        let order = if self.order.is_some() { ORDER } else { 0 };
        let sacks = match self.sacks.len() as u32 {
            0 => 0,
            blocks => 4 + 8 * blocks,
        };
        // On SYN: maximum segment size, window scale, and SACK permitted.
        let opening = if self.syn { 12 } else { 0 };
        let multipath = match (self.option, self.data_ack) {
            (MpOption::Capable { .. }, _) if self.syn && !self.acks => 4,
            (MpOption::Capable { .. }, _) if self.syn => 12,
            (MpOption::Capable { .. }, _) => 20,
            (MpOption::Join { .. }, _) if self.syn && self.acks => 16,
            (MpOption::Join { .. }, _) if self.syn => 12,
            (MpOption::Join { .. }, _) => 24,
            (MpOption::FastClose, _) => 12,
            (MpOption::None, Some(_)) if self.payload.is_empty() && !self.data_fin => DATA_ACK,
            (MpOption::None, Some(_)) => MAPPING,
            (MpOption::None, None) => 0,
        };
        stamps + order + sacks + opening + multipath
    }

    /// Number of selective acknowledgement blocks that fit with the other options.
    pub const fn sack_room(stamps: bool, data_ack: bool, order: bool) -> usize {
        let taken = if stamps { STAMPS } else { 0 }
            + if data_ack { DATA_ACK } else { 0 }
            + if order { ORDER } else { 0 };
        ((OPTIONS_MAX - taken - 4) / 8) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_options_padded_to_words() {
        let stamps = Some(Stamps { value: 1, echo: 0 });
        let data = Segment { payload: Payload::Length(1000), acks: true, ..Segment::default() };
        let blocks = Sacks::from_slice(&[(1, 2), (5, 6)]);
        for (segment, length) in [
            (data.clone(), 1020),
            (Segment { stamps, ..data.clone() }, 1032),
            (Segment { stamps, data_ack: Some(0), ..data.clone() }, 1056),
            (Segment { stamps, data_ack: Some(0), ..Segment::default() }, 40),
            (Segment { sacks: blocks, data_ack: Some(0), stamps, ..Segment::default() }, 60),
            (Segment { syn: true, stamps, ..Segment::default() }, 44),
        ] {
            assert_eq!(segment.wire_len(), length, "{segment:?}");
        }
    }

    #[test]
    fn fewer_blocks_fit_beside_more_options() {
        for (stamps, data_ack, order, blocks) in [
            (false, false, false, 4),
            (true, false, false, 3),
            (true, true, false, 2),
            (false, true, false, 3),
            (true, true, true, 1),
        ] {
            assert_eq!(Segment::sack_room(stamps, data_ack, order), blocks);
        }
    }
}
