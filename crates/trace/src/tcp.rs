//! TCP segments with the options of Multipath TCP as bytes (RFC 9293, 3.1; RFC 7323; RFC 2018; RFC 8684, 3).
//!
//! The simulator's initial sequence numbers are 0. On the wire, a subflow begins at a fixed number, and data
//! sequence numbers begin at the value derived from the key (RFC 8684, 3.1). Random numbers and HMACs of `MP_JOIN`
//! do not exist in the simulator and are zeros. The checksum is 0, as with checksum offload.

use ropewalk_engine::mptcp::{MpOption, Segment, Stamps};
use sha2::{Digest, Sha256};

/// Ports of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
}

/// Window scale (RFC 7323, 2): windows up to 64 MiB.
const WINDOW_SCALE: u8 = 10;
/// Maximum segment size in a SYN: that of an MTU of 1500 bytes.
const MAX_SEGMENT_SIZE: u16 = 1460;
/// Initial sequence number of every subflow. Wireshark takes 0 for unknown.
const INITIAL_SEQ: u32 = 1_000_000;
const HEADER: usize = 20;
/// Maximum size of the options, bytes.
const OPTIONS_MAX: usize = 40;

/// Kinds of options.
mod kind {
    pub const NOP: u8 = 1;
    pub const MAX_SEGMENT_SIZE: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
    pub const MULTIPATH: u8 = 30;
    /// Experimental (RFC 6994).
    pub const EXPERIMENT: u8 = 253;
}

/// Subtypes of the option of Multipath TCP (RFC 8684, 3).
mod subtype {
    pub const CAPABLE: u8 = 0;
    pub const JOIN: u8 = 1;
    pub const DSS: u8 = 2;
    pub const FAST_CLOSE: u8 = 7;
}

/// Experiment identifier of the order numbers of TCP-DOOR.
const DOOR: u16 = 0x646f;

/// Encodes the segments of one session, in the order in which they are recorded.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    /// Values derived from the keys of the initiator and of the listener.
    ends: [End; 2],
}

/// Values derived from the key of one end.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    key: u64,
    /// Identifies the session to this end: the highest 32 bits of the SHA-256 hash of its key (RFC 8684, 3.1).
    token: u32,
    /// The data sequence number of this end's first byte. The lowest 64 bits of the hash are the initial number,
    /// which `MP_CAPABLE` uses up.
    first_dsn: u64,
}

impl End {
    fn of(key: u64) -> Self {
        let hash = Sha256::digest(key.to_be_bytes());
        let (mut token, mut initial) = ([0; 4], [0; 8]);
        token.copy_from_slice(&hash[..4]);
        initial.copy_from_slice(&hash[24..]);
        let first_dsn = u64::from_be_bytes(initial).wrapping_add(1);
        Self { key, token: u32::from_be_bytes(token), first_dsn }
    }
}

impl Encoder {
    /// Appends a segment that the session's initiator or its listener has sent. A payload given only by its
    /// length becomes zeros.
    pub fn encode(
        &mut self,
        segment: &Segment,
        from_initiator: bool,
        ports: Ports,
        out: &mut Vec<u8>,
    ) {
        let (own, peer) = if from_initiator { (0, 1) } else { (1, 0) };
        if let MpOption::Capable { key } = segment.option {
            self.ends[own] = End::of(key);
        }
        let mut options = Vec::with_capacity(OPTIONS_MAX);
        put_options(segment, self.ends[own], self.ends[peer], &mut options);
        // The order numbers of TCP-DOOR do not fit together with a mapping. The simulator counts them
        // nevertheless.
        options.truncate(OPTIONS_MAX);
        out.extend(ports.source.to_be_bytes());
        out.extend(ports.destination.to_be_bytes());
        out.extend(on_wire(segment.seq).to_be_bytes());
        out.extend(if segment.acks { on_wire(segment.ack) } else { 0 }.to_be_bytes());
        let words = ((HEADER + options.len()) / 4) as u8;
        out.extend([words << 4, flags(segment)]);
        let window = if segment.syn { segment.window } else { segment.window >> WINDOW_SCALE };
        out.extend((window.min(u16::MAX.into()) as u16).to_be_bytes());
        // Checksum and urgent pointer.
        out.extend([0; 4]);
        out.extend(options);
        out.extend(segment.payload.clone().into_bytes());
    }
}

/// A sequence number of a subflow on the wire.
const fn on_wire(seq: u64) -> u32 {
    INITIAL_SEQ.wrapping_add(seq as u32)
}

fn flags(segment: &Segment) -> u8 {
    let bit = |set: bool, flag: u8| if set { flag } else { 0 };
    let push = !segment.payload.is_empty();
    bit(segment.syn, 0x02) | bit(segment.rst, 0x04) | bit(push, 0x08) | bit(segment.acks, 0x10)
}

/// The options in the order and with the padding that [`Segment::wire_len`] counts.
fn put_options(segment: &Segment, own: End, peer: End, out: &mut Vec<u8>) {
    if segment.syn {
        out.extend([kind::MAX_SEGMENT_SIZE, 4]);
        out.extend(MAX_SEGMENT_SIZE.to_be_bytes());
        out.extend([kind::SACK_PERMITTED, 2, kind::WINDOW_SCALE, 3, WINDOW_SCALE]);
        out.extend([kind::NOP; 3]);
    }
    if let Some(stamps) = segment.stamps {
        put_stamps(stamps, out);
    }
    put_multipath(segment, own, peer, out);
    if !segment.sacks.is_empty() {
        out.extend([kind::NOP, kind::NOP, kind::SACK, 2 + 8 * segment.sacks.len() as u8]);
        for (first, end) in &segment.sacks {
            out.extend(on_wire(*first).to_be_bytes());
            out.extend(on_wire(*end).to_be_bytes());
        }
    }
    if let Some(order) = segment.order {
        let number = (order as u32) << 1 | u32::from(segment.disordered);
        out.extend([kind::EXPERIMENT, 8]);
        out.extend(DOOR.to_be_bytes());
        out.extend(number.to_be_bytes());
    }
}

/// Timestamps, in microseconds.
fn put_stamps(stamps: Stamps, out: &mut Vec<u8>) {
    let micros = |nanos: u64| ((nanos / 1000) as u32).to_be_bytes();
    out.extend([kind::NOP, kind::NOP, kind::TIMESTAMPS, 10]);
    out.extend(micros(stamps.value));
    out.extend(micros(stamps.echo));
}

fn put_multipath(segment: &Segment, own: End, peer: End, out: &mut Vec<u8>) {
    match segment.option {
        MpOption::Capable { .. } => put_capable(segment, own, peer, out),
        MpOption::Join { backup, .. } => put_join(segment, peer, backup, out),
        MpOption::FastClose => {
            out.extend([kind::MULTIPATH, 12, subtype::FAST_CLOSE << 4, 0]);
            out.extend(peer.key.to_be_bytes());
        }
        MpOption::None => put_dss(segment, own, peer, out),
    }
}

/// `MP_CAPABLE` (RFC 8684, 3.1): version 1 and HMAC-SHA256; without a key on the first SYN, with both keys on the
/// third segment.
fn put_capable(segment: &Segment, own: End, peer: End, out: &mut Vec<u8>) {
    let length = match (segment.syn, segment.acks) {
        (true, false) => 4,
        (true, true) => 12,
        (false, _) => 20,
    };
    out.extend([kind::MULTIPATH, length, subtype::CAPABLE << 4 | 1, 1]);
    if length > 4 {
        out.extend(own.key.to_be_bytes());
    }
    if length > 12 {
        out.extend(peer.key.to_be_bytes());
    }
}

/// `MP_JOIN` (RFC 8684, 3.2). The address identifier is 0.
fn put_join(segment: &Segment, peer: End, backup: bool, out: &mut Vec<u8>) {
    let length = match (segment.syn, segment.acks) {
        (true, false) => 12,
        (true, true) => 16,
        (false, _) => 24,
    };
    let start = out.len();
    let flag = if segment.syn { u8::from(backup) } else { 0 };
    out.extend([kind::MULTIPATH, length, subtype::JOIN << 4 | flag, 0]);
    if length == 12 {
        out.extend(peer.token.to_be_bytes());
    }
    out.resize(start + usize::from(length), 0);
}

/// The data sequence signal (RFC 8684, 3.3): a data acknowledgement of 4 bytes, and with data or a `DATA_FIN` also
/// a mapping with a data sequence number of 8 bytes and no checksum.
fn put_dss(segment: &Segment, own: End, peer: End, out: &mut Vec<u8>) {
    /// Flags of the option.
    const ACK: u8 = 1;
    const MAPPING: u8 = 4;
    const LONG_SEQUENCE: u8 = 8;
    const DATA_FIN: u8 = 16;
    let Some(data_ack) = segment.data_ack else { return };
    let data_ack = peer.first_dsn.wrapping_add(data_ack) as u32;
    if segment.payload.is_empty() && !segment.data_fin {
        out.extend([kind::MULTIPATH, 8, subtype::DSS << 4, ACK]);
        out.extend(data_ack.to_be_bytes());
        return;
    }
    let fin = if segment.data_fin { DATA_FIN } else { 0 };
    out.extend([kind::MULTIPATH, 22, subtype::DSS << 4, ACK | MAPPING | LONG_SEQUENCE | fin]);
    out.extend(data_ack.to_be_bytes());
    out.extend(own.first_dsn.wrapping_add(segment.dsn).to_be_bytes());
    // Mappings count from the initial sequence number.
    out.extend((segment.seq as u32).to_be_bytes());
    // RFC 8684, 3.3.3: a DATA_FIN takes one data sequence number.
    let length = segment.payload.len() + u32::from(segment.data_fin);
    out.extend((length as u16).to_be_bytes());
    out.extend([kind::NOP; 2]);
}

#[cfg(test)]
mod tests {
    use ropewalk_engine::Payload;
    use ropewalk_engine::mptcp::Sacks;

    use super::*;

    #[test]
    fn a_segment_is_as_long_as_the_simulator_counts_it() {
        let stamps = Some(Stamps { value: 5_000_000, echo: 1_000 });
        let capable = MpOption::Capable { key: 7 };
        let join = MpOption::Join { token: 9, backup: true };
        let data = Segment { payload: Payload::Length(1000), acks: true, ..Segment::default() };
        let syn = Segment { syn: true, stamps, ..Segment::default() };
        let blocks = Sacks::from_slice(&[(10, 20), (50, 60)]);
        let ack = Segment { acks: true, data_ack: Some(5), stamps, ..Segment::default() };
        for segment in [
            data.clone(),
            Segment { stamps, data_ack: Some(3), dsn: 1 << 33, ..data.clone() },
            Segment { data_ack: Some(3), data_fin: true, ..data },
            Segment { option: capable, ..syn.clone() },
            Segment { option: capable, acks: true, ..syn.clone() },
            Segment { option: capable, acks: true, stamps, ..Segment::default() },
            Segment { option: join, ..syn.clone() },
            Segment { option: join, acks: true, ..syn },
            Segment { option: join, acks: true, stamps, ..Segment::default() },
            Segment { option: MpOption::FastClose, rst: true, acks: true, ..Segment::default() },
            Segment { sacks: blocks, ..ack.clone() },
            Segment { order: Some(4), disordered: true, ..ack },
        ] {
            let (mut bytes, ports) = (Vec::new(), Ports { source: 5000, destination: 5001 });
            Encoder::default().encode(&segment, true, ports, &mut bytes);
            assert_eq!(bytes.len(), segment.wire_len() as usize, "{segment:?}");
            let header = usize::from(bytes[12] >> 4) * 4;
            assert_eq!(header, bytes.len() - segment.payload.len() as usize, "{segment:?}");
        }
    }

    #[test]
    fn numbers_begin_where_the_keys_say() {
        let mut encoder = Encoder::default();
        let ports = Ports { source: 5000, destination: 5001 };
        let mut bytes_of = |segment: &Segment, from_initiator| {
            let mut bytes = Vec::new();
            encoder.encode(segment, from_initiator, ports, &mut bytes);
            bytes
        };
        let capable = |key| MpOption::Capable { key };
        let syn = Segment { syn: true, option: capable(1), ..Segment::default() };
        assert_eq!(bytes_of(&syn, true)[4..8], INITIAL_SEQ.to_be_bytes());
        let answer = Segment { acks: true, ack: 1, option: capable(2), ..syn };
        assert_eq!(bytes_of(&answer, false)[8..12], (INITIAL_SEQ + 1).to_be_bytes());
        let third = Segment { acks: true, option: capable(1), ..Segment::default() };
        let keys = [1_u64.to_be_bytes(), 2_u64.to_be_bytes()].concat();
        assert_eq!(bytes_of(&third, true)[24..40], keys);
        // RFC 8684, 3.2: the token is that of the peer's key.
        let join = Segment {
            syn: true,
            option: MpOption::Join { token: 77, backup: false },
            ..Segment::default()
        };
        let token = &Sha256::digest(2_u64.to_be_bytes())[..4];
        assert_eq!(&bytes_of(&join, true)[36..40], token);
        let data = Segment {
            acks: true,
            seq: 9,
            dsn: 1000,
            data_ack: Some(0),
            payload: Payload::Length(4),
            ..Segment::default()
        };
        let bytes = bytes_of(&data, true);
        let first =
            u64::from_be_bytes(Sha256::digest(1_u64.to_be_bytes())[24..].try_into().unwrap());
        assert_eq!(bytes[28..36], first.wrapping_add(1001).to_be_bytes());
        assert_eq!(bytes[36..40], 9_u32.to_be_bytes());
    }
}
