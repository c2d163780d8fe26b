//! Interleaving of messages and stream schedulers (RFC 8260).

use ropewalk_base::{Duration, PathId, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{
    AbortCause, Chunk, Config, Copies, Delivery, Event, ExtensionChunk, Extensions, Negotiation,
    PacketForm, Part, StreamScheduler, Urgency,
};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, config, in_turn, ms, numbered};

/// User data of a full I-DATA chunk on paths of 1500 B.
const FULL_I: u32 = FULL - 4;

fn interleaving(streams: u16, scheduler: StreamScheduler) -> Config {
    Config {
        streams,
        interleaving: true,
        stream_scheduler: scheduler,
        initial_window: Some(3 * 1468),
        ..config(1, 1 << 20)
    }
}

fn pair(config: &Config) -> Pair {
    let mut pair = Pair::up(config, &[50]);
    pair.log.clear();
    pair
}

/// The stream of each DATA or I-DATA chunk that was sent, in order.
fn streams_sent(pair: &Pair) -> Vec<u16> {
    pair.log.iter().filter(|s| s.from == LEFT).flat_map(|s| s.data()).map(|d| d.stream.0).collect()
}

/// When the user of the right end read a message of this length, ms after `since`.
fn read_after(pair: &Pair, since: ropewalk_base::Time, length: u32) -> u64 {
    let at = pair.read[RIGHT].iter().position(|m| m.payload.len() == length).expect("it came");
    pair.read_at[RIGHT][at].since(since).as_nanos() / 1_000_000
}

#[test]
fn messages_are_interleaved_if_both_ends_list_it_and_otherwise_not() {
    let plain = config(1, 1 << 16);
    let on = Config { interleaving: true, ..plain.clone() };
    let listed =
        |config: &Config, ours| Config { negotiation: Negotiation::Listed(ours), ..config.clone() };
    let all = Extensions::OFFERED;
    for (left, right, agreed, partial) in [
        (&on, &on, true, true),
        (&on, &plain, false, true),
        (&plain, &on, false, true),
        (&listed(&on, all), &listed(&on, all), true, true),
        (&listed(&on, all), &listed(&plain, all), false, true),
        (&listed(&on, all), &listed(&on, Extensions::NONE), true, false),
        (&listed(&on, Extensions::NONE), &listed(&on, Extensions::NONE), true, false),
    ] {
        let mut pair = Pair::with(left, right, &[10], [in_turn(), in_turn()]);
        pair.connect();
        for end in [LEFT, RIGHT] {
            assert_eq!(pair.ends[end].interleaves(), agreed);
            assert_eq!(pair.ends[end].abandons_messages(), partial);
            pair.send_on(end, 0, numbered(5_000, 1), false);
        }
        pair.run_for(Duration::from_secs(2));
        for end in [LEFT, RIGHT] {
            assert_eq!(pair.read[end][0].payload, numbered(5_000, 1));
            assert_eq!(pair.count(end, "I-DATA") > 0, agreed);
            assert_eq!(pair.count(end, "DATA") > 0, !agreed);
        }
    }
}

#[test]
fn a_short_message_overtakes_a_long_one_that_has_begun() {
    for (scheduler, overtakes) in [
        (StreamScheduler::FirstCome, false),
        (StreamScheduler::RoundRobin, true),
        (StreamScheduler::RoundRobinPerPacket, true),
        (StreamScheduler::Priority, true),
        (StreamScheduler::FairCapacity, true),
        (StreamScheduler::WeightedFair, true),
    ] {
        for interleaving in [true, false] {
            let settings = Config { interleaving, ..self::interleaving(2, scheduler) };
            let mut pair = pair(&settings);
            let begun = pair.now;
            pair.send_on(LEFT, 0, numbered(200 * FULL, 1), false);
            pair.send_on(LEFT, 1, numbered(100, 2), false);
            pair.run_for(Duration::from_secs(5));
            let (long, short) =
                (read_after(&pair, begun, 200 * FULL), read_after(&pair, begun, 100));
            let expected = overtakes && interleaving;
            assert_eq!(short < long, expected, "{scheduler:?} {interleaving}: {short} of {long}");
            if expected {
                assert!(short <= 160, "{scheduler:?}: it waits for one window: {short} ms");
            }
            assert_eq!(pair.read[RIGHT].len(), 2);
        }
    }
}

#[test]
fn without_interleaving_streams_take_turns_after_whole_messages() {
    let settings = Config { interleaving: false, ..interleaving(3, StreamScheduler::RoundRobin) };
    let mut pair = pair(&settings);
    for stream in [0, 0, 0, 1, 1, 2] {
        pair.queue(LEFT, stream, Payload::Length(2 * FULL), false);
    }
    pair.drain(LEFT);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(streams_sent(&pair), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 0, 0]);
    assert_eq!(pair.count(LEFT, "DATA"), 12);
}

#[test]
fn a_packet_of_the_scheduler_per_packet_holds_chunks_of_one_stream() {
    for (scheduler, mixed) in
        [(StreamScheduler::RoundRobin, true), (StreamScheduler::RoundRobinPerPacket, false)]
    {
        let mut pair = pair(&interleaving(3, scheduler));
        for at in 0..60 {
            pair.queue(LEFT, at % 3, Payload::Length(100), false);
        }
        pair.drain(LEFT);
        pair.run_for(Duration::from_secs(2));
        let of_several = pair.log.iter().any(|sent| {
            sent.data().any(|data| sent.data().any(|other| other.stream != data.stream))
        });
        assert_eq!(of_several, mixed, "{scheduler:?}");
        assert_eq!(pair.read[RIGHT].len(), 60);
        let turns = streams_sent(&pair);
        assert!(turns.windows(2).any(|two| two[0] != two[1]), "streams take turns");
    }
}

#[test]
fn priorities_and_weights_share_the_capacity_as_they_say() {
    let mut pair = pair(&interleaving(4, StreamScheduler::Priority));
    for (stream, value) in [(0, 5), (1, 1), (2, 1), (3, 9)] {
        pair.ends[LEFT].set_stream_value(StreamId(stream), value).expect("it exists");
    }
    assert!(pair.ends[LEFT].set_stream_value(StreamId(4), 1).is_err());
    for stream in [3, 0, 1, 2] {
        pair.queue(LEFT, stream, Payload::Length(3 * FULL_I), false);
    }
    pair.drain(LEFT);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(streams_sent(&pair), [1, 2, 1, 2, 1, 2, 0, 0, 0, 3, 3, 3]);

    for (scheduler, shares) in
        [(StreamScheduler::WeightedFair, [3, 1]), (StreamScheduler::FairCapacity, [1, 1])]
    {
        let mut pair = self::pair(&interleaving(2, scheduler));
        pair.ends[LEFT].set_stream_value(StreamId(0), 3).expect("it exists");
        // Messages of different lengths, so that turns alone would not be fair.
        pair.queue(LEFT, 0, Payload::Length(100 * FULL_I), false);
        for _ in 0..400 {
            pair.queue(LEFT, 1, Payload::Length(300), false);
        }
        pair.drain(LEFT);
        pair.run_for(ms(450));
        let bytes = |stream| {
            let data = pair.log.iter().filter(|s| s.from == LEFT).flat_map(|s| s.data());
            data.filter(|d| d.stream.0 == stream).map(|d| u64::from(d.payload.len())).sum::<u64>()
        };
        let (one, other) = (bytes(0) * shares[1], bytes(1) * shares[0]);
        let apart = one.abs_diff(other);
        assert!(other > 30_000 && apart <= 2 * 1468 * shares[0], "{scheduler:?}: {one} {other}");
    }
}

#[test]
fn the_unsent_bytes_of_a_stream_are_those_that_were_queued_less_those_that_left() {
    for (_, scheduler) in StreamScheduler::ALL {
        let mut pair = pair(&interleaving(3, scheduler));
        let mut queued = [0u64; 3];
        for at in 0..90u16 {
            let (stream, length) = (at % 3, 1 + u32::from(at) * 37 % 4000);
            pair.queue(LEFT, stream, Payload::Length(length), at % 5 == 0);
            queued[usize::from(stream)] += u64::from(length);
        }
        pair.drain(LEFT);
        while !pair.ends[LEFT].is_flushed() {
            pair.run_for(ms(10));
            let chunks = pair.log.iter().filter(|sent| sent.from == LEFT).flat_map(|s| s.data());
            let mut left = queued;
            chunks.for_each(|d| left[usize::from(d.stream.0)] -= u64::from(d.payload.len()));
            let known = [0, 1, 2].map(|stream| pair.ends[LEFT].unsent_bytes_on(StreamId(stream)));
            assert_eq!(known, left, "{scheduler:?} at {}", pair.now);
        }
        assert_eq!([0, 1, 2].map(|s| pair.ends[LEFT].unsent_bytes_on(StreamId(s))), [0; 3]);
    }
}

#[test]
fn messages_that_expire_are_no_longer_unsent() {
    let mut pair = pair(&interleaving(2, StreamScheduler::WeightedFair));
    let delivery = Delivery { lifetime: Some(ms(60)), ..Delivery::RELIABLE };
    for at in 0..400 {
        let (now, stream) = (pair.now, StreamId(at % 2));
        let payload = Payload::Length(1000);
        let sent = pair.ends[LEFT].send_message(now, stream, 0, payload, delivery);
        sent.expect("there is room");
    }
    let both = |pair: &Pair| [0, 1].map(|s| pair.ends[LEFT].unsent_bytes_on(StreamId(s)));
    assert_eq!(both(&pair), [200_000; 2]);
    pair.drain(LEFT);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(both(&pair), [0; 2]);
    assert!(pair.read[RIGHT].len() < 100, "most have expired");
}

#[test]
fn a_stream_that_was_idle_gets_no_credit_for_that_time() {
    let mut pair = pair(&interleaving(2, StreamScheduler::FairCapacity));
    pair.queue(LEFT, 0, Payload::Length(400 * FULL_I), false);
    pair.drain(LEFT);
    pair.run_for(ms(500));
    let before = pair.log.len();
    pair.queue(LEFT, 1, Payload::Length(100 * FULL_I), false);
    pair.drain(LEFT);
    pair.run_for(ms(250));
    let data = pair.log[before..].iter().filter(|s| s.from == LEFT).flat_map(|s| s.data());
    let turns: Vec<u16> = data.map(|data| data.stream.0).collect();
    let longest = turns.chunk_by(|a, b| a == b).map(<[u16]>::len).max();
    assert!(turns.contains(&1) && longest <= Some(3), "{turns:?}");
}

#[test]
fn the_scheduler_can_change_while_messages_are_cut() {
    for interleaving in [true, false] {
        let settings =
            Config { interleaving, ..self::interleaving(4, StreamScheduler::RoundRobin) };
        let mut pair = pair(&settings);
        for salt in 0..40 {
            pair.queue(LEFT, (salt % 4) as u16, numbered(3_000 + salt * 100, salt), salt % 3 == 0);
        }
        pair.drain(LEFT);
        for (_, scheduler) in StreamScheduler::ALL.into_iter().chain(StreamScheduler::ALL) {
            pair.ends[LEFT].set_stream_scheduler(scheduler);
            pair.run_for(ms(60));
            assert_eq!(pair.ends[LEFT].stream_scheduler(), scheduler);
        }
        pair.run_for(Duration::from_secs(5));
        let mut read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.len()).collect();
        read.sort_unstable();
        assert_eq!(read, (0..40).map(|salt| 3_000 + salt * 100).collect::<Vec<_>>());
    }
}

#[test]
fn several_messages_longer_than_the_buffer_arrive_in_parts_at_the_same_time() {
    for unordered in [false, true] {
        let settings =
            Config { receive_buffer: 8 * 1468, ..interleaving(3, StreamScheduler::RoundRobin) };
        let mut pair = pair(&settings);
        for stream in 0..3 {
            let long = numbered(40 * FULL, u32::from(stream));
            pair.ends[LEFT]
                .send_with_ppid(StreamId(stream), 70 + u32::from(stream), long, unordered)
                .expect("room");
        }
        pair.drain(LEFT);
        pair.run_for(Duration::from_secs(20));
        for stream in 0..3 {
            let parts: Vec<_> =
                pair.read[RIGHT].iter().filter(|m| m.stream.0 == stream).cloned().collect();
            assert!(parts.len() > 2, "it does not fit");
            assert_eq!(parts[0].part, Part::First);
            assert_eq!(parts[parts.len() - 1].part, Part::Last);
            assert!(parts.iter().all(|m| m.ppid == 70 + u32::from(stream)));
            let whole: Vec<_> = parts.into_iter().map(|m| m.payload).collect();
            assert_eq!(Payload::concat(&whole), numbered(40 * FULL, stream.into()));
        }
    }
}

#[test]
fn a_long_message_that_is_given_up_does_not_take_others_with_it() {
    for (unordered, scheduler) in [
        (false, StreamScheduler::RoundRobin),
        (true, StreamScheduler::RoundRobin),
        (false, StreamScheduler::FirstCome),
        (true, StreamScheduler::Priority),
    ] {
        let mut pair = pair(&interleaving(3, scheduler));
        let mut lost = false;
        pair.script(move |sent| {
            let hit = !lost && sent.data().any(|d| d.stream.0 == 0 && d.fragment() == 2);
            lost |= hit;
            if hit { Fate::Drop } else { Fate::Arrive }
        });
        let limited = Delivery {
            lifetime: Some(ms(180)),
            retransmissions: Some(0),
            priority: None,
            ordered: !unordered,
            urgency: Urgency::Bulk,
            copies: Copies::One,
            immediate: false,
            exceeds_buffer: false,
            context: 0,
        };
        let now = pair.now;
        let long = numbered(300 * FULL, 1);
        pair.ends[LEFT].send_message(now, StreamId(0), 0, long, limited).expect("room");
        for salt in 2..12 {
            pair.send_on(LEFT, 1 + (salt % 2) as u16, numbered(3_000, salt), false);
        }
        pair.run_for(Duration::from_secs(3));
        pair.send_on(LEFT, 0, numbered(2_000, 50), unordered);
        pair.run_for(Duration::from_secs(5));
        let read: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.len()).collect();
        assert_eq!(read.iter().filter(|len| **len == 3_000).count(), 10, "{read:?}");
        assert_eq!(read.iter().filter(|len| **len == 2_000).count(), 1, "{read:?}");
        assert_eq!(read.len(), 11, "{unordered} {scheduler:?}");
        let forward = pair.log.iter().flat_map(|s| &s.packet.chunks).any(|chunk| {
            matches!(chunk, Chunk::Extension(one) if matches!(**one, ExtensionChunk::IForwardTsn(_)))
        });
        assert!(forward && pair.count(LEFT, "FORWARD-TSN") == 0);
        assert!(pair.ends[LEFT].is_flushed());
        assert_eq!(pair.ends[RIGHT].receive_occupancy().0, 0);
    }
}

#[test]
fn what_was_not_delivered_is_known_although_it_was_interleaved() {
    let mut pair = pair(&interleaving(3, StreamScheduler::RoundRobin));
    pair.script(|sent| if sent.data().next().is_some() { Fate::Drop } else { Fate::Arrive });
    for stream in 0..3 {
        pair.send_on(LEFT, stream, numbered(10 * FULL, stream.into()), false);
    }
    pair.send_on(LEFT, 1, numbered(100, 9), true);
    let found: Vec<_> = pair.ends[LEFT].unacknowledged().chain(pair.ends[LEFT].unsent()).collect();
    assert_eq!(found.len(), 4);
    for stream in 0..3 {
        let one = found.iter().find(|m| m.stream.0 == stream && !m.unordered).expect("it is there");
        assert_eq!(one.payload, numbered(10 * FULL, stream.into()));
        assert!(one.from_beginning);
    }
}

#[test]
fn an_interactive_message_overtakes_a_long_one_that_has_begun() {
    let mut pair = pair(&interleaving(1, StreamScheduler::FirstCome));
    pair.send_on(LEFT, 0, numbered(100 * FULL, 1), true);
    let now = pair.now;
    let urgent = Delivery { urgency: Urgency::Interactive, ordered: false, ..Delivery::RELIABLE };
    pair.ends[LEFT].send_message(now, StreamId(0), 7, numbered(100, 2), urgent).expect("room");
    pair.drain(LEFT);
    pair.run_for(Duration::from_secs(5));
    let read: Vec<_> = pair.read[RIGHT].iter().map(|m| (m.ppid, m.payload.clone())).collect();
    assert_eq!(read, [(7, numbered(100, 2)), (0, numbered(100 * FULL, 1))]);
}

#[test]
fn in_the_compact_form_datagrams_stay_as_short_as_they_were() {
    let settings =
        Config { packet_form: PacketForm::Compact, ..interleaving(2, StreamScheduler::RoundRobin) };
    let mut pair = pair(&settings);
    let most = pair.ends[LEFT].largest_datagram();
    let plain = Config { interleaving: false, ..settings.clone() };
    assert_eq!(most, self::pair(&plain).ends[LEFT].largest_datagram());
    pair.send_on(LEFT, 0, Payload::Length(most), true);
    pair.send_on(LEFT, 1, Payload::Length(20 * FULL), false);
    pair.send_on(LEFT, 0, Payload::Length(100), true);
    pair.run_for(Duration::from_secs(2));
    assert_eq!((pair.count(LEFT, "DATA"), pair.read[RIGHT].len()), (2, 3));
    assert!(pair.count(LEFT, "I-DATA") >= 20);
    // The same message on another stream, or with its own identifier, is not a datagram.
    pair.send_on(LEFT, 1, Payload::Length(100), true);
    pair.run_for(Duration::from_secs(1));
    assert_eq!((pair.count(LEFT, "DATA"), pair.read[RIGHT].len()), (2, 4));
}

#[test]
fn a_chunk_of_the_other_type_ends_the_association() {
    let plain = Config { interleaving: false, ..interleaving(1, StreamScheduler::FirstCome) };
    let on = interleaving(1, StreamScheduler::FirstCome);
    for (victim, sender) in [(&on, &plain), (&plain, &on)] {
        let mut other = pair(sender);
        other.send_on(LEFT, 0, Payload::Length(100), false);
        let data = other.log.iter().find_map(|s| s.data().next().cloned()).expect("it left");
        let mut pair = pair(victim);
        let tsn = pair.ends[RIGHT].peer_initial_tsn().expect("it is up");
        let tag = pair.ends[RIGHT].tags().0;
        let chunk = Chunk::Data(ropewalk_engine::sctp::Data { tsn, ..data });
        pair.inject(RIGHT, 0, ropewalk_engine::sctp::Packet::of(tag, chunk));
        let violation = CloseReason::Aborted(AbortCause::ProtocolViolation);
        assert_eq!(pair.closed(RIGHT), Some(violation));
        assert_eq!(pair.count(RIGHT, "ABORT"), 1);
    }
}

#[test]
fn after_a_restart_identifiers_start_over_and_priorities_stay() {
    let settings = interleaving(2, StreamScheduler::Priority);
    let mut pair = pair(&settings);
    pair.ends[RIGHT].set_stream_value(StreamId(1), 0).expect("it exists");
    for _ in 0..3 {
        pair.send_on(RIGHT, 1, numbered(3_000, 1), false);
        pair.send_on(LEFT, 1, numbered(3_000, 1), false);
    }
    pair.run_for(Duration::from_secs(2));
    let now = pair.now;
    let seed = ropewalk_base::Seed::root(99);
    let again = ropewalk_engine::sctp::Association::connect(settings, in_turn(), seed, now);
    pair.replace(LEFT, again);
    pair.drain(LEFT);
    pair.run_for(Duration::from_secs(2));
    assert!(pair.events[RIGHT].iter().any(|(_, event)| *event == Event::Restarted));
    pair.log.clear();
    pair.queue(RIGHT, 0, numbered(3_000, 2), false);
    pair.queue(RIGHT, 1, numbered(3_001, 3), false);
    pair.drain(RIGHT);
    pair.run_for(Duration::from_secs(2));
    let first = pair.log.iter().find_map(|s| s.data().next().cloned()).expect("it left");
    assert_eq!((first.stream, first.message().0), (StreamId(1), 0));
    let read: Vec<_> = pair.read[LEFT].iter().map(|m| m.payload.len()).collect();
    assert_eq!(read[read.len() - 2..], [3_001, 3_000]);
    assert_eq!(pair.view(RIGHT, 0).id, PathId(0));
}

#[test]
fn a_peer_that_may_be_of_freebsd_never_holds_512_interleaved_chunks() {
    let most_sent = |right: &Config| {
        // This end lists ASCONF only if the other one does.
        let left = right;
        let mut pair = Pair::with(left, right, &[50], [in_turn(), in_turn()]);
        pair.connect();
        let first = pair.ends[RIGHT].peer_initial_tsn().expect("it is up");
        pair.log.clear();
        let is_first = move |data: &ropewalk_engine::sctp::Data| data.tsn == first;
        pair.script(move |s| if s.data().any(is_first) { Fate::Drop } else { Fate::Arrive });
        (0..3000).for_each(|_| pair.send(LEFT, 60));
        pair.run_for(Duration::from_secs(5));
        let sent = pair.log.iter().filter(|s| s.from == LEFT).flat_map(|s| s.data());
        let most = sent.map(|data| data.tsn.0.wrapping_sub(first.0) + 1).max();
        pair.heal();
        pair.run_for(Duration::from_secs(60));
        assert_eq!(pair.read[RIGHT].len(), 3000, "all that was sent is read in the end");
        most.expect("some left")
    };
    let none = Negotiation::Listed(Extensions::NONE);
    let other = Config { negotiation: none, ..interleaving(1, StreamScheduler::FirstCome) };
    let like_freebsd = Config { address_reconfiguration: true, ..other.clone() };
    let own = Negotiation::Listed(Extensions::OFFERED);
    let ours = Config { negotiation: own, ..like_freebsd.clone() };
    let most = most_sent(&like_freebsd);
    assert!((400..512).contains(&most), "{most}");
    for free in [other, ours] {
        assert!(most_sent(&free) > 512);
    }
}
