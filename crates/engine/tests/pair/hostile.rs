//! Packets of a broken or hostile peer: no panic, no hang, a specified answer.

use ropewalk_base::{Duration, Serial16, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{
    AbortCause, Chunk, Data, DataFlags, DelayEcho, DelayStamp, Echoed, ErrorCause, GapBlock,
    GapList, HeartbeatInfo, Packet, Sack,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, config, ms};

/// A pair that is up, with unacknowledged data in flight; the tags of packets to the left and to the
/// right, and the first unacknowledged TSN.
fn outstanding() -> (Pair, [u32; 2], Serial32) {
    let mut pair = Pair::up(&config(2, 1 << 18), &[10, 30]);
    pair.send_full(LEFT, 2);
    pair.run_for(ms(500));
    let tag = |end: usize| pair.log.iter().find(|s| s.from == end).expect("a packet").packet.tag;
    let tags = [tag(RIGHT), tag(LEFT)];
    pair.script(|_| Fate::Drop);
    pair.log.clear();
    pair.send_full(LEFT, 2);
    let first = pair.log[0].data().next().expect("data").tsn;
    (pair, tags, first)
}

fn data(tsn: Serial32, ssn: u16, flags: DataFlags, bytes: u32) -> Data {
    Data {
        tsn,
        stream: StreamId(0),
        ssn: Serial16(ssn),
        ppid: 0,
        flags,
        payload: Payload::Length(bytes),
        message_high: 0,
        first_sent: Time::ZERO,
    }
}

fn sack(cumulative: Serial32, gaps: &[(u16, u16)]) -> Chunk {
    Chunk::Sack(Sack {
        cumulative,
        window: 1 << 18,
        gaps: GapList::from_offsets(
            cumulative,
            gaps.iter().map(|(start, end)| GapBlock { start: *start, end: *end }),
        ),
        duplicates: Vec::new(),
        data_packets: 0,
        number: None,
    })
}

#[test]
pub fn a_wrong_tag_makes_every_chunk_a_nothing() {
    let (mut pair, _, first) = outstanding();
    let heartbeat = HeartbeatInfo { nonce: 5, sent: Time::ZERO, probe: None }.to_bytes();
    let chunks = [
        Chunk::Data(data(first, 2, DataFlags::WHOLE, 10)),
        sack(first.plus(1), &[]),
        Chunk::CookieAck,
        Chunk::error(ErrorCause::StaleCookie(5)),
        Chunk::Heartbeat(heartbeat.clone()),
        Chunk::HeartbeatAck(heartbeat),
        Chunk::Shutdown(first.plus(1)),
        Chunk::ShutdownAck,
        Chunk::SHUTDOWN_COMPLETE,
        Chunk::abort(ErrorCause::USER),
    ];
    for chunk in chunks {
        for tag in [0, 1, u32::MAX] {
            for end in [LEFT, RIGHT] {
                let before = format!("{:?}", pair.ends[end]);
                let sent = pair.log.len();
                let mut packet = Packet::of(tag, chunk.clone());
                packet.stamp = Some(DelayStamp { sent: 1 });
                packet.echo = Some(DelayEcho { path: 0, of: Echoed::Time(1), received: 2 });
                pair.inject(end, 0, packet);
                assert_eq!(format!("{:?}", pair.ends[end]), before, "{chunk:?} under tag {tag}");
                assert_eq!(pair.log.len(), sent, "an answer to {chunk:?} under tag {tag}");
            }
        }
    }
}

#[test]
pub fn acknowledging_what_was_never_sent_ends_the_association() {
    let (mut pair, tags, first) = outstanding();
    pair.inject(LEFT, 0, Packet::of(tags[LEFT], sack(first.plus(2), &[])));
    let violation = CloseReason::Aborted(AbortCause::ProtocolViolation);
    assert_eq!(pair.closed(LEFT), Some(violation));
    assert!(pair.count(LEFT, "ABORT") == 1);
}

#[test]
pub fn gap_blocks_that_make_no_sense_are_not_believed() {
    let wild: [&[(u16, u16)]; 5] =
        [&[(2, 1)], &[(0, 0)], &[(0, 65_535)], &[(2, 2), (2, 2)], &[(65_535, 0)]];
    for gaps in wild {
        let (mut pair, tags, first) = outstanding();
        let before = Serial32(first.0.wrapping_sub(1));
        for _ in 0..5 {
            pair.inject(LEFT, 0, Packet::of(tags[LEFT], sack(before, gaps)));
        }
        assert_eq!(*pair.ends[LEFT].state(), State::Established, "{gaps:?}");
        pair.heal();
        pair.run_for(Duration::from_secs(10));
        assert_eq!(pair.read[RIGHT].len(), 4, "{gaps:?}");
    }
}

#[test]
pub fn gap_blocks_that_report_what_was_never_sent_end_the_association() {
    let many: Vec<_> = (0..16_000u16).map(|i| (2 + 2 * i, 2 + 2 * i)).collect();
    let beyond: [&[(u16, u16)]; 5] =
        [&[(65_535, 65_535)], &[(2, 60_000)], &[(2, 2), (9, 9)], &[(3, 3), (1, 1)], &many];
    for gaps in beyond {
        let (mut pair, tags, first) = outstanding();
        let before = Serial32(first.0.wrapping_sub(1));
        pair.inject(LEFT, 0, Packet::of(tags[LEFT], sack(before, gaps)));
        let violation = CloseReason::Aborted(AbortCause::ProtocolViolation);
        assert_eq!(pair.closed(LEFT), Some(violation), "{gaps:?}");
        assert_eq!(pair.count(LEFT, "ABORT"), 1, "{gaps:?}");
    }
}

#[test]
fn tsns_from_anywhere_are_refused_or_duplicates() {
    let (mut pair, tags, first) = outstanding();
    for ahead in [65_536, 1 << 20, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_0000u32] {
        pair.log.clear();
        let chunk = data(first.plus(ahead), 2, DataFlags::WHOLE, 10);
        pair.inject(RIGHT, 0, Packet::of(tags[RIGHT], Chunk::Data(chunk)));
        let sack = pair.log.iter().find_map(|s| s.sack()).expect("an answer");
        assert_eq!(sack.cumulative.plus(1), first, "{ahead} ahead");
        assert!(sack.gaps.is_empty(), "{ahead} ahead");
    }
    let (held, _) = pair.ends[RIGHT].receive_occupancy();
    assert_eq!(held, 0);
}

#[test]
pub fn data_without_data_ends_the_association() {
    let (mut pair, tags, first) = outstanding();
    let chunk = data(first, 2, DataFlags::WHOLE, 0);
    pair.inject(RIGHT, 0, Packet::of(tags[RIGHT], Chunk::Data(chunk)));
    assert_eq!(pair.closed(RIGHT), Some(CloseReason::Aborted(AbortCause::NoUserData)));
}

#[test]
fn fragments_that_fit_nothing_fill_the_buffer_and_no_more() {
    for flags in [DataFlags::default(), DataFlags::BEGIN, DataFlags::END, DataFlags::UNORDERED] {
        let (mut pair, tags, first) = outstanding();
        for i in 0..2000 {
            let chunk = data(first.plus(1 + i), (i % 7) as u16, flags, 1000);
            pair.inject(RIGHT, 0, Packet::of(tags[RIGHT], Chunk::Data(chunk)));
        }
        let (held, free) = pair.ends[RIGHT].receive_occupancy();
        assert!(held + free <= 1 << 18, "{flags:?}");
    }
}

#[test]
pub fn a_peer_that_ignores_the_shut_window_gets_nothing_in() {
    let (mut pair, tags, first) = outstanding();
    pair.reads[RIGHT] = false;
    for i in 0..1000 {
        let chunk = data(first.plus(i), 2 + i as u16, DataFlags::WHOLE, 1000);
        pair.inject(RIGHT, 0, Packet::of(tags[RIGHT], Chunk::Data(chunk)));
    }
    let stats = pair.ends[RIGHT].receive_stats();
    assert!(stats.refused > 700, "{}", stats.refused);
    assert!(stats.received < 300);
}

#[test]
pub fn a_full_buffer_that_gives_up_a_chunk_delivers_it_when_it_comes_again() {
    let mut pair = Pair::up(&config(1, 4 * 1016), &[10]);
    pair.reads[RIGHT] = true;
    pair.send(LEFT, 10);
    pair.run_for(ms(500));
    let first = pair.log[0].data().next().expect("data").tsn.plus(1);
    let tag = pair.log[0].packet.tag;
    // Four chunks wait for the first, which arrives while there is no room. Then the chunk that was
    // dropped for it is repeated.
    for (ahead, ssn) in [(1, 2), (2, 3), (3, 4), (4, 5), (0, 1), (4, 5), (5, 6)] {
        let chunk = data(first.plus(ahead), ssn, DataFlags::WHOLE, 1000);
        pair.inject(RIGHT, 0, Packet::of(tag, Chunk::Data(chunk)));
    }
    assert_eq!(pair.read[RIGHT].len(), 7, "the first, and the six");
    assert_eq!(pair.ends[RIGHT].receive_occupancy(), (0, 4 * 1016));
}

#[test]
fn timestamps_from_a_broken_clock_do_no_harm() {
    let mut settings = config(2, 1 << 18);
    settings.delay_source = ropewalk_engine::scheduler::DelaySource::Timestamp;
    let mut pair = Pair::up(&settings, &[10, 30]);
    pair.send(LEFT, 20_000);
    pair.run_for(ms(1000));
    let tag = pair.log.iter().find(|s| s.from == RIGHT).expect("a packet").packet.tag;
    for (path, sent, received) in [
        (0, 0, u64::MAX / 2),
        (0, u64::MAX / 2, 0),
        (0, 1 << 63, 0),
        (1, 0, 1 << 63),
        (9, 1, 2),
        (255, 0, 0),
    ] {
        let mut packet = Packet::of(tag, Chunk::CookieAck);
        packet.echo = Some(DelayEcho { path, of: Echoed::Time(sent), received });
        pair.inject(LEFT, 0, packet);
        pair.send(LEFT, 20_000);
        pair.run_for(ms(1000));
    }
    assert_eq!(pair.read_bytes(RIGHT), 7 * 20_000);
}

#[test]
pub fn shutdown_chunks_out_of_place_end_nothing() {
    let (mut pair, tags, first) = outstanding();
    for end in [LEFT, RIGHT] {
        pair.inject(end, 0, Packet::of(tags[end], Chunk::SHUTDOWN_COMPLETE));
        pair.inject(end, 0, Packet::of(tags[end], Chunk::ShutdownAck));
        pair.inject(end, 0, Packet::of(tags[end], Chunk::CookieAck));
        pair.inject(end, 0, Packet::of(tags[end], Chunk::error(ErrorCause::StaleCookie(u32::MAX))));
        assert_eq!(*pair.ends[end].state(), State::Established);
    }
    // A SHUTDOWN that acknowledges data that was never sent is ignored.
    pair.inject(LEFT, 0, Packet::of(tags[LEFT], Chunk::Shutdown(first.plus(1000))));
    assert!(!pair.ends[LEFT].is_flushed());
}

#[test]
fn a_packet_a_thousand_times_is_one_packet() {
    let mut pair = Pair::up(&config(2, 1 << 18), &[10, 30]);
    pair.send_full(LEFT, 1);
    let packet = pair.log[0].packet.clone();
    for _ in 0..1000 {
        pair.inject(RIGHT, 1, packet.clone());
    }
    pair.run_for(ms(3000));
    assert_eq!(pair.read[RIGHT].len(), 1);
    assert_eq!(pair.view(LEFT, 0).in_flight, 0);
}
