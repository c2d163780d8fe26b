//! Writes window limits into the text of a scenario and leaves everything else unchanged.

use toml_edit::{DocumentMut, Item, TableLike, Value};

/// Reason for which the text could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The text is not TOML, or not a scenario.
    #[error("the text is no scenario: {0}")]
    NoScenario(String),
    /// The number of paths differs from that of the limits.
    #[error("the text has {found} path(s), and there are {limits} limits")]
    Paths {
        /// Number of paths in the text.
        found: usize,
        /// Number of limits.
        limits: usize,
    },
}

/// The text of a scenario with `transfer.window_manager = "static"` and these limits, one for each path in
/// packets. Comments, order and layout of everything else are unchanged.
///
/// # Errors
/// If the text is not a scenario with as many paths as limits.
pub fn tuned_text(source: &str, limits: &[u32]) -> Result<String, WriteError> {
    let no = |why: String| WriteError::NoScenario(why);
    let text = source.strip_prefix('\u{feff}').unwrap_or(source);
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| no(error.to_string()))?;
    let transfer = document.entry("transfer").or_insert_with(toml_edit::table);
    let transfer =
        transfer.as_table_like_mut().ok_or_else(|| no("`transfer` is no table".into()))?;
    put(transfer, "window_manager", "static");
    let paths =
        document.get_mut("path").ok_or(WriteError::Paths { found: 0, limits: limits.len() })?;
    let mut tables = tables(paths).ok_or_else(|| no("`path` is no list of tables".into()))?;
    if tables.len() != limits.len() {
        return Err(WriteError::Paths { found: tables.len(), limits: limits.len() });
    }
    for (table, limit) in tables.iter_mut().zip(limits) {
        put(*table, "window_limit", &format!("{limit} packets"));
    }
    Ok(document.to_string())
}

/// Sets a key to a text; a comment after the old value is kept.
pub(crate) fn put(table: &mut dyn TableLike, key: &str, text: &str) {
    let mut new = Value::from(text);
    if let Some(old) = table.get(key).and_then(Item::as_value) {
        *new.decor_mut() = old.decor().clone();
    }
    table.insert(key, Item::Value(new));
}

/// The tables of `[[path]]`, or of `path = [{...}]`.
fn tables(item: &mut Item) -> Option<Vec<&mut dyn TableLike>> {
    match item {
        Item::ArrayOfTables(list) => {
            Some(list.iter_mut().map(|table| table as &mut dyn TableLike).collect())
        }
        Item::Value(Value::Array(list)) => list
            .iter_mut()
            .map(|value| value.as_inline_table_mut().map(|table| table as &mut dyn TableLike))
            .collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk_scenario::{Scenario, WindowManager};

    #[test]
    fn limits_are_added_or_replaced_and_all_else_stays() {
        for (text, kept) in [
            (
                "# mine\n[transfer]\nduration = '5 s' # short\n\n[[path]]\nname = 'a'\n\n\
                 # the other\n[[path]]\nname = 'b'\nwindow_limit = 3 # old\n",
                &["# mine", "# short", "# the other", "# old"][..],
            ),
            ("path = [{ name = 'a' }, { name = 'b' }] # inline\n", &["# inline"]),
            (
                "transfer.seed = 7 # dotted\n[[path]]\nname = 'a'\n[[path]]\nname = 'b'\n",
                &["# dotted"],
            ),
        ] {
            let tuned = tuned_text(text, &[12, 34]).unwrap_or_else(|e| panic!("{e}"));
            for comment in kept {
                assert!(tuned.contains(comment), "{comment} is gone: {tuned}");
            }
            let mut expected = Scenario::parse(text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
            expected.transfer.window_manager = WindowManager::Static;
            expected.paths[0].window_limit = Some(12);
            expected.paths[1].window_limit = Some(34);
            let found =
                Scenario::parse(&tuned, "a.toml").unwrap_or_else(|e| panic!("{e}: {tuned}"));
            assert_eq!(found, expected, "{tuned}");
        }
    }

    #[test]
    fn a_text_that_is_no_such_scenario_is_refused() {
        let two = "[[path]]\n[[path]]\n";
        assert_eq!(tuned_text(two, &[1]), Err(WriteError::Paths { found: 2, limits: 1 }));
        assert_eq!(tuned_text("", &[1]), Err(WriteError::Paths { found: 0, limits: 1 }));
        for wrong in ["[transfer", "transfer = 3\n[[path]]\n", "path = 3"] {
            assert!(matches!(tuned_text(wrong, &[1]), Err(WriteError::NoScenario(_))), "{wrong}");
        }
    }
}
