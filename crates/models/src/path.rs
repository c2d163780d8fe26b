//! Parameters of a path for the closed-form models.

use crate::number::{OutOfRange, PathsError, not_negative, positive};

/// The parameters of one path, validated on construction.
///
/// The round-trip time is the *minimum*: propagation only. Models that include serialisation add it, because it
/// depends on the packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathNumbers {
    rate_bps: f64,
    rtt_s: f64,
    forward_delay_s: Option<f64>,
    reverse_rate_bps: Option<f64>,
}

impl PathNumbers {
    /// A path of `rate_bps` bit/s and a propagation round trip of `rtt_s` seconds.
    ///
    /// By default the forward delay is half the round trip, and the reverse rate equals the forward rate.
    ///
    /// # Errors
    /// The rate must be above zero, the round trip not negative, both finite.
    pub fn new(rate_bps: f64, rtt_s: f64) -> Result<Self, OutOfRange> {
        Ok(Self {
            rate_bps: positive("rate_bps", rate_bps)?,
            rtt_s: not_negative("rtt_s", rtt_s)?,
            forward_delay_s: None,
            reverse_rate_bps: None,
        })
    }

    /// Paths from two columns of plain numbers, as a table or an array holds them.
    ///
    /// # Errors
    /// If the columns differ in length, or if a pair is invalid for [`PathNumbers::new`].
    pub fn from_columns(rate_bps: &[f64], rtt_s: &[f64]) -> Result<Vec<Self>, PathsError> {
        if rate_bps.len() != rtt_s.len() {
            let (rates, round_trips) = (rate_bps.len(), rtt_s.len());
            return Err(PathsError::Lengths { rates, round_trips });
        }
        rate_bps.iter().zip(rtt_s).map(|(&c, &r)| Ok(Self::new(c, r)?)).collect()
    }

    /// The same path with a separate forward propagation delay, in seconds.
    ///
    /// # Errors
    /// If the delay is negative or exceeds the round trip.
    pub fn with_forward_delay_s(mut self, delay_s: f64) -> Result<Self, OutOfRange> {
        not_negative("forward_delay_s", delay_s)?;
        if delay_s > self.rtt_s {
            let valid = "no longer than rtt_s, of which it is a part";
            return Err(OutOfRange { name: "forward_delay_s", value: delay_s, valid });
        }
        self.forward_delay_s = Some(delay_s);
        Ok(self)
    }

    /// The same path with a reverse direction of another rate, in bit/s.
    ///
    /// # Errors
    /// The rate must be finite and above zero.
    pub fn with_reverse_rate_bps(mut self, rate_bps: f64) -> Result<Self, OutOfRange> {
        self.reverse_rate_bps = Some(positive("reverse_rate_bps", rate_bps)?);
        Ok(self)
    }

    /// Forward rate, bit/s.
    pub fn rate_bps(&self) -> f64 {
        self.rate_bps
    }

    /// Propagation round trip, seconds.
    pub fn rtt_s(&self) -> f64 {
        self.rtt_s
    }

    /// Forward propagation delay, seconds: as given, else half the round trip.
    pub fn forward_delay_s(&self) -> f64 {
        self.forward_delay_s.unwrap_or(self.rtt_s / 2.0)
    }

    /// Reverse rate, bit/s: as given, else the forward rate.
    pub fn reverse_rate_bps(&self) -> f64 {
        self.reverse_rate_bps.unwrap_or(self.rate_bps)
    }

    /// From the first bit sent to the last bit received of a packet on an idle path, seconds.
    pub(crate) fn arrival_s(&self, packet_bytes: f64) -> f64 {
        self.forward_delay_s() + 8.0 * packet_bytes / self.rate_bps
    }

    /// From the first bit of a packet sent to the last bit of its acknowledgement received, on
    /// an idle path, seconds.
    pub(crate) fn round_trip_s(&self, packet_bytes: f64, sack_bytes: f64) -> f64 {
        let out_s = 8.0 * packet_bytes / self.rate_bps;
        let back_s = 8.0 * sack_bytes / self.reverse_rate_bps();
        self.rtt_s + out_s + back_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forward_delay_is_half_the_round_trip_until_it_is_known() {
        let path = PathNumbers::new(1e6, 0.2).unwrap();
        assert_eq!(path.forward_delay_s(), 0.1);
        assert_eq!(path.with_forward_delay_s(0.15).unwrap().forward_delay_s(), 0.15);
    }

    #[test]
    fn columns_become_paths_and_must_be_equally_long() {
        let paths = PathNumbers::from_columns(&[1e6, 2e6], &[0.02, 0.2]).unwrap();
        assert_eq!((paths.len(), paths[1].rate_bps(), paths[1].rtt_s()), (2, 2e6, 0.2));
        let uneven = PathNumbers::from_columns(&[1e6], &[]).unwrap_err();
        assert_eq!(uneven, PathsError::Lengths { rates: 1, round_trips: 0 });
        assert!(PathNumbers::from_columns(&[0.0], &[0.1]).is_err());
    }

    #[test]
    fn a_forward_delay_longer_than_the_round_trip_is_refused() {
        let error = PathNumbers::new(1e6, 0.2).unwrap().with_forward_delay_s(0.3).unwrap_err();
        assert_eq!((error.name, error.value), ("forward_delay_s", 0.3));
    }

    #[test]
    fn the_full_round_trip_counts_packet_and_acknowledgement() {
        let path = PathNumbers::new(1e6, 0.02).unwrap();
        assert!((path.round_trip_s(1500.0, 48.0) - 0.032_384).abs() < 1e-12);
        let slow_back = path.with_reverse_rate_bps(1e5).unwrap();
        assert!((slow_back.round_trip_s(1500.0, 48.0) - 0.035_84).abs() < 1e-12);
    }
}
