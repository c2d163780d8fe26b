//! One cell of the study: a scenario, a recovery and a coupling, with one of the two presets.

use super::super::csv::Table;
use super::super::data;
use super::super::expected::Expected;
use super::super::plan::{RunKey, Runs};
use super::super::sample::seeds;
use super::PAPER;
use crate::RunResult;

/// The study's names of the recoveries, and the corresponding rules.
pub const RECOVERIES: [(&str, &str); 5] = [
    ("NoPR", "none"),
    ("D-SACK", "d-sack"),
    ("Eifel", "eifel"),
    ("TCP-DOOR", "tcp-door"),
    ("F-RTO", "f-rto"),
];

/// The recovery of `rfc8684`, which the study does not include.
pub const RACK: (&str, &str) = ("RACK-TLP", "rack-tlp");

/// The study's names of the couplings, and the corresponding algorithms.
pub const COUPLINGS: [(&str, &str); 3] =
    [("coupled", "lia"), ("uncoupled", "newreno"), ("fully-coupled", "fully-coupled")];

/// Upper limit of the probability of a burst of lost acknowledgements. The study's model of F-RTO draws the
/// probability for each subflow and run, uniformly from 0 to this.
const ACK_BURST_LOSS: &str = "tcp.ack_burst_loss_max=0.061";

/// Number of runs of each cell and of each single link.
pub const SEEDS: u32 = 10;

/// The model of Multipath TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The model of the study.
    Chihani2011,
    /// As RFC 8684 specifies it.
    Rfc8684,
}

impl Preset {
    /// Name of the preset in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chihani2011 => "chihani2011",
            Self::Rfc8684 => "rfc8684",
        }
    }

    const fn scheduler(self) -> &'static str {
        match self {
            Self::Chihani2011 => "round-robin",
            Self::Rfc8684 => "lay",
        }
    }

    /// Packet size: 1400 B of data, 64 B of headers and mapping, and the options of the rule.
    fn packet_bytes(self, rule: &str) -> u32 {
        match (self, rule) {
            (Self::Chihani2011, "eifel") => 1476,
            (Self::Chihani2011, _) => 1464,
            (Self::Rfc8684, "tcp-door") => 1484,
            (Self::Rfc8684, _) => 1476,
        }
    }
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Number of the scenario, 1 to 4.
    pub scenario: u32,
    /// The study's name of the recovery, and the corresponding rule.
    pub recovery: (&'static str, &'static str),
    /// The study's name of the coupling, and the corresponding algorithm.
    pub coupling: (&'static str, &'static str),
    /// The model of Multipath TCP.
    pub preset: Preset,
}

/// A quantity of a run by its name in a statement.
///
/// # Errors
/// A message if there is no such quantity.
fn of_run(result: &RunResult, quantity: &str) -> Result<f64, String> {
    match quantity {
        "goodput_bps" => Ok(result.goodput_bps),
        "out_of_order.ratio" => Ok(result.out_of_order.ratio),
        "out_of_order.max_bytes" => Ok(result.out_of_order.max_bytes as f64),
        // Bytes of the subflow that carried less, divided by the bytes of both.
        "lesser_subflow_share" => {
            let bytes = result.paths.iter().map(|path| path.delivered_bytes);
            let total: u64 = bytes.clone().sum();
            Ok(bytes.min().unwrap_or(0) as f64 / total.max(1) as f64)
        }
        other => Err(format!("`{other}` is no quantity of a cell")),
    }
}

impl Cell {
    /// The fifteen cells of a scenario in the order of the study's tables; three more under `rfc8684`.
    pub fn all(scenario: u32, preset: Preset) -> impl Iterator<Item = Self> {
        let rack = (preset == Preset::Rfc8684).then_some(RACK);
        let each = move |recovery| {
            COUPLINGS.into_iter().map(move |coupling| Self { scenario, recovery, coupling, preset })
        };
        RECOVERIES.into_iter().chain(rack).flat_map(each)
    }

    /// A label such as `NoPR, coupled`.
    pub fn label(&self) -> String {
        format!("{}, {}", self.recovery.0, self.coupling.0)
    }

    /// Settings of the runs, in addition to the scenario file and the study's readings.
    pub fn settings(&self) -> Vec<String> {
        if self.preset == Preset::Rfc8684 {
            return Vec::new();
        }
        let burst = (self.recovery.1 == "f-rto").then(|| ACK_BURST_LOSS.to_owned());
        std::iter::once("tcp.data_waits=true".to_owned()).chain(burst).collect()
    }

    /// The runs of the cell, with separate seeds. `changes` are added as `key=value`.
    pub fn keys(&self, changes: &[String]) -> Vec<RunKey> {
        let (rule, file) = (self.recovery.1, format!("scenario-{}.toml", self.scenario));
        let name = format!("{PAPER}/{file}/{}/{}", self.preset.name(), self.label());
        let with = |seed| {
            let key = RunKey::new(PAPER, &file, self.preset.scheduler())
                .with(format!("transfer.preset={}", self.preset.name()))
                .with(format!("transfer.congestion={}", self.coupling.1))
                .with(format!("transfer.packet={}B", self.preset.packet_bytes(rule)))
                .with(format!("transfer.seed={seed}"))
                .with(format!("tcp.recovery={rule}"));
            self.settings().iter().chain(changes).fold(key, |key, set| key.with(set.as_str()))
        };
        seeds(&name, SEEDS).map(with).collect()
    }

    /// The value of a quantity in each run of the cell.
    ///
    /// # Errors
    /// A message if a run failed, or if there is no such quantity.
    pub fn values(
        &self,
        expected: &Expected,
        quantity: &str,
        runs: &Runs,
    ) -> Result<Vec<f64>, String> {
        let keys = self.keys(&expected.changes);
        keys.iter().map(|key| of_run(&runs.get(key)?.result, quantity)).collect()
    }
}

/// One link of a scenario alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    standard: &'static str,
    rate_mbps: u32,
}

/// The two links of a scenario.
pub fn links(scenario: u32) -> [Link; 2] {
    let g = |rate_mbps| Link { standard: "802.11g", rate_mbps };
    let b = Link { standard: "802.11b", rate_mbps: 2 };
    match scenario {
        1 => [g(54), g(54)],
        2 => [b, b],
        3 => [g(54), b],
        _ => [g(6), b],
    }
}

impl Link {
    /// The runs of the link, with separate seeds.
    pub fn keys(self) -> Vec<RunKey> {
        let Self { standard, rate_mbps } = self;
        let key = RunKey::new(PAPER, "link.toml", "round-robin").with(format!(
            "path.wlan.wifi={{ standard = \"{standard}\", rate = \"{rate_mbps} Mbit/s\", channel = 1, \
             queue = \"400 packets\", end = \"sender\" }}"
        ));
        let name = format!("{PAPER}/link.toml/{standard}/{rate_mbps}");
        let with = |seed| key.clone().with(format!("transfer.seed={seed}"));
        seeds(&name, SEEDS).map(with).collect()
    }

    /// Goodput of single-path TCP on the link in each run.
    ///
    /// # Errors
    /// A message if a run failed.
    pub fn goodputs_bps(self, runs: &Runs) -> Result<Vec<f64>, String> {
        self.keys().iter().map(|key| Ok(runs.get(key)?.result.goodput_bps)).collect()
    }
}

/// Values that the study prints for a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Printed {
    /// Out-of-order ratio, 0 to 1.
    pub ratio: f64,
    /// Maximum of the stored data, bytes. The study's KB are 1024 bytes: only then are its figures multiples of
    /// 1400 B.
    pub max_bytes: f64,
}

/// The printed values of a scenario's fifteen cells, in the order of [`Cell::all`].
///
/// # Errors
/// A message if `numbers.csv` is malformed.
pub fn printed(scenario: u32) -> Result<Vec<Printed>, String> {
    let file = data::folder(PAPER).and_then(|folder| folder.file("numbers.csv"));
    let table = Table::parse(file.ok_or("there is no file numbers.csv")?)?;
    let of_cell = |cell: Cell| {
        let wanted = [&*scenario.to_string(), cell.recovery.0, cell.coupling.0];
        let line = table.lines().find(|line| line.cells()[..3] == wanted);
        let line = line.ok_or_else(|| format!("numbers.csv has no {}", cell.label()))?;
        let (ratio, kib) = (line.number("ratio_percent")?, line.number("buffer_kib")?);
        Ok(Printed { ratio: ratio / 100.0, max_bytes: kib * 1024.0 })
    };
    Cell::all(scenario, Preset::Chihani2011).map(of_cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_cell_has_scenarios_that_stand_and_ten_seeds_of_its_own() {
        let mut seen = BTreeSet::new();
        for preset in [Preset::Chihani2011, Preset::Rfc8684] {
            for cell in (1..=4).flat_map(|scenario| Cell::all(scenario, preset)) {
                for key in cell.keys(&[]) {
                    let scenario = key.scenario().unwrap();
                    assert_eq!(scenario.paths.len(), 2);
                    let model = preset == Preset::Chihani2011;
                    let drawn = model && cell.recovery.0 == "F-RTO";
                    assert_eq!(scenario.tcp.ack_burst_loss_max, drawn.then_some(0.061));
                    assert_eq!(scenario.tcp.data_waits, model.then_some(true));
                    assert!(seen.insert(scenario.transfer.seed), "{}", key.label());
                }
            }
        }
        assert_eq!(seen.len() as u32, SEEDS * (60 + 72));
    }

    #[test]
    fn the_links_alone_are_those_of_the_scenarios() {
        for scenario in 1..=4 {
            let key = RunKey::new(PAPER, &format!("scenario-{scenario}.toml"), "round-robin");
            let both = key.scenario().unwrap();
            for (path, link) in both.paths.iter().zip(links(scenario)) {
                let alone = link.keys()[0].scenario().unwrap();
                let radio = |path: &ropewalk_scenario::Path| {
                    let radio = &path.wifi.as_ref().unwrap().radio;
                    (radio.standard, radio.rate)
                };
                assert_eq!(radio(path), radio(&alone.paths[0]));
            }
        }
    }

    #[test]
    fn the_study_prints_fifteen_cells_of_each_scenario_in_whole_segments() {
        for scenario in 1..=4 {
            let printed = printed(scenario).unwrap();
            assert_eq!(printed.len(), 15);
            for cell in printed {
                let segments = cell.max_bytes / 1400.0;
                let off = (segments - segments.round()).abs();
                // The study prints tenths of a KB.
                assert!(off < 0.06 && cell.ratio < 0.6, "{cell:?}: {segments}");
            }
        }
    }
}
