//! One varied key with its values: `--vary KEY=VALUES`.

use super::error::SweepError;
use super::range;
use super::value::Value;

const HELP: &str = "give a key with a list or a range, both ends included: \
    --vary transfer.scheduler=daps,min-rtt, --vary path.lte.rtt=20ms..400ms/20, or \
    --vary 'path.lte.loss=1e-4..1e-1/7 log'";

/// A key with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    key: String,
    values: Vec<Value>,
}

impl Axis {
    /// Parses `KEY=VALUES`; each item of the list is a value or a range.
    ///
    /// # Errors
    /// A message with valid examples.
    pub fn parse(vary: &str) -> Result<Self, SweepError> {
        let Some((key, list)) = vary.split_once('=') else {
            return Err(SweepError::input(format!("--vary {vary}: there is no `=`"), HELP));
        };
        Self::new(key, &split_list(list))
    }

    /// The axis of `key` with these values or ranges.
    ///
    /// # Errors
    /// If the key or a value is empty, a range is invalid, or a value occurs twice.
    pub fn new<S: AsRef<str>>(key: &str, items: &[S]) -> Result<Self, SweepError> {
        let key = key.trim().to_owned();
        let wrong = |what: String| SweepError::input(format!("--vary {key}: {what}"), HELP);
        if key.is_empty() || items.is_empty() {
            return Err(wrong("a key and at least one value are needed".to_owned()));
        }
        if key == "transfer.seed" {
            let help = "--seeds N runs each point with N seeds, --seed sets the root of them";
            return Err(SweepError::input("--vary transfer.seed: a seed is not a parameter", help));
        }
        let mut values: Vec<Value> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let item = item.as_ref().trim();
            if item.is_empty() {
                return Err(wrong(format!("value {} is empty", at + 1)));
            }
            let more = match range::parse(item) {
                Some(range) => range.map_err(|reason| wrong(format!("`{item}`: {reason}")))?,
                None => vec![Value::parse(item)],
            };
            values.extend(more);
        }
        let mut texts: Vec<String> = values.iter().map(Value::text).collect();
        texts.sort_unstable();
        if let Some(pair) = texts.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(format!("the value `{}` is given twice", pair[0])));
        }
        Ok(Self { key, values })
    }

    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its values, at least one.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The override that sets the value number `index`.
    pub(super) fn set(&self, index: usize) -> String {
        format!("{}={}", self.key, self.values[index].text())
    }

    /// The axis as `KEY=V1,V2`, in canonical form.
    pub(super) fn text(&self) -> String {
        let values: Vec<String> = self.values.iter().map(Value::text).collect();
        format!("{}={}", self.key, values.join(","))
    }
}

/// The items of a list, trimmed. Commas inside brackets or quotes do not separate.
pub fn split_list(list: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_i32, None);
    for (at, c) in list.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                pieces.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(list[start..].trim());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_can_be_mixed_and_are_told_in_one_way() {
        for (vary, text) in [
            ("transfer.scheduler=round-robin,daps", "transfer.scheduler=round-robin,daps"),
            ("path.lte.rtt = 5ms, 10ms..30ms/3", "path.lte.rtt=5 ms,10 ms,20 ms,30 ms"),
            (
                "path.lte.loss={ model = 'bernoulli', rate = 0.1 },0",
                "path.lte.loss={ model = 'bernoulli', rate = 0.1 },0",
            ),
            ("path.lte.rtt='20 ms'", "path.lte.rtt=20 ms"),
        ] {
            assert_eq!(Axis::parse(vary).expect(vary).text(), text);
        }
    }

    #[test]
    fn what_is_no_axis_is_refused_with_its_value_and_an_example() {
        for (vary, reason) in [
            ("path.lte.rtt", "there is no `=`"),
            ("=1,2", "a key"),
            ("path.lte.rtt=", "value 1 is empty"),
            ("path.lte.rtt=1ms,,2ms", "value 2 is empty"),
            ("path.lte.rtt=1ms,0.001s", "`1 ms` is given twice"),
            ("path.lte.rtt=1ms..2ms", "`1ms..2ms`: the range does not say"),
            ("transfer.seed=1,2", "--seeds N"),
        ] {
            let error = Axis::parse(vary).expect_err(vary).to_string();
            assert!(error.contains(reason) && error.contains("help:"), "{vary}: {error}");
        }
    }
}
