//! Interoperation with a peer that announces nothing beyond RFC 9260, with the presets of sockets.

use bytes::Bytes;
use ropewalk_base::{PathId, Serial16, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{
    AbortCause, Chunk, Config, Data, DataFlags, ErrorCause, ExtensionChunk, Extensions,
    Negotiation, Packet, PathConfig, Preset, Sack,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, in_turn, ms};

/// Both presets of sockets.
const SOCKETS: [Preset; 2] = [Preset::Live, Preset::LiveRfc9260];

/// A socket's end that may have several paths.
fn socket(preset: Preset, paths: usize) -> Config {
    let mut settings = Config::preset(preset, vec![PathConfig::default(); paths], 1 << 20);
    settings.negotiation = Negotiation::Listed(Extensions::OURS);
    settings.cmt.concurrent = true;
    settings.mtu_discovery = None;
    settings.ecn = false;
    settings
}

/// An end that supports only RFC 9260.
fn standard(paths: usize) -> Config {
    let mut settings = socket(Preset::LiveRfc9260, paths);
    settings.negotiation = Negotiation::Listed(Extensions::NONE);
    settings
}

/// A standard end on the left, a socket's on the right.
fn beside(preset: Preset, delays: &[u64]) -> Pair {
    let paths = delays.len();
    let (left, right) = (standard(paths), socket(preset, paths));
    let mut pair = Pair::with(&left, &right, delays, [in_turn(), in_turn()]);
    pair.connect();
    pair
}

/// Queues this many messages of a full chunk each, and drains.
fn send_full(pair: &mut Pair, end: usize, count: usize) {
    let payload = Payload::Length(pair.ends[end].largest_payload());
    for _ in 0..count {
        pair.queue(end, 0, payload.clone(), false);
    }
    pair.drain(end);
}

/// A packet with one small message of the left end, this many TSNs after its first one.
fn data(pair: &Pair, ahead: u32, flags: DataFlags) -> Packet {
    let first = pair.ends[RIGHT].peer_initial_tsn().expect("it is up");
    let data = Data {
        tsn: first.plus(ahead),
        stream: StreamId(0),
        ssn: Serial16(ahead as u16),
        ppid: 0,
        flags: flags.and(DataFlags::WHOLE),
        payload: Payload::Length(100),
        message_high: 0,
        first_sent: Time::ZERO,
    };
    Packet::of(pair.ends[RIGHT].tags().0, Chunk::Data(data))
}

/// Passes all of these to the right end at one time, as a driver does with a batch of datagrams, and
/// drains it once. Returns for each SACK the advance of the cumulative TSN, and the number of gap blocks
/// and duplicates.
fn batch(pair: &mut Pair, packets: Vec<Packet>) -> Vec<(u32, usize, usize)> {
    // The left end did not send these.
    pair.script(|_| Fate::Drop);
    pair.log.clear();
    for packet in packets {
        pair.ends[RIGHT].handle_datagram(pair.now, PathId(0), packet);
    }
    pair.drain(RIGHT);
    let before = pair.ends[RIGHT].peer_initial_tsn().expect("it is up").0.wrapping_sub(1);
    let of = |sack: &Sack| {
        assert_eq!(sack.data_packets, 0, "3.3.4: the flags are 0");
        (sack.cumulative.0.wrapping_sub(before), sack.gaps.len(), sack.duplicates.len())
    };
    pair.log.iter().filter_map(|sent| sent.sack()).map(of).collect()
}

#[test]
fn a_standard_peer_gets_a_sack_for_every_second_packet_of_a_batch() {
    for preset in SOCKETS {
        let mut pair = beside(preset, &[10]);
        let packets = (0..10).map(|ahead| data(&pair, ahead, DataFlags::WHOLE)).collect();
        let sacks = batch(&mut pair, packets);
        // 5.1: the first one immediately.
        let expected = [(1, 0, 0), (3, 0, 0), (5, 0, 0), (7, 0, 0), (9, 0, 0)];
        assert_eq!(sacks, expected, "{preset:?}");
        // The tenth is not forgotten.
        pair.log.clear();
        pair.run_for(ms(201));
        assert_eq!(pair.count(RIGHT, "SACK"), 1, "{preset:?}");
    }
}

#[test]
fn a_standard_peer_is_told_of_gaps_duplicates_and_the_immediate_bit_at_once_with_each_packet() {
    for preset in SOCKETS {
        let mut pair = beside(preset, &[10]);
        // The first is missing, arrives after three others, and is duplicated; then one requests its
        // SACK.
        let order = [1, 2, 3, 0, 0];
        let mut packets: Vec<_> =
            order.into_iter().map(|ahead| data(&pair, ahead, DataFlags::WHOLE)).collect();
        packets.push(data(&pair, 4, DataFlags::IMMEDIATE));
        let sacks = batch(&mut pair, packets);
        let expected = [(0, 1, 0), (0, 1, 0), (0, 1, 0), (4, 0, 0), (4, 0, 1), (5, 0, 0)];
        assert_eq!(sacks, expected, "{preset:?}");
    }
}

#[test]
fn sacks_that_wait_for_the_driver_are_bounded_and_the_last_one_tells_all() {
    let mut pair = beside(Preset::Live, &[10]);
    // Every second packet is missing: each SACK has one more block than the previous one.
    let packets = (0..2000).map(|i| data(&pair, 2 * i + 1, DataFlags::WHOLE)).collect();
    let sacks = batch(&mut pair, packets);
    assert!((40..=65).contains(&sacks.len()), "{} SACKs", sacks.len());
    let blocks: usize = sacks.iter().rev().skip(1).map(|(_, gaps, _)| gaps).sum();
    assert!(blocks <= 1100, "{blocks} blocks waited");
    assert!(sacks.last().is_some_and(|(_, gaps, _)| *gaps > 300), "{:?}", sacks.last());
}

#[test]
fn a_peer_with_cmt_gets_one_delayed_sack_for_a_batch_and_a_gap() {
    let mut settings = socket(Preset::Live, 1);
    settings.sack.on_request = false;
    let mut pair = Pair::up(&settings, &[10]);
    assert!(pair.ends[RIGHT].agreed_extensions().has(Extensions::CMT));
    for ahead in [1, 2, 3, 5] {
        let packet = data(&pair, ahead, DataFlags::WHOLE);
        pair.ends[RIGHT].handle_datagram(pair.now, PathId(0), packet);
    }
    pair.drain(RIGHT);
    let sacks: Vec<_> = pair.log.iter().filter_map(|sent| sent.sack()).collect();
    assert_eq!(sacks.len(), 1);
    assert_eq!(
        sacks[0].data_packets, 3,
        "delayed acknowledgement for CMT: so many, and no more than 3"
    );
}

#[test]
fn a_sack_travels_with_data_that_leaves_for_the_same_address() {
    for preset in SOCKETS {
        let mut pair = beside(preset, &[10]);
        pair.greet();
        // Not due yet: a delayed SACK.
        pair.send(LEFT, 100);
        pair.run_for(ms(12));
        pair.log.clear();
        pair.send(RIGHT, 100);
        let names: Vec<_> = pair.log.iter().map(|sent| sent.names()).collect();
        assert_eq!(names, [["SACK", "DATA"]], "{preset:?}");
        pair.run_for(ms(500));
        assert_eq!(pair.count(RIGHT, "SACK"), 1, "{preset:?}: and none by itself later");
        // A full packet has no room for it: the SACK is sent separately, although more data could be
        // sent.
        pair.log.clear();
        pair.run_for(ms(500));
        for ahead in [2, 3] {
            let packet = data(&pair, ahead, DataFlags::WHOLE);
            pair.ends[RIGHT].handle_datagram(pair.now, PathId(0), packet);
        }
        pair.log.clear();
        send_full(&mut pair, RIGHT, 3);
        let names: Vec<_> = pair.log.iter().map(|sent| sent.names()).collect();
        assert_eq!(names, [["DATA"], ["SACK"], ["DATA"], ["DATA"]], "{preset:?}");
    }
}

#[test]
fn an_address_that_is_not_confirmed_gets_heartbeats_and_nothing_else() {
    let (left, right) = (standard(2), socket(Preset::Live, 2));
    let mut pair = Pair::with(&left, &right, &[10, 10], [in_turn(), in_turn()]);
    // Nothing of the right end arrives on the second path.
    pair.script(
        |sent| {
            if sent.path == 1 && sent.from == RIGHT { Fate::Drop } else { Fate::Arrive }
        },
    );
    pair.run_for(ms(200));
    assert_eq!(pair.ends[RIGHT].path_status(PathId(1)), PathStatus::Unconfirmed);
    pair.log.clear();
    let tag = pair.ends[RIGHT].tags().0;
    for ahead in 0..6 {
        let mut packet = data(&pair, ahead, DataFlags::WHOLE);
        if let Chunk::Data(data) = &mut packet.chunks[0] {
            data.stream = StreamId(if ahead == 3 { 9 } else { 0 });
        }
        pair.inject(RIGHT, 1, packet);
    }
    pair.inject(RIGHT, 1, Packet::of(tag, Chunk::Unknown(Bytes::from_static(&[0xff, 0, 0, 4]))));
    pair.run_for(ms(3000));
    let names = |path: usize| -> Vec<_> {
        let sent = pair.log.iter().filter(|sent| sent.from == RIGHT && sent.path == path);
        sent.flat_map(|sent| sent.names()).collect()
    };
    assert!(names(1).iter().all(|name| *name == "HEARTBEAT"), "{:?}", names(1));
    assert!(names(0).contains(&"SACK") && names(0).contains(&"ERROR"), "{:?}", names(0));
}

#[test]
fn a_heartbeat_with_further_parameters_comes_back_whole() {
    let mut pair = beside(Preset::Live, &[10]);
    let tag = pair.ends[RIGHT].tags().0;
    // Heartbeat Info of 5 bytes and its padding, then a parameter of an unknown type.
    let info = [0, 1, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0];
    let further = [0x80, 7, 0, 6, 0xaa, 0xbb];
    let parameters = Bytes::from([&info[..], &further].concat());
    let chunk = |answer| {
        Chunk::Extension(Box::new(ExtensionChunk::Heartbeat {
            answer,
            parameters: parameters.clone(),
        }))
    };
    pair.through_bytes = true;
    pair.inject(RIGHT, 0, Packet::of(tag, chunk(false)));
    assert_eq!(pair.log[0].packet.chunks[..], [chunk(true)]);
}

#[test]
fn a_lone_message_waits_for_the_sack_delay_that_a_standard_peer_may_have() {
    for delay in [40, 120, 199] {
        let (mut left, right) = (standard(1), socket(Preset::Live, 1));
        left.sack.delay = ms(delay);
        let mut pair = Pair::with(&left, &right, &[10], [in_turn(), in_turn()]);
        pair.connect();
        for _ in 0..20 {
            pair.send(RIGHT, 100);
            pair.run_for(ms(1000));
        }
        assert_eq!(pair.data_times(RIGHT).len(), 20, "each message went once: {delay} ms");
    }
}

#[test]
fn data_goes_by_the_primary_path_alone_unless_the_peer_announced_cmt() {
    let carried = |pair: &Pair| {
        [0, 1].map(|path| {
            let data = |sent: &&crate::driver::Sent| sent.data().next().is_some();
            pair.log.iter().filter(data).filter(|s| s.from == RIGHT && s.path == path).count()
        })
    };
    let mut strict = beside(Preset::LiveRfc9260, &[10, 10]);
    send_full(&mut strict, RIGHT, 100);
    strict.run_for(ms(1000));
    assert_eq!(carried(&strict), [100, 0]);
    strict.ends[RIGHT].set_primary(PathId(1));
    strict.log.clear();
    send_full(&mut strict, RIGHT, 100);
    strict.run_for(ms(1000));
    assert_eq!(carried(&strict), [0, 100]);
    let mut agreed = Pair::up(&socket(Preset::LiveRfc9260, 2), &[10, 10]);
    send_full(&mut agreed, RIGHT, 100);
    agreed.run_for(ms(1000));
    assert!(carried(&agreed).iter().all(|count| *count > 20), "{:?}", carried(&agreed));
    let mut live = beside(Preset::Live, &[10, 10]);
    send_full(&mut live, RIGHT, 100);
    live.run_for(ms(1000));
    assert!(carried(&live).iter().all(|count| *count > 20), "a deviation: {:?}", carried(&live));
}

#[test]
fn the_profile_of_the_rfc_starts_with_its_window_and_sends_bursts_of_four() {
    let first_flight = |preset| {
        let mut pair = beside(preset, &[50]);
        send_full(&mut pair, RIGHT, 40);
        pair.data_times(RIGHT).len()
    };
    // 7.2.1: min(4 units, max(2 units, 4404 B)) with units of 1424 B. A window may be exceeded by less
    // than one unit.
    assert_eq!(first_flight(Preset::LiveRfc9260), 4);
    assert_eq!(first_flight(Preset::Live), 11, "RFC 6928: ten packets of the largest size");
    // 6.1 D: regardless of the window, four packets are sent in response to one input.
    let mut pair = beside(Preset::LiveRfc9260, &[50]);
    for _ in 0..20 {
        send_full(&mut pair, RIGHT, 40);
        pair.run_for(ms(300));
    }
    assert!(pair.view(RIGHT, 0).cwnd > 20_000);
    pair.log.clear();
    send_full(&mut pair, RIGHT, 40);
    assert_eq!(pair.data_times(RIGHT).len(), 4);
}

#[test]
fn the_profile_of_the_rfc_times_out_after_a_second_and_repairs_by_three_reports() {
    let mut pair = beside(Preset::LiveRfc9260, &[10]);
    send_full(&mut pair, RIGHT, 4);
    pair.run_for(ms(1000));
    pair.log.clear();
    pair.script(|sent| if sent.from == RIGHT { Fate::Drop } else { Fate::Arrive });
    pair.send(RIGHT, 100);
    pair.run_for(ms(2500));
    let times = pair.data_times(RIGHT);
    assert_eq!(times.len(), 2, "no probe of the tail before RTO.Min: {times:?}");
    assert_eq!(times[1].since(times[0]), ms(1000));
    // A loss in the middle of a flight: retransmitted after the third report.
    let mut pair = beside(Preset::LiveRfc9260, &[10]);
    let mut lost = false;
    pair.script(move |sent| {
        let hit = sent.from == RIGHT && sent.data().next().is_some() && !lost;
        lost |= hit;
        if hit { Fate::Drop } else { Fate::Arrive }
    });
    send_full(&mut pair, RIGHT, 4);
    pair.run_for(ms(100));
    assert_eq!(pair.read[LEFT].len(), 4);
    let again = pair.log.iter().filter(|sent| sent.from == RIGHT).nth(4).expect("a fifth packet");
    let before = pair.log.iter().filter(|sent| sent.at <= again.at && sent.sack().is_some());
    assert_eq!(before.count(), 3);
}

/// A socket's end on the left that has sent SHUTDOWN, and the tag of packets to it.
fn shutting_down() -> (Pair, u32) {
    let (left, right) = (socket(Preset::Live, 2), standard(2));
    let mut pair = Pair::with(&left, &right, &[10, 10], [in_turn(), in_turn()]);
    pair.connect();
    pair.script(|_| Fate::Drop);
    let now = pair.now;
    pair.ends[LEFT].shutdown(now);
    pair.drain(LEFT);
    let tag = pair.ends[LEFT].tags().0;
    (pair, tag)
}

#[test]
fn any_packet_of_the_peer_restarts_t2_and_clears_its_count() {
    let (mut pair, tag) = shutting_down();
    // A packet arrives every second. Otherwise T2 would give up within a minute or two.
    for _ in 0..200 {
        pair.run_for(ms(1000));
        let error = Chunk::error(ErrorCause::OutOfResource);
        pair.inject(LEFT, 0, Packet::of(tag, error));
        let State::ShutdownSent { t2, .. } = pair.ends[LEFT].state() else {
            panic!("{:?}", pair.ends[LEFT].state())
        };
        assert_eq!(t2.count, 0);
    }
    // T5 ends the shutdown nevertheless.
    for _ in 0..120 {
        pair.run_for(ms(1000));
        pair.inject(LEFT, 0, Packet::of(tag, Chunk::error(ErrorCause::OutOfResource)));
    }
    assert_eq!(pair.closed(LEFT), Some(CloseReason::Aborted(AbortCause::User)));
}

#[test]
fn a_shutdown_is_answered_where_it_came_from_and_the_answer_tries_other_addresses_later() {
    let mut pair = beside(Preset::Live, &[10, 10]);
    let tag = pair.ends[RIGHT].tags().0;
    let last = Serial32(pair.ends[LEFT].peer_initial_tsn().expect("up").0.wrapping_sub(1));
    pair.script(|_| Fate::Drop);
    // The peer has given up its first address, which is still active here.
    pair.inject(RIGHT, 1, Packet::of(tag, Chunk::Shutdown(last)));
    pair.inject(RIGHT, 1, Packet::of(tag, Chunk::Shutdown(last)));
    pair.run_for(ms(3000));
    let paths: Vec<_> = (pair.log.iter().filter(|sent| sent.names() == ["SHUTDOWN ACK"]))
        .map(|sent| sent.path)
        .collect();
    assert_eq!(paths[..3], [1, 1, 0], "for each SHUTDOWN, and then by timer: {paths:?}");
}

#[test]
fn an_abort_says_why_and_the_peers_user_can_read_it() {
    let mut pair = beside(Preset::Live, &[10]);
    pair.ends[RIGHT].abort_because(b"disk full\x1b[2J\xff\0");
    pair.drain(RIGHT);
    pair.run_for(ms(20));
    assert_eq!(pair.closed(LEFT), Some(CloseReason::AbortedByPeer(AbortCause::User)));
    let reason = pair.ends[LEFT].peer_abort_reason().expect("it said why");
    assert_eq!(reason, b"disk full\x1b[2J\xff\0".as_slice());
    // However long, it fits into one packet.
    let mut pair = beside(Preset::Live, &[10]);
    pair.ends[RIGHT].abort_because(&[b'x'; 60_000]);
    pair.drain(RIGHT);
    assert_eq!(pair.count(RIGHT, "ABORT"), 1);
    assert!(pair.log.iter().all(|sent| sent.packet.wire_len() < 576));
}

#[test]
fn bulk_both_ways_with_losses_arrives_whole_under_either_profile() {
    for preset in SOCKETS {
        let mut pair = beside(preset, &[10, 30]);
        let mut count = 0u32;
        pair.script(move |_| {
            count += 1;
            if count.is_multiple_of(17) { Fate::Drop } else { Fate::Arrive }
        });
        for _ in 0..40 {
            send_full(&mut pair, RIGHT, 10);
            pair.send(LEFT, 4000);
            pair.run_for(ms(100));
        }
        pair.run_for(ms(60_000));
        assert_eq!(pair.read_bytes(RIGHT), 40 * 4000, "{preset:?}");
        assert!(pair.ends[RIGHT].is_flushed() && pair.ends[LEFT].is_flushed(), "{preset:?}");
    }
}

/// An outage of all paths counts as one silence, regardless of the number of paths.
#[test]
fn an_outage_of_all_paths_ends_no_association_sooner_because_it_has_more_paths() {
    for paths in 1..=5 {
        let mut pair = Pair::up(&socket(Preset::Live, paths), &vec![10; paths]);
        pair.send_full(LEFT, 400);
        pair.run_for(ms(20));
        pair.script(|_| Fate::Drop);
        pair.run_for(ms(5000));
        assert_eq!(pair.closed(LEFT), None, "{paths} paths");
        pair.heal();
        pair.run_for(ms(10_000));
        assert!(pair.ends[LEFT].is_flushed(), "{paths} paths");
        pair.script(|_| Fate::Drop);
        pair.send_full(LEFT, 4);
        pair.run_for(ms(3_600_000));
        assert!(pair.closed(LEFT).is_some(), "{paths} paths: a peer that is gone is noticed");
    }
}
