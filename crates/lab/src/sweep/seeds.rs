//! Seeds of each point: `--seeds 10`, `--seeds 11..20`, `--seeds 1..10,15`.

use core::fmt;
use core::str::FromStr;
use std::collections::BTreeSet;

/// Highest number of a seed, which also limits the number of seeds per point.
pub const SEEDS_MAX: u32 = 10_000;

/// Numbers of seeds, at least one. Number 1 is the scenario's own seed; see [`Grid::seed`](super::Grid::seed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(BTreeSet<u32>);

impl Seeds {
    /// The seeds 1 to `count`.
    ///
    /// # Errors
    /// If `count` is not from 1 to [`SEEDS_MAX`].
    pub fn first(count: u32) -> Result<Self, String> {
        count.to_string().parse()
    }

    /// The numbers in ascending order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Number of seeds.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Whether this number is included.
    pub fn contains(&self, number: u32) -> bool {
        self.0.contains(&number)
    }

    /// Adds further numbers.
    pub(super) fn extend(&mut self, numbers: impl IntoIterator<Item = u32>) {
        self.0.extend(numbers);
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| {
            let number = digits.trim().parse::<u32>().ok();
            let number = number.filter(|number| (1..=SEEDS_MAX).contains(number));
            number.ok_or_else(|| format!("`{}` is no number from 1 to {SEEDS_MAX}", digits.trim()))
        };
        if !text.contains(['.', ',']) {
            return Ok(Self((1..=number(text)?).collect()));
        }
        let mut seeds = BTreeSet::new();
        for item in text.split(',') {
            let (first, last) = item.split_once("..").unwrap_or((item, item));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("`{}` is empty: give the lower number first", item.trim()));
            }
            for number in first..=last {
                if !seeds.insert(number) {
                    return Err(format!("seed {number} is given twice"));
                }
            }
        }
        Ok(Self(seeds))
    }
}

/// The format that is parsed: `1..10,15`.
impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in self.numbers() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        // A single number on its own would be parsed as a count.
        let single = |first, last| first == last && ranges.len() > 1;
        let text = ranges.iter().map(|(first, last)| match single(first, last) {
            true => first.to_string(),
            false => format!("{first}..{last}"),
        });
        f.write_str(&text.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_ranges_and_lists_are_read_and_written_in_one_way() {
        for (text, numbers, written) in [
            ("3", &[1, 2, 3][..], "1..3"),
            ("1", &[1], "1..1"),
            ("11..13", &[11, 12, 13], "11..13"),
            ("7..7", &[7], "7..7"),
            ("9, 1..2,3", &[1, 2, 3, 9], "1..3,9"),
        ] {
            let seeds: Seeds = text.parse().expect(text);
            assert_eq!(seeds.numbers().collect::<Vec<_>>(), numbers, "{text}");
            assert_eq!(seeds.to_string(), written, "{text}");
            assert_eq!(written.parse::<Seeds>().as_ref(), Ok(&seeds), "{text}");
        }
    }

    #[test]
    fn what_names_no_seeds_is_refused() {
        for (text, reason) in [
            ("0", "`0` is no number from 1 to 10000"),
            ("10001", "`10001` is no number"),
            ("", "`` is no number"),
            ("1,", "`` is no number"),
            ("0..3", "`0` is no number"),
            ("3..1", "`3..1` is empty"),
            ("1..3,2", "seed 2 is given twice"),
            ("-4", "`-4` is no number"),
        ] {
            let error = text.parse::<Seeds>().expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
