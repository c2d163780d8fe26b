//! Ready scenarios: found by name, equal to the files of the directory.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use ropewalk_base::{Duration, Time};
use ropewalk_scenario::{
    ACCESS_SCENARIOS, Discipline, Limit, LinkSide, Path, READY_SCENARIOS, Scenario,
};

#[test]
fn every_file_of_the_directory_is_a_ready_scenario_and_reads_the_same() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let files = std::fs::read_dir(directory).expect("the scenarios");
    let paths = files.map(|file| file.expect("a file").path());
    let paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    let name = |path: &std::path::PathBuf| {
        path.file_stem().expect("a name").to_string_lossy().into_owned()
    };
    let names: BTreeSet<_> = paths.iter().map(name).collect();
    assert_eq!(names, READY_SCENARIOS.iter().map(|ready| ready.name.to_owned()).collect());
    for path in paths {
        let ready = Scenario::load(name(&path)).expect("a ready scenario");
        assert_eq!(ready.to_toml(), Scenario::load(&path).expect("a file").to_toml());
        let described = READY_SCENARIOS
            .iter()
            .find(|ready| ready.name == name(&path))
            .expect("it is ready")
            .description();
        assert!(described.ends_with('.') && described.len() > 20, "{described}");
    }
}

#[test]
fn a_name_that_is_nearly_a_ready_scenario_is_suggested() {
    for (name, near) in [("wifi-lt", "`wifi-lte`"), ("scenarios/big2.toml", "`big`")] {
        let error = Scenario::load(name).expect_err("there is no such file").to_string();
        assert!(error.contains(&format!("did you mean the ready scenario {near}?")), "{error}");
    }
    let error = Scenario::load("no-such-thing").expect_err("there is no such file").to_string();
    assert!(error.contains("two-dsl") && !error.contains("did you mean"), "{error}");
}

/// The links of all bundles, each with the name of its bundle.
static ACCESS_PATHS: LazyLock<Vec<(&str, Path)>> = LazyLock::new(|| {
    let paths = ACCESS_SCENARIOS.iter().flat_map(|ready| {
        let scenario = Scenario::load(ready.name).unwrap_or_else(|e| panic!("{e}"));
        scenario.paths.into_iter().map(|path| (ready.name, path))
    });
    paths.collect()
});

/// The rate at a time, bit/s.
fn rate_at(side: &LinkSide, at: Time) -> f64 {
    let changed = side.steps.iter().take_while(|step| step.at <= at);
    let rate = changed.filter_map(|step| step.rate).last();
    rate.unwrap_or_else(|| side.capacity.mean_rate()).as_bps() as f64
}

#[test]
fn every_file_of_the_access_links_is_a_ready_scenario_and_reads_the_same() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/access");
    let files = std::fs::read_dir(directory).expect("the scenarios");
    let names: BTreeSet<String> = files
        .map(|file| file.expect("a file").path())
        .map(|path| format!("access/{}", path.file_stem().expect("a name").to_string_lossy()))
        .collect();
    assert_eq!(names, ACCESS_SCENARIOS.iter().map(|ready| ready.name.to_owned()).collect());
    assert_eq!(names.len(), 10);
    for ready in ACCESS_SCENARIOS {
        let text = ready.text;
        let scenario = Scenario::load(ready.name).unwrap_or_else(|e| panic!("{e}"));
        let again = Scenario::parse(&scenario.to_toml(), ready.name).expect("what it wrote");
        assert_eq!(again, scenario, "{text}");
        assert!((2..=4).contains(&scenario.paths.len()), "{text}");
        assert_eq!(scenario.transfer.receive_buffer, 8_000_000, "{text}");
        assert!(ready.description().ends_with('.'), "{text}");
    }
}

#[test]
fn the_first_two_bundles_of_access_links_are_fixed() {
    let all: Vec<(&str, u64, u64, u64)> = ACCESS_PATHS
        .iter()
        .take(4)
        .map(|(name, path)| {
            let mbit = |side: &LinkSide| side.capacity.mean_rate().as_bps() / 1_000_000;
            let rtt = path.up.delay + path.down.delay;
            (*name, mbit(&path.up), mbit(&path.down), rtt.as_nanos() / 1_000_000)
        })
        .collect();
    assert_eq!(
        all,
        [
            ("access/dsl-lte", 50, 2, 22),
            ("access/dsl-lte", 40, 4, 55),
            ("access/dsl-cable", 60, 5, 20),
            ("access/dsl-cable", 120, 8, 25),
        ]
    );
}

#[test]
fn queues_of_access_links_hold_40_ms_to_1_s() {
    for (name, path) in ACCESS_PATHS.iter() {
        for side in [&path.up, &path.down] {
            let Limit::Bytes(bytes) = side.queue.limit else { panic!("{name}: {:?}", side.queue) };
            assert_eq!(side.queue.discipline, Discipline::DropTail, "{name}");
            let seconds = bytes as f64 * 8.0 / side.capacity.mean_rate().as_bps() as f64;
            // Sizes are whole kilobytes.
            assert!((0.038..=1.01).contains(&seconds), "{name}, {}: {seconds} s", path.name);
        }
    }
}

proptest! {
    #[test]
    fn return_rates_of_access_links_are_always_a_fifth_to_a_fortieth(at_ms in 0_u64..40_000) {
        let at = Time::ZERO + Duration::from_millis(at_ms);
        for (name, path) in ACCESS_PATHS.iter() {
            let ratio = rate_at(&path.up, at) / rate_at(&path.down, at);
            prop_assert!((5.0..=40.0).contains(&ratio), "{name}, {} at {at_ms} ms: {ratio}", path.name);
        }
    }

    #[test]
    fn bundles_of_access_links_never_exceed_270_mbit_per_second(at_ms in 0_u64..40_000) {
        let at = Time::ZERO + Duration::from_millis(at_ms);
        for ready in ACCESS_SCENARIOS {
            let of_this = ACCESS_PATHS.iter().filter(|(name, _)| *name == ready.name);
            let rate: f64 = of_this.map(|(_, path)| rate_at(&path.up, at)).sum();
            prop_assert!(rate <= 270e6, "{}: {rate} bit/s at {at_ms} ms", ready.name);
        }
    }
}
