//! Receive buffer blocking in closed form: its duration, and the memory that avoids it.

use crate::number::{OutOfRange, PathsError, at_least, not_negative, positive};
use crate::path::PathNumbers;

/// The longest time that a packet waits in the receive buffer for one sent at the same moment on another path,
/// in seconds.
///
/// Kuhn et al. 2014, Eq 2, generalised from two paths to n: the latest one-way arrival minus the earliest.
/// Queues are assumed to be empty; a standing queue adds its delay to its path.
///
/// # Errors
/// If there are fewer than two paths, or if `packet_bytes` is negative or not finite.
pub fn blocking_time_max_s(paths: &[PathNumbers], packet_bytes: f64) -> Result<f64, PathsError> {
    at_least(paths.len(), 2)?;
    not_negative("packet_bytes", packet_bytes)?;
    let arrivals = paths.iter().map(|p| p.arrival_s(packet_bytes));
    let (first, last) =
        arrivals.fold((f64::INFINITY, 0.0_f64), |(lo, hi), a| (lo.min(a), hi.max(a)));
    Ok(last - first)
}

/// The waiting time of [`blocking_time_max_s`] for one slow and one fast path, in plain numbers: `r_s/2 +
/// 8L/c_s - r_f/2 - 8L/c_f` (Kuhn et al. 2014, Eq 2), in seconds.
///
/// Negative if the path called slow is the faster one.
///
/// # Errors
/// Rates above zero, the rest not negative, all finite.
pub fn blocking_time_two_paths_s(
    slow_rate_bps: f64,
    slow_rtt_s: f64,
    fast_rate_bps: f64,
    fast_rtt_s: f64,
    packet_bytes: f64,
) -> Result<f64, OutOfRange> {
    not_negative("packet_bytes", packet_bytes)?;
    let slow = PathNumbers::new(slow_rate_bps, slow_rtt_s)?;
    let fast = PathNumbers::new(fast_rate_bps, fast_rtt_s)?;
    Ok(slow.arrival_s(packet_bytes) - fast.arrival_s(packet_bytes))
}

/// The smallest receive buffer with which no path is ever blocked, in bytes: the sum of the rates times the
/// longest round-trip time.
///
/// Kuhn et al. 2014, Eq 3; Sarwar et al. 2013, Eq 2. Loss is not included: each recovery requires the data of
/// one more round trip.
///
/// # Errors
/// At least one path.
pub fn receive_buffer_min_bytes(paths: &[PathNumbers]) -> Result<f64, PathsError> {
    at_least(paths.len(), 1)?;
    let rate_sum_bps: f64 = paths.iter().map(PathNumbers::rate_bps).sum();
    let rtt_max_s = paths.iter().map(PathNumbers::rtt_s).fold(0.0, f64::max);
    Ok(rate_sum_bps * rtt_max_s / 8.0)
}

/// Asymmetry of two paths: `(c_1 r_1) / (c_0 r_0)`, without unit, 1 for equal paths (Kuhn et al., DAPS slides,
/// 2013).
///
/// # Errors
/// All four numbers finite and above zero.
pub fn asymmetry(
    rate_0_bps: f64,
    rtt_0_s: f64,
    rate_1_bps: f64,
    rtt_1_s: f64,
) -> Result<f64, OutOfRange> {
    let product_0 = positive("rate_0_bps", rate_0_bps)? * positive("rtt_0_s", rtt_0_s)?;
    let product_1 = positive("rate_1_bps", rate_1_bps)? * positive("rtt_1_s", rtt_1_s)?;
    Ok(product_1 / product_0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(mbps: f64, rtt_ms: f64) -> PathNumbers {
        PathNumbers::new(mbps * 1e6, rtt_ms * 1e-3).unwrap()
    }

    /// Fast rate and slow rate in Mbit/s, slow RTT in ms, printed blocking time in ms. The
    /// slides round some rows up and truncate others (39.84 ms is printed as 39).
    const SLIDES: [(f64, f64, f64, f64); 12] = [
        (10.0, 10.0, 100.0, 40.0),
        (50.0, 10.0, 100.0, 41.0),
        (10.0, 50.0, 100.0, 39.0),
        (100.0, 100.0, 100.0, 40.0),
        (50.0, 150.0, 100.0, 39.0),
        (150.0, 50.0, 100.0, 40.0),
        (10.0, 10.0, 200.0, 90.0),
        (50.0, 10.0, 200.0, 91.0),
        (10.0, 50.0, 200.0, 89.0),
        (100.0, 100.0, 200.0, 90.0),
        (50.0, 150.0, 200.0, 89.0),
        (150.0, 50.0, 200.0, 90.0),
    ];

    #[test]
    fn the_slides_table_of_blocking_times_comes_out_to_a_millisecond() {
        for (fast, slow, slow_rtt, printed_ms) in SLIDES {
            let paths = [path(fast, 20.0), path(slow, slow_rtt)];
            let many = blocking_time_max_s(&paths, 1500.0).unwrap();
            let two =
                blocking_time_two_paths_s(slow * 1e6, slow_rtt * 1e-3, fast * 1e6, 0.02, 1500.0);
            assert!((many * 1e3 - printed_ms).abs() < 1.0, "{many} s for {printed_ms} ms");
            assert!((many - two.unwrap()).abs() < 1e-12);
        }
    }

    #[test]
    fn a_path_between_the_extremes_does_not_change_the_blocking_time() {
        let two = blocking_time_max_s(&[path(10.0, 20.0), path(10.0, 200.0)], 1500.0).unwrap();
        let three =
            blocking_time_max_s(&[path(10.0, 20.0), path(10.0, 90.0), path(10.0, 200.0)], 1500.0);
        assert_eq!(three.unwrap(), two);
    }

    #[test]
    fn the_order_of_slow_and_fast_shows_in_the_sign() {
        let negative = blocking_time_two_paths_s(1e7, 0.02, 1e7, 0.1, 1500.0).unwrap();
        assert!((negative + 0.04).abs() < 1e-12, "{negative}");
    }

    #[test]
    fn the_least_buffer_is_the_one_the_papers_print() {
        let cases = [
            ([path(1.0, 20.0), path(2.0, 100.0)], 37_500.0),
            ([path(1.0, 20.0), path(1.0, 200.0)], 50_000.0),
            ([path(1.0, 20.0), path(2.0, 200.0)], 75_000.0),
            ([path(1.6, 20.0), path(0.4, 200.0)], 50_000.0),
            ([path(10.0, 20.0), path(1.0, 200.0)], 275_000.0),
        ];
        for (paths, printed) in cases {
            let bytes = receive_buffer_min_bytes(&paths).unwrap();
            assert!((bytes - printed).abs() < 1e-6, "{bytes} for {printed}");
        }
    }

    #[test]
    fn the_asymmetries_of_the_slides_come_out() {
        for (c0, c1, r1, printed) in
            [(1.0, 1.0, 0.1, 5.0), (1.0, 1.0, 0.2, 10.0), (1.5, 0.5, 0.2, 3.33)]
        {
            let a = asymmetry(c0 * 1e6, 0.02, c1 * 1e6, r1).unwrap();
            assert!((a - printed).abs() < 0.005, "{a} for {printed}");
        }
    }

    #[test]
    fn one_path_cannot_block_itself_and_is_refused() {
        let error = blocking_time_max_s(&[path(1.0, 20.0)], 1500.0).unwrap_err();
        assert_eq!(error.to_string(), "1 path(s) given, this model needs at least 2");
    }
}
