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
