//! `[tcp]`.

use ropewalk_base::Duration;

use super::Builder;
use super::sctp::initial_window;
use crate::check::Checked;
use crate::error::ProblemKind;
use crate::types::{Preset, Protocol, TcpOptions};

impl Builder<'_> {
    pub(super) fn tcp(&mut self, table: &Checked) -> TcpOptions {
        self.ascending::<Duration>(table, "rto_min", "rto_initial");
        self.ascending::<Duration>(table, "rto_initial", "rto_max");
        self.ascending::<Duration>(table, "rto_min", "rto_max");
        TcpOptions {
            ack_every: table.opt("ack_every"),
            ack_delay: table.opt("ack_delay"),
            subflow_ack: table.opt("subflow_ack"),
            timestamps: table.opt("timestamps"),
            sack: table.opt("sack"),
            recovery: table.opt("recovery"),
            duplicate_threshold: table.opt("duplicate_threshold"),
            reinjection: table.opt("reinjection"),
            initial_window: table.value("initial_window").map(initial_window),
            initial_ssthresh: table.opt("initial_ssthresh"),
            rto_initial: table.opt("rto_initial"),
            rto_min: table.opt("rto_min"),
            rto_max: table.opt("rto_max"),
            probe_interval: table.opt("probe_interval"),
        }
    }

    /// The preset: one for the protocol.
    pub(super) fn preset(&mut self, table: &Checked) -> Preset {
        let protocol: Protocol = table.get("protocol");
        let fallback = if protocol.is_tcp() { Preset::Rfc8684 } else { Preset::Rfc9260 };
        let Some(preset) = table.opt::<Preset>("preset") else { return fallback };
        if preset.is_tcp() != protocol.is_tcp() {
            let message = format!(
                "`transfer.preset` = {} says nothing about `transfer.protocol` = \"{protocol}\"",
                self.excerpt(table, "preset")
            );
            let help = format!("leave it out, or take \"{fallback}\"");
            self.wrong(table, "preset", ProblemKind::Conflict, message, help);
        }
        preset
    }
}
