//! Saturated 802.11 stations, which always have a frame to send: collision probability and total throughput.
//!
//! Bianchi 2000, "Performance analysis of the IEEE 802.11 distributed coordination function", Section IV: a
//! station's backoff is a Markov chain whose transmissions collide with a constant probability, regardless of
//! their history. That probability and the number of stations determine each other; the solution is a fixed
//! point.
//!
//! The retry limit is that of Wu, Peng, Long, Cheng and Ma 2002, "Performance of reliable transport protocol
//! over IEEE 802.11 wireless LAN", Section III: after this many transmissions a frame is dropped, and the next
//! one starts afresh.

use crate::number::OutOfRange;
use crate::wifi::Exchange;

/// Result of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saturation {
    /// Probability that a station transmits in a slot (Bianchi's tau).
    pub transmission: f64,
    /// Probability that a transmission collides (Bianchi's p).
    pub collision: f64,
    /// Total throughput of all stations, bits of packets per second.
    pub throughput_bps: f64,
    /// Share of frames that are dropped; 0 without a retry limit.
    pub given_up: f64,
}

/// Saturation of `stations` stations. Each transmits a frame at most `attempts` times; `None` means without
/// limit.
///
/// # Errors
/// If there is no station, or no attempt.
pub fn bianchi(
    stations: u32,
    exchange: &Exchange,
    attempts: Option<u32>,
) -> Result<Saturation, OutOfRange> {
    let counted = |name, value| {
        if value > 0 { Ok(()) } else { Err(OutOfRange { name, value: 0.0, valid: "1 or more" }) }
    };
    counted("stations", stations)?;
    counted("attempts", attempts.unwrap_or(1))?;
    let others = f64::from(stations - 1);
    let collision = fixed_point(exchange, attempts, others);
    let transmission = transmission(exchange, attempts, collision);
    let idle = (1.0 - transmission).powf(f64::from(stations));
    let alone = f64::from(stations) * transmission * (1.0 - transmission).powf(others);
    // Equation 13: payload per mean slot.
    let slot_s = idle * exchange.slot_s
        + alone * exchange.success_s
        + (1.0 - idle - alone) * exchange.collision_s;
    Ok(Saturation {
        transmission,
        collision,
        throughput_bps: alone * exchange.packet_bits / slot_s,
        given_up: attempts.map_or(0.0, |attempts| collision.powf(f64::from(attempts))),
    })
}

/// The collision probability p for which p = 1 - (1 - tau(p))^(n - 1) (Equation 9). The right side falls as p
/// grows, so there is exactly one solution; it is found by bisection.
fn fixed_point(exchange: &Exchange, attempts: Option<u32>, others: f64) -> f64 {
    // Below 1: at p = 1 no frame would succeed, and the series without a limit diverges.
    let (mut low, mut high) = (0.0, 1.0 - f64::EPSILON);
    // More bisections than a number has bits.
    for _ in 0..64 {
        let p = f64::midpoint(low, high);
        let implied = 1.0 - (1.0 - transmission(exchange, attempts, p)).powf(others);
        if implied > p { low = p } else { high = p }
    }
    f64::midpoint(low, high)
}

/// Probability that a station transmits in a slot if its transmissions collide with probability `p`.
///
/// It is the number of transmissions of a frame divided by the number of its slots. The i-th transmission
/// occurs with probability p^i, after a mean backoff of (W_i - 1) / 2 slots, and takes one slot. Without a
/// limit this is Equation 7, with one the result of Wu et al.
fn transmission(exchange: &Exchange, attempts: Option<u32>, p: f64) -> f64 {
    let mut window = f64::from(exchange.cw_min) + 1.0;
    let largest = f64::from(exchange.cw_max) + 1.0;
    let (mut reached, mut sent, mut slots) = (1.0, 0.0, 0.0);
    for _ in 0..attempts.unwrap_or(u32::MAX) {
        if window >= largest {
            // All later transmissions have the same window: a geometric series, finite with a retry limit.
            let rest = match attempts {
                None => reached / (1.0 - p),
                Some(attempts) => (reached - p.powf(f64::from(attempts))) / (1.0 - p),
            };
            return (sent + rest) / (slots + rest * (largest + 1.0) / 2.0);
        }
        sent += reached;
        slots += reached * (window + 1.0) / 2.0;
        reached *= p;
        window = (2.0 * window).min(largest);
    }
    sent / slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::Standard;

    fn exchange() -> Exchange {
        Exchange::new(Standard::Dot11b, 11e6, 1400.0).unwrap()
    }

    #[test]
    fn without_a_limit_the_chance_to_send_is_equation_7() {
        // W = 32, doubled m = 5 times.
        for p in [0.0_f64, 0.1, 0.3, 0.49, 0.7, 0.95] {
            let above = 2.0 * (1.0 - 2.0 * p);
            let below = (1.0 - 2.0 * p) * 33.0 + p * 32.0 * (1.0 - (2.0 * p).powi(5));
            let found = transmission(&exchange(), None, p);
            assert!((found - above / below).abs() < 1e-12, "{p}: {found} {}", above / below);
        }
        // Equation 7 is 0 / 0 at p = 1/2.
        let near = transmission(&exchange(), None, 0.5 + 1e-9);
        assert!((transmission(&exchange(), None, 0.5) - near).abs() < 1e-8);
    }

    #[test]
    fn without_doubling_the_chance_to_send_is_equation_8_and_all_follows_by_hand() {
        let exchange = Exchange { cw_max: 31, ..exchange() };
        let found = bianchi(10, &exchange, None).unwrap();
        let tau: f64 = 2.0 / 33.0;
        assert!((found.transmission - tau).abs() < 1e-12);
        assert!((found.collision - (1.0 - (1.0 - tau).powi(9))).abs() < 1e-12);
        let (idle, alone) = ((1.0 - tau).powi(10), 10.0 * tau * (1.0 - tau).powi(9));
        let busy_s = alone * exchange.success_s + (1.0 - idle - alone) * exchange.collision_s;
        let expected = alone * 11_200.0 / (idle * exchange.slot_s + busy_s);
        assert!((found.throughput_bps / expected - 1.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn one_station_never_collides_and_carries_what_a_single_station_does() {
        for attempts in [None, Some(1), Some(7)] {
            let found = bianchi(1, &exchange(), attempts).unwrap();
            assert!(found.collision < 1e-12 && found.given_up < 1e-12, "{found:?}");
            let single = exchange().single_station_bps();
            assert!((found.throughput_bps / single - 1.0).abs() < 1e-9, "{found:?} {single}");
        }
    }

    #[test]
    fn a_limit_that_is_never_reached_changes_nothing_and_a_near_one_does() {
        let free = bianchi(20, &exchange(), None).unwrap();
        let far = bianchi(20, &exchange(), Some(100)).unwrap();
        assert!((free.collision - far.collision).abs() < 1e-12);
        let near = bianchi(20, &exchange(), Some(2)).unwrap();
        assert!(near.collision > free.collision && near.given_up > 0.1, "{near:?} {free:?}");
    }

    #[test]
    fn any_number_of_stations_is_a_fixed_point_and_more_of_them_collide_more() {
        let mut last = -1.0;
        for stations in [1, 2, 5, 10, 50, 1_000] {
            let found = bianchi(stations, &exchange(), Some(7)).unwrap();
            let implied = 1.0 - (1.0 - found.transmission).powf(f64::from(stations - 1));
            assert!((implied - found.collision).abs() < 1e-9, "{stations}: {found:?}");
            assert!(found.collision > last);
            last = found.collision;
        }
        assert_eq!(bianchi(0, &exchange(), None).unwrap_err().name, "stations");
        assert_eq!(bianchi(1, &exchange(), Some(0)).unwrap_err().name, "attempts");
    }
}
