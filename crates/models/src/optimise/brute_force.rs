//! The paper's exhaustive search, for comparison.

/// Result of an exhaustive search.
#[derive(Debug, Clone, PartialEq)]
pub struct BruteForce {
    /// The limit of each path's window, packets; empty if nothing fits.
    pub limits_packets: Vec<u32>,
    /// Total throughput, packets/s.
    pub throughput_pps: f64,
    /// Number of combinations of limits tried (Section 5.3: the product of the numbers of limits).
    pub combinations: u64,
}

/// Tries all combinations of multiples of `multiple` packets, up to `limits_packets` for each path and
/// `packets` in total (Eq 56 to 61). Calls `throughput_pps(path, limit)` for each.
///
/// As in the paper, nothing is cached between combinations; the function may cache its own results. A multiple
/// of 0 counts as 1.
pub fn brute_force(
    limits_packets: &[u32],
    packets: u32,
    multiple: u32,
    mut throughput_pps: impl FnMut(usize, u32) -> f64,
) -> BruteForce {
    let multiple = multiple.max(1);
    let steps: Vec<u32> =
        limits_packets.iter().map(|limit| limit.min(&packets) / multiple).collect();
    let nothing = BruteForce { limits_packets: Vec::new(), throughput_pps: 0.0, combinations: 0 };
    if steps.contains(&0) || steps.is_empty() {
        return nothing;
    }
    let mut best = nothing;
    let mut limits = vec![multiple; steps.len()];
    loop {
        best.combinations += 1;
        let used: u64 = limits.iter().map(|limit| u64::from(*limit)).sum();
        if used <= u64::from(packets) {
            let each = limits.iter().enumerate();
            let total: f64 = each.map(|(path, limit)| throughput_pps(path, *limit)).sum();
            if total > best.throughput_pps || best.limits_packets.is_empty() {
                best.throughput_pps = total;
                best.limits_packets.clone_from(&limits);
            }
        }
        if !advance(&mut limits, &steps, multiple) {
            return best;
        }
    }
}

/// Advances to the next combination; the last path's limit changes fastest. Returns `false` after the last one.
fn advance(limits: &mut [u32], steps: &[u32], multiple: u32) -> bool {
    for (limit, steps) in limits.iter_mut().zip(steps).rev() {
        if *limit < steps * multiple {
            *limit += multiple;
            return true;
        }
        *limit = multiple;
    }
    false
}
