//! `[transfer]` and `[scheduler]`.

use ropewalk_base::Duration;

use super::Builder;
use crate::check::{Checked, Value};
use crate::error::ProblemKind;
use crate::quantity::{duration_text, size_text};
use crate::types::{
    Application, Congestion, Preset, Protocol, SchedulerName, SchedulerOptions, Transfer,
};

/// Default duration of a run without a number of bytes.
const DURATION: Duration = Duration::from_secs(60);
/// Default time limit of a transfer with a number of bytes.
const LIMIT_OF_BYTES: Duration = Duration::from_secs(3600);

impl Builder<'_> {
    pub(super) fn transfer(&mut self, table: &Checked) -> Transfer {
        let bytes = table.opt("bytes");
        let fallback = if bytes.is_some() { LIMIT_OF_BYTES } else { DURATION };
        let preset = self.preset(table);
        let tcp = table.get::<Protocol>("protocol").is_tcp();
        let fallback_congestion = if tcp { Congestion::NewReno } else { Congestion::Rfc9260 };
        let transfer = Transfer {
            protocol: table.get("protocol"),
            duration: table.opt("duration").unwrap_or(fallback),
            bytes,
            warmup: table.get("warmup"),
            seed: table.get("seed"),
            receive_buffer: self.receive_buffer(table),
            packet: self.packet,
            preset,
            guard: table.opt("guard").unwrap_or(true),
            congestion: table.opt("congestion").unwrap_or(fallback_congestion),
            fast_convergence: table.get("fast_convergence"),
            window_manager: table.get("window_manager"),
            application: application(table),
            streams: u16::try_from(table.get::<u64>("streams")).expect("limited to 16 bits"),
            message: table.opt("message"),
            unordered: table.get("unordered"),
        };
        let known = [Congestion::NewReno, Congestion::Lia, Congestion::FullyCoupled];
        if preset == Preset::Chihani2011 && !known.contains(&transfer.congestion) {
            let message = format!(
                "`transfer.congestion` = {} is not in the model `{preset}`",
                self.excerpt(table, "congestion")
            );
            let help = "it knows \"newreno\", \"lia\" and \"fully-coupled\"";
            self.wrong(table, "congestion", ProblemKind::Conflict, message, help);
        }
        if transfer.warmup >= transfer.duration {
            let message = format!(
                "`transfer.warmup` = {} is not shorter than `transfer.duration`, {}",
                self.excerpt(table, "warmup"),
                duration_text(transfer.duration)
            );
            let help = "nothing would be left to measure; shorten the warm-up or lengthen the run";
            self.wrong(table, "warmup", ProblemKind::Conflict, message, help);
        }
        transfer
    }

    /// The receive buffer in bytes; at least a packet.
    fn receive_buffer(&mut self, table: &Checked) -> u64 {
        let packet = u64::from(self.packet);
        let bytes = match table.value("receive_buffer") {
            Some(Value::Packets(n)) => n * packet,
            _ => table.get("receive_buffer"),
        };
        let largest = u64::from(u32::MAX);
        if bytes < packet || bytes > largest {
            let (what, near) = match bytes < packet {
                true => (format!("smaller than one packet, {}", size_text(packet)), packet),
                false => (format!("larger than a window can be, {largest} B"), largest),
            };
            let text = self.excerpt(table, "receive_buffer");
            let message = format!("`transfer.receive_buffer` = {text} is {what}");
            let help = format!("the nearest valid value is \"{}\"", size_text(near));
            self.wrong(table, "receive_buffer", ProblemKind::OutOfRange, message, help);
        }
        bytes
    }

    pub(super) fn scheduler(
        &mut self,
        transfer: &Checked,
        table: &Checked,
        paths: usize,
    ) -> SchedulerOptions {
        if let (Some(first), Some(second)) = (transfer.place("scheduler"), table.place("name")) {
            // The problem points at the later one in the file.
            let span = first.max(second).clone();
            let message = format!(
                "`transfer.scheduler` = {} and `scheduler.name` = {} say the same thing twice",
                self.excerpt(transfer, "scheduler"),
                self.excerpt(table, "name")
            );
            let help = "leave one of them out";
            self.wrong_at(&span, "scheduler.name", ProblemKind::Conflict, message, help);
        }
        if table.place("copies").is_some() && table.get::<u64>("copies") > paths as u64 {
            let message = format!(
                "`scheduler.copies` = {} is more than the number of paths, {paths}",
                self.excerpt(table, "copies")
            );
            let help = format!("the nearest valid value is {paths}");
            self.wrong(table, "copies", ProblemKind::OutOfRange, message, help);
        }
        let [least, most] = ["blest_lambda_min", "blest_lambda_max"].map(|k| table.get::<f64>(k));
        if least > most {
            let message = format!(
                "`scheduler.blest_lambda_min` = {least:?} is larger than `blest_lambda_max`, {most:?}"
            );
            let at = if table.place("blest_lambda_min").is_some() {
                "blest_lambda_min"
            } else {
                "blest_lambda_max"
            };
            self.wrong(table, at, ProblemKind::Conflict, message, "make it at most as large");
        }
        let name: Option<SchedulerName> = table.opt("name");
        SchedulerOptions {
            name: name.unwrap_or_else(|| transfer.get("scheduler")),
            custom: None,
            forward_delay: table.get("forward_delay"),
            delay_error: table.get("delay_error"),
            quantum: table.get("quantum"),
            period_cap: table.get("period_cap"),
            windows: table.get("windows"),
            capacity: table.get("capacity"),
            when_blocked: table.get("when_blocked"),
            opportunistic: table.get("opportunistic"),
            penalise: table.get("penalise"),
            in_slow_start: table.get("in_slow_start"),
            quota: table.get("quota"),
            weights: table.get("weights"),
            // With one path, the default of 2 is not an error; it means "all".
            copies: table.get::<u32>("copies").min(paths as u32),
            bas_with_delay: table.get("bas_with_delay"),
            otias_form: table.get("otias_form"),
            blest_lambda: table.get("blest_lambda"),
            blest_lambda_min: table.get("blest_lambda_min"),
            blest_lambda_max: table.get("blest_lambda_max"),
            ecf_beta: table.get("ecf_beta"),
            stms_gain: table.get("stms_gain"),
            linux_burst: table.get("linux_burst"),
            lay_cushion: table.get("lay_cushion"),
            latency_budget: table.opt("latency_budget"),
        }
    }
}

fn application(table: &Checked) -> Application {
    match table.value("application") {
        Some(Value::Table(steady)) => {
            Application::Steady { rate: steady.get("rate"), message: steady.get("message") }
        }
        _ => Application::Bulk,
    }
}
