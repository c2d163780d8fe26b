//! Explicit congestion notification (RFC 3168; RFC 4960, Appendix A).

use ropewalk_base::{Ecn, Serial32};
use ropewalk_engine::congestion::CongestionFlavour;
use ropewalk_engine::sctp::{
    Chunk, Config, ExtensionChunk, Extensions, MarkCount, Negotiation, Packet,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, Sent, config, ms};

fn ecn(paths: usize) -> Config {
    Config { ecn: true, ..config(paths, 1 << 20) }
}

fn rare(sent: &Sent) -> impl Iterator<Item = &ExtensionChunk> {
    sent.packet.chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Extension(rare) => Some(&**rare),
        _ => None,
    })
}

fn echoes(pair: &Pair) -> usize {
    let echo = |sent: &&Sent| rare(sent).any(|one| matches!(one, ExtensionChunk::Ecne(_)));
    pair.log.iter().filter(echo).count()
}

fn answers(pair: &Pair) -> usize {
    let answer = |sent: &&Sent| rare(sent).any(|one| matches!(one, ExtensionChunk::Cwr(_)));
    pair.log.iter().filter(answer).count()
}

fn reductions(pair: &Pair) -> Vec<u64> {
    pair.counters(LEFT).iter().map(|counters| counters.marked).collect()
}

/// Sends for this time.
fn bulk(pair: &mut Pair, millis: u64) {
    for _ in 0..millis / 10 {
        pair.send_full(LEFT, 6);
        pair.run_for(ms(10));
    }
}

#[test]
fn only_packets_with_data_may_be_marked_and_only_where_both_ends_agree() {
    let off = config(1, 1 << 20);
    let listed = |ecn: bool| Config {
        ecn,
        negotiation: Negotiation::Listed(Extensions::NONE),
        ..off.clone()
    };
    for (left, right, agreed) in [
        (ecn(1), ecn(1), true),
        (off.clone(), off.clone(), false),
        (listed(true), listed(true), true),
        (listed(true), listed(false), false),
        (listed(false), listed(true), false),
    ] {
        let schedulers = [crate::driver::in_turn(), crate::driver::in_turn()];
        let mut pair = Pair::with(&left, &right, &[10], schedulers);
        pair.through_bytes = true;
        pair.connect();
        bulk(&mut pair, 200);
        for end in [LEFT, RIGHT] {
            assert_eq!(pair.ends[end].agreed_extensions().has(Extensions::ECN), agreed);
        }
        for sent in &pair.log {
            let capable = agreed && sent.data().next().is_some();
            assert_eq!(sent.ecn, if capable { Ecn::Ect0 } else { Ecn::NotEct }, "{sent:?}");
        }
    }
}

#[test]
fn marks_reduce_the_window_of_their_path_once_per_window_and_nothing_is_sent_again() {
    let mut pair = Pair::up(&ecn(2), &[20, 20]);
    bulk(&mut pair, 400);
    let before = [0, 1].map(|path| pair.view(LEFT, path).cwnd);
    pair.log.clear();
    // All packets of one window, and none after it.
    let until = pair.now + ms(40);
    pair.script(move |sent| {
        let marked = sent.ecn.may_be_marked() && sent.path == 1 && sent.at < until;
        if marked { Fate::Marked } else { Fate::Arrive }
    });
    bulk(&mut pair, 120);
    assert_eq!(reductions(&pair), [0, 1]);
    let after = [0, 1].map(|path| pair.view(LEFT, path).cwnd);
    assert!(after[1] < before[1] * 3 / 4 && after[0] >= before[0], "{before:?} {after:?}");
    assert!(echoes(&pair) > 0 && answers(&pair) > 0);
    let again: u64 = pair.counters(LEFT).iter().map(|counters| counters.retransmitted).sum();
    assert_eq!(again, 0);
    // The echoes end once they have been answered.
    pair.log.clear();
    bulk(&mut pair, 100);
    assert_eq!((echoes(&pair), answers(&pair)), (0, 0));
    // Marks of every window cause one reduction each.
    pair.script(|sent| {
        if sent.ecn.may_be_marked() && sent.path == 0 { Fate::Marked } else { Fate::Arrive }
    });
    bulk(&mut pair, 400);
    let [first, second] = reductions(&pair)[..] else { panic!("two paths") };
    assert!((5..=11).contains(&first) && second == 1, "{first} and {second} in ten round trips");
}

#[test]
fn an_echo_is_repeated_until_its_answer_arrives() {
    let mut pair = Pair::up(&ecn(1), &[20]);
    bulk(&mut pair, 100);
    pair.log.clear();
    let mut marks = 1;
    let mut lost = 3;
    pair.script(move |sent| {
        if sent.ecn.may_be_marked() && marks > 0 {
            marks -= 1;
            return Fate::Marked;
        }
        let answer = rare(sent).any(|one| matches!(one, ExtensionChunk::Cwr(_)));
        if answer && lost > 0 {
            lost -= 1;
            return Fate::Drop;
        }
        Fate::Arrive
    });
    bulk(&mut pair, 600);
    assert_eq!(answers(&pair), 4, "three of them lost");
    assert!(echoes(&pair) > 10);
    assert_eq!(reductions(&pair), [1]);
    pair.log.clear();
    bulk(&mut pair, 100);
    assert_eq!(echoes(&pair), 0);
}

#[test]
fn a_path_that_drops_what_may_be_marked_is_sent_nothing_of_that_kind() {
    let mut pair = Pair::up(&ecn(2), &[20, 20]);
    pair.script(
        |sent| if sent.ecn.may_be_marked() && sent.path == 1 { Fate::Drop } else { Fate::Arrive },
    );
    for _ in 0..100 {
        bulk(&mut pair, 100);
    }
    pair.log.clear();
    bulk(&mut pair, 500);
    let data = |path| pair.log.iter().filter(move |s| s.path == path && s.data().next().is_some());
    assert!(data(1).count() > 20 && data(1).all(|sent| !sent.ecn.may_be_marked()));
    assert!(data(0).count() > 20 && data(0).all(|sent| sent.ecn.may_be_marked()));
    pair.run_for(ms(5_000));
    assert!(pair.ends[LEFT].is_flushed());
}

#[test]
fn echoes_of_what_was_never_sent_or_is_long_acknowledged_reduce_nothing() {
    let mut pair = Pair::up(&ecn(1), &[20]);
    bulk(&mut pair, 200);
    pair.run_for(ms(500));
    let (tag, window) = (pair.ends[LEFT].tags().0, pair.view(LEFT, 0).cwnd);
    let next = pair.ends[RIGHT].peer_initial_tsn().expect("known").plus(120);
    pair.log.clear();
    let wild = [0, 1, 1_000, 1 << 30, 1 << 31, u32::MAX - 5_000];
    for (round, ahead) in (0..20).flat_map(|round| wild.map(|ahead| (round, ahead))) {
        for one in [
            ExtensionChunk::Ecne(next.plus(ahead)),
            ExtensionChunk::Cwr(next.plus(ahead)),
            ExtensionChunk::Ecne(Serial32(round)),
        ] {
            pair.inject(LEFT, 0, Packet::of(tag, Chunk::Extension(Box::new(one))));
        }
    }
    assert_eq!((reductions(&pair), pair.view(LEFT, 0).cwnd), (vec![0], window));
    assert_eq!(pair.closed(LEFT), None);
    assert!(answers(&pair) <= 20 * 2 * wild.len(), "no more than one for each echo");
}

/// Accurate ECN with this congestion control.
fn counted(paths: usize, congestion: &str) -> Config {
    let mut settings = Config { accurate_ecn: true, ..ecn(paths) };
    settings.use_congestion(congestion, CongestionFlavour::Published).expect("a registered name");
    settings
}

fn counts(pair: &Pair) -> Vec<MarkCount> {
    let count = |one: &ExtensionChunk| match one {
        ExtensionChunk::MarkCount(count) => Some(*count),
        _ => None,
    };
    pair.log.iter().flat_map(|sent| rare(sent).filter_map(count).collect::<Vec<_>>()).collect()
}

#[test]
fn a_scalable_sender_uses_ect_1_only_where_the_peer_counts_marks() {
    let listed = |name: &str, accurate_ecn: bool| Config {
        negotiation: Negotiation::Listed(Extensions::NONE),
        accurate_ecn,
        ..counted(1, name)
    };
    for (left, right, data) in [
        (listed("prague", true), listed("cubic", true), Ecn::Ect1),
        (listed("prague", true), listed("cubic", false), Ecn::Ect0),
        (listed("prague", false), listed("cubic", true), Ecn::Ect0),
        (listed("cubic", true), listed("prague", true), Ecn::Ect0),
    ] {
        let schedulers = [crate::driver::in_turn(), crate::driver::in_turn()];
        let mut pair = Pair::with(&left, &right, &[10], schedulers);
        pair.through_bytes = true;
        pair.connect();
        pair.log.clear();
        bulk(&mut pair, 100);
        let with_data = pair.log.iter().filter(|sent| sent.data().next().is_some());
        assert!(with_data.clone().count() > 10 && with_data.clone().all(|sent| sent.ecn == data));
    }
}

#[test]
fn every_marked_byte_is_counted_once_although_sacks_are_lost() {
    let mut pair = Pair::up(&counted(2, "prague"), &[20, 20]);
    pair.through_bytes = true;
    let (mut number, mut lost) = (0u32, 0u32);
    pair.script(move |sent| {
        number += 1;
        let marked = sent.ecn == Ecn::Ect1 && sent.path == 1 && number.is_multiple_of(5);
        let is_sack = sent.data().next().is_none();
        lost += u32::from(is_sack);
        match (marked, is_sack && lost.is_multiple_of(3)) {
            (true, _) => Fate::Marked,
            (_, true) => Fate::Drop,
            _ => Fate::Arrive,
        }
    });
    bulk(&mut pair, 600);
    let marked: u32 = pair
        .log
        .iter()
        .filter(|sent| sent.fate == Fate::Marked)
        .flat_map(|sent| sent.packet.chunks.iter().filter(|one| matches!(one, Chunk::Data(_))))
        .map(Chunk::wire_len)
        .sum();
    pair.run_for(ms(500));
    let all = counts(&pair);
    assert!(marked > 10_000 && all.iter().all(|count| count.path == 1), "{marked}");
    assert!(all.is_sorted_by_key(|count| count.bytes));
    assert_eq!(all.last().map(|count| count.bytes), Some(marked));
    assert_eq!((echoes(&pair), answers(&pair)), (0, 0), "no echo, no confirmation");
}

#[test]
fn other_congestion_controls_take_counted_marks_as_one_mark_per_round_trip() {
    let mut pair = Pair::up(&counted(2, "cubic"), &[20, 20]);
    bulk(&mut pair, 200);
    pair.script(|sent| match sent.ecn == Ecn::Ect0 && sent.path == 0 {
        true => Fate::Marked,
        false => Fate::Arrive,
    });
    bulk(&mut pair, 400);
    let [first, second] = reductions(&pair)[..] else { panic!("two paths") };
    assert!((5..=11).contains(&first) && second == 0, "{first} and {second} in ten round trips");
    assert_eq!((echoes(&pair), answers(&pair)), (0, 0));
}

#[test]
fn counts_that_make_no_sense_change_no_window() {
    let mut pair = Pair::up(&counted(1, "cubic"), &[20]);
    bulk(&mut pair, 200);
    pair.run_for(ms(500));
    let (tag, window) = (pair.ends[LEFT].tags().0, pair.view(LEFT, 0).cwnd);
    let next = pair.ends[RIGHT].peer_initial_tsn().expect("known").plus(120);
    // Another path, a TSN that was never sent, and a decreasing total.
    for (path, tsn, bytes) in [
        (1, next.plus(u32::MAX), 1),
        (255, next.plus(u32::MAX), 1),
        (0, next, 5),
        (0, next.plus(1 << 30), 5),
        (0, next.plus(u32::MAX), u32::MAX),
    ] {
        let count = ExtensionChunk::MarkCount(MarkCount { path, tsn, bytes });
        pair.inject(LEFT, 0, Packet::of(tag, Chunk::Extension(Box::new(count))));
    }
    assert_eq!((reductions(&pair), pair.view(LEFT, 0).cwnd), (vec![0], window));
    assert_eq!(pair.closed(LEFT), None);
}
