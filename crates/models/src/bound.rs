//! The flow-control bound: the highest throughput that any scheduler can reach with a given receive buffer.

use crate::number::{PathsError, at_least, not_negative, positive};
use crate::path::PathNumbers;

/// Bytes of a SACK on the wire without gap blocks: IPv4 (20), common header (12), SACK chunk
/// (16) (RFC 791, RFC 9260 Section 3.3.4).
pub const SACK_BYTES: f64 = 48.0;

/// Parameters of the bound other than the paths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundInput {
    /// The shared receive buffer, bytes.
    pub buffer_bytes: f64,
    /// A full packet on the wire, bytes. Zero neglects its serialisation.
    pub packet_bytes: f64,
    /// An acknowledgement on the wire, bytes. Zero neglects its serialisation.
    pub sack_bytes: f64,
    /// Whether only complete packets of the buffer count, for a receiver that only gets full packets.
    pub whole_packets: bool,
}

impl BoundInput {
    /// Exactly `buffer_bytes`, full packets of `packet_bytes`, acknowledged by [`SACK_BYTES`].
    pub fn new(buffer_bytes: f64, packet_bytes: f64) -> Self {
        Self { buffer_bytes, packet_bytes, sack_bytes: SACK_BYTES, whole_packets: false }
    }

    /// As [`Self::new`], without serialisation: round trips only consist of propagation.
    pub fn propagation_only(buffer_bytes: f64) -> Self {
        Self { buffer_bytes, packet_bytes: 0.0, sack_bytes: 0.0, whole_packets: false }
    }

    /// Rounds the buffer down to whole packets.
    pub fn in_whole_packets(mut self) -> Self {
        self.whole_packets = true;
        self
    }

    /// The usable bytes of the buffer; an error if a size is invalid.
    fn usable_bytes(&self) -> Result<f64, PathsError> {
        not_negative("buffer_bytes", self.buffer_bytes)?;
        not_negative("sack_bytes", self.sack_bytes)?;
        if !self.whole_packets {
            not_negative("packet_bytes", self.packet_bytes)?;
            return Ok(self.buffer_bytes);
        }
        let packet_bytes = positive("packet_bytes", self.packet_bytes)?;
        Ok((self.buffer_bytes / packet_bytes).floor() * packet_bytes)
    }
}

/// Share of one path in the bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathShare {
    /// Window of the path, bytes.
    pub window_bytes: f64,
    /// Rate of the path with that window, bit/s.
    pub rate_bps: f64,
    /// Round-trip time used, seconds.
    pub round_trip_s: f64,
}

/// The bound, with one allocation that reaches it.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowControlBound {
    /// The bound, bit/s.
    pub bound_bps: f64,
    /// Share of each path, in the order of the paths.
    pub shares: Vec<PathShare>,
    /// Buffer left when every path runs at its full rate, bytes.
    pub spare_bytes: f64,
}

/// The highest total rate of several paths through one receive buffer: `max Σ min(c_i, w_i / r_i)` subject to
/// `Σ w_i <= B`.
///
/// A byte occupies the buffer's window from its transmission to its acknowledgement, so a path of rate x fills
/// x times its round trip (Little, Operations Research 9(3), 1961). The round trip is propagation, plus the
/// serialisation of a full packet at c_i and of its acknowledgement at the reverse rate. The objective is a sum
/// of concave functions with one budget, so greedy allocation is optimal: paths in order of their round trips,
/// each up to `c_i r_i`. Ties go to the path given first. A path with a round trip of zero needs no window.
///
/// # Errors
/// If there is no path; if a size is negative or not finite; if whole packets count and their size is zero.
pub fn flow_control_bound(
    paths: &[PathNumbers],
    input: &BoundInput,
) -> Result<FlowControlBound, PathsError> {
    at_least(paths.len(), 1)?;
    let mut spare_bytes = input.usable_bytes()?;
    let mut shares: Vec<PathShare> = paths
        .iter()
        .map(|p| {
            let round_trip_s = p.round_trip_s(input.packet_bytes, input.sack_bytes);
            PathShare { window_bytes: 0.0, rate_bps: 0.0, round_trip_s }
        })
        .collect();
    let mut by_round_trip: Vec<usize> = (0..paths.len()).collect();
    by_round_trip.sort_by(|&a, &b| shares[a].round_trip_s.total_cmp(&shares[b].round_trip_s));
    for i in by_round_trip {
        let rate_bps = paths[i].rate_bps();
        let share = &mut shares[i];
        let full_bytes = rate_bps * share.round_trip_s / 8.0;
        share.window_bytes = full_bytes.min(spare_bytes);
        // The comparison avoids 0/0 for a path with a round trip of zero.
        share.rate_bps = if full_bytes <= spare_bytes {
            rate_bps
        } else {
            8.0 * share.window_bytes / share.round_trip_s
        };
        spare_bytes -= share.window_bytes;
    }
    let bound_bps = shares.iter().map(|s| s.rate_bps).sum();
    Ok(FlowControlBound { bound_bps, shares, spare_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(list: &[(f64, f64)]) -> Vec<PathNumbers> {
        list.iter().map(|&(mbps, ms)| PathNumbers::new(mbps * 1e6, ms * 1e-3).unwrap()).collect()
    }

    #[test]
    fn the_case_of_a_45_kb_buffer_comes_out_with_and_without_serialisation() {
        let two = paths(&[(1.0, 20.0), (2.0, 200.0)]);
        let full = flow_control_bound(&two, &BoundInput::new(45e3, 1500.0)).unwrap();
        assert!((full.bound_bps / 1e6 - 2.59).abs() < 0.005, "{full:?}");
        let bare = flow_control_bound(&two, &BoundInput::propagation_only(45e3)).unwrap();
        assert!((bare.bound_bps / 1e6 - 2.70).abs() < 1e-9, "{bare:?}");
    }

    #[test]
    fn the_shares_use_the_whole_buffer_when_it_is_short_and_leave_some_when_not() {
        let two = paths(&[(2.0, 200.0), (1.0, 20.0)]);
        let short = flow_control_bound(&two, &BoundInput::new(45e3, 1500.0)).unwrap();
        assert_eq!(short.shares[1].rate_bps, 1e6, "the shorter round trip is served first");
        let windows: f64 = short.shares.iter().map(|s| s.window_bytes).sum();
        assert!((windows - 45e3).abs() < 1e-6 && short.spare_bytes.abs() < 1e-6);
        let ample = flow_control_bound(&two, &BoundInput::new(500e3, 1500.0)).unwrap();
        assert_eq!(ample.bound_bps, 3e6);
        assert!(ample.spare_bytes > 400e3);
    }

    #[test]
    fn whole_packets_leave_the_broken_one_unused() {
        let one = paths(&[(8.0, 100.0)]);
        let input = BoundInput { sack_bytes: 0.0, ..BoundInput::new(2999.0, 1500.0) };
        let exact = flow_control_bound(&one, &input).unwrap().shares[0].window_bytes;
        let whole = flow_control_bound(&one, &input.in_whole_packets()).unwrap();
        assert_eq!((exact, whole.shares[0].window_bytes), (2999.0, 1500.0));
    }

    #[test]
    fn a_slow_reverse_direction_costs_window() {
        let symmetric = paths(&[(2.0, 200.0)]);
        let slow_back = [symmetric[0].with_reverse_rate_bps(10e3).unwrap()];
        let input = BoundInput::new(20e3, 1500.0);
        let with = flow_control_bound(&slow_back, &input).unwrap().bound_bps;
        let without = flow_control_bound(&symmetric, &input).unwrap().bound_bps;
        assert!(with < without, "{with} against {without}");
    }

    #[test]
    fn no_paths_no_sense() {
        let input = BoundInput::new(-1.0, 1500.0);
        assert_eq!(flow_control_bound(&[], &input), Err(PathsError::TooFew { given: 0, least: 1 }));
        let error = flow_control_bound(&paths(&[(1.0, 1.0)]), &input).unwrap_err();
        assert!(error.to_string().starts_with("buffer_bytes = -1"), "{error}");
    }
}
