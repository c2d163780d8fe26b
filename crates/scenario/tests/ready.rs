//! Ready scenarios: found by name, equal to the files of the directory.

use std::collections::BTreeSet;

use ropewalk_scenario::{READY_SCENARIOS, Scenario};

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
