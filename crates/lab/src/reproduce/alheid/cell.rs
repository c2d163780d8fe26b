//! One cell of the study: a scenario, a recovery and a coupling, under one of the two presets.

use super::super::csv::Table;
use super::super::data;
use super::super::plan::{RunKey, Runs};
use super::PAPER;

/// What the study calls the recoveries, and our rules.
pub const RECOVERIES: [(&str, &str); 5] = [
    ("NoPR", "none"),
    ("D-SACK", "d-sack"),
    ("Eifel", "eifel"),
    ("TCP-DOOR", "tcp-door"),
    ("F-RTO", "f-rto"),
];

/// What the study does not have, and `rfc8684` does.
pub const RACK: (&str, &str) = ("RACK-TLP", "rack-tlp");

/// What the study calls the couplings, and our algorithms.
pub const COUPLINGS: [(&str, &str); 3] =
    [("coupled", "lia"), ("uncoupled", "newreno"), ("fully-coupled", "fully-coupled")];

/// Chance of an acknowledgement to begin a burst that is thrown away: the mean of what the model's
/// F-RTO draws for each subflow.
const ACK_BURST_LOSS: f64 = 0.03;

/// Which Multipath TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The model of the study.
    Chihani2011,
    /// As the RFC has it.
    Rfc8684,
}

impl Preset {
    /// As scenario files name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chihani2011 => "chihani2011",
            Self::Rfc8684 => "rfc8684",
        }
    }

    /// Runs of each cell, with seeds from 1 on. What the model does with a cell depends on single
    /// backoffs; under `rfc8684` it hardly does.
    const fn seeds(self) -> u64 {
        match self {
            Self::Chihani2011 => 5,
            Self::Rfc8684 => 3,
        }
    }

    const fn scheduler(self) -> &'static str {
        match self {
            Self::Chihani2011 => "round-robin",
            Self::Rfc8684 => "daps",
        }
    }

    /// 1400 B of data, 64 B of headers and mapping, and the rule's options.
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
    /// 1 to 4.
    pub scenario: u32,
    /// As the study calls it, and our rule.
    pub recovery: (&'static str, &'static str),
    /// As the study calls it, and our algorithm.
    pub coupling: (&'static str, &'static str),
    /// Which Multipath TCP.
    pub preset: Preset,
}

/// What came of a cell: means over its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Delivered in order over the run.
    pub goodput_bps: f64,
    /// Packets stored / packets received that were no duplicates.
    pub ratio: f64,
    /// The most that was stored.
    pub max_bytes: f64,
    /// Bytes of the subflow that carried less / bytes of both.
    pub lesser_share: f64,
}

impl Measured {
    /// By its name in a statement.
    ///
    /// # Errors
    /// No such quantity, in words.
    pub fn of(&self, quantity: &str) -> Result<f64, String> {
        match quantity {
            "goodput_bps" => Ok(self.goodput_bps),
            "out_of_order.ratio" => Ok(self.ratio),
            "out_of_order.max_bytes" => Ok(self.max_bytes),
            "lesser_subflow_share" => Ok(self.lesser_share),
            other => Err(format!("`{other}` is no quantity of a cell")),
        }
    }
}

impl Cell {
    /// The fifteen cells of a scenario in the order of the study's tables; under `rfc8684` three more.
    pub fn all(scenario: u32, preset: Preset) -> impl Iterator<Item = Self> {
        let rack = (preset == Preset::Rfc8684).then_some(RACK);
        let each = move |recovery| {
            COUPLINGS.into_iter().map(move |coupling| Self { scenario, recovery, coupling, preset })
        };
        RECOVERIES.into_iter().chain(rack).flat_map(each)
    }

    /// `NoPR, coupled`.
    pub fn label(&self) -> String {
        format!("{}, {}", self.recovery.0, self.coupling.0)
    }

    /// Its runs.
    pub fn keys(&self) -> Vec<RunKey> {
        let (rule, file) = (self.recovery.1, format!("scenario-{}.toml", self.scenario));
        let with = |seed| {
            let key = RunKey::new(PAPER, &file, self.preset.scheduler())
                .with(format!("transfer.preset={}", self.preset.name()))
                .with(format!("transfer.congestion={}", self.coupling.1))
                .with(format!("transfer.packet={}B", self.preset.packet_bytes(rule)))
                .with(format!("transfer.seed={seed}"))
                .with(format!("tcp.recovery={rule}"));
            let faulty = self.preset == Preset::Chihani2011 && rule == "f-rto";
            if faulty { key.with(format!("tcp.ack_burst_loss={ACK_BURST_LOSS}")) } else { key }
        };
        (1..=self.preset.seeds()).map(with).collect()
    }

    /// Means over its runs.
    ///
    /// # Errors
    /// Why a run failed.
    pub fn measured(&self, runs: &Runs) -> Result<Measured, String> {
        let keys = self.keys();
        let mut sum = Measured::default();
        for key in &keys {
            let result = &runs.get(key)?.result;
            let bytes = result.paths.iter().map(|path| path.delivered_bytes);
            let total: u64 = bytes.clone().sum();
            sum.goodput_bps += result.goodput_bps;
            sum.ratio += result.out_of_order.ratio;
            sum.max_bytes += result.out_of_order.max_bytes as f64;
            sum.lesser_share += bytes.min().unwrap_or(0) as f64 / total.max(1) as f64;
        }
        let count = keys.len() as f64;
        Ok(Measured {
            goodput_bps: sum.goodput_bps / count,
            ratio: sum.ratio / count,
            max_bytes: sum.max_bytes / count,
            lesser_share: sum.lesser_share / count,
        })
    }
}

/// One link alone.
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
    fn key(self) -> RunKey {
        let Self { standard, rate_mbps } = self;
        RunKey::new(PAPER, "link.toml", "round-robin").with(format!(
            "path.wlan.wifi={{ standard = \"{standard}\", rate = \"{rate_mbps} Mbit/s\", channel = 1, \
             queue = \"400 packets\", end = \"receiver\" }}"
        ))
    }

    /// Its run.
    pub fn keys(self) -> Vec<RunKey> {
        vec![self.key()]
    }

    /// What a single-path TCP has of it.
    ///
    /// # Errors
    /// Why the run failed.
    pub fn goodput_bps(self, runs: &Runs) -> Result<f64, String> {
        Ok(runs.get(&self.key())?.result.goodput_bps)
    }
}

/// What the study prints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Printed {
    /// Out-of-order ratio, 0 to 1.
    pub ratio: f64,
    /// Most that was stored. The study's KB are 1024 bytes: its figures are multiples of 1400 B then.
    pub max_bytes: f64,
}

/// The printed numbers of a scenario's fifteen cells, in the order of [`Cell::all`].
///
/// # Errors
/// What is wrong with `numbers.csv`, in words.
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

    #[test]
    fn every_cell_has_scenarios_that_stand_with_1400_bytes_of_data() {
        for preset in [Preset::Chihani2011, Preset::Rfc8684] {
            for cell in (1..=4).flat_map(|scenario| Cell::all(scenario, preset)) {
                let keys = cell.keys();
                assert_eq!(keys.len() as u64, preset.seeds());
                let scenario = keys[0].scenario().unwrap();
                assert_eq!(scenario.paths.len(), 2);
                assert_eq!(
                    scenario.tcp.ack_burst_loss.is_some(),
                    keys[0].label().contains("burst")
                );
            }
        }
    }

    #[test]
    fn the_links_alone_are_those_of_the_scenarios() {
        for scenario in 1..=4 {
            let key = RunKey::new(PAPER, &format!("scenario-{scenario}.toml"), "round-robin");
            let both = key.scenario().unwrap();
            for (path, link) in both.paths.iter().zip(links(scenario)) {
                let alone = link.key().scenario().unwrap();
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
                // Printed to a tenth of a KB.
                assert!(off < 0.06 && cell.ratio < 0.6, "{cell:?}: {segments}");
            }
        }
    }
}
