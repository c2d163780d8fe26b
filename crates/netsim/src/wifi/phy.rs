//! Physical layers: rates and frame durations.

use core::fmt;

use ropewalk_base::{Duration, Rate};

/// PLCP preamble at the rates of 802.11b.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preamble {
    /// 144 bits of preamble and 48 of header, all at 1 Mbit/s: 192 us. Every receiver supports it.
    #[default]
    Long,
    /// 72 bits at 1 Mbit/s and 48 at 2 Mbit/s: 96 us. Not available at 1 Mbit/s.
    Short,
}

/// Physical layer of an amendment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standard {
    /// 802.11b: DSSS and CCK.
    Dot11b(Preamble),
    /// 802.11g at its own rates: ERP-OFDM.
    Dot11g,
}

impl Standard {
    /// Name of the standard.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dot11b(_) => "802.11b",
            Self::Dot11g => "802.11g",
        }
    }

    /// Supported rates, ascending, bit/s.
    pub const fn rates_bps(self) -> &'static [u64] {
        match self {
            Self::Dot11b(Preamble::Long) => &[1_000_000, 2_000_000, 5_500_000, 11_000_000],
            Self::Dot11b(Preamble::Short) => &[2_000_000, 5_500_000, 11_000_000],
            Self::Dot11g => &[
                6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000,
                54_000_000,
            ],
        }
    }

    /// Basic rates, which every station of a cell supports, ascending; responses use one of them. For 802.11b
    /// those of the original standard, for ERP-OFDM the mandatory ones.
    const fn basic_bps(self) -> &'static [u64] {
        match self {
            Self::Dot11b(Preamble::Long) => &[1_000_000, 2_000_000],
            Self::Dot11b(Preamble::Short) => &[2_000_000],
            Self::Dot11g => &[6_000_000, 12_000_000, 24_000_000],
        }
    }
}

/// A physical layer at one of its rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    standard: Standard,
    bps: u64,
}

/// ERP-OFDM: preamble (16 us) and SIGNAL field (4 us), Table 18-4.
const OFDM_HEAD_US: u64 = 20;
/// ERP-OFDM: one symbol.
const OFDM_SYMBOL_US: u64 = 4;
/// ERP-OFDM: SERVICE field and tail, bits.
const OFDM_EXTRA_BITS: u64 = 16 + 6;
/// ERP-OFDM: silence after each frame that compensates for the short SIFS (19.3.2.4).
const SIGNAL_EXTENSION_US: u64 = 6;
const MICROS_PER_S: u64 = 1_000_000;
/// Bytes of an acknowledgement.
const ACK_BYTES: u32 = 14;

impl Phy {
    /// A physical layer with `standard` at `rate`.
    ///
    /// # Errors
    /// If the standard does not have this rate.
    pub fn new(standard: Standard, rate: Rate) -> Result<Self, PhyError> {
        let bps = rate.as_bps();
        if standard.rates_bps().contains(&bps) {
            return Ok(Self { standard, bps });
        }
        Err(PhyError { standard, rate })
    }

    /// The standard.
    pub const fn standard(self) -> Standard {
        self.standard
    }

    /// Rate of a frame's body.
    pub const fn rate(self) -> Rate {
        Rate::from_bps(self.bps)
    }

    /// Duration of a frame of `frame_bytes`, MAC header and check sequence included. Bodies are rounded up to
    /// whole microseconds by 802.11b (17.3.4), to whole symbols by ERP-OFDM (Equation 18-29 and 19.8.3.2).
    pub const fn airtime(self, frame_bytes: u32) -> Duration {
        let bits = frame_bytes as u64 * 8;
        let micros = match self.standard {
            Standard::Dot11b(preamble) => {
                let head = match preamble {
                    Preamble::Long => 192,
                    Preamble::Short => 96,
                };
                head + (bits * MICROS_PER_S).div_ceil(self.bps)
            }
            Standard::Dot11g => {
                let bits_per_symbol = self.bps * OFDM_SYMBOL_US / MICROS_PER_S;
                let symbols = (bits + OFDM_EXTRA_BITS).div_ceil(bits_per_symbol);
                OFDM_HEAD_US + symbols * OFDM_SYMBOL_US + SIGNAL_EXTENSION_US
            }
        };
        Duration::from_micros(micros)
    }

    /// Duration of an acknowledgement, at the highest basic rate that does not exceed the frame's (9.7.6.5.2).
    pub fn ack_airtime(self) -> Duration {
        let basic = self.standard.basic_bps();
        let bps = basic.iter().rev().find(|bps| **bps <= self.bps).unwrap_or(&basic[0]);
        Self { bps: *bps, ..self }.airtime(ACK_BYTES)
    }

    /// Duration of an acknowledgement at the lowest rate, which EIFS includes (9.3.7). With ERP-OFDM alone on
    /// the channel that is 6 Mbit/s; 802.11b assumes the long preamble.
    pub(super) fn longest_ack(standard: Standard) -> Duration {
        let lowest = match standard {
            Standard::Dot11b(_) => {
                Self { standard: Standard::Dot11b(Preamble::Long), bps: 1_000_000 }
            }
            Standard::Dot11g => Self { standard, bps: 6_000_000 },
        };
        lowest.airtime(ACK_BYTES)
    }
}

/// A rate that a standard does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PhyError {
    /// The standard in question.
    pub standard: Standard,
    /// The rate.
    pub rate: Rate,
}

impl fmt::Display for PhyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mbit = |bps: u64| bps as f64 / 1e6;
        let Self { standard, rate } = self;
        write!(f, "{} has no rate of {} Mbit/s; valid:", standard.name(), mbit(rate.as_bps()))?;
        for bps in standard.rates_bps() {
            write!(f, " {}", mbit(*bps))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Standard = Standard::Dot11b(Preamble::Long);
    const SHORT: Standard = Standard::Dot11b(Preamble::Short);

    fn phy(standard: Standard, kbps: u64) -> Phy {
        Phy::new(standard, Rate::from_bps(kbps * 1000)).expect("a rate of the standard")
    }

    #[test]
    fn airtimes_are_those_of_the_standard_by_hand() {
        // Standard, rate in kbit/s, bytes, microseconds.
        for (standard, kbps, bytes, micros) in [
            (LONG, 1_000, 14, 192 + 112),
            (LONG, 2_000, 1436, 192 + 5744),
            (LONG, 5_500, 1436, 192 + 2089),
            (LONG, 11_000, 1436, 192 + 1045),
            (SHORT, 11_000, 1436, 96 + 1045),
            (SHORT, 2_000, 14, 96 + 56),
            (Standard::Dot11g, 54_000, 1436, 20 + 4 * 54 + 6),
            (Standard::Dot11g, 6_000, 1436, 20 + 4 * 480 + 6),
            (Standard::Dot11g, 9_000, 100, 20 + 4 * 23 + 6),
            (Standard::Dot11g, 24_000, 14, 20 + 4 * 2 + 6),
            (Standard::Dot11g, 6_000, 14, 20 + 4 * 6 + 6),
        ] {
            let found = phy(standard, kbps).airtime(bytes);
            assert_eq!(found, Duration::from_micros(micros), "{standard:?} {kbps} {bytes}");
        }
    }

    #[test]
    fn an_acknowledgement_goes_at_the_highest_basic_rate_not_above_the_frame() {
        for (standard, kbps, basic) in [
            (LONG, 1_000, 1_000),
            (LONG, 2_000, 2_000),
            (LONG, 11_000, 2_000),
            (SHORT, 5_500, 2_000),
            (Standard::Dot11g, 6_000, 6_000),
            (Standard::Dot11g, 9_000, 6_000),
            (Standard::Dot11g, 18_000, 12_000),
            (Standard::Dot11g, 54_000, 24_000),
        ] {
            let found = phy(standard, kbps).ack_airtime();
            assert_eq!(found, phy(standard, basic).airtime(14), "{standard:?} {kbps}");
        }
    }

    #[test]
    fn a_rate_that_is_not_there_is_refused_with_those_that_are() {
        let error = Phy::new(LONG, Rate::from_bps(54_000_000)).unwrap_err();
        assert_eq!(error.to_string(), "802.11b has no rate of 54 Mbit/s; valid: 1 2 5.5 11");
        assert!(Phy::new(SHORT, Rate::from_bps(1_000_000)).is_err());
    }
}
