//! Window limits for each path, and the required receive buffer.
//!
//! Static congestion window management (Wallace and Shami 2014, Section 5.2): the limits that maximise the
//! predicted throughput of all paths together within one receive buffer. Each path is taken as it is at the
//! start, with the losses of the scenario.

mod check;
mod error;
mod paths;
mod reach;
mod report;
mod robust;
mod write;

pub use check::{Check, CheckOptions, Checked, check};
pub use error::TuneError;
pub use reach::{SimulatedReach, Trial, simulate_reach};
pub use report::{Drawings, drawings};
pub use robust::{RobustReach, RobustTrial};
pub(crate) use write::put;
pub use write::{WriteError, tuned_text};

use ropewalk_models::optimise::{Members, OptimiseError, PathTable, allocate, least_buffer};
use ropewalk_scenario::{Scenario, WindowManager};
use serde::Serialize;

use crate::engine_config;
use crate::loss::LossKind;
use crate::lossy::{ModelPath, buffer_packets, packet_bytes};

/// Window limits for a scenario, `ropewalk.tune/1`. Throughputs are in bit/s on the wire.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Tuning {
    /// `ropewalk.tune/1`.
    pub schema: &'static str,
    /// The scheduler, with which the receive buffer for `reach` is found.
    pub scheduler: String,
    /// The preset.
    pub preset: String,
    /// The receive buffer of the scenario, bytes.
    pub receive_buffer_bytes: u64,
    /// Number of full packets that fit into it.
    pub buffer_packets: u32,
    /// A full packet on the wire, bytes.
    pub packet_bytes: f64,
    /// Share of user data in a full packet: throughput times this is goodput.
    pub payload_share: f64,
    /// The best limit of each path's window, packets; each at least 1.
    pub limits_packets: Vec<u32>,
    /// Predicted throughput with these limits.
    pub predicted_bps: f64,
    /// Limits and throughput if each path gets an equal part of the buffer.
    pub equal_split: Split,
    /// The best limits if paths may be left out.
    pub paying: Split,
    /// Predicted throughput if each path had a buffer of the full size for itself. For reference
    /// only.
    pub unlimited_bps: f64,
    /// Sum of the rates.
    pub rates_bps: f64,
    /// Results for each path.
    pub paths: Vec<TunedPath>,
    /// The smallest receive buffer for a share of the rates, if requested.
    pub reach: Option<Reach>,
    /// Properties of this scenario that the models ignore.
    pub notes: Vec<String>,
}

/// Limits with their predicted throughput.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Split {
    /// Limit of each path's window, packets; 0 leaves the path out.
    pub limits_packets: Vec<u32>,
    /// Predicted throughput, bit/s on the wire.
    pub predicted_bps: f64,
}

/// Results for one path.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct TunedPath {
    /// Name.
    pub name: String,
    /// Rate, bit/s.
    pub rate_bps: f64,
    /// Minimum RTT of a full packet, s.
    pub round_trip_s: f64,
    /// Share of lost packets.
    pub loss: f64,
    /// Loss probability for the models; with bursts, the probability that one begins.
    pub p: f64,
    /// Kind of loss.
    pub loss_kind: LossKind,
    /// The largest useful window: rate times round-trip time plus one packet (Eq 58).
    pub useful_packets: u32,
    /// The best window limit, packets.
    pub limit_packets: u32,
    /// Predicted throughput with this limit, bit/s on the wire.
    pub predicted_bps: f64,
    /// Whether the path is worth its part of the buffer.
    pub pays: bool,
}

/// The receive buffer that a share of the rates requires.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Reach {
    /// The requested share of the sum of the rates.
    pub share: f64,
    /// The largest share that is possible with any buffer, by the models.
    pub most_share: f64,
    /// The smallest sufficient receive buffer by the models; null if none suffices. The models do not count
    /// packets that wait in the buffer for another path, so [`Self::simulated`] is often larger.
    pub least: Option<LeastReceiveBuffer>,
    /// The smallest sufficient receive buffer by simulation, if simulated. Believe this one.
    pub simulated: Option<SimulatedReach>,
}

/// The smallest sufficient receive buffer, with its limits.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct LeastReceiveBuffer {
    /// Value for `transfer.receive_buffer`, bytes.
    pub receive_buffer_bytes: u64,
    /// Number of full packets that fit into it.
    pub packets: u32,
    /// The best limits for it, packets.
    pub limits_packets: Vec<u32>,
    /// Predicted throughput, bit/s on the wire.
    pub predicted_bps: f64,
}

/// Computes the best limits. With `reach`, a share above 0 and up to 1, also computes the smallest receive
/// buffer that delivers this share of the sum of the rates by the models; [`simulate_reach`] finds it by
/// simulation.
///
/// # Errors
/// [`TuneError`], if the models do not cover the scenario.
pub fn tune(scenario: &Scenario, reach: Option<f64>) -> Result<Tuning, TuneError> {
    let paths = paths::model_paths(scenario)?;
    let tables = paths::tables(scenario, &paths)?;
    let packets = buffer_packets(scenario);
    let best = allocate(&tables, packets, Members::All)?;
    let paying = allocate(&tables, packets, Members::Paying)?;
    let equal = vec![packets / tables.len() as u32; tables.len()];
    let whole = vec![packets; tables.len()];
    let bps = 8.0 * packet_bytes(scenario);
    let split = |limits: Vec<u32>| Split {
        predicted_bps: bps * total_pps(&tables, &limits),
        limits_packets: limits,
    };
    let rates_pps: f64 = paths.iter().map(|path| path.rate_pps).sum();
    let reach = reach.map(|share| reached(scenario, &tables, share, rates_pps)).transpose()?;
    let config = engine_config::config(scenario);
    let payload = config.chunk_limit() - paths::DATA_HEADER;
    let paying = pays(
        best.throughput_pps,
        paying.throughput_pps,
        &best.limits_packets,
        paying.limits_packets,
    );
    Ok(Tuning {
        schema: "ropewalk.tune/1",
        scheduler: scenario.scheduler.label().to_owned(),
        preset: scenario.transfer.preset.to_string(),
        receive_buffer_bytes: scenario.transfer.receive_buffer,
        buffer_packets: packets,
        packet_bytes: packet_bytes(scenario),
        payload_share: f64::from(payload) / packet_bytes(scenario),
        predicted_bps: bps * best.throughput_pps,
        equal_split: split(equal),
        unlimited_bps: bps * total_pps(&tables, &whole),
        rates_bps: bps * rates_pps,
        paths: tuned_paths(scenario, &paths, &tables, &best.limits_packets, &paying),
        limits_packets: best.limits_packets,
        paying: split(paying),
        reach,
        notes: paths::notes(scenario, &paths),
    })
}

/// The limits if paths may be left out: those of all paths, unless leaving one out gains more than rounding.
fn pays(all_pps: f64, paying_pps: f64, all: &[u32], paying: Vec<u32>) -> Vec<u32> {
    if paying_pps > all_pps * (1.0 + 1e-9) { paying } else { all.to_vec() }
}

fn total_pps(tables: &[PathTable], limits: &[u32]) -> f64 {
    tables.iter().zip(limits).map(|(table, limit)| table.throughput_pps(*limit)).sum()
}

fn tuned_paths(
    scenario: &Scenario,
    paths: &[ModelPath],
    tables: &[PathTable],
    limits: &[u32],
    paying: &[u32],
) -> Vec<TunedPath> {
    let bps = 8.0 * packet_bytes(scenario);
    let one = |(i, path): (usize, &ModelPath)| TunedPath {
        name: scenario.paths[i].name.clone(),
        rate_bps: bps * path.rate_pps,
        round_trip_s: path.round_trip_s(),
        loss: path.loss,
        p: path.p,
        loss_kind: path.kind,
        useful_packets: tables[i].limit_packets(),
        limit_packets: limits[i],
        predicted_bps: bps * tables[i].throughput_pps(limits[i]),
        pays: paying[i] > 0,
    };
    paths.iter().enumerate().map(one).collect()
}

fn reached(
    scenario: &Scenario,
    tables: &[PathTable],
    share: f64,
    rates_pps: f64,
) -> Result<Reach, TuneError> {
    let most: f64 = tables.iter().map(PathTable::most_pps).sum();
    // The tolerance allows for rounding if the share is 1.
    let target = share * rates_pps * (1.0 - 1e-12);
    let least = match least_buffer(tables, target, Members::All) {
        Ok(found) => Some(LeastReceiveBuffer {
            receive_buffer_bytes: paths::bytes_for(scenario, found.packets),
            packets: found.packets,
            predicted_bps: 8.0 * packet_bytes(scenario) * found.allocation.throughput_pps,
            limits_packets: found.allocation.limits_packets,
        }),
        Err(OptimiseError::OutOfReach { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(Reach { share, most_share: most / rates_pps, least, simulated: None })
}

impl Tuning {
    /// The scenario with these limits applied.
    pub fn applied_to(&self, scenario: &Scenario) -> Scenario {
        let mut tuned = scenario.clone();
        tuned.transfer.window_manager = WindowManager::Static;
        for (path, limit) in tuned.paths.iter_mut().zip(&self.limits_packets) {
            path.window_limit = Some(*limit);
        }
        tuned
    }
}

#[cfg(test)]
mod tests;
