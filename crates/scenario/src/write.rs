//! The canonical text of a scenario. It contains every value, so that results can include it and later changes
//! of defaults do not alter its meaning.

use std::fmt::Write;

use crate::toml_text::Entries;
use crate::types::{Scenario, SctpOptions, TcpOptions};

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
        if !self.flows.is_empty() {
            section(&mut out, "[tunnel]", self.tunnel.entries(self));
        }
        self.flows.iter().for_each(|flow| section(&mut out, "[[flow]]", flow.toml(self)));
        for source in &self.sources {
            section(&mut out, "[[source]]", source.entries(self));
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
