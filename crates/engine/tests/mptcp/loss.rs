//! Loss on one subflow, detected by count, by time or by the timer.

use ropewalk_base::Time;
use ropewalk_engine::mptcp::{Config, Reinjection, Reordering};

use super::driver::{FULL, Fate, LEFT, Pair, RIGHT, config};

/// The senders, with their methods of loss detection.
fn senders() -> [(&'static str, Config); 3] {
    let base = config(1, 1_000_000);
    let by_count = Config { reordering: Reordering::None, ..base.clone() };
    let by_duplicates = Config { sack: false, ..by_count.clone() };
    [("RACK-TLP", base), ("SACK", by_count), ("NewReno", by_duplicates)]
}

#[test]
fn one_lost_segment_is_sent_again_within_two_round_trips_and_halves_the_window_once() {
    for (name, config) in senders() {
        let mut pair = Pair::new(&config, &[20]);
        pair.run_until(1_000);
        let mut data = 0;
        pair.script(move |sent| {
            data += i32::from(sent.is_data());
            if sent.is_data() && data == 12 { Fate::Drop } else { Fate::Arrive }
        });
        pair.write(0, 60 * FULL);
        pair.run_until(10_000);
        assert!(pair.has_read(60 * FULL), "{name}");
        let lost = pair.log.iter().find(|s| s.fate == Fate::Drop).expect("one was lost");
        let same = |s: &&super::driver::Sent| s.is_data() && s.segment.seq == lost.segment.seq;
        let times: Vec<Time> = pair.log.iter().filter(same).map(|s| s.at).collect();
        assert_eq!(times.len(), 2, "{name}: {times:?}");
        assert!(times[1].since(times[0]).as_secs_f64() < 0.1, "{name}: {times:?}");
        let counters = pair.ends[LEFT].path_counters().next().copied().unwrap_or_default();
        assert_eq!((counters.fast_retransmits, counters.timeouts), (1, 0), "{name}");
        assert_eq!(pair.ends[RIGHT].receive_stats().duplicates, 0, "{name}");
    }
}

#[test]
fn many_losses_of_one_window_cost_one_reduction() {
    for (name, config) in senders() {
        let mut pair = Pair::new(&config, &[20]);
        pair.run_until(1_000);
        let mut data = 0;
        pair.script(move |sent| {
            data += i32::from(sent.is_data());
            let lost = [20, 22, 24, 25, 26].contains(&data);
            if sent.is_data() && lost { Fate::Drop } else { Fate::Arrive }
        });
        pair.write(0, 100 * FULL);
        pair.run_until(20_000);
        assert!(pair.has_read(100 * FULL), "{name}");
        let counters = pair.ends[LEFT].path_counters().next().copied().unwrap_or_default();
        assert_eq!((counters.fast_retransmits, counters.timeouts), (1, 0), "{name}");
        assert_eq!(pair.ends[RIGHT].receive_stats().duplicates, 0, "{name}");
    }
}

#[test]
fn a_lost_tail_is_found_by_a_probe_and_without_one_by_the_timer() {
    for (name, config) in senders() {
        let mut pair = Pair::new(&config, &[20]);
        pair.run_until(1_000);
        let mut data = 0;
        pair.script(move |sent| {
            data += i32::from(sent.is_data());
            if sent.is_data() && data == 10 { Fate::Drop } else { Fate::Arrive }
        });
        pair.write(0, 10 * FULL);
        pair.run_until(10_000);
        assert!(pair.has_read(10 * FULL), "{name}");
        let counters = pair.ends[LEFT].path_counters().next().copied().unwrap_or_default();
        assert_eq!(counters.timeouts, u64::from(name != "RACK-TLP"), "{name}");
    }
}

#[test]
fn reordering_between_subflows_is_no_loss() {
    for reordering in [Reordering::None, Reordering::RackTlp] {
        let both = Config { reordering, ..config(2, 1_000_000) };
        let mut pair = Pair::of([both.clone(), both], "round-robin", &[5, 100]);
        pair.write(0, 300 * FULL);
        pair.run_until(10_000);
        assert!(pair.has_read(300 * FULL));
        let again: u64 = pair.ends[LEFT].path_counters().map(|c| c.retransmitted).sum();
        assert_eq!(again, 0, "{reordering:?}");
    }
}

#[test]
fn data_of_a_subflow_that_went_silent_goes_to_the_other_if_that_is_wanted() {
    for (reinjection, arrives) in
        [(Reinjection::Never, false), (Reinjection::OnTimeout, true), (Reinjection::OnLoss, true)]
    {
        let both = Config { reinjection, ..config(2, 1_000_000) };
        let mut pair = Pair::of([both.clone(), both], "round-robin", &[10, 20]);
        pair.run_until(1_000);
        pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
        pair.write(0, 100 * FULL);
        pair.run_until(8_000);
        assert_eq!(pair.has_read(100 * FULL), arrives, "{reinjection:?}");
    }
}
