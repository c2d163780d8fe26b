//! Setup and measurement of the slot model of Sarwar et al. 2013, for `predict` and `reproduce`.

use std::fmt::Display;
use std::str::FromStr;

use ropewalk_models::slot::{
    Plan, PlannedCapacity, SlotError, SlotModel, SlotPath, SlotScheduler, SlotTrace, TableRow,
};
use serde::{Deserialize, Serialize};

/// The quantity that the planner keeps constant when its assumed delay is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Planned {
    /// The packets per forward delay, a congestion window.
    #[default]
    PerWindow,
    /// The rate.
    PerRate,
}

impl Planned {
    /// Both variants.
    pub const ALL: [Self; 2] = [Self::PerWindow, Self::PerRate];

    /// Name in rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PerWindow => "per window",
            Self::PerRate => "per rate",
        }
    }
}

impl FromStr for Planned {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "per-window" => Ok(Self::PerWindow),
            "per-rate" => Ok(Self::PerRate),
            other => Err(format!("`{other}` is neither per-window nor per-rate")),
        }
    }
}

impl From<Planned> for PlannedCapacity {
    fn from(planned: Planned) -> Self {
        match planned {
            Planned::PerWindow => Self::PerWindow,
            Planned::PerRate => Self::PerRate,
        }
    }
}

/// Paths, receive buffer and length of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotSetup {
    /// Length of a tick, s.
    pub quantum_s: f64,
    /// Packet size, bytes.
    pub packet_bytes: f64,
    /// Receive buffer, packets.
    pub buffer_packets: u64,
    /// Length of a run, s.
    pub duration_s: f64,
    /// Initial part of the run that the figures leave out, s.
    pub warmup_s: f64,
    /// Forward delay of each path, ticks.
    pub delay_ticks: Vec<u64>,
    /// Packets per forward delay of each path.
    pub capacity_packets: Vec<u64>,
}

/// Measurements of a run after its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SlotFigures {
    /// Rate of in-order packets, bit/s.
    pub goodput_bps: f64,
    /// Longest time without a delivery to the application, s.
    pub longest_silence_s: f64,
    /// Mean number of packets held out of order, weighted by time.
    pub mean_in_buffer_packets: f64,
    /// Largest number of packets held out of order.
    pub max_in_buffer_packets: u64,
    /// Mean number of packets sent and not yet acknowledged, weighted by time.
    pub mean_unacknowledged_packets: f64,
}

/// A row in the form of the paper's Tables I and II. Packet ranges read `3-7`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlotRow {
    /// Time of sending, ticks.
    pub sent_tick: u64,
    /// Packets sent on each path; empty for none.
    pub sent: Vec<String>,
    /// Time of reception, ticks.
    pub received_tick: u64,
    /// Packets received on each path; empty for none.
    pub received: Vec<String>,
    /// Packets delivered in order; empty for none.
    pub delivered: String,
    /// Packets held out of order after that.
    pub in_buffer_packets: u64,
}

impl SlotSetup {
    /// Runs the model with this scheduler.
    ///
    /// # Errors
    /// If the model rejects the setup.
    pub fn run(&self, scheduler: SlotScheduler) -> Result<SlotTrace, SlotError> {
        let paths = self.delay_ticks.iter().zip(&self.capacity_packets);
        let paths = paths
            .map(|(&delay_ticks, &capacity_packets)| SlotPath { delay_ticks, capacity_packets })
            .collect();
        let model = SlotModel { paths, buffer_packets: self.buffer_packets, scheduler };
        model.run(self.ticks(self.duration_s))
    }

    /// Runs the model with delay-aware scheduling by this plan.
    ///
    /// # Errors
    /// As [`SlotSetup::run`].
    pub fn run_delay_aware(&self, plan: Plan) -> Result<SlotTrace, SlotError> {
        self.run(SlotScheduler::DelayAware(plan))
    }

    /// Measures a run of this setup.
    pub fn figures(&self, trace: &SlotTrace) -> SlotFigures {
        let from = self.ticks(self.warmup_s);
        let after = trace.instants.iter().filter(|instant| instant.tick >= from);
        SlotFigures {
            goodput_bps: trace.goodput_bps(from, self.packet_bytes, self.quantum_s),
            longest_silence_s: trace.longest_silence_ticks(from) as f64 * self.quantum_s,
            mean_in_buffer_packets: trace.mean_packets(from, |i| i.in_buffer_packets),
            max_in_buffer_packets: after.map(|i| i.in_buffer_packets).max().unwrap_or(0),
            mean_unacknowledged_packets: trace.mean_packets(from, |i| i.unacknowledged_packets),
        }
    }

    /// Sum of the path rates, bit/s.
    pub fn capacity_bps(&self) -> f64 {
        let paths = self.delay_ticks.iter().zip(&self.capacity_packets);
        let per_tick: f64 = paths.map(|(delay, packets)| *packets as f64 / *delay as f64).sum();
        per_tick * self.packet_bytes * 8.0 / self.quantum_s
    }

    /// Converts a time to ticks, rounded to nearest.
    pub fn ticks(&self, seconds: f64) -> u64 {
        (seconds / self.quantum_s).round() as u64
    }
}

impl From<&TableRow> for SlotRow {
    fn from(row: &TableRow) -> Self {
        let of = |lists: &[Vec<_>]| lists.iter().map(|list| joined(list)).collect();
        Self {
            sent_tick: row.sent_tick,
            sent: of(&row.sent),
            received_tick: row.received_tick,
            received: of(&row.received),
            delivered: row.delivered.map(|range| range.to_string()).unwrap_or_default(),
            in_buffer_packets: row.in_buffer_packets,
        }
    }
}

fn joined(ranges: &[impl Display]) -> String {
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
