//! Fragments, bundles, streams and order (RFC 9260, 6.5, 6.6, 6.9, 6.10).

use ropewalk_base::{Seed, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{Association, Chunk, Config, Event, PathConfig, Preset};

use crate::driver::{
    FULL, Fate, LEFT, Pair, RIGHT, Sent, as_published, config, in_turn, ms, numbered,
};

#[test]
pub fn messages_of_any_size_come_out_as_they_went_in() {
    for mtu in [576, 1500, 9000] {
        let path = PathConfig { mtu, ..PathConfig::default() };
        let settings = Config::preset(Preset::Rfc9260, vec![path; 2], 1 << 20);
        let mut pair = Pair::up(&settings, &[5, 20]);
        let limit = mtu - 48;
        let sizes =
            [1, 2, 3, 4, 5, limit - 1, limit, limit + 1, 2 * limit, 2 * limit + 3, 10 * mtu];
        let sent: Vec<_> = sizes.iter().map(|s| numbered(*s, *s)).collect();
        for payload in &sent {
            pair.send_on(LEFT, 0, payload.clone(), false);
        }
        pair.run_for(ms(5000));
        let read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.clone()).collect();
        assert_eq!(read, sent, "MTU {mtu}");
        assert!(pair.log.iter().all(|s| s.packet.wire_len() + 20 <= mtu), "MTU {mtu}");
    }
}

#[test]
pub fn small_messages_travel_together_and_large_ones_are_cut() {
    let mut pair = Pair::up(&as_published(1, 1 << 20), &[10]);
    for _ in 0..20 {
        pair.queue(LEFT, 0, Payload::Length(100), false);
    }
    pair.drain(LEFT);
    // 116 B each with header: twelve per packet of 1468 B.
    let chunks: Vec<_> = pair.log.iter().map(|s| s.data().count()).collect();
    assert_eq!(chunks, [12, 8]);
    pair.run_for(ms(500));
    pair.log.clear();
    pair.send(LEFT, 3 * FULL);
    let flags: Vec<_> =
        pair.log.iter().flat_map(Sent::data).map(|d| (d.flags.bits(), d.payload.len())).collect();
    assert_eq!(flags, [(2, FULL), (0, FULL), (1, FULL)]);
    assert!(pair.log.iter().flat_map(Sent::data).all(|d| d.ssn.0 == 20), "one number for all");
}

#[test]
pub fn a_hole_in_one_stream_holds_up_no_other() {
    let mut settings = as_published(1, 1 << 20);
    settings.streams = 3;
    let mut pair = Pair::up(&settings, &[10]);
    let mut lost = false;
    pair.script(move |sent| {
        let hit = !lost && sent.data().any(|d| d.stream.0 == 1);
        lost |= hit;
        if hit { Fate::Drop } else { Fate::Arrive }
    });
    for stream in [0, 1, 2, 1] {
        pair.send_on(LEFT, stream, numbered(FULL, u32::from(stream)), false);
    }
    pair.run_for(ms(100));
    let streams: Vec<_> = pair.read[RIGHT].iter().map(|m| m.stream.0).collect();
    assert_eq!(streams, [0, 2], "stream 1 waits for its first message");
    pair.run_for(ms(3000));
    let streams: Vec<_> = pair.read[RIGHT].iter().map(|m| m.stream.0).collect();
    assert_eq!(streams, [0, 2, 1, 1]);
}

#[test]
pub fn unordered_messages_pass_a_hole_and_fragments_of_both_kinds_mix() {
    let mut pair = Pair::up(&as_published(1, 1 << 20), &[10]);
    let mut first = true;
    pair.script(move |sent| {
        let hit = std::mem::take(&mut first) && sent.data().next().is_some();
        if hit { Fate::Drop } else { Fate::Arrive }
    });
    pair.queue(LEFT, 0, numbered(FULL, 1), false);
    pair.queue(LEFT, 0, numbered(2 * FULL, 2), true);
    pair.drain(LEFT);
    pair.run_for(ms(60));
    assert_eq!(pair.read[RIGHT].len(), 1, "the unordered message waits for nobody");
    assert_eq!(pair.read[RIGHT][0].payload, numbered(2 * FULL, 2));
    pair.send_on(LEFT, 0, numbered(3 * FULL, 3), false);
    pair.send_on(LEFT, 0, numbered(50, 4), true);
    pair.run_for(ms(3000));
    let read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.clone()).collect();
    assert_eq!(read.len(), 4);
    assert_eq!(
        read.iter().position(|p| *p == numbered(FULL, 1)).map(|i| i + 1),
        read.iter().position(|p| *p == numbered(3 * FULL, 3)),
        "ordered messages keep their order"
    );
}

#[test]
pub fn sixteen_bits_of_stream_sequence_wrap_without_a_seam() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[1]);
    let mut sent = 0u32;
    while sent < 70_000 {
        while pair.ends[LEFT].send_room() > 0 && sent < 70_000 {
            pair.queue(LEFT, 0, Payload::Length(1 + sent % 7), false);
            sent += 1;
        }
        pair.drain(LEFT);
        pair.run_for(ms(50));
        pair.log.clear();
    }
    pair.run_for(ms(5000));
    let sizes: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.len()).collect();
    assert_eq!(sizes.len(), 70_000);
    assert!(sizes.iter().enumerate().all(|(i, size)| *size == 1 + i as u32 % 7));
}

#[test]
pub fn very_many_small_messages_wait_for_one_hole_and_none_is_forgotten() {
    let mut settings = config(1, 2 << 20);
    settings.initial_window = Some(4 << 20);
    settings.max_burst = 0;
    settings.send_buffer = 4 << 20;
    let mut pair = Pair::up(&settings, &[50]);
    let mut first = true;
    pair.script(move |sent| {
        let data = sent.data().next().is_some();
        if data && std::mem::take(&mut first) { Fate::Drop } else { Fate::Arrive }
    });
    for _ in 0..70_000 {
        pair.queue(LEFT, 0, Payload::Length(4), false);
    }
    pair.drain(LEFT);
    // At most half of the stream's numbers, which wrap at 65 536, are outstanding at any time.
    let sent: usize = pair.log.iter().map(|s| s.data().count()).sum();
    assert_eq!(sent, 32_767);
    pair.run_for(ms(20_000));
    assert_eq!(pair.read[RIGHT].len(), 70_000);
    assert_eq!(pair.closed(LEFT), None::<CloseReason>);
}

#[test]
fn little_waits_unsent_where_that_is_asked_for_and_the_path_is_nearly_as_busy() {
    let bytes_read = |limit: Option<u64>| {
        let mut settings = config(1, 1 << 20);
        settings.unsent_limit = limit;
        let mut pair = Pair::up(&settings, &[20]);
        let fill = |pair: &mut Pair| {
            let mut pushed = 0;
            while pair.ends[LEFT].send_room() > 0 {
                pair.queue(LEFT, 0, Payload::Length(FULL), false);
                pushed += u64::from(FULL);
            }
            pushed
        };
        // Queued messages that have not been sent are unsent data. Initially that is all of them.
        let first = fill(&mut pair);
        if let Some(limit) = limit {
            let window = pair.view(LEFT, 0).cwnd;
            assert!(first < limit.max(window) + u64::from(FULL), "{first} wait");
        }
        pair.drain(LEFT);
        for _ in 0..1000 {
            fill(&mut pair);
            pair.drain(LEFT);
            pair.run_for(ms(1));
        }
        pair.read_bytes(RIGHT)
    };
    let (limited, free) = (bytes_read(Some(8000)), bytes_read(None));
    // The application checks once per millisecond, so it is late when a full window is acknowledged by
    // one SACK.
    assert!(limited > free * 8 / 10, "{limited} bytes instead of {free}");
}

#[test]
fn who_found_no_room_is_told_as_soon_as_some_data_has_left() {
    let mut settings = config(1, 1 << 20);
    settings.unsent_limit = Some(8000);
    let mut pair = Pair::up(&settings, &[20]);
    let end = &mut pair.ends[LEFT];
    while end.send(StreamId(0), Payload::Length(FULL), false).is_ok() {}
    while end.poll_event().is_some() {}
    assert!(end.poll_transmit(Time::ZERO + ms(100)).is_some());
    while end.poll_transmit(Time::ZERO + ms(100)).is_some() {}
    let told = std::iter::from_fn(|| end.poll_event()).any(|event| event == Event::Writable);
    assert!(told, "no acknowledgement has come, but there is room");
}

#[test]
pub fn sending_alone_is_an_occasion_for_a_burst() {
    let mut settings = config(1, 1 << 20);
    settings.initial_window = Some(1 << 20);
    let mut pair = Pair::up(&settings, &[100]);
    for sent in 1..=20 {
        // Nothing arrives and no timer expires in between.
        pair.send_full(LEFT, 1);
        assert_eq!(pair.log.len(), sent, "one packet for each message");
    }
    pair.send_full(LEFT, 20);
    assert_eq!(pair.log.len(), 20 + 4, "Max.Burst for what is queued at once");
}

#[test]
fn redundant_copies_are_delivered_exactly_once_even_where_some_are_lost() {
    for losses in [0, 3, 2] {
        let settings = config(3, 1 << 20);
        let redundant = || crate::driver::scheduler("redundant");
        let delays = [10, 35, 80];
        let mut pair = Pair::with(&settings, &settings, &delays, [redundant(), redundant()]);
        pair.connect();
        let mut count = 0;
        pair.script(move |sent| {
            count += usize::from(sent.data().next().is_some());
            let hit = losses > 0 && sent.data().next().is_some() && count % losses == 0;
            if hit { Fate::Drop } else { Fate::Arrive }
        });
        let messages: Vec<_> = (0..60).map(|i| numbered(FULL, i)).collect();
        for message in &messages {
            pair.send_on(LEFT, 0, message.clone(), false);
        }
        pair.run_until(Time::from_secs(200));
        let read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.clone()).collect();
        assert!(read == messages, "every {losses}th lost: {} read", read.len());
        assert!(pair.ends[LEFT].is_flushed());
        let flying: u64 = (0..3).map(|p| pair.view(LEFT, p).in_flight).sum();
        assert_eq!(flying, 0);
    }
}

#[test]
pub fn a_stream_that_the_peer_does_not_have_ends_nothing() {
    let (mut left, right) = (config(1, 65_536), config(1, 65_536));
    left.streams = 4;
    let round_robin = || crate::driver::scheduler("round-robin");
    let mut pair = Pair::with(&left, &right, &[10], [round_robin(), round_robin()]);
    pair.connect();
    // RFC 9260, 5.1.1: the smaller of the requested and the allowed number.
    let taken = pair.ends[LEFT].send(StreamId(3), Payload::Length(10), false);
    pair.drain(LEFT);
    pair.run_for(ms(500));
    assert_eq!(pair.closed(LEFT), None::<CloseReason>, "sending on it was {taken:?}");
    assert!(taken.is_err());
    assert!(
        !pair.log.iter().any(|s| s.packet.chunks.iter().any(|c| matches!(c, Chunk::Abort { .. })))
    );
}

#[test]
pub fn tsns_wrap_in_the_midst_of_losses_without_a_seam() {
    // A seed whose first TSN is 8005 below the wrap-around.
    let seed = Seed::root(168_661);
    let settings = config(2, 65_536);
    let opener = Association::connect(settings.clone(), in_turn(), seed.child("left"), Time::ZERO);
    let listener = Association::listen(settings, in_turn(), seed.child("right"));
    let mut pair = Pair::of(opener, listener, &[10, 35]);
    pair.drain(LEFT);
    let Chunk::Init(init) = &pair.log[0].packet.chunks[0] else { panic!("no INIT") };
    let first = init.initial_tsn.0;
    assert!(first > u32::MAX - 10_000, "the seed no longer gives a TSN near the wrap: {first}");
    pair.connect();
    let mut count = 0u32;
    pair.script(move |sent| {
        count += 1;
        if count.is_multiple_of(37) && !sent.packet.chunks.is_empty() {
            Fate::Drop
        } else {
            Fate::Arrive
        }
    });
    let mut sent = 0;
    while sent < 16_000 {
        while pair.ends[LEFT].send_room() > 0 && sent < 16_000 {
            pair.queue(LEFT, 0, numbered(300 + sent % 5, sent), false);
            sent += 1;
        }
        pair.drain(LEFT);
        pair.run_for(ms(100));
        pair.log.clear();
    }
    pair.run_for(ms(60_000));
    assert_eq!(pair.read[RIGHT].len(), 16_000);
    for (i, message) in (0..).zip(&pair.read[RIGHT]) {
        assert_eq!(message.payload, numbered(300 + i % 5, i), "message {i}");
    }
    assert!(pair.ends[LEFT].is_flushed());
}
