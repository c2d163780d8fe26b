//! `lay` on links whose queues are filled by other flows: it gets its share there, although it does not fill
//! queues itself (docs/concepts/lay.md).

use ropewalk_lab::compare::map_in_parallel;
use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

/// Two greedy flows on each of two links.
const CONTESTED: &str = r#"
[transfer]
duration       = "80 s"
warmup         = "20 s"
receive_buffer = "2 MB"

[[path]]
name  = "first"
rate  = "20 Mbit/s"
rtt   = "40 ms"
queue = "2 BDP"

[[path]]
name  = "second"
rate  = "20 Mbit/s"
rtt   = "60 ms"
queue = "2 BDP"

[[cross]]
kind  = "greedy"
on    = "first"
flows = 2

[[cross]]
kind  = "greedy"
on    = "second"
flows = 2
"#;

/// Goodput of a scheduler, bit/s. Mean over several round trips of the first path, because the outcome against
/// greedy flows is random.
fn goodput(protocol: &str, scheduler: &str) -> f64 {
    let round_trips: Vec<u64> = (36..44).collect();
    let goodputs = map_in_parallel(&round_trips, 2, |millis| {
        let sets = [
            format!("transfer.protocol={protocol}"),
            format!("transfer.scheduler={scheduler}"),
            format!("path.first.rtt={millis}ms"),
        ];
        let scenario = Scenario::parse_with(CONTESTED, "contested.toml", &sets);
        let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
        let done = run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        done.result.goodput_bps
    });
    goodputs.iter().sum::<f64>() / goodputs.len() as f64
}

#[test]
fn lay_takes_its_part_of_queues_that_others_fill() {
    let of = |scheduler| goodput("cmt-sctp", scheduler) + goodput("mptcp", scheduler);
    let (lay, fills_windows) = (of("lay"), of("min-rtt"));
    assert!(lay > 0.75 * fills_windows, "{lay} beside {fills_windows}");
}
