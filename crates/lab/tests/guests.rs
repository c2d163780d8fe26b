//! Schedulers that are not built in: by name, wherever a scenario runs; wrong ones end their run.

use std::ops::ControlFlow;

use ropewalk_base::{PathId, Time};
use ropewalk_engine::scheduler::{CustomScheduler, Decision, Reason, Schedule, Scheduler, View};
use ropewalk_lab::compare::{CompareOptions, Variant, compare};
use ropewalk_lab::sweep::{Axis, Seeds, Source, Sweep, SweepOptions, SweepPlan, to_json};
use ropewalk_lab::{RunOptions, register_scheduler, run};
use ropewalk_scenario::Scenario;

const TEXT: &str = "[transfer]\nduration = '5 s'\n[[path]]\nname = 'wifi'\nrate = '4 Mbit/s'\n\
    rtt = '20 ms'\n[[path]]\nname = 'lte'\nrate = '8 Mbit/s'\nrtt = '80 ms'\n";

type Rule = fn(&View<'_>) -> Decision;

/// Does what its rule says, from a time on.
#[derive(Clone)]
struct Guest(Rule);

impl Schedule for Guest {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        match view.now > Time::from_millis(500) {
            true => (self.0)(view),
            false => on_slowest(view),
        }
    }
}

impl CustomScheduler for Guest {
    fn name(&self) -> &str {
        "guest"
    }

    fn clone_box(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }
}

fn on_slowest(view: &View<'_>) -> Decision {
    match view.open_for_head().max_by_key(|path| path.srtt) {
        Some(path) => Decision::send(path.id, 0, Reason::Custom),
        None => view.nobody(),
    }
}

fn named(scheduler: &str) -> Scenario {
    let set = format!("transfer.scheduler={scheduler}");
    Scenario::parse_with(TEXT, "test.toml", &[set]).expect("a valid scenario")
}

fn goodput(scheduler: &str) -> f64 {
    run(&named(scheduler), &RunOptions::default()).expect("it runs").result.goodput_bps
}

#[test]
fn a_registered_name_holds_in_runs_comparisons_and_sweeps() {
    register_scheduler("slowest-first", || Box::new(Guest(on_slowest))).expect("a free name");
    let (own, least) = (goodput("slowest-first"), goodput("min-rtt"));
    assert_ne!(own, least, "it decides otherwise");

    let variants = ["slowest-first", "min-rtt"]
        .map(|name| Variant { label: name.to_owned(), scenario: named(name) });
    let options =
        CompareOptions { seeds: 1, threads: 2, series: false, sequence: None, single_paths: false };
    let compared = compare(&variants, &options, &|_| ());
    let results: Vec<_> =
        compared.into_iter().map(|one| one.outcome.expect("it runs").result).collect();
    assert_eq!([results[0].goodput_bps, results[1].goodput_bps], [own, least]);
    assert_eq!(results[0].scheduler, "slowest-first");

    let (text, name) = (TEXT.to_owned(), "test.toml".to_owned());
    let source = Source { text, name, sets: vec![], seed: None };
    let axes = vec![Axis::parse("transfer.scheduler=slowest-first,min-rtt").expect("an axis")];
    let seeds = Seeds::first(1).expect("one seed");
    let plan = SweepPlan::new(source, axes, seeds).expect("a plan");
    let sweep = Sweep::open(&plan, SweepOptions::default()).expect("a sweep");
    let tables = sweep.finish(2, &|| ControlFlow::Continue(())).expect("it runs");
    let rows = to_json(&tables.means);
    let text = rows.to_string();
    assert!(text.contains("slowest-first") && text.contains(&format!("{own:?}")), "{text}");
}

#[test]
fn a_wrong_decision_ends_the_run_and_is_told() {
    // On a path that is open: else that would be what is wrong first.
    let far: Rule = |view| match view.open().next() {
        Some(path) => Decision::send(path.id, u64::MAX, Reason::Custom),
        None => view.nobody(),
    };
    let cases: [(Rule, &str); 3] = [
        (|_| Decision::send(PathId(9), 0, Reason::Custom), "does not exist"),
        (far, "out of reach"),
        (|view| Decision::wait(view.now, Reason::Custom), "waiting until"),
    ];
    for protocol in ["cmt-sctp", "mptcp"] {
        for (wrong, part) in cases {
            let guest = Some(Scheduler::Custom(Box::new(Guest(wrong))));
            let options = RunOptions { scheduler: guest, ..RunOptions::default() };
            let set = format!("transfer.protocol={protocol}");
            let scenario = Scenario::parse_with(TEXT, "test.toml", &[set]).expect("valid");
            let error = run(&scenario, &options).expect_err(part).to_string();
            assert!(error.contains(part) && error.contains("\"guest\""), "{protocol}: {error}");
        }
    }
}
