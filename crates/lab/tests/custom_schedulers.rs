//! Custom schedulers, selected by name wherever a scenario runs. Illegal decisions end the run.

use std::ops::ControlFlow;

use ropewalk_base::{PathId, Time};
use ropewalk_engine::scheduler::{CustomScheduler, Decision, Reason, Schedule, Scheduler, View};
use ropewalk_lab::compare::{CompareOptions, Variant, compare};
use ropewalk_lab::sweep::{Axis, Seeds, Source, Sweep, SweepOptions, SweepPlan, to_json};
use ropewalk_lab::{CustomSchedulers, RunOptions, run};
use ropewalk_scenario::{Override, Scenario};

const TEXT: &str = "[transfer]\nduration = '5 s'\n[[path]]\nname = 'wifi'\nrate = '4 Mbit/s'\n\
    rtt = '20 ms'\n[[path]]\nname = 'lte'\nrate = '8 Mbit/s'\nrtt = '80 ms'\n";

type Rule = fn(&View<'_>) -> Decision;

/// Follows its rule from a given time on.
#[derive(Clone)]
struct Ruled(Rule);

impl Schedule for Ruled {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        match view.now > Time::from_millis(500) {
            true => (self.0)(view),
            false => on_slowest(view),
        }
    }
}

impl CustomScheduler for Ruled {
    fn name(&self) -> &str {
        "ruled"
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

fn slowest_first() -> CustomSchedulers {
    let mut schedulers = CustomSchedulers::default();
    schedulers.add("slowest-first", || Box::new(Ruled(on_slowest))).expect("a free name");
    schedulers
}

fn named(scheduler: &str) -> Scenario {
    let change = &format!("transfer.scheduler={scheduler}");
    let set = Override { option: "--set", change };
    slowest_first().parse(TEXT, "test.toml", &[set]).expect("a valid scenario")
}

fn goodput(scheduler: &str) -> f64 {
    let options = RunOptions { custom_schedulers: slowest_first(), ..RunOptions::default() };
    run(&named(scheduler), &options).expect("it runs").result.goodput_bps
}

#[test]
fn a_run_without_the_scheduler_that_it_names_fails() {
    let error = run(&named("slowest-first"), &RunOptions::default()).expect_err("it is not given");
    assert!(error.to_string().contains("\"slowest-first\""), "{error}");
    let unknown = Scenario::parse_with(TEXT, "test.toml", &["transfer.scheduler=slowest-first"]);
    assert!(unknown.is_err());
}

#[test]
fn a_custom_name_holds_in_runs_comparisons_and_sweeps() {
    let (own, least) = (goodput("slowest-first"), goodput("min-rtt"));
    assert_ne!(own, least, "it decides otherwise");

    let variants = ["slowest-first", "min-rtt"]
        .map(|name| Variant { label: name.to_owned(), scenario: named(name) });
    let options = CompareOptions {
        seeds: 1,
        threads: 2,
        series: false,
        sequence: None,
        single_paths: false,
        custom_schedulers: slowest_first(),
    };
    let compared = compare(&variants, &options, &|_| ());
    let results: Vec<_> =
        compared.into_iter().map(|one| one.outcome.expect("it runs").result).collect();
    assert_eq!([results[0].goodput_bps, results[1].goodput_bps], [own, least]);
    assert_eq!(results[0].scheduler, "slowest-first");

    let (text, name) = (TEXT.to_owned(), "test.toml".to_owned());
    let source =
        Source { text, name, sets: vec![], seed: None, custom_schedulers: slowest_first() };
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
    // On an open path, because a closed path would be reported as the first error.
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
            let scheduler = Some(Scheduler::Custom(Box::new(Ruled(wrong))));
            let options = RunOptions { scheduler, ..RunOptions::default() };
            let set = format!("transfer.protocol={protocol}");
            let scenario = Scenario::parse_with(TEXT, "test.toml", &[set]).expect("valid");
            let error = run(&scenario, &options).expect_err(part).to_string();
            assert!(error.contains(part) && error.contains("\"ruled\""), "{protocol}: {error}");
        }
    }
}
