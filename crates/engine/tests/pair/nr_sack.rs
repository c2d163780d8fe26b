//! Non-renegable acknowledgements (NR-SACK, draft-natarajan-tsvwg-sctp-nrsack-08).

use ropewalk_base::{Duration, Serial32, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{SendError, Undelivered};
use ropewalk_engine::sctp::{
    Chunk, Config, DataFlags, Delivery, ExtensionChunk, Extensions, GapBlock, Negotiation, Packet,
    Preset,
};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, Sent, config, in_turn, ms, numbered};

/// A full DATA chunk, bytes.
const CHUNK: u64 = FULL as u64 + 16;

fn nr(config: Config) -> Config {
    Config { nr_sack: true, ..config }
}

/// First and last offset of the renegable and non-renegable blocks of the last NR-SACK of the right end.
fn last_report(pair: &Pair) -> [Vec<(u16, u16)>; 2] {
    let sacks = pair.log.iter().filter(|sent| sent.from == RIGHT).filter_map(Sent::nr_sack);
    let sack = sacks.last().expect("an NR-SACK");
    let pairs = |block: GapBlock| (block.start, block.end);
    [&sack.gaps, &sack.kept].map(|list| list.offsets(sack.cumulative).map(pairs).collect())
}

/// Drops the first transmission of these packets with DATA, counted from 1.
fn drop_first(pair: &mut Pair, numbers: &'static [usize]) {
    let mut count = 0;
    pair.script(move |sent| {
        let data = sent.from == LEFT && sent.data().next().is_some();
        count += usize::from(data);
        if data && numbers.contains(&count) { Fate::Drop } else { Fate::Arrive }
    });
}

#[test]
fn nr_sacks_replace_sacks_if_both_ends_list_them() {
    let plain = config(1, 1 << 16);
    let on = nr(plain.clone());
    let listed = |config: &Config| Config {
        negotiation: Negotiation::Listed(Extensions::OFFERED),
        ..config.clone()
    };
    for (left, right, agreed) in [
        (&on, &on, true),
        (&on, &plain, false),
        (&plain, &on, false),
        (&listed(&on), &listed(&on), true),
        (&listed(&on), &listed(&plain), false),
        (&listed(&plain), &listed(&on), false),
    ] {
        let mut pair = Pair::with(left, right, &[10], [in_turn(), in_turn()]);
        pair.connect();
        for end in [LEFT, RIGHT] {
            assert_eq!(pair.ends[end].reports_non_renegable(), agreed);
            pair.send_on(end, 0, numbered(50_000, 1), false);
        }
        pair.run_for(Duration::from_secs(3));
        for end in [LEFT, RIGHT] {
            assert_eq!(pair.read[end][0].payload, numbered(50_000, 1));
            assert_eq!(pair.count(end, "NR-SACK") > 0, agreed);
            assert_eq!(pair.count(end, "SACK") > 0, !agreed);
            assert!(pair.ends[end].is_flushed());
        }
    }
}

#[test]
fn what_arrives_behind_a_gap_leaves_the_send_buffer_at_once() {
    for preset in [Preset::Rfc9260, Preset::Live] {
        for (nr_sack, room) in [(false, 0), (true, 7)] {
            let base = crate::driver::preset_config(preset, 1, 1 << 20);
            let window = Some(1 << 20);
            let settings = Config {
                nr_sack,
                send_buffer: 8 * CHUNK,
                initial_window: window,
                max_burst: 0,
                ..base
            };
            let mut pair = Pair::up(&settings, &[50]);
            drop_first(&mut pair, &[1]);
            pair.send_full(LEFT, 8);
            let full = pair.ends[LEFT].send(StreamId(0), Payload::Length(1), false);
            assert_eq!(full, Err(SendError::Full));
            // A round trip later, seven of the eight are reported. The first has not been repaired yet.
            pair.run_for(ms(110));
            assert_eq!(pair.read_bytes(RIGHT), 0);
            let chunks = pair.ends[LEFT].send_room() / u64::from(FULL);
            assert_eq!(chunks, room, "{preset:?}, NR-SACK: {nr_sack}");
            pair.run_for(ms(3000));
            assert_eq!(pair.read[RIGHT].len(), 8);
            assert_eq!(pair.ends[LEFT].send_room(), 8 * CHUNK);
        }
    }
}

#[test]
fn data_on_other_streams_is_delivered_and_all_that_arrived_is_promised() {
    let settings = nr(Config { streams: 3, ..config(1, 1 << 20) });
    let mut pair = Pair::up(&settings, &[10]);
    drop_first(&mut pair, &[1]);
    for stream in [0, 1, 0, 2] {
        pair.queue(LEFT, stream, Payload::Length(FULL), false);
    }
    pair.drain(LEFT);
    pair.run_for(ms(30));
    assert_eq!(pair.read[RIGHT].len(), 2, "streams 1 and 2 do not wait");
    assert_eq!(last_report(&pair), [vec![], vec![(2, 4)]]);
}

/// A pair whose right end holds chunks that wait for the first one.
fn filled(chunks: u64, buffer: u64) -> Pair {
    let settings = Config { initial_window: Some(1 << 20), max_burst: 0, ..nr(config(1, buffer)) };
    let mut pair = Pair::up(&settings, &[10]);
    let mut lost = None;
    pair.script(move |sent| {
        let first = sent.data().next().map(|data| data.tsn);
        lost = lost.or(first);
        if first.is_some() && first == lost { Fate::Drop } else { Fate::Arrive }
    });
    pair.send_full(LEFT, chunks as usize);
    pair.run_for(ms(35));
    pair
}

/// A buffer of promised chunks that all wait for the first one, and a function that returns a copy of it
/// with a TSN that many ahead.
fn full_of_promises() -> (Pair, impl Fn(u16) -> Packet) {
    let mut pair = filled(21, 30 * CHUNK);
    assert_eq!(last_report(&pair), [vec![], vec![(2, 21)]]);
    pair.script(|_| Fate::Drop);
    let lost = pair.log.iter().find(|sent| sent.fate == Fate::Drop && sent.from == LEFT);
    let lost = lost.expect("the first chunk").packet.clone();
    let ahead = move |ahead: u16| {
        let mut packet = lost.clone();
        let Some(Chunk::Data(data)) = packet.chunks.last_mut() else { panic!("{packet:?}") };
        (data.tsn, data.ssn) = (data.tsn.plus(ahead.into()), data.ssn.plus(ahead));
        packet
    };
    // A peer that does not obey the span rule sends more. Offset 22 is also missing.
    (22..30).for_each(|at| pair.inject(RIGHT, 0, ahead(at)));
    pair.run_for(ms(300));
    assert_eq!(last_report(&pair), [vec![], vec![(2, 21), (23, 30)]]);
    (pair, ahead)
}

#[test]
fn without_room_for_what_is_missing_nothing_more_is_promised_but_what_is_delivered() {
    let (mut pair, ahead) = full_of_promises();
    pair.inject(RIGHT, 0, ahead(30));
    let mut unordered = ahead(35);
    let Some(Chunk::Data(data)) = unordered.chunks.last_mut() else { panic!("{unordered:?}") };
    data.flags = data.flags.and(DataFlags::UNORDERED);
    pair.inject(RIGHT, 0, unordered);
    pair.inject(RIGHT, 0, ahead(36));
    pair.run_for(ms(300));
    assert_eq!(pair.read[RIGHT].len(), 1, "the unordered message");
    let kept = vec![(2, 21), (23, 30), (36, 36)];
    assert_eq!(last_report(&pair), [vec![(31, 31), (37, 37)], kept]);
}

#[test]
fn promised_chunks_stay_and_others_make_room_for_what_is_missing() {
    let (mut pair, ahead) = full_of_promises();
    (30..32).for_each(|at| pair.inject(RIGHT, 0, ahead(at)));
    assert_eq!(pair.ends[RIGHT].receive_occupancy(), (30 * CHUNK, 0));
    pair.inject(RIGHT, 0, ahead(21));
    let stats = pair.ends[RIGHT].receive_stats();
    assert_eq!((stats.reneged, stats.refused), (1, 0));
    pair.run_for(ms(300));
    assert_eq!(last_report(&pair), [vec![(31, 31)], vec![(2, 30)]]);
    pair.inject(RIGHT, 0, ahead(0));
    let stats = pair.ends[RIGHT].receive_stats();
    assert_eq!((stats.reneged, stats.refused), (2, 0));
    assert_eq!(pair.read[RIGHT].len(), 30);
}

#[test]
fn a_chunk_larger_than_all_before_is_accepted_beyond_the_buffer_if_all_others_are_promised() {
    let settings = nr(config(1, 30 * CHUNK));
    let mut pair = Pair::up(&settings, &[10]);
    pair.send(LEFT, 100);
    pair.run_for(ms(500));
    let whole = pair.log.iter().find(|sent| sent.data().next().is_some()).expect("data");
    let whole = whole.packet.clone();
    let ahead = |ahead: u32, length: u32| {
        let mut packet = whole.clone();
        let Some(Chunk::Data(data)) = packet.chunks.last_mut() else { panic!("{packet:?}") };
        (data.tsn, data.ssn) = (data.tsn.plus(ahead), data.ssn.plus(ahead as u16));
        data.payload = Payload::Length(length);
        packet
    };
    let most = 30 * CHUNK as u32 / 716;
    for at in 2..2 + most {
        pair.inject(RIGHT, 0, ahead(at, 700));
    }
    let (held, free) = pair.ends[RIGHT].receive_occupancy();
    assert!(free < 1000, "{held} {free}");
    pair.inject(RIGHT, 0, ahead(1, FULL));
    let stats = pair.ends[RIGHT].receive_stats();
    assert_eq!((stats.refused, stats.reneged), (0, 1));
    assert_eq!(pair.read[RIGHT].len() as u32, 1 + most);
}

fn report(before: u32, cumulative: u32, gaps: &[(u16, u16)], kept: &[(u16, u16)]) -> Chunk {
    use ropewalk_engine::sctp::{ExtensionChunk, GapList, NrSack};
    let cumulative = Serial32(before).plus(cumulative);
    let list = |blocks: &[(u16, u16)]| {
        let blocks = blocks.iter().map(|(start, end)| GapBlock { start: *start, end: *end });
        GapList::from_offsets(cumulative, blocks)
    };
    Chunk::Extension(Box::new(ExtensionChunk::NrSack(NrSack {
        cumulative,
        window: 1 << 20,
        gaps: list(gaps),
        kept: list(kept),
        duplicates: Vec::new(),
        data_packets: 0,
    })))
}

#[test]
fn of_a_reneging_peer_only_renegable_chunks_are_sent_again() {
    let mut settings = nr(config(1, 1 << 20));
    (settings.initial_window, settings.max_burst) = (Some(1 << 20), 0);
    (settings.rto.max, settings.association_max_retrans) = (Duration::from_secs(1), 1000);
    let mut pair = Pair::up(&settings, &[10]);
    pair.script(|_| Fate::Drop);
    pair.send_full(LEFT, 10);
    let first = pair.log.iter().find_map(|sent| sent.data().next()).expect("data").tsn;
    let (before, tag) = (first.0.wrapping_sub(1), pair.ends[LEFT].tags().0);
    pair.inject(LEFT, 0, Packet::of(tag, report(before, 1, &[(2, 3)], &[(5, 7)])));
    // Chunk 3 is suddenly missing: nothing renegable is left.
    pair.log.clear();
    for cumulative in [2, 3, 4, 8, 9] {
        pair.inject(LEFT, 0, Packet::of(tag, report(before, cumulative, &[], &[])));
        pair.run_for(ms(5000));
    }
    let again = pair.log.iter().flat_map(|sent| sent.data());
    let mut again: Vec<u32> = again.map(|data| data.tsn.0.wrapping_sub(before)).collect();
    again.sort_unstable();
    again.dedup();
    assert_eq!(again, [3, 4, 5, 9, 10], "6 to 8 will not be dropped");
    pair.inject(LEFT, 0, Packet::of(tag, report(before, 10, &[], &[])));
    assert!(pair.ends[LEFT].is_flushed());
    assert_eq!(pair.view(LEFT, 0).in_flight, 0);
}

#[test]
fn messages_that_will_not_be_dropped_are_not_undelivered() {
    for interleaving in [false, true] {
        let settings = Config { interleaving, ..nr(config(1, 1 << 20)) };
        let mut pair = Pair::up(&settings, &[10]);
        drop_first(&mut pair, &[1, 4]);
        let length = if interleaving { FULL - 4 } else { FULL };
        for (salt, chunks) in [(1, 1), (2, 1), (3, 2)] {
            pair.queue(LEFT, 0, numbered(chunks * length, salt), false);
        }
        pair.drain(LEFT);
        pair.run_for(ms(15));
        pair.script(|_| Fate::Drop);
        pair.run_for(ms(15));
        pair.ends[LEFT].peer_is_gone();
        let left: Vec<Undelivered> = pair.ends[LEFT].unacknowledged().collect();
        let sizes: Vec<_> = left.iter().map(|one| (one.payload.len(), one.freed)).collect();
        assert_eq!(sizes, [(length, 0), (length, length)], "interleaving: {interleaving}");
        assert_eq!(left[0].payload, numbered(length, 1));
        assert_eq!(left[1].payload, numbered(2 * length, 3).slice(length, length));
    }
}

/// RFC 3758, 3.5 C2: data that the peer will not drop need not be acknowledged before the peer skips it.
#[test]
fn the_peer_moves_past_a_reliable_message_between_two_that_are_abandoned() {
    for (nr_sack, past) in [(false, 0), (true, 3)] {
        let settings = Config { nr_sack, ..config(1, 1 << 20) };
        let mut pair = Pair::up(&settings, &[10]);
        pair.greet();
        pair.script(|sent| {
            let lost = sent.data().any(|data| data.payload.len() == 500);
            if lost { Fate::Drop } else { Fate::Arrive }
        });
        let limited = Delivery { lifetime: Some(ms(100)), ..Delivery::RELIABLE };
        for (length, delivery) in
            [(500, limited), (FULL, Delivery::RELIABLE), (FULL, Delivery::RELIABLE), (500, limited)]
        {
            pair.send_message(LEFT, Payload::Length(length), delivery);
        }
        let first = pair.log.iter().find_map(|sent| sent.data().next()).expect("data").tsn;
        pair.run_for(ms(3000));
        let told = pair.log.iter().flat_map(|sent| &sent.packet.chunks).filter_map(|chunk| {
            let Chunk::Extension(one) = chunk else { return None };
            let ExtensionChunk::ForwardTsn(forward) = &**one else { return None };
            Some(forward.cumulative.0.wrapping_sub(first.0))
        });
        let told: Vec<u32> = told.collect();
        assert_eq!(told.first(), Some(&past), "{nr_sack}: {told:?}");
        assert_eq!(pair.read[RIGHT].len(), 2);
        assert!(pair.ends[LEFT].is_flushed());
    }
}
