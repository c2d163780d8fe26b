//! Sizes, rates and volumes with a unit: `20 GB`, `20 Mbit/s`, `20 GB/month`.

/// Help text for a size.
pub(super) const SIZE_HELP: &str =
    "give a number with a unit: B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024)";

const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Help text for a rate.
pub(super) const RATE_HELP: &str = "give a number with a unit: bit/s, kbit/s, Mbit/s or Gbit/s";
/// Help text for a volume.
pub(super) const VOLUME_HELP: &str = "give a size and its period, such as 20 GB/month";

const RATE_UNITS: [(&str, u64); 4] =
    [("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];

/// Parses a rate of at least 1 bit/s. Returns bit/s.
///
/// # Errors
/// Help for the user.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    quantity(text, &RATE_UNITS).ok_or_else(|| RATE_HELP.to_owned())
}

/// Parses a volume in a calendar month. Returns bytes.
///
/// # Errors
/// Help for the user.
pub fn parse_monthly(text: &str) -> Result<u64, String> {
    let size = text.trim().strip_suffix("month").map(str::trim_end);
    let size = size.and_then(|text| text.strip_suffix('/'));
    size.and_then(parse_size).ok_or_else(|| VOLUME_HELP.to_owned())
}

/// Parses a size of at least one byte. Returns bytes.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    quantity(text, &UNITS)
}

/// A number, possibly with a decimal fraction, times its unit.
fn quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    let bytes = match number.split_once('.') {
        None => number.parse::<u64>().ok()?.checked_mul(factor)?,
        Some((whole, fraction)) => {
            let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
            whole.checked_add(part(fraction, factor)?)?
        }
    };
    (bytes > 0).then_some(bytes)
}

/// The decimal fraction of a unit, rounded down.
fn part(digits: &str, factor: u64) -> Option<u64> {
    if digits.is_empty() || digits.len() > 12 {
        return None;
    }
    let numerator = u128::from(digits.parse::<u64>().ok()?) * u128::from(factor);
    let denominator = 10_u128.pow(u32::try_from(digits.len()).ok()?);
    u64::try_from(numerator / denominator).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_exactly_and_everything_else_is_refused() {
        for (text, bytes) in [
            ("1 B", Some(1)),
            ("20 GB", Some(20_000_000_000)),
            ("20GB", Some(20_000_000_000)),
            ("1.5 KiB", Some(1536)),
            ("0.1 kB", Some(100)),
            ("2 TiB", Some(2 << 40)),
            ("0 B", None),
            ("", None),
            ("20", None),
            ("GB", None),
            ("-1 GB", None),
            ("1. GB", None),
            ("1.2.3 GB", None),
            ("20 gb", None),
            ("20 GB/s", None),
            ("99999999999999 TB", None),
        ] {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
    }

    #[test]
    fn rates_and_volumes_need_their_units() {
        for (text, rate) in [
            ("20 Mbit/s", Some(20_000_000)),
            ("1.5kbit/s", Some(1500)),
            ("1 bit/s", Some(1)),
            ("0 bit/s", None),
            ("20 MB/s", None),
            ("20", None),
        ] {
            assert_eq!(parse_rate(text).ok(), rate, "{text}");
        }
        for (text, bytes) in [
            ("20 GB/month", Some(20_000_000_000)),
            ("1.5 KiB / month", Some(1536)),
            ("20 GB", None),
            ("20 GB/day", None),
            ("/month", None),
        ] {
            assert_eq!(parse_monthly(text).ok(), bytes, "{text}");
        }
    }
}
