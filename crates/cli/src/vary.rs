//! `--vary key=v1,v2`: a list of values for one key.

use ropewalk_lab::sweep::split_list;

use crate::failure::Failure;

/// A key and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    /// The key as typed: `path.lte.rtt`.
    pub key: String,
    /// The values as typed.
    values: Vec<String>,
}

impl Vary {
    /// Parses `key=v1,v2`. A comma within brackets or quotes is not a separator.
    ///
    /// # Errors
    /// There is no key, or a value is empty.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let help = "for example --vary transfer.receive_buffer=30kB,45kB,90kB";
        let Some((key, list)) = text.split_once('=') else {
            return Err(Failure::input(format!("--vary {text}: there is no `=`"), help));
        };
        let values = split_list(list);
        if let Some(empty) = values.iter().position(|value| value.is_empty()) {
            let message = format!("--vary {text}: value {} is empty", empty + 1);
            return Err(Failure::input(message, help));
        }
        let values = values.into_iter().map(str::to_owned).collect();
        Ok(Self { key: key.trim().to_owned(), values })
    }

    /// For each value: the value as shown, a label with the full key, and the override.
    pub fn changes(&self) -> impl Iterator<Item = (String, String, String)> {
        self.values.iter().map(move |value| {
            let shown = unquoted(value).to_owned();
            let label = format!("{} {shown}", self.key);
            (shown, label, format!("{}={value}", self.key))
        })
    }
}

fn unquoted(value: &str) -> &str {
    value.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_at_its_own_commas_only() {
        for (list, pieces) in [
            ("1,2", vec!["1", "2"]),
            ("\"2 s\", \"3 s\"", vec!["\"2 s\"", "\"3 s\""]),
            (
                "{ model = 'bernoulli', rate = 0.1 },none",
                vec!["{ model = 'bernoulli', rate = 0.1 }", "none"],
            ),
            ("[1,[2,3]],[4]", vec!["[1,[2,3]]", "[4]"]),
            ("'a,b',c", vec!["'a,b'", "c"]),
            ("", vec![""]),
        ] {
            assert_eq!(split_list(list), pieces, "{list}");
        }
    }

    #[test]
    fn labels_name_the_whole_key_and_the_value_without_quotes() {
        let vary = Vary::parse("path.lte.rtt='40 ms',80ms").expect("two values");
        let expected = [
            ("40 ms", "path.lte.rtt 40 ms", "path.lte.rtt='40 ms'"),
            ("80ms", "path.lte.rtt 80ms", "path.lte.rtt=80ms"),
        ];
        let changes: Vec<_> = vary.changes().collect();
        let owned =
            |(cell, label, set): (&str, &str, &str)| (cell.into(), label.into(), set.into());
        assert_eq!(changes, expected.map(owned));
    }

    #[test]
    fn a_list_without_key_or_with_a_hole_is_refused_with_an_example() {
        for wrong in ["transfer.seed", "transfer.seed=", "transfer.seed=1,,2"] {
            let Err(Failure::Input(text)) = Vary::parse(wrong) else {
                panic!("{wrong} was accepted")
            };
            assert!(text.contains(wrong) && text.contains("for example"), "{text}");
        }
    }
}
