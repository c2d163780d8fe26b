//! Networks that lose the rest of a round after its first loss. No loss may continue forever.

use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

#[test]
fn whoever_loses_whole_rounds_goes_on_with_the_next_on_either_way() {
    for (recovery, direction, rate) in [
        ("missing-reports", "loss", 0.1),
        ("rack-tlp", "loss", 0.1),
        ("missing-reports", "loss_down", 0.3),
    ] {
        for seed in 1..=8 {
            let text = format!(
                "[transfer]\nduration = '30 s'\nseed = {seed}\n\
                 [sctp]\nrecovery = '{recovery}'\nrto_min = '120 ms'\nrto_initial = '120 ms'\n\
                 rto_max = '1 s'\n\
                 [[path]]\nname = 'a'\nrate = '10 Mbit/s'\nrtt = '40 ms'\n\
                 {direction} = {{ model = 'round', rate = {rate} }}\n"
            );
            let scenario = Scenario::parse(&text, "rounds.toml").unwrap_or_else(|e| panic!("{e}"));
            let done = run(&scenario, &RunOptions::default());
            let done = done.unwrap_or_else(|e| panic!("{recovery}, {direction}, {seed}: {e}"));
            // One packet per maximum timeout is 12 kbit/s. Much more than that means that rounds
            // continue.
            let goodput = done.result.goodput_bps;
            assert!(goodput > 1e5, "{recovery}, {direction}, {seed}: {goodput} bit/s");
        }
    }
}
