//! The ready scenarios: the files of `scenarios/`, which are part of the program.

use crate::suggest;

/// A ready scenario. [`crate::Scenario::load`] finds it by name.
#[derive(Clone, Copy, Debug)]
pub struct ReadyScenario {
    /// The name of its file without the extension.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
    /// The files that it refers to: their names relative to it, and their texts.
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
    "l4s",
    "late-is-lost",
    "lossy-wifi",
    "lte-satellite",
    "sarwar",
    "short-beside-long",
    "thousand",
    "trace-driven" with "traces/drive.mahi",
    "tunnel-call",
    "two-dsl",
    "two-wifi",
    "wifi-lte",
];

/// The scenarios of `ropewalk validate`, in its order. [`crate::Scenario::load`] also finds them by name.
pub const VALIDATION_SCENARIOS: &[ReadyScenario] = ready![
    "validation/1x20-2x200-45k",
    "validation/1x20-2x200-128k",
    "validation/1x20-2x200-1M",
    "validation/10x20-10x200-45k",
    "validation/10x20-10x200-128k",
    "validation/10x20-10x200-1M",
    "validation/50x20-10x100-45k",
    "validation/50x20-10x100-128k",
    "validation/50x20-10x100-1M",
    "validation/10x20-10x20-45k",
    "validation/10x20-10x20-128k",
    "validation/10x20-10x20-1M",
    "validation/1x50-1x100-64k",
    "validation/5x10-5x30-256k",
    "validation/20x40-5x80-auto",
    "validation/100x10-20x40-4M",
    "validation/200x20-50x60-4M",
    "validation/50x5-50x5-128k",
    "validation/2x600-10x50-auto",
    "validation/20x600-5x60-1M",
    "validation/30x30-10x60-loss01-4M",
    "validation/30x30-10x60-loss1-4M",
    "validation/20x40-20x40-loss2-1M",
    "validation/10x100-40x20-loss05-1M",
    "validation/20x20-20x20-queue025-4M",
    "validation/20x20-20x20-queue4-auto",
    "validation/100x50-10x200-queue2-4M",
    "validation/10x20-10x60-5x150-256k",
    "validation/50x10-20x40-10x100-4M",
    "validation/20x40-10x80-twice-4M",
];

/// Scenarios of `ropewalk validate` for BBR, alone and with CUBIC. [`crate::Scenario::load`] also finds them by
/// name.
pub const BBR_SCENARIOS: &[ReadyScenario] = ready![
    "validation/bbr-10x20-queue1",
    "validation/bbr-50x40-queue2",
    "validation/bbr-cubic-20x40-queue1",
    "validation/bbr-cubic-50x20-queue2",
    "validation/bbr-cubic-10x80-queue4",
];

/// Bundles of ordinary access links, in the order of `ropewalk bench compare --access`. [`crate::Scenario::load`]
/// also finds them by name.
pub const ACCESS_SCENARIOS: &[ReadyScenario] = ready![
    "access/dsl-lte",
    "access/dsl-cable",
    "access/cable-5g",
    "access/wifi-5g",
    "access/dsl-lte-outage",
    "access/two-lte",
    "access/leo-lte",
    "access/dsl-geostationary",
    "access/dsl-leo-lte",
    "access/cable-5g-two-lte",
];

impl ReadyScenario {
    /// The text of a file that the scenario refers to.
    pub(crate) fn file(&self, name: &str) -> Option<&'static str> {
        self.files.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Description of the scenario: the comment at its beginning.
    pub fn description(&self) -> String {
        let comment = self.text.lines().map_while(|line| line.strip_prefix('#'));
        let words: Vec<_> = comment.flat_map(str::split_whitespace).collect();
        words.join(" ")
    }
}

/// The ready scenario with this name.
pub(crate) fn find(name: &str) -> Option<&'static ReadyScenario> {
    let sets = [READY_SCENARIOS, ACCESS_SCENARIOS, VALIDATION_SCENARIOS, BBR_SCENARIOS];
    sets.into_iter().flatten().find(|scenario| scenario.name == name)
}

/// The hint if there is neither a file nor a ready scenario of this name.
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
