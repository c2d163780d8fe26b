//! Response functions: the mean window of a flow with one loss per 1/p packets.
//!
//! Both functions assume that losses are equally spaced, that none leads to a timeout, and that nothing else
//! limits the window. With random loss of the same rate CUBIC has a smaller window, because its window is not a
//! linear function of the loss intervals.

use crate::number::{OutOfRange, positive, probability};

/// CUBIC's constant C, segments per second cubed (RFC 9438, Section 5).
pub const CUBIC_C: f64 = 0.4;
/// Factor applied to CUBIC's window after a loss (RFC 9438, Section 4.6).
pub const CUBIC_BETA: f64 = 0.7;

/// Mean window of Reno, packets: `sqrt(3 / (2 b p))` (Mathis et al. 1997, Equation 3), with an
/// acknowledgement for each `packets_per_ack` (b) and growth per acknowledgement. With byte counting
/// (RFC 3465), b is 1 for any frequency of acknowledgements.
///
/// # Errors
/// `loss` must lie between 0 and 1, `packets_per_ack` above 0.
pub fn reno_window(loss: f64, packets_per_ack: f64) -> Result<f64, OutOfRange> {
    let b = positive("packets_per_ack", packets_per_ack)?;
    Ok((1.5 / (b * probability("loss", loss)?)).sqrt())
}

/// Mean window of Reno with growth per byte (b = 1) and the recovery round that Mathis et al. leave out: the
/// window stays at half for one round trip after each loss. A saw tooth from W/2 to W with `1 / p` packets then
/// takes `W/2 + 1` rounds, and `1 / p = 3 W^2 / 8 + W / 2`.
///
/// # Errors
/// `loss` must lie between 0 and 1.
pub fn reno_window_with_recovery(loss: f64) -> Result<f64, OutOfRange> {
    let packets = 1.0 / probability("loss", loss)?;
    let largest = (-0.5 + (0.25 + 1.5 * packets).sqrt()) / 0.75;
    Ok(packets / (largest / 2.0 + 1.0))
}

/// Mean window of CUBIC, packets, with a round-trip time of `rtt_s` seconds. It is the larger of two: that of
/// the cubic curve, `(C (3 + beta) / (4 (1 - beta)))^(1/4) (rtt / p)^(3/4)` (RFC 9438, Section 5.1, Equation
/// 5), and that of the Reno-friendly region, which has the same mean as Reno (Section 4.3). Where the two are
/// close, the true value exceeds both.
///
/// # Errors
/// `loss` must lie between 0 and 1, `rtt_s` above 0.
pub fn cubic_window(loss: f64, rtt_s: f64) -> Result<f64, OutOfRange> {
    let (p, rtt) = (probability("loss", loss)?, positive("rtt_s", rtt_s)?);
    let steepness = CUBIC_C * (3.0 + CUBIC_BETA) / (4.0 * (1.0 - CUBIC_BETA));
    let curve = steepness.sqrt().sqrt() * (rtt / p).powf(0.75);
    Ok(curve.max(reno_window(p, 1.0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_tables_of_rfc_9438() {
        // Section 5.1, Table 1 (round trip 0.1 s) and Table 2 (0.01 s), C = 0.4: loss, Reno, CUBIC.
        for (rtt_s, loss, reno, cubic) in [
            (0.1, 1e-2, 12.0, 12.0),
            (0.1, 1e-3, 38.0, 38.0),
            (0.1, 1e-4, 120.0, 187.0),
            (0.1, 1e-5, 379.0, 1054.0),
            (0.1, 1e-6, 1200.0, 5926.0),
            (0.1, 1e-7, 3795.0, 33325.0),
            (0.1, 1e-8, 12000.0, 187_400.0),
            (0.01, 1e-5, 379.0, 379.0),
            (0.01, 1e-7, 3795.0, 5926.0),
            (0.01, 1e-8, 12000.0, 33325.0),
        ] {
            // The tables give whole packets, and Reno's with the constant rounded to 1.2.
            let rounded = 1.2 / 1.5_f64.sqrt();
            let found = reno_window(loss, 1.0).unwrap() * rounded;
            assert!((found - reno).abs() < 1.0, "Reno, {loss}: {found}, {reno}");
            let scale = if cubic == reno { rounded } else { 1.0 };
            let found = cubic_window(loss, rtt_s).unwrap() * scale;
            assert!((found - cubic).abs() < 1.0 + 1e-3 * cubic, "{loss}: {found}, {cubic}");
        }
    }

    #[test]
    fn the_round_of_recovery_matters_where_windows_are_small() {
        // By hand for p = 0.01: W = (sqrt(150.25) - 0.5) / 0.75 = 15.677, 100 / 8.838 packets; for 1e-4:
        // W = (sqrt(15000.25) - 0.5) / 0.75 = 162.63, 10000 / 82.32 packets.
        for (loss, part) in [(1e-2, 11.3142 / 12.2474), (1e-4, 121.483 / 122.474), (1e-8, 1.0)] {
            let ratio = reno_window_with_recovery(loss).unwrap() / reno_window(loss, 1.0).unwrap();
            assert!((ratio - part).abs() < 1e-3, "{loss}: {ratio}");
        }
    }

    #[test]
    fn a_rule_per_acknowledgement_sees_delayed_ones_as_slower_growth() {
        let ratio = reno_window(1e-4, 1.0).unwrap() / reno_window(1e-4, 2.0).unwrap();
        assert!((ratio - 2.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_loss_or_round_trip_is_refused_by_name() {
        assert_eq!(reno_window(0.0, 1.0).unwrap_err().name, "loss");
        assert_eq!(reno_window(0.1, 0.0).unwrap_err().name, "packets_per_ack");
        assert_eq!(cubic_window(2.0, 0.1).unwrap_err().name, "loss");
        assert_eq!(cubic_window(0.1, -1.0).unwrap_err().name, "rtt_s");
    }
}
