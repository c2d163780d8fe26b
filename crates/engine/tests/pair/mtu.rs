//! Path MTU discovery (RFC 8899): paths that silently drop packets above their MTU.

use std::cell::RefCell;
use std::rc::Rc;

use ropewalk_base::{PathId, Serial16, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::path::{MtuRange, PathStatus};
use ropewalk_engine::sctp::association::PacketSize;
use ropewalk_engine::sctp::{
    Chunk, Config, Data, DataFlags, DataFragment, Event, ExtensionChunk, Extensions, Negotiation,
    Packet, PacketForm, PathConfig, Preset,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, Sent, at_ms, config, in_turn, ms, numbered};

/// As on real paths, with probes up to 9000 B.
fn live(paths: usize) -> Config {
    let mut settings = Config::preset(Preset::Live, vec![PathConfig::default(); paths], 4 << 20);
    settings.mtu_discovery = Some(MtuRange { least: 576, base: 1280, most: 9000 });
    settings.cmt.concurrent = true;
    settings
}

/// The MTU of each path, and whether it fragments packets if permitted.
#[derive(Clone)]
struct Wires {
    mtus: Rc<RefCell<Vec<u32>>>,
    cuts: bool,
}

impl Wires {
    fn new(mtus: &[u32]) -> Self {
        Self { mtus: Rc::new(RefCell::new(mtus.to_vec())), cuts: false }
    }

    fn set(&self, path: usize, mtu: u32) {
        self.mtus.borrow_mut()[path] = mtu;
    }

    fn fate(&self, sent: &Sent) -> Fate {
        let whole = self.cuts && sent.size == PacketSize::TooLong;
        let fits = bytes(sent) <= self.mtus.borrow()[sent.path];
        if fits || whole { Fate::Arrive } else { Fate::Drop }
    }
}

/// Bytes of an IP packet.
fn bytes(sent: &Sent) -> u32 {
    sent.packet.wire_len_in(PacketForm::Compact) + Preset::LIVE_LOWER_HEADER
}

fn pair(settings: &Config, delays: &[u64], wires: &Wires) -> Pair {
    let mut pair = Pair::with(settings, settings, delays, [in_turn(), in_turn()]);
    let wires = wires.clone();
    pair.script(move |sent| wires.fate(sent));
    pair.connect();
    pair
}

fn probes(pair: &Pair, end: usize) -> Vec<&Sent> {
    let probe = |sent: &&Sent| sent.from == end && sent.size == PacketSize::Probe;
    pair.log.iter().filter(probe).collect()
}

fn mtu(pair: &Pair, path: usize) -> u32 {
    pair.ends[LEFT].path_mtu(PathId::from_index(path))
}

/// Sends a message of `size` bytes every `gap_ms`, until `end_ms`. All must arrive unchanged.
fn talk(pair: &mut Pair, size: u32, gap_ms: u64, end_ms: u64) {
    let before = pair.read[RIGHT].len();
    let mut count = 0;
    while pair.now < at_ms(end_ms) {
        pair.send_on(LEFT, 0, numbered(size, count), false);
        count += 1;
        pair.run_for(ms(gap_ms));
    }
    pair.run_for(ms(4000));
    assert!(pair.ends[LEFT].is_flushed(), "still on its way: {:?}", pair.counters(LEFT));
    assert_eq!(pair.closed(LEFT), None);
    let read: Vec<_> = pair.read[RIGHT][before..].iter().map(|one| one.payload.clone()).collect();
    let sent: Vec<_> = (0..count).map(|salt| numbered(size, salt)).collect();
    assert!(read == sent, "{} of {} messages, or other ones", read.len(), sent.len());
}

#[test]
fn probes_leave_alone_and_what_most_paths_carry_is_known_after_a_round_trip() {
    let wires = Wires::new(&[1500]);
    let mut pair = Pair::with(&live(1), &live(1), &[10], [in_turn(), in_turn()]);
    let script = wires.clone();
    pair.script(move |sent| script.fate(sent));
    // INIT, INIT ACK, COOKIE ECHO, COOKIE ACK: the answers arrive with the last of them.
    pair.run_until(at_ms(40));
    assert_eq!((mtu(&pair, 0), pair.events[LEFT][0].1), (1500, Event::Connected));
    assert_eq!(pair.events[LEFT][0].0, at_ms(40));
    pair.run_until(at_ms(60));
    assert_eq!(pair.ends[RIGHT].path_mtu(PathId(0)), 1500);
    for end in [LEFT, RIGHT] {
        let probes = probes(&pair, end);
        let sizes: Vec<u32> = probes.iter().map(|sent| bytes(sent)).collect();
        assert_eq!(sizes[..3], [9000, 1500, 1280], "end {end}");
        assert!(probes.iter().all(|sent| sent.names() == ["HEARTBEAT", "of an extension"]));
    }
    talk(&mut pair, 20_000, 10, 1_000);
    let full = pair.log.iter().filter(|sent| sent.data().next().is_some() && bytes(sent) == 1497);
    assert!(full.count() > 1_000);
}

#[test]
fn an_address_that_has_not_answered_a_heartbeat_gets_no_probes() {
    let wires = Wires::new(&[1500]);
    let mut pair = pair(&live(1), &[10], &wires);
    talk(&mut pair, 3000, 10, 1_000);
    pair.log.clear();
    pair.script(|sent| if sent.from == LEFT { Fate::Drop } else { Fate::Arrive });
    let now = pair.now;
    pair.ends[LEFT].validate_path(now, PathId(0));
    pair.drain(LEFT);
    pair.run_for(ms(3_000));
    assert!(pair.count(LEFT, "HEARTBEAT") > 0);
    let largest = pair.log.iter().filter(|sent| sent.from == LEFT).map(bytes).max();
    assert!(probes(&pair, LEFT).is_empty() && largest < Some(120), "{largest:?} B");
    // Once it answers, the search starts again.
    let script = wires.clone();
    pair.script(move |sent| script.fate(sent));
    let end = pair.now + ms(10_000);
    pair.run_until(end);
    assert_eq!(mtu(&pair, 0), 1500);
}

#[test]
fn a_search_in_vain_costs_a_path_nothing() {
    let wires = Wires::new(&[1400, 9000]);
    let mut pair = pair(&live(2), &[10, 15], &wires);
    let before = [0, 1].map(|path| pair.view(LEFT, path));
    pair.events[LEFT].clear();
    pair.run_until(Time::from_secs(29));
    assert!(probes(&pair, LEFT).iter().filter(|sent| sent.fate == Fate::Drop).count() >= 9);
    assert_eq!(pair.events[LEFT], []);
    for (path, before) in before.into_iter().enumerate() {
        let now = pair.view(LEFT, path);
        assert_eq!((now.cwnd, now.srtt, now.loss), (before.cwnd, before.srtt, before.loss));
        assert_eq!(pair.ends[LEFT].path_status(PathId::from_index(path)), PathStatus::Active);
    }
    assert!((1384..=1400).contains(&mtu(&pair, 0)) && mtu(&pair, 1) == 9000);
    // A message that fits on both paths.
    let payload = pair.ends[LEFT].largest_payload();
    let room = mtu(&pair, 0) - Preset::LIVE_LOWER_HEADER;
    assert_eq!(payload, room / 4 * 4 - 16);
    assert_eq!(pair.ends[LEFT].largest_datagram(), room - 3);
}

#[test]
fn everything_arrives_whatever_the_paths_carry() {
    for mtus in [[1280, 1500], [1400, 1400], [1500, 1300], [600, 1500], [9000, 9000]] {
        for size in [40, 1_000, 1_410, 30_000] {
            let wires = Wires::new(&mtus);
            let mut pair = pair(&live(2), &[10, 15], &wires);
            talk(&mut pair, size, 5, 6_000);
            let long = |sent: &&Sent| sent.fate == Fate::Drop && sent.size != PacketSize::Probe;
            let lost = pair.log.iter().filter(long).count();
            // On a path of 600 B the base size is too large, which takes three probes to detect.
            assert!(lost == 0 || mtus[0] < 1280, "{mtus:?}, {size} B: {lost} lost");
        }
    }
}

#[test]
fn a_path_that_carries_less_of_a_sudden_is_found_out_and_what_was_cut_for_more_goes_in_pieces() {
    for (before, after) in [(1500, 1300), (1500, 1280), (9000, 1500), (1500, 1000)] {
        let wires = Wires::new(&[before]);
        let mut pair = pair(&live(1), &[10], &wires);
        pair.run_for(ms(500));
        for salt in 0..40 {
            pair.queue(LEFT, 0, numbered(30_000, salt), false);
        }
        pair.drain(LEFT);
        pair.run_for(ms(35));
        wires.set(0, after);
        let start = pair.now;
        let done = |pair: &Pair| pair.ends[LEFT].is_flushed();
        while !done(&pair) && pair.now < start + ms(20_000) {
            pair.run_for(ms(50));
        }
        let took = pair.now.since(start);
        let limit = if after < 1280 { 16_000 } else { 6_000 };
        assert!(took < ms(limit), "{before} to {after}: {took}, at {} B", mtu(&pair, 0));
        assert!(mtu(&pair, 0) <= after, "{before} to {after}: {} B", mtu(&pair, 0));
        let sent: Vec<_> = (0..40).map(|salt| numbered(30_000, salt)).collect();
        let read: Vec<_> = pair.read[RIGHT].iter().map(|one| one.payload.clone()).collect();
        assert!(read == sent, "{before} to {after}");
        let piece = |chunk: &Chunk| matches!(chunk, Chunk::Extension(rare) if matches!(**rare, ExtensionChunk::DataFragment(_)));
        let pieces = pair.log.iter().filter(|sent| sent.packet.chunks.iter().any(piece));
        assert!(pieces.count() > 1, "{before} to {after}");
        assert_eq!(pair.closed(LEFT), None);
    }
}

#[test]
fn for_a_peer_that_knows_no_pieces_ip_has_to_cut() {
    let mut settings = live(1);
    settings.negotiation = Negotiation::Listed(Extensions::DELAY);
    let wires = Wires { cuts: true, ..Wires::new(&[1500]) };
    let mut pair = pair(&settings, &[10], &wires);
    pair.run_for(ms(500));
    for salt in 0..20 {
        pair.queue(LEFT, 0, numbered(30_000, salt), false);
    }
    pair.drain(LEFT);
    pair.run_for(ms(35));
    wires.set(0, 1300);
    pair.run_for(ms(8_000));
    assert!(pair.ends[LEFT].is_flushed());
    assert_eq!(pair.read_bytes(RIGHT), 600_000);
    assert!(pair.log.iter().any(|sent| sent.size == PacketSize::TooLong));
}

#[test]
fn what_is_too_long_for_one_path_goes_by_another_that_carries_it() {
    let wires = Wires::new(&[1500, 1500]);
    let mut pair = pair(&live(2), &[10, 10], &wires);
    pair.run_for(ms(500));
    wires.set(0, 1300);
    talk(&mut pair, 20_000, 10, 4_000);
    assert!(mtu(&pair, 0) <= 1300 && mtu(&pair, 1) == 1500);
    let whole = |sent: &&Sent| sent.size != PacketSize::Probe && bytes(sent) > 1300;
    let vanished = pair.log.iter().filter(|sent| sent.fate == Fate::Drop).filter(whole).count();
    let piece = |sent: &&Sent| sent.names().contains(&"of an extension");
    let pieces = pair.log.iter().filter(|sent| sent.size == PacketSize::Usual).filter(piece);
    assert!(vanished > 0);
    assert_eq!(pieces.count(), 0, "the other path takes what was lost as it is");
    // From now on chunks fit on both paths, and packets are filled according to the room of each path.
    pair.log.clear();
    talk(&mut pair, 20_000, 10, 10_000);
    let data = |path: usize| {
        pair.log.iter().filter(move |sent| sent.path == path && sent.data().next().is_some())
    };
    assert!(data(0).count() > 100 && data(1).count() > 100);
    assert!(data(0).all(|sent| bytes(sent) <= 1300));
    let chunks = || data(0).chain(data(1)).flat_map(Sent::data);
    assert!(chunks().all(|chunk| chunk.payload.len() <= pair.ends[LEFT].largest_payload()));
    assert!(data(1).filter(|sent| bytes(sent) > 1400).count() > 100);
}

#[test]
fn a_path_carries_no_data_before_something_is_known_of_it_if_another_can() {
    let wires = Wires::new(&[1500, 1500]);
    let mut pair = pair(&live(1), &[10, 50], &wires);
    pair.run_for(ms(100));
    for end in [LEFT, RIGHT] {
        let now = pair.now;
        pair.ends[end].add_path(now, PathConfig::default()).expect("room for one more");
    }
    pair.log.clear();
    talk(&mut pair, 20_000, 10, 1_500);
    let full = pair.log.iter().filter(|sent| sent.from == LEFT && sent.data().next().is_some());
    let smallest = full.clone().filter(|sent| bytes(sent) > 1200).map(bytes).min();
    assert_eq!(smallest, Some(1497), "never cut for the base");
    assert!(full.filter(|sent| sent.path == 1).count() > 10);
}

#[test]
fn what_the_system_refuses_is_a_failed_probe_and_no_failed_path() {
    let wires = Wires::new(&[1500]);
    let mut pair = pair(&live(1), &[10], &wires);
    let now = pair.now;
    pair.ends[LEFT].packet_too_long(now, PathId(0), 9000);
    assert_eq!(mtu(&pair, 0), 1500);
    // The MTU of the interface decreases.
    wires.set(0, 1400);
    pair.ends[LEFT].packet_too_long(now, PathId(0), 1498);
    pair.drain(LEFT);
    assert_eq!(mtu(&pair, 0), 1280);
    pair.run_for(ms(20_000));
    assert!((1384..=1400).contains(&mtu(&pair, 0)), "{}", mtu(&pair, 0));
    // Even below the base size.
    let now = pair.now;
    pair.ends[LEFT].packet_too_long(now, PathId(0), 1000);
    wires.set(0, 900);
    talk(&mut pair, 2_000, 50, 40_000);
    assert_eq!(mtu(&pair, 0), 576);
    assert_eq!(pair.ends[LEFT].path_status(PathId(0)), PathStatus::Active);
}

#[test]
fn only_who_asks_for_it_probes() {
    for preset in [Preset::Rfc9260, Preset::Paper2013] {
        let settings = Config::preset(preset, vec![PathConfig::default(); 2], 1 << 20);
        assert_eq!(settings.mtu_discovery, None);
    }
    let mut pair = Pair::up(&config(2, 1 << 20), &[10, 10]);
    pair.send_full(LEFT, 10);
    pair.run_for(ms(60_000));
    assert!(pair.log.iter().all(|sent| sent.size == PacketSize::Usual));
}

/// A piece of `size` bytes of a message of `total`, `after` chunks beyond the expected one.
fn piece(after: u32, offset: u16, size: u32, total: u16) -> impl FnOnce(Serial32) -> Packet {
    move |awaited: Serial32| {
        let part = Data {
            tsn: Serial32(awaited.0.wrapping_add(after)),
            stream: StreamId(0),
            ssn: Serial16(0),
            ppid: 0,
            flags: DataFlags::WHOLE,
            payload: Payload::Length(size),
            message_high: 0,
            first_sent: Time::ZERO,
        };
        let piece = DataFragment { part, offset, total };
        Packet::of(0, Chunk::Extension(Box::new(ExtensionChunk::DataFragment(piece))))
    }
}

#[test]
fn pieces_that_make_no_chunk_are_forgotten_and_those_that_do_are_one() {
    let wires = Wires::new(&[1500]);
    let mut pair = pair(&live(1), &[10], &wires);
    let first = pair.ends[RIGHT].peer_initial_tsn().expect("known");
    let tag = pair.ends[RIGHT].tags().0;
    let give = |pair: &mut Pair, packet: Packet| {
        pair.inject(RIGHT, 0, Packet { tag, ..packet });
    };
    // Beyond its end, without an end, empty, far away.
    for wrong in
        [piece(0, 10, 10, 15), piece(0, 0, 8, 0), piece(0, 0, 0, 8), piece(1 << 30, 0, 8, 8)]
    {
        give(&mut pair, wrong(first));
    }
    // Far more than is kept.
    for after in 1..2_000 {
        give(&mut pair, piece(after, 0, 1_000, 2_000)(first));
    }
    assert_eq!(pair.ends[RIGHT].receive_occupancy().0, 0, "nothing is a chunk");
    assert_eq!(pair.closed(RIGHT), None);
    // The kept pieces fill all the room, so that this chunk must arrive complete.
    pair.send(LEFT, 300);
    pair.run_for(ms(1_000));
    assert_eq!(pair.read_bytes(RIGHT), 300);
    assert!(pair.ends[LEFT].is_flushed());
}

#[test]
fn pieces_may_overlap_and_come_in_any_order() {
    let wires = Wires::new(&[1500]);
    let mut pair = pair(&live(1), &[10], &wires);
    let first = pair.ends[RIGHT].peer_initial_tsn().expect("known");
    let tag = pair.ends[RIGHT].tags().0;
    // Cut at 400 the first time, and the first half was lost; cut at 600 the second time.
    for make in [piece(0, 400, 600, 1_000), piece(0, 600, 400, 1_000), piece(0, 0, 600, 1_000)] {
        assert_eq!(pair.read_bytes(RIGHT), 0);
        pair.inject(RIGHT, 0, Packet { tag, ..make(first) });
    }
    assert_eq!(pair.read_bytes(RIGHT), 1_000);
}
