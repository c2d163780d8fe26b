//! The same seed gives the same result in a second run, on other threads, and with additional
//! unused links.

use std::cell::RefCell;

use ropewalk_lab::{EngineFigures, RunOptions, RunResult, run, run_watched};
use ropewalk_scenario::Scenario;

const LOSSY: &str = "
[transfer]
duration       = '10 s'
receive_buffer = '45 kB'
[[path]]
name  = 'wifi'
rate  = '1 Mbit/s'
rtt   = '20 ms'
queue = '50 packets'
loss  = 0.01
[[path]]
name  = 'lte'
rate  = '2 Mbit/s'
rtt   = '200 ms'
queue = '50 packets'
loss  = { model = 'gilbert-elliott', p = 0.01, r = 0.3 }
jitter = '5 ms'
";

fn result(text: &str) -> RunResult {
    let scenario = Scenario::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}")).result
}

/// The result without the figures about speed and amount of work.
fn without_figures(result: RunResult) -> String {
    let none = EngineFigures { events: 0, packets: 0, cpu_s: 0.0, packets_per_cpu_s: 0.0 };
    serde_json::to_string(&RunResult { engine: none, ..result }).expect("a result is JSON")
}

#[test]
fn one_seed_gives_one_result_again_and_on_any_thread() {
    let first = without_figures(result(LOSSY));
    assert_eq!(without_figures(result(LOSSY)), first);
    let others: Vec<_> =
        (0..4).map(|_| std::thread::spawn(|| without_figures(result(LOSSY)))).collect();
    for other in others {
        assert_eq!(other.join().expect("a run"), first);
    }
}

#[test]
fn another_seed_gives_another_result() {
    let text = LOSSY.replace("[transfer]", "[transfer]\nseed = 2");
    assert_ne!(without_figures(result(&text)), without_figures(result(LOSSY)));
}

#[test]
fn links_and_traffic_that_no_path_uses_change_no_figure() {
    let first = without_figures(result(LOSSY));
    let idle = "
[[link]]
name  = 'elsewhere'
rate  = '3 Mbit/s'
delay = '5 ms'
loss  = 0.1
";
    let cross = "
[[cross]]
kind = 'poisson'
on   = 'elsewhere'
rate = '2 Mbit/s'
";
    for more in [idle.to_owned(), format!("{idle}{cross}")] {
        assert_eq!(without_figures(result(&format!("{LOSSY}{more}"))), first, "{more}");
    }
}

#[test]
fn being_watched_and_sampled_changes_no_figure() {
    let bytes = "[transfer]\nbytes = '1 MB'";
    let crowd = "[world]\nassociations = 3\nstagger = '100 ms'\n";
    for (head, more) in [("[transfer]", ""), (bytes, ""), (bytes, crowd)] {
        let text = format!("{}{more}", LOSSY.replace("[transfer]", head));
        let text = text.replace("duration       = '10 s'", "duration       = '60 s'");
        let scenario = Scenario::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
        let alone = run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let told = RefCell::new(Vec::new());
        let options = RunOptions { series: true, ..RunOptions::default() };
        let watched = run_watched(&scenario, &options, &|share| told.borrow_mut().push(share));
        let watched = watched.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(watched.result.engine.events, alone.result.engine.events, "{text}");
        assert_eq!(without_figures(watched.result), without_figures(alone.result), "{text}");
        let told = told.into_inner();
        assert!(told.len() > 50 && told.is_sorted(), "{told:?}");
        assert!(told.iter().all(|share| (0.0..=1.0).contains(share)), "{told:?}");
        assert!(told.last().is_some_and(|last| *last > 0.9), "{told:?}");
    }
}
