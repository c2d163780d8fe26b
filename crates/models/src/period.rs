//! The period after which a delay-aware schedule repeats.

use crate::number::{OutOfRange, positive};

/// Default quantum in which delays are counted: a millisecond, as the papers do.
pub const DELAY_QUANTUM_S: f64 = 1e-3;

/// Default cap of the period, as a multiple of the longest delay.
///
/// Realistic delays of 99 and 100 ms have a common multiple of 9.9 s. By then the windows on which the schedule
/// is based have changed.
pub const PERIOD_CAP_FACTOR: u64 = 64;

/// A delay of `delay_s` seconds in ticks of `quantum_s`: the nearest whole number, at least 1.
///
/// # Errors
/// Both finite and above zero; the result within 2^52, where every integer is exact.
pub fn delay_ticks(delay_s: f64, quantum_s: f64) -> Result<u64, OutOfRange> {
    positive("delay_s", delay_s)?;
    positive("quantum_s", quantum_s)?;
    let ticks = (delay_s / quantum_s).round();
    if ticks > (1_u64 << 52) as f64 {
        let valid = "at most 2^52 quanta: take a larger quantum";
        return Err(OutOfRange { name: "delay_s", value: delay_s, valid });
    }
    Ok((ticks as u64).max(1))
}

/// Error in computing a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PeriodError {
    /// There are no delays.
    #[error("no paths given, a schedule needs at least 1")]
    NoPaths,
    /// A path has a delay of zero ticks.
    #[error("path {path} has a delay of 0 ticks, it must be at least 1")]
    ZeroDelay {
        /// Index of the path.
        path: usize,
    },
    /// A path has a capacity of zero.
    #[error("path {path} carries 0 packets per delay, it must be at least 1")]
    ZeroPackets {
        /// Index of the path.
        path: usize,
    },
    /// The numbers of delays and capacities differ.
    #[error("{delays} delays but {capacities} capacities: one of each per path")]
    Lengths {
        /// Number of delays.
        delays: usize,
        /// Number of capacities.
        capacities: usize,
    },
    /// The cap is shorter than the longest delay, so that its path would never send.
    #[error(
        "a period of at most {cap_ticks} ticks leaves a path out: the cap must be at \
         least the longest delay, {least}"
    )]
    CapTooShort {
        /// The cap, in ticks.
        cap_ticks: u64,
        /// The longest delay, in ticks.
        least: u64,
    },
    /// The number of packets in a period exceeds 64 bits.
    #[error("the packets of one period do not fit into 64 bits: lower the cap")]
    TooManyPackets,
}

/// The period of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Length in ticks.
    pub ticks: u64,
    /// Whether the least common multiple exceeded the cap.
    pub capped: bool,
}

/// The least common multiple of the delays, cut at `cap_ticks`
/// ([`PERIOD_CAP_FACTOR`] times the longest delay if not given).
///
/// # Errors
/// At least one delay, none of them zero, a cap no shorter than the longest.
pub fn period(delays: &[u64], cap_ticks: Option<u64>) -> Result<Period, PeriodError> {
    let longest = *delays.iter().max().ok_or(PeriodError::NoPaths)?;
    if let Some(path) = delays.iter().position(|&d| d == 0) {
        return Err(PeriodError::ZeroDelay { path });
    }
    let cap_ticks = cap_ticks.unwrap_or(longest.saturating_mul(PERIOD_CAP_FACTOR));
    if cap_ticks < longest {
        return Err(PeriodError::CapTooShort { cap_ticks, least: longest });
    }
    let mut ticks = 1_u64;
    for &delay in delays {
        // The multiple only grows: once past the cap or 64 bits, it stays there.
        match (delay / gcd(ticks, delay)).checked_mul(ticks) {
            Some(multiple) if multiple <= cap_ticks => ticks = multiple,
            _ => return Ok(Period { ticks: cap_ticks, capped: true }),
        }
    }
    Ok(Period { ticks, capped: false })
}

/// Packets of every path in one period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketsPerPeriod {
    /// The period.
    pub period: Period,
    /// K_i, packets of each path.
    pub per_path: Vec<u64>,
    /// N, packets of all paths.
    pub total: u64,
}

/// `K_i = lcm(D) C_i / D_i` and `N = Σ K_i` (Sarwar et al. 2013, Eq 3 and 4).
///
/// `delays` are in ticks, `capacities` in packets per delay of the same path. In a capped period, a path
/// carries only what it starts in whole delays.
///
/// # Errors
/// As [`period`]; besides one capacity above zero for each delay.
pub fn packets_per_period(
    delays: &[u64],
    capacities: &[u64],
    cap_ticks: Option<u64>,
) -> Result<PacketsPerPeriod, PeriodError> {
    if delays.len() != capacities.len() {
        let (delays, capacities) = (delays.len(), capacities.len());
        return Err(PeriodError::Lengths { delays, capacities });
    }
    let period = period(delays, cap_ticks)?;
    if let Some(path) = capacities.iter().position(|&c| c == 0) {
        return Err(PeriodError::ZeroPackets { path });
    }
    let mut total = 0_u64;
    let mut per_path = Vec::with_capacity(delays.len());
    for (&delay, &capacity) in delays.iter().zip(capacities) {
        let packets =
            (period.ticks / delay).checked_mul(capacity).ok_or(PeriodError::TooManyPackets)?;
        total = total.checked_add(packets).ok_or(PeriodError::TooManyPackets)?;
        per_path.push(packets);
    }
    Ok(PacketsPerPeriod { period, per_path, total })
}

/// Greatest common divisor; both above zero.
fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_become_the_nearest_number_of_ticks() {
        let cases = [
            (0.01, 1e-3, 10),
            (0.1, 1e-3, 100),
            (0.0304, 1e-3, 30),
            (1e-6, 1e-3, 1),
            (0.1, 0.1, 1),
        ];
        for (delay_s, quantum_s, ticks) in cases {
            assert_eq!(delay_ticks(delay_s, quantum_s), Ok(ticks), "{delay_s} s");
        }
        assert!(delay_ticks(0.0, 1e-3).is_err() && delay_ticks(1e300, 1e-3).is_err());
    }

    #[test]
    fn the_papers_case_has_25_packets_of_which_the_fast_path_carries_20() {
        let n = packets_per_period(&[10, 100], &[2, 5], None).unwrap();
        assert_eq!((n.total, n.per_path, n.period.ticks), (25, vec![20, 5], 100));
    }

    #[test]
    fn periods_are_the_least_common_multiple_unless_capped() {
        let cases: [(&[u64], Option<u64>, u64, bool); 6] = [
            (&[10, 100], None, 100, false),
            (&[6, 10, 15], None, 30, false),
            (&[11, 100], None, 1_100, false),
            (&[99, 100], None, 6_400, true),
            (&[99, 100], Some(20_000), 9_900, false),
            (&[u64::MAX - 1, u64::MAX], None, u64::MAX, true),
        ];
        for (delays, cap, ticks, capped) in cases {
            assert_eq!(period(delays, cap), Ok(Period { ticks, capped }), "{delays:?}");
        }
    }

    #[test]
    fn senseless_arguments_are_named() {
        assert_eq!(period(&[], None), Err(PeriodError::NoPaths));
        assert_eq!(period(&[3, 0], None), Err(PeriodError::ZeroDelay { path: 1 }));
        let short = PeriodError::CapTooShort { cap_ticks: 50, least: 100 };
        assert_eq!(period(&[10, 100], Some(50)), Err(short));
        let uneven = PeriodError::Lengths { delays: 1, capacities: 2 };
        assert_eq!(packets_per_period(&[1], &[1, 1], None), Err(uneven));
        let zero = PeriodError::ZeroPackets { path: 0 };
        assert_eq!(packets_per_period(&[1], &[0], None), Err(zero));
    }
}
