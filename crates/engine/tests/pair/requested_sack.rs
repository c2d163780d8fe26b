//! SACKs that the sender of the data requests: their number, their length, and the cost of a lost one.

use ropewalk_engine::sctp::{Config, Extensions, PacketForm, PathConfig, Preset};

use crate::driver::{Fate, LEFT, Pair, RIGHT, Sent, in_turn, ms};

/// Both ends of this project, with a packet form that numbers packets, without path MTU discovery.
fn live(paths: usize) -> Config {
    let settings = Config::preset(Preset::Live, vec![PathConfig::default(); paths], 1 << 22);
    Config { mtu_discovery: None, pacing: None, congestion: "cubic", ..settings }
}

/// A pair whose packets alternate between the paths, with a window of many packets on each.
fn in_full_flow(delays: &[u64]) -> Pair {
    let settings = live(delays.len());
    let mut pair = Pair::with(&settings, &settings, delays, [in_turn(), in_turn()]);
    pair.connect();
    bulk(&mut pair, 300);
    pair.log.clear();
    pair
}

fn bulk(pair: &mut Pair, packets: usize) {
    for _ in 0..packets / 20 {
        pair.send_full(LEFT, 20);
        pair.run_for(ms(2));
    }
}

fn sacks(pair: &Pair) -> Vec<&Sent> {
    pair.log.iter().filter(|sent| sent.from == RIGHT && sent.sack().is_some()).collect()
}

fn retransmitted(pair: &Pair) -> u64 {
    pair.counters(LEFT).iter().map(|path| path.retransmitted).sum()
}

#[test]
fn a_bundle_gets_few_sacks_and_each_is_short_whatever_waits_for_the_slow_path() {
    for delays in [&[5, 5][..], &[5, 60], &[5, 20, 60, 100]] {
        let mut pair = in_full_flow(delays);
        assert!(pair.ends[LEFT].agreed_extensions().has(Extensions::REQUESTED_SACK));
        bulk(&mut pair, 2000);
        let packets = pair.log.iter().filter(|sent| sent.data().next().is_some()).count();
        let sacks = sacks(&pair);
        let gaps_max = sacks.iter().filter_map(|sent| Some(sent.sack()?.gaps.len())).max();
        let bytes: u32 = sacks.iter().map(|s| s.packet.wire_len_in(PacketForm::Compact)).sum();
        assert!(sacks.len() * 3 <= packets, "{delays:?}: {} SACKs of {packets}", sacks.len());
        assert!(bytes as usize <= 20 * packets, "{delays:?}: {bytes} B for {packets} packets");
        assert!(gaps_max.is_some_and(|max| max <= 96), "{delays:?}: {gaps_max:?} blocks");
        assert_eq!(retransmitted(&pair), 0, "{delays:?}: overtaking is no loss");
    }
}

#[test]
fn two_lost_sacks_in_a_row_cause_no_retransmission() {
    let mut pair = in_full_flow(&[5, 40]);
    let mut count = 0;
    pair.script(move |sent| {
        count += usize::from(sent.sack().is_some());
        if sent.sack().is_some() && count % 6 < 2 { Fate::Drop } else { Fate::Arrive }
    });
    bulk(&mut pair, 2000);
    pair.heal();
    pair.run_for(ms(500));
    let lost = sacks(&pair).iter().filter(|sent| sent.fate == Fate::Drop).count();
    assert!(lost > 20, "{lost} SACKs were lost");
    assert_eq!((retransmitted(&pair), pair.ends[RIGHT].receive_stats().duplicates), (0, 0));
}

#[test]
fn sacks_that_overtake_each_other_lose_nothing() {
    let mut pair = in_full_flow(&[5, 40]);
    let mut count = 0;
    pair.script(move |sent| {
        count += usize::from(sent.sack().is_some());
        if sent.sack().is_some() && count % 3 == 0 { Fate::Late(ms(15)) } else { Fate::Arrive }
    });
    bulk(&mut pair, 2000);
    pair.run_for(ms(500));
    assert_eq!((retransmitted(&pair), pair.ends[RIGHT].receive_stats().duplicates), (0, 0));
}

/// Number of packets after the lost one that the first SACK with a gap reports, if packet `lost` of a
/// burst is lost.
fn reported_behind(lost: usize) -> u16 {
    let mut pair = in_full_flow(&[20]);
    pair.run_for(ms(500));
    pair.log.clear();
    let mut count = 0;
    pair.script(move |sent| {
        count += usize::from(sent.data().next().is_some());
        if sent.data().next().is_some() && count == lost { Fate::Drop } else { Fate::Arrive }
    });
    pair.send_full(LEFT, 100);
    pair.run_for(ms(45));
    let gaps = sacks(&pair).into_iter().filter_map(|sent| sent.sack());
    let block = gaps.flat_map(|sack| sack.gaps.offsets(sack.cumulative).last()).next();
    block.map(|block| block.end - block.start + 1).expect("a gap")
}

#[test]
fn a_packet_that_is_missing_on_its_path_is_reported_with_the_third_packet_after_it() {
    let reported: Vec<u16> = (50..60).map(reported_behind).collect();
    assert!(reported.iter().all(|packets| (1..=3).contains(packets)), "{reported:?}");
    assert!(reported.contains(&3), "{reported:?}: not by a request");
}

#[test]
fn a_spurious_retransmission_of_a_window_is_not_answered_packet_by_packet() {
    let mut pair = in_full_flow(&[20]);
    pair.script(|sent| if sent.data().next().is_some() { Fate::Twice } else { Fate::Arrive });
    bulk(&mut pair, 400);
    let packets = 2 * pair.log.iter().filter(|sent| sent.data().next().is_some()).count();
    let count = sacks(&pair).len();
    assert!(count * 5 <= packets * 3, "{count} SACKs for {packets} packets");
}
