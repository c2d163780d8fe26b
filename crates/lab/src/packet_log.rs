//! The list of all packets of an association, with the times of sending and arrival.
//!
//! Each end numbers the packets that it sends and records the numbers of those that arrive. A number travels with
//! the simulated packet, so that copies made by a link and reordered packets are recognised.

use std::collections::BTreeSet;

use ropewalk_base::{PathId, RangeSet, Serial32, Time};
use ropewalk_engine::mptcp::Segment;
use ropewalk_engine::sctp::{Chunk, ExtensionChunk, Packet};
use ropewalk_scenario::Scenario;
use ropewalk_trace::qlog::chunk_name;

use crate::machine::SimPayload;

/// Maximum number of packets that each end lists: about half a gigabyte.
const LIMIT: usize = 5_000_000;
/// Position of the first TSN among the TSNs seen. A scheduler may send other TSNs before it.
const FIRST_TSN: i64 = 1 << 32;

/// The packets of an association, in the order of their sending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packets {
    /// Names of the paths.
    pub paths: Vec<String>,
    /// The packets.
    pub records: Vec<PacketRecord>,
    /// Time from which packets are missing because the limit was reached.
    pub cut: Option<Time>,
}

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// When it was sent.
    pub sent: Time,
    /// When it first arrived, if it did.
    pub received: Option<Time>,
    /// Whether the network dropped it. A packet that was neither received nor dropped was on the way at the end.
    pub dropped: bool,
    /// Index of the path.
    pub path: u8,
    /// Its direction.
    pub way: Way,
    /// Bytes on the wire, all headers included.
    pub size: u32,
    /// Its contents.
    pub contents: Contents,
}

/// A direction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the sender of the data to its receiver.
    Up,
    /// From the receiver to the sender.
    Down,
}

impl Way {
    /// `up` or `down`, as in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    /// Selects the element for this direction of a pair for `up` and `down`.
    pub fn of<T>(self, (up, down): (T, T)) -> T {
        match self {
            Self::Up => up,
            Self::Down => down,
        }
    }
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// `DATA` with user data, otherwise the type of the first chunk or segment.
    pub kind: &'static str,
    /// Bytes of user data.
    pub payload: u32,
    /// Number of DATA chunks, or of TCP segments with data.
    pub chunks: u32,
    /// TSN of the first DATA chunk.
    pub tsn: Option<u32>,
    /// Data sequence number of the first byte, under TCP.
    pub dsn: Option<u64>,
    /// Whether an earlier packet carried some of its data.
    pub retransmission: bool,
}

#[derive(Clone, Copy, Debug)]
struct SentPacket {
    at: Time,
    path: u8,
    size: u32,
    contents: Contents,
}

/// The packets that one end sends and receives.
#[derive(Debug)]
pub(crate) struct PacketLog {
    way: Way,
    until: Time,
    sent: Vec<SentPacket>,
    /// First arrivals, by the position of the packet in the list of the other end.
    arrivals: Vec<Option<Time>>,
    first_tsn: Option<Serial32>,
    /// TSNs, or data sequence numbers, that were sent.
    seen: RangeSet,
    cut: Option<Time>,
}

impl PacketLog {
    /// A log of the end that sends packets in direction `way`. It lists the packets that are sent
    /// before `until`.
    pub fn new(way: Way, until: Time) -> Self {
        let (sent, arrivals, seen) = (Vec::new(), Vec::new(), RangeSet::new());
        Self { way, until, sent, arrivals, first_tsn: None, seen, cut: None }
    }

    /// Lists a packet and numbers it.
    pub fn on_sent(&mut self, now: Time, path: PathId, size: u32, payload: &mut SimPayload) {
        if now >= self.until {
            return;
        }
        if self.sent.len() >= LIMIT {
            self.cut.get_or_insert(now);
            return;
        }
        let number = number_of(self.way, self.sent.len());
        let contents = match payload {
            SimPayload::Sctp(packet, own) => {
                *own = number;
                self.packet(packet)
            }
            SimPayload::Tcp(segment, own) => {
                *own = number;
                self.segment(segment)
            }
            SimPayload::Cross(_) => return,
        };
        self.sent.push(SentPacket { at: now, path: path.0, size, contents });
    }

    /// Records the arrival of a packet of the other end.
    pub fn on_received(&mut self, now: Time, payload: &SimPayload) {
        let Some((_, position)) = position_of(payload.log_number()) else { return };
        if self.arrivals.len() <= position {
            self.arrivals.resize(position + 1, None);
        }
        self.arrivals[position].get_or_insert(now);
    }

    fn packet(&mut self, packet: &Packet) -> Contents {
        let mut contents = Contents::default();
        for (tsn, bytes) in packet.chunks.iter().filter_map(data_of) {
            let first = *self.first_tsn.get_or_insert(tsn);
            let place = (FIRST_TSN + i64::from(tsn.distance_from(first))).unsigned_abs();
            contents.retransmission |= !self.seen.insert(place);
            contents.tsn.get_or_insert(tsn.0);
            contents.payload += bytes;
            contents.chunks += 1;
        }
        let first = packet.chunks.first().map_or("", chunk_name);
        contents.kind = if contents.chunks > 0 { "DATA" } else { first };
        contents
    }

    fn segment(&mut self, segment: &Segment) -> Contents {
        let payload = segment.payload.len();
        let mut contents = Contents { payload, ..Contents::default() };
        contents.kind = match () {
            () if segment.syn => "SYN",
            () if segment.rst => "RST",
            () if payload > 0 => "DATA",
            () if segment.data_fin => "DATA_FIN",
            () => "ACK",
        };
        if payload > 0 {
            let bytes = segment.dsn..segment.dsn + u64::from(payload);
            contents.chunks = 1;
            contents.dsn = Some(segment.dsn);
            contents.retransmission =
                self.seen.contains(bytes.start) || self.seen.contains(bytes.end - 1);
            self.seen.insert_range(bytes);
        }
        contents
    }
}

/// TSN and bytes of user data of a chunk that carries data.
fn data_of(chunk: &Chunk) -> Option<(Serial32, u32)> {
    match chunk {
        Chunk::Data(data) => Some((data.tsn, data.payload.len())),
        Chunk::Extension(extension) => match &**extension {
            ExtensionChunk::DataFragment(fragment) => {
                Some((fragment.part.tsn, fragment.part.payload.len()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The number of a packet, from its position in the list of its sender: odd upwards, even downwards.
const fn number_of(way: Way, position: usize) -> u32 {
    1 + 2 * position as u32 + way as u32
}

/// The inverse of [`number_of`].
const fn position_of(number: u32) -> Option<(Way, usize)> {
    let Some(number) = number.checked_sub(1) else { return None };
    let way = if number.is_multiple_of(2) { Way::Up } else { Way::Down };
    Some((way, (number / 2) as usize))
}

/// The packets of an association, from the logs of its two ends. `on_the_way`: the numbers of packets that the
/// network still holds.
pub(crate) fn collect(
    sender: &PacketLog,
    receiver: &PacketLog,
    on_the_way: &BTreeSet<u32>,
    scenario: &Scenario,
) -> Packets {
    let up = records(sender, receiver, on_the_way);
    let down = records(receiver, sender, on_the_way);
    let mut all: Vec<_> = up.chain(down).collect();
    all.sort_by_key(|record| record.sent);
    Packets {
        paths: scenario.paths.iter().map(|path| path.name.clone()).collect(),
        records: all,
        cut: sender.cut.into_iter().chain(receiver.cut).min(),
    }
}

fn records<'a>(
    from: &'a PacketLog,
    to: &'a PacketLog,
    on_the_way: &'a BTreeSet<u32>,
) -> impl Iterator<Item = PacketRecord> + 'a {
    from.sent.iter().enumerate().map(|(position, packet)| {
        let received = to.arrivals.get(position).copied().flatten();
        let moving = on_the_way.contains(&number_of(from.way, position));
        PacketRecord {
            sent: packet.at,
            received,
            dropped: received.is_none() && !moving,
            path: packet.path,
            way: from.way,
            size: packet.size,
            contents: packet.contents,
        }
    })
}
