//! The two well-known formulas for the throughput of TCP, for comparison.
//!
//! Both describe TCP Reno, not SCTP: three duplicate acknowledgements instead of four reports, and timeouts
//! that double six times. They do not include the link, so the result is limited to its rate and to one window
//! per round trip. Round-trip times are those of the path at the window of the formula (Wallace and Shami 2014,
//! Eq 8); the first timeout is three of them (Eq 10).

use crate::lossy::{LossyPath, window_at_least_one};
use crate::number::{OutOfRange, positive};

/// Form of the model of Padhye et al.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PftkForm {
    /// The full model, with timeout probability and window limit.
    #[default]
    Full,
    /// The one-line approximation.
    Short,
}

/// Packets sent per second by Padhye, Firoiu, Towsley and Kurose 2000 (PFTK), with a window of
/// at most `window` packets and an acknowledgement for each `packets_per_ack`.
///
/// Losses are correlated within a round. The result is a sending rate: the share `loss` of it does not arrive.
///
/// # Errors
/// The window must be 1 or more, `packets_per_ack` above 0.
pub fn pftk_pps(
    path: &LossyPath,
    window: u32,
    packets_per_ack: f64,
    form: PftkForm,
) -> Result<f64, OutOfRange> {
    let limit = f64::from(window_at_least_one(window)?);
    let b = positive("packets_per_ack", packets_per_ack)?;
    let p = path.loss();
    // The mean window at the end of a period without limit, E[W_u].
    let shift = (2.0 + b) / (3.0 * b);
    let free = shift + (8.0 * (1.0 - p) / (3.0 * b * p) + shift * shift).sqrt();
    let (rtt_s, rto_s) = (path.rtt_s(free.min(limit)), path.rto_s(free.min(limit)));
    let pps = match form {
        PftkForm::Full => full(p, b, free, limit, rtt_s, rto_s),
        PftkForm::Short => {
            let recovery_s = rtt_s * (2.0 * b * p / 3.0).sqrt();
            let timeout = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0);
            1.0 / (recovery_s + rto_s * timeout * p * (1.0 + 32.0 * p * p))
        }
    };
    Ok(cut(path, limit, pps, rtt_s))
}

/// Section II-C, without and with the limit of the window.
fn full(p: f64, b: f64, free: f64, limit: f64, rtt_s: f64, rto_s: f64) -> f64 {
    let window = free.min(limit);
    let rounds = if free < limit {
        b / 2.0 * free + 1.0
    } else {
        b / 8.0 * limit + (1.0 - p) / (p * limit) + 2.0
    };
    let timeout = reno_timeout_probability(p, window);
    // Six doublings: 1 + p + 2 p^2 + 4 p^3 + ... + 32 p^6.
    let doublings: f64 = 1.0 + (0..6).map(|n| 2.0_f64.powi(n) * p.powi(n + 1)).sum::<f64>();
    let packets = (1.0 - p) / p + window + timeout / (1.0 - p);
    packets / (rtt_s * rounds + timeout * rto_s * doublings / (1.0 - p))
}

/// Probability that a loss is detected only by the timer (Section II-B); 1 if fewer than three duplicate
/// acknowledgements are possible.
fn reno_timeout_probability(p: f64, window: f64) -> f64 {
    if window <= 3.0 {
        return 1.0;
    }
    let lost = |packets: f64| -(packets * (-p).ln_1p()).exp_m1();
    let after = 1.0 + (1.0 - lost(3.0)) * lost(window - 3.0);
    (lost(3.0) * after / lost(window)).min(1.0)
}

/// Packets per second by Mathis, Semke, Mahdavi and Ott 1997: `sqrt(3 / (2 b p))` per round trip,
/// with a window of at most `window` packets and an acknowledgement for each `packets_per_ack` (b).
///
/// Losses are periodic and never lead to a timeout: accurate for losses below 1 %.
///
/// # Errors
/// The window must be 1 or more, `packets_per_ack` above 0.
pub fn mathis_pps(path: &LossyPath, window: u32, packets_per_ack: f64) -> Result<f64, OutOfRange> {
    let limit = f64::from(window_at_least_one(window)?);
    let b = positive("packets_per_ack", packets_per_ack)?;
    let mean_window = (1.5 / (b * path.loss())).sqrt();
    let rtt_s = path.rtt_s(mean_window.min(limit));
    Ok(cut(path, limit, mean_window / rtt_s, rtt_s))
}

/// Limits the result to one window per round trip and to the link rate.
fn cut(path: &LossyPath, window: f64, pps: f64, rtt_s: f64) -> f64 {
    pps.min(window / rtt_s).min(path.rate_pps())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path so fast that its round-trip time is 0.1 s for any window.
    fn fast(p: f64) -> LossyPath {
        LossyPath::new(1e9, 0.1, p, 60.0).unwrap()
    }

    #[test]
    fn rare_losses_make_all_three_the_same() {
        let path = fast(1e-8);
        for b in [1.0, 2.0] {
            let mathis = mathis_pps(&path, u32::MAX, b).unwrap();
            for form in [PftkForm::Full, PftkForm::Short] {
                let pftk = pftk_pps(&path, u32::MAX, b, form).unwrap();
                assert!((pftk / mathis - 1.0).abs() < 2e-3, "{form:?}: {pftk} for {mathis}");
            }
        }
    }

    #[test]
    fn one_loss_in_ten_by_hand() {
        // b = 1, p = 0.1, RTT 0.1 s, T0 0.3 s: E[W] = 1 + 5 = 6 packets, Q = 0.271 (1 + 0.729 *
        // 0.271) / 0.468559, f = 1.124992.
        let timeout: f64 = 0.271 * 1.197_559 / 0.468_559;
        let full = (9.0 + 6.0 + timeout / 0.9) / (0.1 * 4.0 + timeout * 0.3 * 1.124_992 / 0.9);
        let found = pftk_pps(&fast(0.1), 1000, 1.0, PftkForm::Full).unwrap();
        assert!((found / full - 1.0).abs() < 1e-6, "{found} for {full}");
        let short = 1.0 / (0.1 * (0.2_f64 / 3.0).sqrt() + 0.3 * 0.580_947_5 * 0.1 * 1.32);
        let found = pftk_pps(&fast(0.1), 1000, 1.0, PftkForm::Short).unwrap();
        assert!((found / short - 1.0).abs() < 1e-6, "{found} for {short}");
        let mathis = mathis_pps(&fast(0.1), 1000, 2.0).unwrap();
        assert!((mathis - 7.5_f64.sqrt() / 0.1).abs() < 1e-6, "{mathis}");
    }

    #[test]
    fn window_and_rate_limit_every_formula() {
        let slow = LossyPath::new(100.0, 0.1, 1e-6, 60.0).unwrap();
        for window in [1, 5, 1000] {
            let most = (f64::from(window) / slow.rtt_s(f64::from(window))).min(100.0);
            let found = [
                pftk_pps(&slow, window, 1.0, PftkForm::Full).unwrap(),
                pftk_pps(&slow, window, 1.0, PftkForm::Short).unwrap(),
                mathis_pps(&slow, window, 1.0).unwrap(),
            ];
            for pps in found {
                assert!(pps <= most * (1.0 + 1e-12) && pps > 0.85 * most, "{window}: {pps} {most}");
            }
        }
        assert!(pftk_pps(&slow, 0, 1.0, PftkForm::Full).is_err());
        assert_eq!(mathis_pps(&slow, 1, 0.0).unwrap_err().name, "packets_per_ack");
    }
}
