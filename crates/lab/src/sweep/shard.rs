//! A part of a sweep, for batch systems: `--shard i/n`.

use core::fmt;
use core::str::FromStr;

/// Maximum number of shards.
const MOST: usize = 100_000;

/// Every n-th point, starting with the i-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Index of the shard, from 1.
    number: usize,
    of: usize,
}

impl Shard {
    /// Whether the point belongs to the shard.
    pub const fn has(self, point: usize) -> bool {
        point % self.of == self.number - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, of) = text
            .split_once('/')
            .ok_or_else(|| format!("`{text}` is not of the form i/n, such as 1/4 to 4/4"))?;
        let read = |digits: &str| digits.parse::<usize>().ok().filter(|n| (1..=MOST).contains(n));
        let wrong = |what: &str| format!("`{what}` is no number from 1 to {MOST}");
        let (number, of) = match (read(number), read(of)) {
            (Some(number), Some(of)) => (number, of),
            (None, _) => return Err(wrong(number)),
            (_, None) => return Err(wrong(of)),
        };
        if number > of {
            return Err(format!("there is no shard {number} of {of}; valid: 1/{of} to {of}/{of}"));
        }
        Ok(Self { number, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_belongs_to_exactly_one_shard() {
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].map(|s| s.parse().expect(s)).into();
        for point in 0..20 {
            assert_eq!(shards.iter().filter(|shard| shard.has(point)).count(), 1, "{point}");
        }
        assert!(shards[0].has(0) && shards[2].has(5));
        assert_eq!(shards[1].to_string(), "2/3");
    }

    #[test]
    fn what_is_no_shard_is_refused_with_the_valid_ones() {
        for (text, reason) in [
            ("2", "i/n"),
            ("0/4", "`0` is no number from 1"),
            ("1/0", "`0` is no number from 1"),
            ("a/4", "`a` is no number"),
            ("5/4", "valid: 1/4 to 4/4"),
            ("-1/4", "`-1` is no number"),
        ] {
            let error = text.parse::<Shard>().expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
