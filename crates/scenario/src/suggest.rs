//! Suggestions for misspelt names.

/// The candidate that is closest to `text`, if any is close.
///
/// Differences in case, a hyphen instead of an underscore, and a prefix of only one candidate count as close.
/// Otherwise about one mistake in three letters is tolerated.
pub fn nearest<'a>(text: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let plain = |s: &str| s.to_lowercase().replace(['-', '_', ' '], "");
    let wanted = plain(text);
    if wanted.is_empty() {
        return None;
    }
    let begins: Vec<_> =
        candidates.iter().filter(|c| wanted.len() >= 3 && plain(c).starts_with(&wanted)).collect();
    if let [only] = begins[..] {
        return Some(only);
    }
    candidates
        .iter()
        .map(|c| (strsim::damerau_levenshtein(&wanted, &plain(c)), *c))
        .filter(|(distance, c)| *distance <= wanted.len().max(c.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// `valid` as a hint, after the candidate that is closest to `text`, if any is close.
pub(crate) fn hint(text: &str, candidates: &[&str], valid: String) -> String {
    match nearest(text, candidates) {
        Some(near) => format!("did you mean `{near}`? {valid}"),
        None => valid,
    }
}

/// "a, b or c".
pub(crate) fn or_list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).into(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}

/// "`a`, `b` or `c`".
pub(crate) fn quoted_or_list(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|n| format!("`{n}`")).collect();
    or_list(&quoted.iter().map(String::as_str).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_what_was_meant() {
        let keys = ["receive_buffer", "duration", "warmup", "rate", "rtt", "rate_down", "queue"];
        for (slip, meant) in [
            ("recieve_buffer", Some("receive_buffer")),
            ("receive-buffer", Some("receive_buffer")),
            ("Duration", Some("duration")),
            ("durat", Some("duration")),
            ("rtd", Some("rtt")),
            ("wamrup", Some("warmup")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(slip, &keys), meant, "{slip}");
        }
    }

    #[test]
    fn lists_read_like_a_sentence() {
        assert_eq!(or_list(&["a"]), "a");
        assert_eq!(quoted_or_list(&["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
