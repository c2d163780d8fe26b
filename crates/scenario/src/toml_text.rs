//! Values as TOML text.

use std::fmt::{Display, Write};

use crate::keys::Tagged;

/// Keys with their values in TOML, in the order of the text.
pub(crate) type Entries = Vec<(&'static str, String)>;

impl Tagged {
    /// The entries of a table: its tag, the keys of the variant, and those that all variants have.
    pub(crate) fn entries(&self, variant: &str, own: Entries, common: Entries) -> Entries {
        let first = |name: &str| self.before.iter().any(|key| key.name == name);
        let (before, after): (Entries, Entries) =
            common.into_iter().partition(|(name, _)| first(name));
        let mut out = vec![(self.tag, quoted(variant))];
        out.extend(before.into_iter().chain(own).chain(after));
        out
    }
}

/// A table in one line.
pub(crate) fn inline(entries: Entries) -> String {
    let entries: Vec<_> = entries.iter().map(|(key, text)| format!("{key} = {text}")).collect();
    format!("{{ {} }}", entries.join(", "))
}

/// A list.
pub(crate) fn bracketed(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// A basic TOML string.
pub(crate) fn quoted(value: impl Display) -> String {
    let mut text = String::from("\"");
    for c in value.to_string().chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => {
                write!(text, "\\u{:04X}", u32::from(c)).expect("a string takes everything");
            }
            c => text.push(c),
        }
    }
    text + "\""
}
