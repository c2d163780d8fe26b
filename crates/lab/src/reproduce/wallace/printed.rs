//! Numbers that the paper prints in the text, outside its figures: window limits and iterations.

use ropewalk_models::lossy::window_limit;
use ropewalk_models::optimise::brute_force;

const PACKET_BITS: f64 = 12_000.0;
const DELAY_S: f64 = 0.04;
const FIRST_MBPS: f64 = 21.0;
const SECOND_MBPS: f64 = 5.0;
const BUFFER_KIB: f64 = 128.0;
/// Section 5.3: 1000 packets/s, 100 ms, a buffer of 100 packets, two paths.
const SEARCH: (f64, f64, u32) = (1000.0, 0.1, 100);

/// A printed number, computed by our formulas.
///
/// # Errors
/// A message if there is no such number.
pub fn number(quantity: &str) -> Result<f64, String> {
    Ok(match quantity {
        "window_limit_kib.first" => limit_kib(FIRST_MBPS),
        "window_limit_kib.second" => limit_kib(SECOND_MBPS),
        "window_limit_kib.left" => BUFFER_KIB - limit_kib(FIRST_MBPS),
        "product_kib.first" => product_kib(FIRST_MBPS),
        "product_kib.second" => product_kib(SECOND_MBPS),
        "product_kib.left" => BUFFER_KIB - product_kib(FIRST_MBPS),
        "iterations.1" => iterations(1),
        "iterations.2" => iterations(2),
        "iterations.10" => iterations(10),
        other => return Err(format!("`{other}` is no number of this paper")),
    })
}

/// Eq 58 in whole packets; a Mbit is 10^6 bits.
fn limit_kib(rate_mbps: f64) -> f64 {
    f64::from(window_limit(rate_mbps * 1e6 / PACKET_BITS, DELAY_S)) * PACKET_BITS / 8.0 / 1024.0
}

/// Rate times delay alone; a Mbit is 2^20 bits.
fn product_kib(rate_mbps: f64) -> f64 {
    rate_mbps * 1024.0 / 8.0 * DELAY_S
}

/// Number of combinations that an exhaustive search in steps of `step` tries.
fn iterations(step: u32) -> f64 {
    let (rate_pps, delay_s, packets) = SEARCH;
    let limits = [window_limit(rate_pps, delay_s); 2];
    brute_force(&limits, packets, step, |_, limit| f64::from(limit)).combinations as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_in_binary_units_are_the_printed_ones_and_those_of_eq_58_are_not() {
        for (quantity, printed, agrees) in [
            ("product_kib.first", 108.0, true),
            ("product_kib.second", 26.0, true),
            ("product_kib.left", 20.0, true),
            ("window_limit_kib.first", 108.0, false),
            ("window_limit_kib.second", 26.0, true),
            ("window_limit_kib.left", 20.0, false),
        ] {
            let found = number(quantity).unwrap();
            assert_eq!((found - printed).abs() <= 0.5, agrees, "{quantity}: {found}");
        }
        assert!(number("luck").is_err());
    }
}
