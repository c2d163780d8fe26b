//! Detection of paths that share a bottleneck (`transfer.coupling = "detected"`).

use ropewalk_base::PathId;
use ropewalk_engine::path::Sharing;
use ropewalk_lab::{Run, RunOptions, run};
use ropewalk_scenario::Scenario;

/// Runs a transfer over two paths of 20 Mbit/s, 40 and 70 ms, that lead through one link.
fn over_one_link(transfer: &str, link: &str, seconds: u64) -> Run {
    let text = format!(
        "[transfer]\nduration = '{seconds} s'\nreceive_buffer = '4 MB'\ncoupling = 'detected'\n{transfer}\n\
         [[link]]\nname = 'core'\ndelay = '5 ms'\nqueue = '100 kB'\n{link}\n\
         [[path]]\nname = 'a'\nrate = '20 Mbit/s'\nrtt = '40 ms'\nqueue = '2 BDP'\nvia = ['core']\n\
         [[path]]\nname = 'b'\nrate = '20 Mbit/s'\nrtt = '70 ms'\nqueue = '2 BDP'\nvia = ['core']\n"
    );
    let scenario = Scenario::parse(&text, "bottleneck.toml").unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn sharing(run: &Run) -> Sharing {
    let found = run.bottlenecks.as_ref().expect("the paths are compared");
    found.sharing(PathId(0), PathId(1))
}

const RATE_BASED: [&str; 2] = ["preset = 'live'", "protocol = 'mptcp'\ncongestion = 'bbr'"];
const LOSS_BASED: &str = "congestion = 'cubic'\nscheduler = 'min-rtt'";

#[test]
fn paths_with_their_own_bottlenecks_are_told_from_paths_with_a_shared_one() {
    for control in RATE_BASED.into_iter().chain([LOSS_BASED]) {
        let slow = sharing(&over_one_link(control, "rate = '15 Mbit/s'", 40));
        let fast = sharing(&over_one_link(control, "rate = '1 Gbit/s'", 40));
        assert_eq!(slow, Sharing::Shared, "{control}");
        assert_ne!(fast, Sharing::Shared, "{control}");
    }
}

#[test]
fn a_bottleneck_that_moves_is_found_again() {
    let to_core = "rate = '1 Gbit/s'\nsteps = [{ at = '30 s', rate = '15 Mbit/s' }]";
    let to_paths = "rate = '15 Mbit/s'\nsteps = [{ at = '30 s', rate = '1 Gbit/s' }]";
    for control in RATE_BASED {
        for (seconds, link, shared) in [
            (30, to_core, false),
            (80, to_core, true),
            (30, to_paths, true),
            (100, to_paths, false),
        ] {
            let found = sharing(&over_one_link(control, link, seconds));
            assert_eq!(
                found == Sharing::Shared,
                shared,
                "{control}, {link}, {seconds} s: {found:?}"
            );
        }
    }
}

#[test]
fn without_the_option_nothing_is_compared_and_nothing_changes() {
    let of = |coupling: &str| {
        let text = format!(
            // With coupling, all probes of the round trip are full ones.
            "[transfer]\nduration = '20 s'\npreset = 'live'\nbrief_probe_rtt = false\n{coupling}\n\
             [[path]]\nname = 'a'\nrate = '20 Mbit/s'\nrtt = '40 ms'\n\
             [[path]]\nname = 'b'\nrate = '10 Mbit/s'\nrtt = '70 ms'\n"
        );
        let scenario = Scenario::parse(&text, "plain.toml").expect("a scenario");
        run(&scenario, &RunOptions::default()).expect("a run")
    };
    let (without, with) = (of("coupling = 'none'"), of("coupling = 'detected'"));
    assert!(without.bottlenecks.is_none());
    assert_eq!(with.bottlenecks.expect("compared").groups(), [PathId(0), PathId(1)]);
    assert_eq!(without.result.goodput_bps, with.result.goodput_bps, "separate paths act alone");
}
