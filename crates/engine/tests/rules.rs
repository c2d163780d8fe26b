//! Requirements of RFC 9260 for every packet that an end sends.

use ropewalk_base::Time;
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::recovery::LossDetection;
use ropewalk_engine::sctp::association::{PacketSize, State};
use ropewalk_engine::sctp::{Association, Chunk, ExtensionChunk, Packet, Transmit};

/// The rule broken by a packet that has just left `end`, `None` if it obeys all rules.
pub fn broken(now: Time, end: &Association, transmit: &Transmit) -> Option<&'static str> {
    let packet = &transmit.packet;
    let whole = composition(packet).or_else(|| size(end, transmit));
    whole.or_else(|| by_state(end, transmit)).or_else(|| window(now, end, transmit))
}

const fn is_data(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Data(_))
}

/// 3, 3.2.2, 3.3.7, 5.1, 6.10: the chunks that may share a packet, and their order.
fn composition(packet: &Packet) -> Option<&'static str> {
    let chunks = &packet.chunks[..];
    let lonely = |chunk: &Chunk| {
        matches!(chunk, Chunk::Init(_) | Chunk::InitAck(_) | Chunk::ShutdownComplete { .. })
    };
    let begins = |chunk: &Chunk| matches!(chunk, Chunk::CookieEcho(_) | Chunk::CookieAck);
    let ends = |chunk: &Chunk| matches!(chunk, Chunk::Abort { .. });
    let without_data =
        |chunk: &Chunk| ends(chunk) || matches!(chunk, Chunk::Shutdown(_) | Chunk::ShutdownAck);
    // RFC 4895, 6.2: an AUTH chunk precedes the chunks that it covers.
    let auth = chunks.first().is_some_and(|chunk| chunk.kind() == 0x0f);
    let more = chunks.iter().skip(1 + usize::from(auth));
    let data: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data),
            _ => None,
        })
        .collect();
    let after_data = chunks.iter().skip_while(|chunk| !is_data(chunk));
    let rules = [
        ("a packet has a chunk", chunks.is_empty()),
        (
            "6.10: INIT, INIT ACK and SHUTDOWN COMPLETE are alone",
            chunks.len() > 1 && chunks.iter().any(lonely),
        ),
        ("5.1: COOKIE ECHO and COOKIE ACK come first", more.clone().any(begins)),
        ("6.10: control chunks come before DATA", after_data.clone().any(|chunk| !is_data(chunk))),
        (
            "6.10: DATA is in the order of TSNs",
            data.windows(2).any(|two| two[1].tsn.distance_from(two[0].tsn) <= 0),
        ),
        (
            "3.3.7, 6.10: no DATA beside ABORT, SHUTDOWN or SHUTDOWN ACK",
            !data.is_empty() && chunks.iter().any(without_data),
        ),
        ("3.3.7: ABORT comes last", chunks.iter().rev().skip(1).any(ends)),
        ("3.3.1: DATA has user data", data.iter().any(|data| data.payload.is_empty())),
        (
            "8.5.1: under tag 0 travels INIT, and INIT under no other",
            matches!(chunks.first(), Some(Chunk::Init(_))) != (packet.tag == 0),
        ),
        (
            "6.2: one SACK for a packet",
            chunks.iter().filter(|chunk| matches!(chunk, Chunk::Sack(_))).count() > 1,
        ),
    ];
    rules.iter().find_map(|(rule, is_broken)| is_broken.then_some(*rule))
}

/// 6.1, B: new DATA is sent while less than a window is in flight, and exceeds it by at most one packet.
/// A tail loss probe (RFC 8985, 7.3) may exceed it, so the rule applies to ends that send none.
fn window(now: Time, end: &Association, transmit: &Transmit) -> Option<&'static str> {
    let data = transmit.packet.chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Data(data) => Some(data),
        _ => None,
    });
    let fresh = data.clone().any(|data| data.first_sent == now);
    if !fresh || end.config().recovery != LossDetection::MissingReports {
        return None;
    }
    let left: u64 = data.map(|data| u64::from(data.wire_len())).sum();
    let view = end.path_view(now, transmit.path);
    let before = view.in_flight.saturating_sub(left);
    (before >= view.cwnd).then_some("6.1, B: nothing new where a whole window is in flight")
}

/// 6.10: no packet exceeds the MTU of its path, except chunks that can no longer be split (6.9) and
/// probes of the path MTU.
fn size(end: &Association, transmit: &Transmit) -> Option<&'static str> {
    let bytes = transmit.packet.wire_len_in(end.config().packet_form) + end.config().lower_header;
    let fits = bytes <= end.path_mtu(transmit.path);
    let may = fits || transmit.size != PacketSize::Usual;
    (!may).then_some("6.10: a packet fits its path")
}

/// 5.1, 5.4, 6, 8.5: packets that may be sent in each state, their destination, and their tag.
fn by_state(end: &Association, transmit: &Transmit) -> Option<&'static str> {
    let (packet, state) = (&transmit.packet, end.state());
    let chunks = &packet.chunks[..];
    let has_data = chunks.iter().any(is_data);
    if has_data && !state.sends_data() {
        return Some("6: DATA leaves in ESTABLISHED, SHUTDOWN-PENDING and SHUTDOWN-RECEIVED");
    }
    if has_data && packet.tag != end.tags().1 {
        return Some("8.5: packets carry the peer's tag");
    }
    if !state.is_up() || end.path_status(transmit.path) != PathStatus::Unconfirmed {
        return None;
    }
    let heartbeat = |chunk: &Chunk| matches!(chunk, Chunk::Heartbeat(_));
    let proves = |chunk: &Chunk| match chunk {
        Chunk::Heartbeat(_) | Chunk::HeartbeatAck(_) => true,
        Chunk::Extension(rare) => matches!(
            **rare,
            ExtensionChunk::Heartbeat { answer: true, .. }
                | ExtensionChunk::Pad(_)
                | ExtensionChunk::Auth(_)
                | ExtensionChunk::Asconf(..)
                | ExtensionChunk::AsconfAck(..)
        ),
        _ => false,
    };
    // Answers to an INIT are sent to its source, and do not belong to an association yet.
    let answers = |chunk: &Chunk| matches!(chunk, Chunk::InitAck(_) | Chunk::Abort { .. });
    let first = chunks.iter().find(|chunk| chunk.kind() != 0x0f).unwrap_or(&chunks[0]);
    let mut after = chunks.iter().skip_while(|chunk| !matches!(chunk, Chunk::CookieAck)).skip(1);
    let may = match first {
        Chunk::CookieAck => after.all(proves) && chunks.iter().any(heartbeat),
        _ => chunks.iter().all(proves) || chunks.iter().all(answers),
    };
    let closed = matches!(state, State::ShutdownSent { .. } | State::ShutdownAckSent { .. });
    (!may && !closed).then_some("5.4: an address that is not confirmed gets HEARTBEATs")
}
