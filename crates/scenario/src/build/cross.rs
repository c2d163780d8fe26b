//! `[[cross]]`.

use super::Builder;
use super::network::{Network, name_help};
use crate::check::{Checked, Value};
use crate::error::ProblemKind;
use crate::types::{Cross, CrossKind, Target};

impl Builder<'_> {
    pub(super) fn cross(&mut self, root: &Checked, network: &Network) -> Vec<Cross> {
        let mut all = Vec::new();
        for item in root.list("cross") {
            let Value::Tagged(variant, table) = &item.value else {
                unreachable!("cross traffic is a tagged table")
            };
            let on = self.target(table, network);
            let cross = Cross {
                kind: kind(*variant, table),
                on,
                side: table.get("direction"),
                packet: table.opt("packet").unwrap_or(self.packet),
                flows: table.get("flows"),
                start: table.get("start"),
                stop: table.opt("stop"),
            };
            if cross.stop.is_some_and(|stop| stop <= cross.start) {
                let message = format!(
                    "`{}.stop` = {} is not later than its start",
                    table.path,
                    self.excerpt(table, "stop")
                );
                let help = "leave `stop` out to go on until the run ends";
                self.wrong(table, "stop", ProblemKind::Conflict, message, help);
            }
            all.push(cross);
        }
        all
    }

    fn target(&mut self, table: &Checked, network: &Network) -> Target {
        let name: String = table.get("on");
        if let Some(at) = network.paths.iter().position(|p| p.name == name) {
            return Target::Path(at);
        }
        if let Some(at) = network.links.iter().position(|l| l.name == name) {
            return Target::Link(at);
        }
        let names = network.paths.iter().map(|p| p.name.clone());
        let names: Vec<_> = names.chain(network.links.iter().map(|l| l.name.clone())).collect();
        let message = format!("`{}.on`: there is no path or link called \"{name}\"", table.path);
        self.wrong(table, "on", ProblemKind::UnknownName, message, name_help(&name, &names));
        Target::Path(0)
    }
}

fn kind(variant: usize, table: &Checked) -> CrossKind {
    match variant {
        0 => CrossKind::Cbr { rate: table.get("rate") },
        1 => CrossKind::OnOff {
            rate: table.get("rate"),
            on_time: table.get("on_time"),
            off_time: table.get("off_time"),
        },
        2 => CrossKind::Poisson { rate: table.get("rate") },
        _ => CrossKind::Greedy { rtt: table.get("rtt") },
    }
}
