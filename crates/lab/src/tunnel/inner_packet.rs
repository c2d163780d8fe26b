//! Inner packets of a simulation, as bytes of the length of the real packet.
//!
//! An association carries bytes. The contents of a simulated IP packet are therefore encoded in its bytes, in a
//! private format that fits into the headers of the real packet. The tunnel's header precedes them.

use ropewalk_base::Time;
use ropewalk_engine::Payload;
use ropewalk_engine::mptcp::{Segment, Stamps};
use ropewalk_tunnel::{Header, Order};

/// IPv4 header, bytes.
const IP: u32 = 20;
/// Size of encoded times and sequence numbers, bytes: enough for 78 hours, and for 281 TB.
const LONG: usize = 6;
/// Maximum number of SACK blocks in a header that also carries timestamps.
const SACKS_MAX: usize = 4;

/// A packet with room for the tunnel's header at its beginning.
pub(super) type Bytes = Vec<u8>;

/// Contents of an inner packet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// A TCP segment.
    Segment(Segment),
    /// A datagram of a measured flow.
    Datagram {
        /// Number within the flow and direction.
        number: u64,
        /// Whether it is the reply to the datagram with this number.
        reply: bool,
    },
}

/// An inner packet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InnerPacket {
    /// Index of the flow.
    pub flow: u8,
    /// When it entered the tunnel.
    pub entered: Time,
    /// Content.
    pub content: Content,
}

/// Writes values in turn.
struct Writer(Bytes);

impl Writer {
    fn put(&mut self, value: u64, length: usize) {
        self.0.extend_from_slice(&value.to_be_bytes()[8 - length..]);
    }
}

/// Reads values in the order in which they were written.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, length: usize) -> Option<u64> {
        let (now, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(now.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }
}

/// Size of the IP packet of a segment, bytes. `over`: bytes of headers beyond those of TCP over
/// IPv4.
pub(super) fn segment_bytes(segment: &Segment, over: u32) -> u32 {
    IP + segment.wire_len() + over
}

/// Whether a segment only has an acknowledgement.
fn is_pure_ack(segment: &Segment) -> bool {
    let ends = segment.syn || segment.rst || segment.data_fin;
    segment.acks && segment.payload.is_empty() && !ends
}

impl InnerPacket {
    /// The order of a packet in a flow with order `usual`: a pure acknowledgement of TCP does not wait.
    pub fn order(&self, usual: Order) -> Order {
        match &self.content {
            Content::Segment(segment) if is_pure_ack(segment) => Order::AsArrived,
            _ => usual,
        }
    }

    /// The packet as `bytes` bytes after the room for the header.
    pub fn encode(&self, bytes: u32) -> Bytes {
        let length = Header::LEN + bytes as usize;
        let mut out = Writer(Vec::with_capacity(length));
        out.put(0, Header::LEN);
        out.put(u64::from(self.flow), 1);
        match &self.content {
            Content::Segment(segment) => put_segment(&mut out, segment),
            Content::Datagram { number, reply } => {
                out.put(if *reply { 0x81 } else { 0x80 }, 1);
                out.put(*number, LONG);
            }
        }
        out.put(self.entered.as_nanos(), LONG);
        let mut out = out.0;
        assert!(out.len() <= length, "the contents fit into the headers of the real packet");
        out.resize(length, 0);
        out
    }

    /// Reads a packet with its room for the header. `over`: as for [`segment_bytes`].
    pub fn decode(bytes: &[u8], over: u32) -> Option<Self> {
        let inner = bytes.get(Header::LEN..)?;
        let mut read = Reader(inner);
        let flow = read.take(1)? as u8;
        let kind = read.take(1)?;
        let content = if kind & 0x80 != 0 {
            Content::Datagram { number: read.take(LONG)?, reply: kind & 1 == 1 }
        } else {
            let mut segment = take_segment(&mut read, kind)?;
            let payload = (inner.len() as u32).checked_sub(segment_bytes(&segment, over))?;
            segment.payload = Payload::Length(payload);
            Content::Segment(segment)
        };
        let entered = Time::from_nanos(read.take(LONG)?);
        Some(Self { flow, entered, content })
    }
}

fn put_segment(out: &mut Writer, segment: &Segment) {
    let flags = [segment.syn, segment.acks, segment.rst, segment.data_fin, segment.duplicate];
    let flags = flags.iter().fold(0, |all, flag| all << 1 | u64::from(*flag));
    let sacks = &segment.sacks[..segment.sacks.len().min(SACKS_MAX)];
    out.put(flags, 1);
    out.put(sacks.len() as u64, 1);
    out.put(segment.seq, 5);
    out.put(segment.ack, 5);
    out.put(segment.window, 4);
    let stamps = segment.stamps.expect("inner TCP has timestamps");
    out.put(stamps.value, LONG);
    out.put(stamps.echo, LONG);
    for (from, to) in sacks {
        out.put(*from, 5);
        out.put(to - from, 3);
    }
}

fn take_segment(read: &mut Reader<'_>, flags: u64) -> Option<Segment> {
    let flag = |bit: u32| flags >> bit & 1 == 1;
    let mut segment = Segment {
        syn: flag(4),
        acks: flag(3),
        rst: flag(2),
        data_fin: flag(1),
        duplicate: flag(0),
        ..Segment::default()
    };
    let sacks = read.take(1)?;
    segment.seq = read.take(5)?;
    segment.ack = read.take(5)?;
    segment.window = read.take(4)?;
    segment.stamps = Some(Stamps { value: read.take(LONG)?, echo: read.take(LONG)? });
    // Without Multipath TCP, data is numbered from the byte after the SYN.
    segment.dsn = segment.seq.saturating_sub(1);
    for _ in 0..sacks {
        let from = read.take(5)?;
        segment.sacks.push((from, from + read.take(3)?));
    }
    Some(segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read_as_it_was_written_and_has_the_length_of_the_real_one() {
        let stamps = Some(Stamps { value: 1_000_000_007, echo: 999_999_999 });
        let plain =
            Segment { acks: true, ack: 1 << 33, window: 6 << 20, stamps, ..Segment::default() };
        let holes = [(5000, 6400), (9000, 10_400), (12_000, 20_000)].into_iter().collect();
        for segment in [
            Segment { syn: true, acks: false, ack: 0, ..plain.clone() },
            plain.clone(),
            Segment { sacks: holes, duplicate: true, ..plain.clone() },
            Segment { seq: 7001, dsn: 7000, payload: Payload::Length(1348), ..plain.clone() },
            Segment { seq: 9001, dsn: 9000, data_fin: true, ..plain.clone() },
        ] {
            let segment = Segment { dsn: segment.seq.saturating_sub(1), ..segment };
            let bytes = segment_bytes(&segment, 0);
            let content = Content::Segment(segment);
            let packet = InnerPacket { flow: 3, entered: Time::from_millis(77), content };
            let wire = packet.encode(bytes);
            assert_eq!(wire.len(), Header::LEN + bytes as usize);
            assert_eq!(InnerPacket::decode(&wire, 0).as_ref(), Some(&packet));
        }
        for reply in [false, true] {
            let content = Content::Datagram { number: 1 << 40, reply };
            let packet = InnerPacket { flow: 9, entered: Time::from_secs(3600), content };
            assert_eq!(InnerPacket::decode(&packet.encode(64), 0), Some(packet));
        }
    }
}
