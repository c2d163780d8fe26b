//! A path with random loss, as input of the single-path throughput models.

use crate::number::{OutOfRange, not_negative, positive, probability};

/// Relative tolerance for a product that should be a whole number but exceeds it by rounding.
const ROUNDING: f64 = 1e-12;

/// The parameters of one path, validated on construction. All packets have the same size.
///
/// Wallace and Shami 2014, Section 4.2: `b`, `d`, `p` and `RTO_max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossyPath {
    rate_pps: f64,
    delay_s: f64,
    loss: f64,
    rto_max_s: f64,
}

impl LossyPath {
    /// A path of `rate_pps` packets/s and a propagation round trip of `delay_s` seconds, which
    /// loses a share `loss` of its packets and whose retransmission timer doubles up to
    /// `rto_max_s` seconds.
    ///
    /// # Errors
    /// Rate above 0, delay not negative, loss strictly between 0 and 1, the longest timer no
    /// shorter than the first one (Eq 10: three round trips of a single packet).
    pub fn new(rate_pps: f64, delay_s: f64, loss: f64, rto_max_s: f64) -> Result<Self, OutOfRange> {
        let path = Self {
            rate_pps: positive("rate_pps", rate_pps)?,
            delay_s: not_negative("delay_s", delay_s)?,
            loss: probability("loss", loss)?,
            rto_max_s: positive("rto_max_s", rto_max_s)?,
        };
        if rto_max_s < path.rto_s(1.0) {
            let valid = "no shorter than the first timeout, 3 (delay + 1 / rate)";
            return Err(OutOfRange { name: "rto_max_s", value: rto_max_s, valid });
        }
        Ok(path)
    }

    /// The same from a rate in bit/s and the size of a packet in bytes, headers included.
    ///
    /// # Errors
    /// As [`LossyPath::new`]; rate and size above 0.
    pub fn from_bits(
        rate_bps: f64,
        delay_s: f64,
        loss: f64,
        rto_max_s: f64,
        packet_bytes: f64,
    ) -> Result<Self, OutOfRange> {
        positive("rate_bps", rate_bps)?;
        positive("packet_bytes", packet_bytes)?;
        Self::new(rate_bps / (8.0 * packet_bytes), delay_s, loss, rto_max_s)
    }

    /// Rate of the bottleneck, packets/s.
    pub fn rate_pps(&self) -> f64 {
        self.rate_pps
    }

    /// Propagation round trip, seconds.
    pub fn delay_s(&self) -> f64 {
        self.delay_s
    }

    /// Probability that a packet is lost.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// Longest retransmission timeout, seconds.
    pub fn rto_max_s(&self) -> f64 {
        self.rto_max_s
    }

    /// Round-trip time in seconds with a window of `window` packets (Eq 8): propagation and serialisation of
    /// one packet, or the time that the bottleneck needs for the window if that is longer.
    pub fn rtt_s(&self, window: f64) -> f64 {
        if self.rate_pps * self.delay_s >= window * (1.0 - ROUNDING) {
            self.delay_s + 1.0 / self.rate_pps
        } else {
            window / self.rate_pps
        }
    }

    /// First retransmission timeout in seconds with a window of `window` packets: three round trips, since the
    /// variation is taken as half the round trip (Eq 10).
    pub fn rto_s(&self, window: f64) -> f64 {
        3.0 * self.rtt_s(window)
    }

    /// Number of doublings of `rto_s` after which the timer stays at its maximum, at least 1 (Eq 18).
    pub(crate) fn doublings(&self, rto_s: f64) -> u32 {
        let doublings = (self.rto_max_s / rto_s).log2() + ROUNDING;
        // The ratio of two finite positive numbers has fewer than 2200 binary digits.
        (doublings.max(1.0)) as u32
    }

    /// The largest useful window, `ceil(b d + 1)` packets (Eq 58).
    pub fn window_limit(&self) -> u32 {
        window_limit(self.rate_pps, self.delay_s)
    }

    /// Throughput without loss, packets/s: one window per round trip.
    ///
    /// Both models approach it as the loss goes to 0.
    pub fn loss_free_pps(&self, window: u32) -> f64 {
        loss_free_pps(self.rate_pps, self.delay_s, window)
    }
}

/// The largest useful window on a path of `rate_pps` and `delay_s`, packets (Eq 58).
pub fn window_limit(rate_pps: f64, delay_s: f64) -> u32 {
    let product = rate_pps * delay_s + 1.0;
    // The conversion saturates: a window beyond the range of the type becomes its maximum.
    (product * (1.0 - ROUNDING)).ceil() as u32
}

/// Throughput of a path of `rate_pps` and `delay_s` without loss, packets/s (Eq 8).
pub fn loss_free_pps(rate_pps: f64, delay_s: f64, window: u32) -> f64 {
    let window = f64::from(window);
    if rate_pps * delay_s >= window * (1.0 - ROUNDING) {
        window / (delay_s + 1.0 / rate_pps)
    } else {
        rate_pps
    }
}

/// The window in packets that a receive buffer allows: whole packets only.
///
/// # Errors
/// The buffer must hold a packet, and no more than 2^32 of them.
pub fn window_packets(buffer_bytes: f64, packet_bytes: f64) -> Result<u32, OutOfRange> {
    positive("packet_bytes", packet_bytes)?;
    positive("buffer_bytes", buffer_bytes)?;
    let packets = (buffer_bytes / packet_bytes).floor();
    if packets >= 1.0 && packets <= f64::from(u32::MAX) {
        return Ok(packets as u32);
    }
    let valid = "room for 1 to 2^32 packets";
    Err(OutOfRange { name: "buffer_bytes", value: buffer_bytes, valid })
}

/// Checks that `window` is at least one packet.
pub(crate) fn window_at_least_one(window: u32) -> Result<u32, OutOfRange> {
    if window >= 1 {
        return Ok(window);
    }
    let (name, value) = ("window_packets", f64::from(window));
    Err(OutOfRange { name, value, valid: "1 or more" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper() -> LossyPath {
        LossyPath::from_bits(21e6, 0.04, 1e-3, 60.0, 1500.0).unwrap()
    }

    #[test]
    fn the_round_trip_grows_once_the_window_fills_the_path() {
        let path = paper();
        assert!((path.rtt_s(70.0) - (0.04 + 1.0 / 1750.0)).abs() < 1e-15, "b d = 70 packets");
        assert!((path.rtt_s(87.0) - 87.0 / 1750.0).abs() < 1e-15);
        assert_eq!(path.rto_s(10.0), 3.0 * path.rtt_s(10.0));
    }

    #[test]
    fn limits_and_doublings_do_not_miss_a_whole_number_by_a_bit() {
        assert_eq!(paper().window_limit(), 71);
        // 0.1 s times 30 packets/s is a little more than 3 in binary.
        assert_eq!(LossyPath::new(30.0, 0.1, 0.1, 60.0).unwrap().window_limit(), 4);
        assert_eq!(paper().doublings(60.0 / 1024.0), 10);
        assert_eq!(paper().doublings(50.0), 1, "at least one");
    }

    #[test]
    fn windows_are_whole_packets_of_the_buffer() {
        assert_eq!(window_packets(131_072.0, 1500.0), Ok(87));
        assert_eq!(window_packets(1500.0, 1500.0), Ok(1));
        assert_eq!(window_packets(1499.0, 1500.0).unwrap_err().name, "buffer_bytes");
        assert!(window_packets(1e30, 1.0).is_err() && window_packets(1.0, f64::NAN).is_err());
    }

    #[test]
    fn numbers_that_make_no_path_are_named() {
        let good = [1750.0, 0.04, 1e-3, 60.0];
        let cases = [
            (0, 0.0, "rate_pps"),
            (0, f64::NAN, "rate_pps"),
            (1, -0.1, "delay_s"),
            (2, 0.0, "loss"),
            (2, 1.0, "loss"),
            (2, f64::NAN, "loss"),
            (3, 0.1, "rto_max_s"),
            (3, 0.0, "rto_max_s"),
        ];
        for (at, value, name) in cases {
            let mut numbers = good;
            numbers[at] = value;
            let [b, d, p, rto] = numbers;
            assert_eq!(LossyPath::new(b, d, p, rto).unwrap_err().name, name, "{numbers:?}");
        }
        assert!(LossyPath::new(good[0], good[1], good[2], good[3]).is_ok());
    }

    #[test]
    fn without_loss_a_window_crosses_in_each_round_trip() {
        assert_eq!(paper().loss_free_pps(87), 1750.0);
        assert!((paper().loss_free_pps(35) - 35.0 / (0.04 + 1.0 / 1750.0)).abs() < 1e-9);
    }
}
