//! The canonical text of a scenario. It contains every value, so that results can include it and later changes
//! of defaults do not alter its meaning.

use std::fmt::{Display, Write};

use crate::keys::Tagged;
use crate::types::{Scenario, SctpOptions, TcpOptions};

/// Keys with their values in TOML, in the order of the text.
pub(crate) type Entries = Vec<(&'static str, String)>;

impl Scenario {
    /// The scenario as TOML. Parsing it gives an equal scenario if trace files have the same names. Equal
    /// scenarios have equal texts.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        section(&mut out, "[transfer]", self.transfer.entries(self));
        section(&mut out, "[scheduler]", self.scheduler.toml(self));
        if self.sctp != SctpOptions::default() {
            section(&mut out, "[sctp]", self.sctp.entries(self));
        }
        if self.tcp != TcpOptions::default() {
            section(&mut out, "[tcp]", self.tcp.entries(self));
        }
        self.paths.iter().for_each(|path| section(&mut out, "[[path]]", path.toml(self)));
        self.links.iter().for_each(|link| section(&mut out, "[[link]]", link.toml(self)));
        self.cross.iter().for_each(|cross| section(&mut out, "[[cross]]", cross.toml(self)));
        for station in &self.stations {
            section(&mut out, "[[station]]", station.toml(self));
        }
        section(&mut out, "[world]", self.world.entries(self));
        section(&mut out, "[record]", self.record.entries(self));
        out
    }
}

fn section(out: &mut String, heading: &str, entries: Entries) {
    let gap = if out.is_empty() { "" } else { "\n" };
    writeln!(out, "{gap}{heading}").expect("a string takes everything");
    for (key, value) in entries {
        writeln!(out, "{key} = {value}").expect("a string takes everything");
    }
}

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
