//! The slot model: round robin and delay-aware scheduling of individual packets, in ticks.
//!
//! Source: Sarwar et al. 2013, Tables I and II, Figures 5 to 8, Algorithms 1 to 3. The paper's
//! simulation is reconstructed from its two tables, which determine these rules:
//!
//! * Path i has an opportunity every D_i ticks, from tick 0. It then emits up to C_i packets. All of them
//!   arrive D_i later, and their acknowledgement arrives after another D_i.
//! * At each instant, arrivals are handled before transmissions, and the path of the shorter delay sends
//!   first.
//! * **Round robin** sends `min(C_i, Cwnd_i - unacknowledged_i, Rwnd)` consecutive packets (Eq 1). The window
//!   `Cwnd_i` is 2 C_i, the packets of a round trip: with the C_i of one forward delay, the second row of
//!   Table I could not be sent. `Rwnd` is the receiver's free space at that instant. Packets in flight are
//!   not subtracted; otherwise path 1 would fall silent at 40 ms in Table I, not at 60.
//! * A packet in order is delivered even when the buffer is full. A packet out of order that finds the buffer
//!   full is discarded (this takes three paths), and sent again by the first path with an opportunity, once
//!   its sender has received the acknowledgement without it.
//! * **Delay-aware** sends the next packets of its path's list, within the same window. Each packet reserves
//!   a place in the receive buffer from its transmission to its delivery, and a path waits if no place is
//!   left. The packet that the receiver is waiting for needs no place, because it is delivered immediately.
//!
//! The last rule cannot deadlock. The lowest missing packet either is in flight and will be
//! accepted, or is the head of its path's list (lists only rise) and may be sent at that path's
//! next opportunity, regardless of the buffer. The buffer also never overflows, because every
//! packet that must be stored has a place. The rule is stricter than round robin's `Rwnd`, so the
//! comparison does not favour delay-aware. The engine's span rule is even stricter, and Table II
//! does not obey it: its packets 21-25 leave at 0 ms, when 10 places are free and 25 packets are
//! outstanding.

mod plan;
mod receiver;
mod run;
mod trace;

pub use plan::{Plan, PlannedCapacity};
pub use trace::{SlotInstant, SlotTrace, TableRow};

use crate::number::OutOfRange;
use crate::order::OrderError;
use crate::path::PathNumbers;
use crate::period::{PeriodError, delay_ticks};

/// Maximum number of instants of a run; the trace stores every one.
pub const INSTANTS_MAX: u64 = 1 << 20;

/// One path of the slot model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotPath {
    /// D_i, ticks.
    pub delay_ticks: u64,
    /// C_i, packets per D_i.
    pub capacity_packets: u64,
}

impl SlotPath {
    /// Creates a path from these numbers: D_i is its forward delay in quanta of `quantum_s`, and
    /// `C_i = c_i D_i / 8L` rounded down to whole packets, `packet_bytes` each.
    ///
    /// # Errors
    /// The delay must be above zero and carry at least one packet.
    pub fn from_numbers(
        path: &PathNumbers,
        packet_bytes: f64,
        quantum_s: f64,
    ) -> Result<Self, OutOfRange> {
        crate::number::positive("packet_bytes", packet_bytes)?;
        let delay_ticks = delay_ticks(path.forward_delay_s(), quantum_s)?;
        let delay_s = delay_ticks as f64 * quantum_s;
        let packets = path.rate_bps() * delay_s / (8.0 * packet_bytes);
        // A product such as 1.6e6 x 0.01 can be slightly below the whole number because of rounding.
        let whole = (packets + 1e-9).floor();
        if whole < 1.0 {
            let valid = "enough for one packet per forward delay (rate x delay >= 8 x packet)";
            return Err(OutOfRange { name: "rate_bps", value: path.rate_bps(), valid });
        }
        Ok(Self { delay_ticks, capacity_packets: whole as u64 })
    }
}

/// The scheduler of the model.
#[derive(Debug, Clone, PartialEq)]
pub enum SlotScheduler {
    /// Sends consecutive packets at each opportunity.
    RoundRobin,
    /// Sends the packets in the plan's list for the path.
    DelayAware(Plan),
}

/// A sender, its paths, and a receiver with one bounded buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotModel {
    /// The paths, in any order.
    pub paths: Vec<SlotPath>,
    /// The receive buffer, packets.
    pub buffer_packets: u64,
    /// Round robin or delay-aware.
    pub scheduler: SlotScheduler,
}

impl SlotModel {
    /// Runs from tick 0 through `last_tick` with an unlimited supply of packets.
    ///
    /// # Errors
    /// See [`SlotError`].
    pub fn run(&self, last_tick: u64) -> Result<SlotTrace, SlotError> {
        self.check(last_tick)?;
        run::run(self, last_tick)
    }

    fn check(&self, last_tick: u64) -> Result<(), SlotError> {
        if self.paths.is_empty() {
            return Err(PeriodError::NoPaths.into());
        }
        if self.buffer_packets == 0 {
            return Err(SlotError::NoBuffer);
        }
        let mut instants = 0_u64;
        for (path, p) in self.paths.iter().enumerate() {
            if p.delay_ticks == 0 {
                return Err(PeriodError::ZeroDelay { path }.into());
            }
            if p.capacity_packets == 0 {
                return Err(PeriodError::ZeroPackets { path }.into());
            }
            instants = instants.saturating_add(last_tick / p.delay_ticks + 1);
        }
        if instants > INSTANTS_MAX {
            return Err(SlotError::TooLong { instants });
        }
        Ok(())
    }
}

/// Error in running a slot model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SlotError {
    /// The paths do not have a schedule.
    #[error(transparent)]
    Period(#[from] PeriodError),
    /// The plan's order is too long.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The receive buffer has size zero.
    #[error("buffer_packets is 0, it must be at least 1")]
    NoBuffer,
    /// The run has more instants than [`INSTANTS_MAX`].
    #[error(
        "the run would have {instants} instants, at most {INSTANTS_MAX} are kept: \
         shorten it or take a larger quantum"
    )]
    TooLong {
        /// Number of instants.
        instants: u64,
    },
    /// A delay error is out of range.
    #[error("{0}")]
    DelayError(OutOfRange),
    /// The number of delay errors differs from that of paths.
    #[error("{errors} delay errors for {paths} paths: give one per path, or none")]
    Errors {
        /// Number of errors.
        errors: usize,
        /// Number of paths.
        paths: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_numbers_give_2_packets_per_10_ms_and_5_per_100_ms() {
        for (mbps, rtt_s, ticks, packets) in [(1.6, 0.02, 10, 2), (0.4, 0.2, 100, 5)] {
            let path = PathNumbers::new(mbps * 1e6, rtt_s).unwrap();
            let slot = SlotPath::from_numbers(&path, 1000.0, 1e-3).unwrap();
            assert_eq!(slot, SlotPath { delay_ticks: ticks, capacity_packets: packets });
        }
    }

    #[test]
    fn a_path_too_thin_for_a_packet_per_delay_is_refused() {
        let path = PathNumbers::new(1e5, 0.02).unwrap();
        let error = SlotPath::from_numbers(&path, 1000.0, 1e-3).unwrap_err();
        assert_eq!((error.name, error.value), ("rate_bps", 1e5));
    }

    #[test]
    fn senseless_models_are_refused_before_they_run() {
        let path = SlotPath { delay_ticks: 1, capacity_packets: 1 };
        let good = SlotModel {
            paths: vec![path],
            buffer_packets: 1,
            scheduler: SlotScheduler::RoundRobin,
        };
        assert!(good.run(10).is_ok());
        let none = SlotModel { paths: vec![], ..good.clone() };
        assert_eq!(none.run(10).unwrap_err(), PeriodError::NoPaths.into());
        let no_buffer = SlotModel { buffer_packets: 0, ..good.clone() };
        assert_eq!(no_buffer.run(10).unwrap_err(), SlotError::NoBuffer);
        let long = good.run(INSTANTS_MAX).unwrap_err();
        assert_eq!(long, SlotError::TooLong { instants: INSTANTS_MAX + 1 });
    }
}
