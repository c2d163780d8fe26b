//! Units of rates as people write them.

use std::fmt;
use std::str::FromStr;

/// A unit of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateUnit {
    bps: f64,
    name: &'static str,
}

/// Spellings whose `B` distinguishes bytes from bits.
const BYTES: [(&str, f64, &str); 16] = [
    ("GB/s", 8e9, "GB/s"),
    ("MB/s", 8e6, "MB/s"),
    ("kB/s", 8e3, "kB/s"),
    ("KB/s", 8e3, "kB/s"),
    ("GBps", 8e9, "GB/s"),
    ("MBps", 8e6, "MB/s"),
    ("kBps", 8e3, "kB/s"),
    ("KBps", 8e3, "kB/s"),
    ("Bps", 8.0, "B/s"),
    ("B/s", 8.0, "B/s"),
    ("bytes/s", 8.0, "B/s"),
    ("bytes/sec", 8.0, "B/s"),
    ("bytes_sec", 8.0, "B/s"),
    ("bytes_per_sec", 8.0, "B/s"),
    ("bytes_per_second", 8.0, "B/s"),
    ("Bytes/s", 8.0, "B/s"),
];

/// Spellings in lower case; any case is read.
const BITS: [(&str, f64, &str); 21] = [
    ("gbit/s", 1e9, "Gbit/s"),
    ("mbit/s", 1e6, "Mbit/s"),
    ("kbit/s", 1e3, "kbit/s"),
    ("gbits/s", 1e9, "Gbit/s"),
    ("mbits/s", 1e6, "Mbit/s"),
    ("kbits/s", 1e3, "kbit/s"),
    ("gbits/sec", 1e9, "Gbit/s"),
    ("mbits/sec", 1e6, "Mbit/s"),
    ("kbits/sec", 1e3, "kbit/s"),
    ("gbps", 1e9, "Gbit/s"),
    ("mbps", 1e6, "Mbit/s"),
    ("kbps", 1e3, "kbit/s"),
    ("gb/s", 1e9, "Gbit/s"),
    ("mb/s", 1e6, "Mbit/s"),
    ("kb/s", 1e3, "kbit/s"),
    ("bits_per_second", 1.0, "bit/s"),
    ("bits/sec", 1.0, "bit/s"),
    ("bits/s", 1.0, "bit/s"),
    ("bit/s", 1.0, "bit/s"),
    ("bps", 1.0, "bit/s"),
    ("b/s", 1.0, "bit/s"),
];

impl RateUnit {
    pub(super) const MEGABIT: Self = Self { bps: 1e6, name: "Mbit/s" };
    pub(super) const KILOBIT: Self = Self { bps: 1e3, name: "kbit/s" };
    pub(super) const BYTE: Self = Self { bps: 8.0, name: "B/s" };

    /// Bits per second in one of this unit.
    pub(super) const fn bps(self) -> f64 {
        self.bps
    }

    /// The unit at the end of a column's name, as in `throughput_mbps` or `Rate (kbit/s)`.
    pub(super) fn of_column(name: &str) -> Option<Self> {
        let name = name.trim().trim_end_matches([')', ']', '.']);
        let lower = name.to_ascii_lowercase();
        let bytes = BYTES.iter().filter(|(text, ..)| name.ends_with(text));
        let bits = BITS.iter().filter(|(text, ..)| lower.ends_with(text));
        // `max_by_key` returns the last of equally long spellings, which is the one with bytes.
        let ends = bits.chain(bytes).filter(|(text, ..)| begins_a_word(name, text.len()));
        ends.max_by_key(|(text, ..)| text.len()).map(|(_, bps, name)| Self { bps: *bps, name })
    }
}

/// Whether a word begins at the last `length` bytes of a name.
fn begins_a_word(name: &str, length: usize) -> bool {
    let (before, unit) = name.split_at(name.len() - length);
    let first = unit.chars().next().is_some_and(char::is_uppercase);
    before
        .chars()
        .next_back()
        .is_none_or(|last| !last.is_alphanumeric() || first && last.is_lowercase())
}

impl fmt::Display for RateUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for RateUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::of_column(text).filter(|_| !text.trim().contains(char::is_whitespace)).ok_or_else(|| {
            format!("`{text}` is not a unit of rates; use bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s or GB/s")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_is_its_unit() {
        for (name, unit) in [
            ("throughput_mbps", "Mbit/s"),
            ("Throughput (Mbps)", "Mbit/s"),
            ("downlink_throughput_bps", "bit/s"),
            ("throughputMbps", "Mbit/s"),
            ("rate [kB/s]", "kB/s"),
            ("rate [kb/s]", "kbit/s"),
            ("MBps", "MB/s"),
            ("bits_per_second", "bit/s"),
            ("bytes_sec", "B/s"),
            ("Mbits/sec", "Mbit/s"),
        ] {
            assert_eq!(RateUnit::of_column(name).expect(name).to_string(), unit, "{name}");
        }
        for name in ["throughput", "bitrate", "speed", "", "über", "abps"] {
            assert_eq!(RateUnit::of_column(name), None, "{name}");
        }
        assert!("furlong".parse::<RateUnit>().is_err() && "Mbit/s".parse::<RateUnit>().is_ok());
    }
}
