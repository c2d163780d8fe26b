//! Duration of an 802.11 exchange: a frame, its acknowledgement, and the idle times around them.
//!
//! IEEE Std 802.11-2012: Clauses 9.3 (DCF), 16 and 17 (DSSS, CCK), 18 and 19 (OFDM, ERP). Data frames have no
//! quality of service; fragmentation and RTS/CTS are off; propagation takes no time.

use core::fmt;
use core::str::FromStr;

use crate::number::{OutOfRange, positive};

/// Bytes that a frame adds to a packet: MAC header, LLC and SNAP, check sequence.
const OVERHEAD_BYTES: f64 = 24.0 + 8.0 + 4.0;
/// Bytes of an acknowledgement.
const ACK_BYTES: f64 = 14.0;
const MICRO: f64 = 1e-6;

/// Physical layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standard {
    /// 802.11b with the long preamble.
    Dot11b,
    /// 802.11b with the short preamble.
    Dot11bShort,
    /// 802.11g at its own rates (ERP-OFDM), on a channel without 802.11b.
    Dot11g,
}

impl Standard {
    /// All standards.
    pub const ALL: [Self; 3] = [Self::Dot11b, Self::Dot11bShort, Self::Dot11g];

    /// Name of the standard.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dot11b => "802.11b",
            Self::Dot11bShort => "802.11b-short",
            Self::Dot11g => "802.11g",
        }
    }

    /// Supported rates, bit/s, ascending.
    pub const fn rates_bps(self) -> &'static [f64] {
        match self {
            Self::Dot11b => &[1e6, 2e6, 5.5e6, 11e6],
            Self::Dot11bShort => &[2e6, 5.5e6, 11e6],
            Self::Dot11g => &[6e6, 9e6, 12e6, 18e6, 24e6, 36e6, 48e6, 54e6],
        }
    }

    /// Supported rates, in words.
    const fn rates_in_words(self) -> &'static str {
        match self {
            Self::Dot11b => "a rate of 802.11b: 1, 2, 5.5 or 11 Mbit/s",
            Self::Dot11bShort => "a rate of 802.11b with the short preamble: 2, 5.5 or 11 Mbit/s",
            Self::Dot11g => "a rate of 802.11g: 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s",
        }
    }

    /// Slot, microseconds.
    const fn slot_us(self) -> f64 {
        match self {
            Self::Dot11b | Self::Dot11bShort => 20.0,
            Self::Dot11g => 9.0,
        }
    }

    /// Duration of a frame, microseconds.
    fn airtime_us(self, rate_bps: f64, bytes: f64) -> f64 {
        let head = match self {
            Self::Dot11b => 192.0,
            Self::Dot11bShort => 96.0,
            Self::Dot11g => {
                // Preamble and SIGNAL, symbols with SERVICE and tail, signal extension.
                let bits_per_symbol = rate_bps * 4.0 * MICRO;
                let symbols = ((16.0 + 8.0 * bytes + 6.0) / bits_per_symbol).ceil();
                return 20.0 + 4.0 * symbols + 6.0;
            }
        };
        head + (8.0 * bytes / (rate_bps * MICRO)).ceil()
    }

    /// Rate of an acknowledgement: the highest basic rate that does not exceed the frame's.
    fn ack_rate_bps(self, rate_bps: f64) -> f64 {
        let basic: &[f64] = match self {
            Self::Dot11b => &[1e6, 2e6],
            Self::Dot11bShort => &[2e6],
            Self::Dot11g => &[6e6, 12e6, 24e6],
        };
        basic.iter().copied().filter(|basic| *basic <= rate_bps).fold(basic[0], f64::max)
    }

    /// Duration of an acknowledgement at the lowest rate, microseconds.
    fn longest_ack_us(self) -> f64 {
        match self {
            Self::Dot11b | Self::Dot11bShort => Self::Dot11b.airtime_us(1e6, ACK_BYTES),
            Self::Dot11g => self.airtime_us(6e6, ACK_BYTES),
        }
    }
}

/// The name is not that of a standard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct UnknownStandard(String);

impl fmt::Display for UnknownStandard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "standard = \"{}\" is not known; valid:", self.0)?;
        Standard::ALL.iter().try_for_each(|standard| write!(f, " \"{}\"", standard.name()))
    }
}

impl FromStr for Standard {
    type Err = UnknownStandard;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|standard| standard.name() == name);
        known.ok_or_else(|| UnknownStandard(name.to_owned()))
    }
}

/// Durations on a channel with equal frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exchange {
    /// Slot of the backoff, s.
    pub slot_s: f64,
    /// Time that a successful frame occupies the channel, s: frame, SIFS, acknowledgement, DIFS.
    pub success_s: f64,
    /// Time that a collision occupies the channel, s: frame, EIFS.
    pub collision_s: f64,
    /// Size of the packet in a frame, bits.
    pub packet_bits: f64,
    /// Minimum contention window, slots; a backoff is uniform from 0 to the window.
    pub cw_min: u32,
    /// Maximum contention window, slots.
    pub cw_max: u32,
}

impl Exchange {
    /// Packets of `packet_bytes` (IP header included) at `rate_bps`.
    ///
    /// # Errors
    /// If the standard does not have the rate, or the size is not above 0.
    pub fn new(standard: Standard, rate_bps: f64, packet_bytes: f64) -> Result<Self, OutOfRange> {
        if !standard.rates_bps().contains(&rate_bps) {
            let valid = standard.rates_in_words();
            return Err(OutOfRange { name: "rate_bps", value: rate_bps, valid });
        }
        let bytes = positive("packet_bytes", packet_bytes)? + OVERHEAD_BYTES;
        let sifs = 10.0;
        let difs = sifs + 2.0 * standard.slot_us();
        let frame = standard.airtime_us(rate_bps, bytes);
        let ack = standard.airtime_us(standard.ack_rate_bps(rate_bps), ACK_BYTES);
        let eifs = sifs + standard.longest_ack_us() + difs;
        Ok(Self {
            slot_s: standard.slot_us() * MICRO,
            success_s: (frame + sifs + ack + difs) * MICRO,
            collision_s: (frame + eifs) * MICRO,
            packet_bits: 8.0 * packet_bytes,
            cw_min: if standard == Standard::Dot11g { 15 } else { 31 },
            cw_max: 1023,
        })
    }

    /// Throughput of a saturated station alone on the channel, bit/s: one packet per mean backoff and exchange.
    pub fn single_station_bps(&self) -> f64 {
        let backoff_s = f64::from(self.cw_min) / 2.0 * self.slot_s;
        self.packet_bits / (backoff_s + self.success_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_station_carries_what_the_standard_leaves_it() {
        // Microseconds of DIFS, mean backoff, frame, SIFS, acknowledgement for 1400 bytes.
        for (standard, rate_bps, cycle_us) in [
            (Standard::Dot11b, 2e6, 50.0 + 310.0 + 5_936.0 + 10.0 + 248.0),
            (Standard::Dot11b, 11e6, 50.0 + 310.0 + 1_237.0 + 10.0 + 248.0),
            (Standard::Dot11bShort, 11e6, 50.0 + 310.0 + 1_141.0 + 10.0 + 152.0),
            (Standard::Dot11g, 6e6, 28.0 + 67.5 + 1_946.0 + 10.0 + 50.0),
            (Standard::Dot11g, 54e6, 28.0 + 67.5 + 242.0 + 10.0 + 34.0),
        ] {
            let found = Exchange::new(standard, rate_bps, 1400.0).unwrap().single_station_bps();
            let expected = 11_200.0 / (cycle_us * MICRO);
            assert!((found / expected - 1.0).abs() < 1e-12, "{standard:?}: {found} {expected}");
        }
    }

    #[test]
    fn a_rate_or_standard_that_is_not_there_is_refused_with_those_that_are() {
        let error = Exchange::new(Standard::Dot11bShort, 1e6, 1400.0).unwrap_err();
        assert!(error.to_string().contains("2, 5.5 or 11 Mbit/s"), "{error}");
        assert_eq!(Exchange::new(Standard::Dot11g, 54e6, 0.0).unwrap_err().name, "packet_bytes");
        let error = "802.11a".parse::<Standard>().unwrap_err().to_string();
        assert!(error.contains("802.11a") && error.contains("\"802.11g\""), "{error}");
        for standard in Standard::ALL {
            assert_eq!(standard.name().parse(), Ok(standard));
            for rate in standard.rates_bps() {
                assert!(Exchange::new(standard, *rate, 1500.0).is_ok());
            }
        }
    }
}
