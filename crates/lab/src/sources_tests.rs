//! Results of messages, compared with the engine's counters.

use proptest::prelude::*;
use ropewalk_base::{Duration, Time};
use ropewalk_scenario::Scenario;

use crate::machine::Machine;
use crate::result::FlowResult;
use crate::run::set_up;
use crate::setup::RunOptions;
use crate::sources::results;

/// Runs two sources over a path with losses for eight seconds. Returns the results of both, and the number of
/// messages that the engine abandoned.
fn play(seed: u64, loss: f64, sctp: &str, keys: &str) -> ([FlowResult; 2], u64) {
    let text = format!(
        "[transfer]\npreset = 'live'\nduration = '8 s'\nreceive_buffer = '1 MB'\nseed = {seed}\n\
         [sctp]\n{sctp}\n[[path]]\nname = 'a'\nrate = '10 Mbit/s'\nrtt = '40 ms'\nloss = {loss}\n\
         [[source]]\nname = 'limited'\n{keys}\n\
         [[source]]\nname = 'file'\nmessage = '30 kB'\nevery = '100 ms'\n"
    );
    let scenario = Scenario::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{text}\n{e}"));
    let mut setup = set_up(&scenario, &RunOptions::default()).expect("a world");
    let end = Time::ZERO + Duration::from_secs(8);
    setup.world.run_until(end);
    let transfer = &setup.transfers[0];
    let [one, other] = [transfer.sender, transfer.receiver].map(|host| setup.world.host(host));
    let Machine::Sctp(association) = &one.machine else { panic!("SCTP") };
    let ends = (one.sources().expect("some"), other.sources().expect("some"));
    let flows = results(&scenario, ends, association, (Time::ZERO, end));
    (flows.try_into().expect("two sources"), association.sender_stats().abandoned)
}

fn accounts(flow: &FlowResult, due: u64) {
    assert_eq!(flow.sent, due, "{flow:?}");
    assert_eq!(flow.sent, flow.delivered + flow.abandoned + flow.under_way, "{flow:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_message_is_delivered_or_given_up_or_under_way(
        seed in 0..1000_u64,
        loss in 0.0..0.15,
        interleaving: bool,
        nr_sack: bool,
        unordered: bool,
        message in prop_oneof![Just(200_u64), Just(1_000), Just(9_000)],
        streams in 1..4_u16,
        limit in prop_oneof![
            Just(""), Just("lifetime = '100 ms'"), Just("lifetime = '40 ms'"),
            Just("retransmissions = 0"), Just("retransmissions = 2"),
        ],
    ) {
        let sctp = format!("interleaving = {interleaving}\nnr_sack = {nr_sack}");
        let keys = format!(
            "message = '{message} B'\nstreams = {streams}\nunordered = {unordered}\n{limit}"
        );
        let ([limited, file], given_up) = play(seed, loss, &sctp, &keys);
        accounts(&limited, 401);
        accounts(&file, 81);
        prop_assert_eq!(file.abandoned, 0);
        // An ordered or long message can arrive although it was abandoned. With NR-SACK, the sender forgets
        // messages that wait at the receiver for earlier ones.
        if unordered || !nr_sack {
            prop_assert!(limited.abandoned <= given_up, "{:?}, engine {}", limited, given_up);
        }
        if limit.is_empty() {
            prop_assert_eq!(limited.lost, Some(0.0));
        }
        if unordered && message <= 1_000 {
            prop_assert_eq!(limited.abandoned, given_up);
        }
    }
}

#[test]
fn only_messages_that_were_lost_are_given_up_without_retransmissions() {
    let keys = "retransmissions = 0\nunordered = true";
    let ([none, _], _) = play(1, 0.0, "", keys);
    assert_eq!((none.abandoned, none.lost), (0, Some(0.0)));
    let ([some, _], _) = play(1, 0.1, "", keys);
    assert!(some.lost.is_some_and(|lost| (0.05..0.25).contains(&lost)), "{some:?}");
    assert_eq!(some.out_of_order, 0.0);
}
