//! Throughput of a path over the limit of its window.

use super::Members;
use crate::lossy::{LossyPath, loss_free_pps, window_at_least_one, window_limit};
use crate::markov::{self, LossModel, table_length};
use crate::number::{OutOfRange, not_negative, positive};
use crate::renewal::{self, PeriodLosses};

/// Throughput of a path for each window limit, from 1 packet on.
#[derive(Debug, Clone, PartialEq)]
pub struct PathTable {
    /// Entry c is for the limit c; entry 0 is zero.
    throughputs_pps: Vec<f64>,
}

impl PathTable {
    /// A table of throughputs in packets/s: entry `c - 1` is that of the limit c.
    ///
    /// # Errors
    /// At least one entry, each finite and not negative.
    pub fn new(throughputs_pps: &[f64]) -> Result<Self, OutOfRange> {
        // A window has fewer than 2^32 packets; a table as long would fill the memory first.
        window_at_least_one(throughputs_pps.len() as u32)?;
        let mut entries = vec![0.0];
        for &pps in throughputs_pps {
            entries.push(not_negative("throughput_pps", pps)?);
        }
        Ok(Self { throughputs_pps: entries })
    }

    /// Table by the Markov chain, for all useful limits (Eq 58) up to `packets`.
    ///
    /// # Errors
    /// There must be room for a packet.
    pub fn markov(
        path: &LossyPath,
        packets: u32,
        loss_model: LossModel,
    ) -> Result<Self, OutOfRange> {
        Self::new(&markov::table(path, packets.min(path.window_limit()), loss_model)?)
    }

    /// Table by the renewal model, for the same limits.
    ///
    /// # Errors
    /// There must be room for a packet; the loss must be one that the model covers.
    pub fn renewal(path: &LossyPath, packets: u32) -> Result<Self, OutOfRange> {
        let window = packets.min(path.window_limit());
        Self::new(&renewal::table(path, window, PeriodLosses::HalfWindow)?)
    }

    /// Table of a loss-free path of `rate_pps` packets/s and `delay_s` seconds, for the same limits.
    ///
    /// # Errors
    /// There must be room for a packet; rate above 0, delay not negative.
    pub fn loss_free(rate_pps: f64, delay_s: f64, packets: u32) -> Result<Self, OutOfRange> {
        positive("rate_pps", rate_pps)?;
        not_negative("delay_s", delay_s)?;
        let window = table_length(packets.min(window_limit(rate_pps, delay_s)))?;
        let entries = (1..=window).map(|limit| loss_free_pps(rate_pps, delay_s, limit));
        Self::new(&entries.collect::<Vec<_>>())
    }

    /// The largest limit in the table, packets.
    pub fn limit_packets(&self) -> u32 {
        // As above.
        (self.throughputs_pps.len() - 1) as u32
    }

    /// Throughput with a limit of `limit` packets, packets/s; beyond the table it is its last entry.
    pub fn throughput_pps(&self, limit: u32) -> f64 {
        self.throughputs_pps[limit.min(self.limit_packets()) as usize]
    }

    /// The highest throughput for any limit, packets/s.
    pub fn most_pps(&self) -> f64 {
        self.throughputs_pps.iter().copied().fold(0.0, f64::max)
    }

    /// Throughputs for limits from 0 on.
    pub(super) fn entries(&self) -> &[f64] {
        &self.throughputs_pps
    }

    /// Whether no step of the limit gains more than the previous one.
    ///
    /// The comparison is exact. If only rounding violates the condition, the result is false, which costs time
    /// but not accuracy.
    pub fn is_concave(&self, members: Members) -> bool {
        let entries = &self.throughputs_pps[members.least() as usize..];
        entries.windows(3).all(|three| three[2] - three[1] <= three[1] - three[0])
    }

    /// Every `step`-th entry.
    pub(super) fn coarse(&self, step: u32) -> Self {
        let throughputs_pps = self.throughputs_pps.iter().copied().step_by(step as usize).collect();
        Self { throughputs_pps }
    }
}
