//! Sizes with a unit: `20 GB`.

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

/// Parses a size of at least one byte. Returns bytes.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let factor = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?.1;
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
}
