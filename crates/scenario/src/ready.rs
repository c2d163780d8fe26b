//! The ready scenarios: the files of `scenarios/`, which are part of the program.

use crate::suggest;

/// A ready scenario. [`crate::Scenario::load`] finds it by its name.
#[derive(Clone, Copy, Debug)]
pub struct ReadyScenario {
    /// Its name: that of its file, without the extension.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
    /// The files that it names: their names relative to it, and their texts.
    pub files: &'static [(&'static str, &'static str)],
}

macro_rules! ready {
    ($($name:literal $(with $($file:literal)+)?),+ $(,)?) => {
        &[$(ReadyScenario {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $name, ".toml")),
            files: &[$($(($file, include_str!(concat!("../../../scenarios/", $file)))),+)?],
        }),+]
    };
}

/// All ready scenarios, by name.
pub const READY_SCENARIOS: &[ReadyScenario] = ready![
    "big",
    "handover-outage",
    "kuhn-2-200-45",
    "lossy-wifi",
    "lte-satellite",
    "sarwar",
    "thousand",
    "trace-driven" with "traces/drive.mahi",
    "two-dsl",
    "two-wifi",
    "wifi-lte",
];

impl ReadyScenario {
    /// The text of a file that the scenario names.
    pub(crate) fn file(&self, name: &str) -> Option<&'static str> {
        self.files.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// What the scenario describes: the comment at its beginning.
    pub fn description(&self) -> String {
        let comment = self.text.lines().map_while(|line| line.strip_prefix('#'));
        let words: Vec<_> = comment.flat_map(str::split_whitespace).collect();
        words.join(" ")
    }
}

/// The ready scenario with this name.
pub(crate) fn find(name: &str) -> Option<&'static ReadyScenario> {
    READY_SCENARIOS.iter().find(|scenario| scenario.name == name)
}

/// What to do if there is neither a file nor a ready scenario of this name.
pub(crate) fn help(name: &str) -> String {
    let names: Vec<_> = READY_SCENARIOS.iter().map(|scenario| scenario.name).collect();
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    let stem = stem.rsplit(['/', '\\']).next().unwrap_or(stem);
    let valid = format!(
        "give the name of a scenario file (TOML), or of a ready scenario: {}",
        suggest::or_list(&names)
    );
    match suggest::nearest(stem, &names) {
        Some(near) => format!("did you mean the ready scenario `{near}`? {valid}"),
        None => valid,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Scenario;

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
            let described = find(&name(&path)).expect("it is ready").description();
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
}
