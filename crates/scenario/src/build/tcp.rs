//! `[tcp]`.

use ropewalk_base::Duration;

use super::Builder;
use super::sctp::initial_window;
use crate::check::Checked;
use crate::error::ProblemKind;
use crate::types::{Preset, Protocol, Reordering, TcpOptions};

impl Builder<'_> {
    pub(super) fn tcp(&mut self, table: &Checked, preset: Preset) -> TcpOptions {
        self.ascending::<Duration>(table, "rto_min", "rto_initial");
        self.ascending::<Duration>(table, "rto_initial", "rto_max");
        self.ascending::<Duration>(table, "rto_min", "rto_max");
        self.recovery_needs(table);
        self.model_knows(table, preset);
        TcpOptions {
            ack_every: table.opt("ack_every"),
            ack_delay: table.opt("ack_delay"),
            subflow_ack: table.opt("subflow_ack"),
            rto_formula: table.opt("rto_formula"),
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
            ack_burst_loss: table.opt("ack_burst_loss"),
            ack_burst_loss_max: table.opt("ack_burst_loss_max"),
            data_waits: table.opt("data_waits"),
        }
    }

    /// Checks that the recovery's input is enabled: without it, the rule detects nothing.
    fn recovery_needs(&mut self, table: &Checked) {
        for (recovery, needs) in [(Reordering::DSack, "sack"), (Reordering::Eifel, "timestamps")] {
            let without = table.opt::<bool>(needs) == Some(false);
            if table.opt("recovery") == Some(recovery) && without {
                let message = format!("`tcp.recovery` = \"{recovery}\" needs `tcp.{needs}`");
                let help = format!("leave out `{needs} = false`, or take \"rack-tlp\"");
                self.wrong(table, needs, ProblemKind::Conflict, message, help);
            }
        }
    }

    /// Checks options that exist in one of the presets only.
    fn model_knows(&mut self, table: &Checked, preset: Preset) {
        let model = preset == Preset::Chihani2011;
        if model && table.opt("recovery") == Some(Reordering::RackTlp) {
            let message = format!("`tcp.recovery` = \"rack-tlp\" is not in the model `{preset}`");
            let help = "it knows \"none\", \"d-sack\", \"eifel\", \"tcp-door\" and \"f-rto\"";
            self.wrong(table, "recovery", ProblemKind::Conflict, message, help);
        }
        for key in ["ack_burst_loss", "ack_burst_loss_max"] {
            if !model && table.opt::<f64>(key).is_some_and(|chance| chance > 0.0) {
                let message = format!("`tcp.{key}` is a habit of the preset `chihani2011`");
                let help = "give a path `loss_down` to lose acknowledgements";
                self.wrong(table, key, ProblemKind::Conflict, message, help);
            }
        }
        let both = ["ack_burst_loss", "ack_burst_loss_max"];
        if both.iter().all(|key| table.opt::<f64>(key).is_some()) {
            let message = "`tcp.ack_burst_loss` and `tcp.ack_burst_loss_max` exclude each other";
            let help =
                "the first is the chance of all subflows, from the second each draws its own";
            self.wrong(table, both[1], ProblemKind::Conflict, message.to_owned(), help);
        }
        if !model && table.opt("data_waits") == Some(true) {
            let message = "`tcp.data_waits` is a habit of the preset `chihani2011`".to_owned();
            let help = "leave it out: RFC 8684 sends data on the first subflow at once";
            self.wrong(table, "data_waits", ProblemKind::Conflict, message, help);
        }
    }

    /// The preset; its default depends on the protocol.
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
