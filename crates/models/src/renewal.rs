//! Throughput of one path as a renewal process (Wallace and Shami 2014, Section 4.4).
//!
//! The window follows a saw tooth of congestion avoidance periods, all equal to the mean one. Losses are
//! correlated: the first one also loses the rest of its round. `papers/wallace2014/README.md` lists the
//! corrected misprints of the paper.

use crate::lossy::{LossyPath, window_at_least_one};
use crate::markov::table_length;
use crate::number::OutOfRange;

/// Smallest mean window for which the model applies.
const WINDOW_LEAST: f64 = 1.0;

/// Mean number of packets lost per congestion avoidance period, `E[L]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PeriodLosses {
    /// Half a window: the position of the first loss in its round is uniform (below Eq 32).
    #[default]
    HalfWindow,
    /// By the distribution of the first loss (Eq 62); the window then has to be solved numerically. The paper
    /// proposes this for more accuracy.
    FirstLoss,
}

/// Window for which Eq 8 gives the round-trip time of a period; Eq 36 leaves it open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RoundTrip {
    /// The window at the end of a period, `E[W]`. Every round then has the longest round-trip time of its
    /// period, so the model is too low if a queue exists only at the end.
    #[default]
    AtEnd,
    /// The mean window of a period, 3/4 `E[W]` without a limit. The queue at the end is then not counted, so
    /// the model is too high if the path just holds the mean window.
    AtMean,
}

/// Results for the mean period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Renewal {
    /// Packets that arrive per second (Eq 55).
    pub throughput_pps: f64,
    /// Window at the end of a congestion avoidance period, packets (Eq 33, or the limit).
    pub window_packets: f64,
    /// Whether the window limit applies.
    pub window_limited: bool,
    /// Rounds of a congestion avoidance period up to the loss (Eq 34 or 41).
    pub rounds: f64,
    /// Packets that a congestion avoidance period loses.
    pub lost_packets: f64,
    /// Probability that a period ends in a timeout (Eq 44).
    pub timeout_probability: f64,
    /// Mean length of a back-off, seconds (Eq 46).
    pub back_off_s: f64,
    /// Round trip, seconds (Eq 8).
    pub rtt_s: f64,
}

/// Solves the model for a window of at most `window` packets.
///
/// # Errors
/// If the window is 0, or if the loss leaves a mean window below one packet: it may be at most 0.615 (with
/// [`PeriodLosses::FirstLoss`], 0.703).
pub fn solve(path: &LossyPath, window: u32, losses: PeriodLosses) -> Result<Renewal, OutOfRange> {
    solve_with(path, window, losses, RoundTrip::AtEnd)
}

/// As [`solve`], with a choice of the round-trip time.
///
/// # Errors
/// As [`solve`].
pub fn solve_with(
    path: &LossyPath,
    window: u32,
    losses: PeriodLosses,
    round_trip: RoundTrip,
) -> Result<Renewal, OutOfRange> {
    let limit = f64::from(window_at_least_one(window)?);
    let p = path.loss();
    let free = losses.free_window(p);
    if free < WINDOW_LEAST {
        let valid = match losses {
            PeriodLosses::HalfWindow => "at most 0.615, else the mean window is below a packet",
            PeriodLosses::FirstLoss => "at most 0.703, else the mean window is below a packet",
        };
        return Err(OutOfRange { name: "loss", value: p, valid });
    }
    let window_limited = free >= limit;
    let window = if window_limited { limit } else { free };
    let lost_packets = losses.lost(p, window);
    let rounds = if window_limited {
        // From Eq 37 and 38; with half a window lost it is Eq 41.
        ((1.0 - p) / p + lost_packets) / window + window / 8.0 + 0.25
    } else {
        // Eq 29 and 32 solved for E[X]; with half a window lost it is Eq 34.
        window / 2.0 + 1.0
    };
    let at = round_trip.window(window, rounds);
    let (rtt_s, rto_s) = (path.rtt_s(at), path.rto_s(at));
    let timeout_probability = timeout_probability(p, window);
    let back_off_s = back_off_s(path, rto_s);
    // Eq 28, 36, 53 and 54, put together by Eq 55.
    let avoidance_packets = (1.0 - p) / p + window - lost_packets;
    let avoidance_s = (rounds + 1.0) * rtt_s;
    let start_s = window.log2().max(1.0) * rtt_s;
    let throughput_pps = (avoidance_packets + timeout_probability * (window - 1.0))
        / (avoidance_s + timeout_probability * (back_off_s + start_s));
    Ok(Renewal {
        throughput_pps,
        window_packets: window,
        window_limited,
        rounds,
        lost_packets,
        timeout_probability,
        back_off_s,
        rtt_s,
    })
}

/// Throughput for every limit of the window from 1 to `window` packets, packets/s: entry `c - 1` is
/// that of the limit c.
///
/// # Errors
/// As [`solve`]; at most [`crate::markov::TABLE_MAX`] entries.
pub fn table(path: &LossyPath, window: u32, losses: PeriodLosses) -> Result<Vec<f64>, OutOfRange> {
    (1..=table_length(window)?)
        .map(|limit| Ok(solve(path, limit, losses)?.throughput_pps))
        .collect()
}

impl RoundTrip {
    /// The window that determines the round-trip time of a period with `rounds` rounds and final window
    /// `window`.
    fn window(self, window: f64, rounds: f64) -> f64 {
        match self {
            Self::AtEnd => window,
            Self::AtMean => {
                // Eq 37: U rounds of growth from half the window, with a mean of 3/4 of it; the others are at
                // the limit.
                let growing = (window / 2.0 + 1.0).min(rounds);
                window * (0.75 * growing + (rounds - growing)) / rounds
            }
        }
    }
}

impl PeriodLosses {
    /// `E[L]` for a window of `window` at the end of the period.
    fn lost(self, p: f64, window: f64) -> f64 {
        match self {
            Self::HalfWindow => window / 2.0,
            Self::FirstLoss => {
                // 1 - (1 + p W) (1 - p)^W without cancellation for small p W.
                let none = window * (-p).ln_1p();
                (-none.exp_m1() - p * window * none.exp()) / p
            }
        }
    }

    /// `E[W]` at the end of a period without a window limit.
    fn free_window(self, p: f64) -> f64 {
        match self {
            // Eq 33.
            Self::HalfWindow => (8.0 * (1.0 - p) / (3.0 * p) + 1.0 / 9.0).sqrt() - 1.0 / 3.0,
            Self::FirstLoss => self.numeric_window(p),
        }
    }

    /// Solves Eq 31 with `E[B] = E[W] - E[L]` and `E[X] = E[W] / 2 + 1` by bisection: `3/8 W (W + 2) - E[L] =
    /// (1 - p) / p`. The left side grows with W, because `E[L]` grows by less than one packet per packet of
    /// window.
    fn numeric_window(self, p: f64) -> f64 {
        let excess = |w: f64| 0.375 * w * (w + 2.0) - self.lost(p, w) - (1.0 - p) / p;
        // E[L] is at most 1 / p, so that the left side exceeds the right one here.
        let (mut low, mut high) = (0.0, (8.0 * (2.0 - p) / (3.0 * p)).sqrt());
        for _ in 0..f64::MANTISSA_DIGITS + 11 {
            let middle = f64::midpoint(low, high);
            if excess(middle) < 0.0 { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    }
}

/// Eq 44, at most 1: fewer than four arrivals in the round of the loss, or in the one after.
fn timeout_probability(p: f64, window: f64) -> f64 {
    let arrive = |packets: f64| (packets * (-p).ln_1p()).exp();
    let some_lost = -(window * (-p).ln_1p()).exp_m1();
    let too_few = 1.0 - arrive(8.0) - (1.0 - arrive(4.0)) * arrive(window);
    (too_few / some_lost).min(1.0)
}

/// Eq 46, with its quotient written as the original sum, which is defined at p = 1/2.
fn back_off_s(path: &LossyPath, rto_s: f64) -> f64 {
    let (p, doublings) = (path.loss(), path.doublings(rto_s));
    let (mut sum, mut term) = (0.0, 1.0);
    for _ in 0..doublings {
        sum += term;
        term *= 2.0 * p;
    }
    let at_longest = p.powi(doublings.cast_signed()) / (1.0 - p);
    (1.0 - p) * sum * rto_s + at_longest * path.rto_max_s()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITS: f64 = 12_000.0;

    fn paper(p: f64) -> LossyPath {
        LossyPath::from_bits(21e6, 0.04, p, 60.0, 1500.0).unwrap()
    }

    #[test]
    fn the_reference_comes_out_to_a_thousandth() {
        for (p, mbps) in [(1e-4, 18.946), (1e-3, 10.728), (1e-2, 2.737), (1e-1, 0.456)] {
            let found = solve(&paper(p), 87, PeriodLosses::HalfWindow).unwrap();
            let found = found.throughput_pps * BITS / 1e6;
            assert!((found / mbps - 1.0).abs() < 1e-3, "p {p}: {found} for {mbps}");
        }
    }

    #[test]
    fn rounds_are_those_of_equations_34_and_41() {
        let free = solve(&paper(1e-3), 87, PeriodLosses::HalfWindow).unwrap();
        let p = 1e-3_f64;
        let printed = (2.0 * (1.0 - p) / (3.0 * p) + 1.0 / 36.0).sqrt() + 5.0 / 6.0;
        assert!(!free.window_limited && (free.rounds - printed).abs() < 1e-12);
        let limited = solve(&paper(1e-4), 87, PeriodLosses::HalfWindow).unwrap();
        let printed = 9999.0 / 87.0 + 87.0 / 8.0 + 0.75;
        assert!(limited.window_limited && (limited.rounds - printed).abs() < 1e-12);
    }

    #[test]
    fn the_back_off_is_the_printed_quotient_and_passes_one_half() {
        let back_off = |p: f64| back_off_s(&paper(p), 0.125);
        let printed = |p: f64| {
            let doubled = (2.0 * p).powi(8);
            (1.0 - p) * (1.0 - doubled) / (1.0 - 2.0 * p) * 0.125 + p.powi(8) / (1.0 - p) * 60.0
        };
        for p in [0.01, 0.3, 0.499, 0.6] {
            assert!((back_off(p) - printed(p)).abs() < 1e-11, "p {p}");
        }
        assert!((back_off(0.5) - f64::midpoint(back_off(0.49999), back_off(0.50001))).abs() < 1e-6);
    }

    #[test]
    fn the_better_characterised_loss_solves_its_own_equation() {
        for p in [1e-6_f64, 1e-3, 0.1, 0.4] {
            let found = solve(&paper(p), 1_000_000, PeriodLosses::FirstLoss).unwrap();
            let window = found.window_packets;
            // Eq 62, term by term as far as there are whole terms.
            let whole = 20_u32;
            let sum: f64 =
                (1..=whole).map(|i| f64::from(i) * p * (1.0 - p).powf(f64::from(i) - 1.0)).sum();
            let lost = PeriodLosses::FirstLoss.lost(p, f64::from(whole));
            assert!((lost / sum - 1.0).abs() < 1e-9, "p {p}: {lost} for {sum}");
            // Eq 31.
            let left = (1.0 - p) / p + window;
            let right = found.rounds * 0.75 * window + window - found.lost_packets;
            assert!((left / right - 1.0).abs() < 1e-12, "p {p}: {left} {right}");
        }
    }

    #[test]
    fn the_round_trip_at_the_mean_window_is_charged_from_three_quarters_on() {
        let solved = |path: &LossyPath, window, round_trip| {
            solve_with(path, window, PeriodLosses::HalfWindow, round_trip).unwrap()
        };
        let free = solved(&paper(1e-3), 1000, RoundTrip::AtMean);
        let narrow = LossyPath::from_bits(1e6, 0.04, 1e-3, 60.0, 1500.0).unwrap();
        assert!((free.rtt_s - paper(1e-3).rtt_s(0.75 * free.window_packets)).abs() < 1e-12);
        // On a full path rounds last as long as their window: 3/4 of the longest.
        let (end, mean) =
            (solved(&narrow, 87, RoundTrip::AtEnd), solved(&narrow, 87, RoundTrip::AtMean));
        assert!((mean.rtt_s / end.rtt_s - 0.75).abs() < 1e-12, "{mean:?} {end:?}");
        // With rare losses the window stays at its limit, and so does the mean.
        let limited = solved(&paper(1e-6), 87, RoundTrip::AtMean);
        assert!(limited.rtt_s > 0.99 * 87.0 / 1750.0 && limited.rtt_s < 87.0 / 1750.0);
    }

    #[test]
    fn what_the_model_does_not_cover_is_refused() {
        let message = |p: f64, window: u32| {
            solve(&paper(p), window, PeriodLosses::HalfWindow).unwrap_err().to_string()
        };
        assert!(message(0.7, 10).starts_with("loss = 0.7 is out of range"), "{}", message(0.7, 10));
        assert!(message(0.1, 0).starts_with("window_packets = 0"), "{}", message(0.1, 0));
        assert!(solve(&paper(0.61), 1, PeriodLosses::HalfWindow).is_ok());
        assert!(solve(&paper(0.70), 1, PeriodLosses::FirstLoss).is_ok());
        assert!(solve(&paper(0.71), 1, PeriodLosses::FirstLoss).is_err());
        let table = table(&paper(0.01), 50, PeriodLosses::HalfWindow).unwrap();
        let last = solve(&paper(0.01), 50, PeriodLosses::HalfWindow).unwrap();
        assert_eq!((table.len(), table[49]), (50, last.throughput_pps));
    }
}
