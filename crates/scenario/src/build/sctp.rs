//! `[sctp]`.

use ropewalk_base::Duration;

use super::Builder;
use crate::check::{Checked, Value};
use crate::error::ProblemKind;
use crate::types::{InitialSsthresh, InitialWindow, SctpOptions};

impl Builder<'_> {
    pub(super) fn sctp(&mut self, table: &Checked) -> SctpOptions {
        self.ascending::<Duration>(table, "rto_min", "rto_initial");
        self.ascending::<Duration>(table, "rto_initial", "rto_max");
        self.ascending::<Duration>(table, "rto_min", "rto_max");
        self.ascending::<u64>(table, "pf_threshold", "path_max_retrans");
        SctpOptions {
            sack_every: table.opt("sack_every"),
            sack_delay: table.opt("sack_delay"),
            sack_count: table.opt("sack_count"),
            delayed_ack_for_cmt: table.opt("delayed_ack_for_cmt"),
            initial_window: table.value("initial_window").map(initial_window),
            initial_ssthresh: table.value("initial_ssthresh").map(initial_ssthresh),
            min_ssthresh: table.opt("min_ssthresh"),
            window_rounding: table.opt("window_rounding"),
            byte_counting_limit: table.opt("byte_counting_limit"),
            cwnd_growth_when_full_only: table.opt("cwnd_growth_when_full_only"),
            ecn: table.opt("ecn"),
            max_burst: table.opt("max_burst"),
            rto_initial: table.opt("rto_initial"),
            rto_min: table.opt("rto_min"),
            rto_max: table.opt("rto_max"),
            recovery: table.opt("recovery"),
            fast_retransmit_threshold: table.opt("fast_retransmit_threshold"),
            split_fast_retransmit: table.opt("split_fast_retransmit"),
            cwnd_update: table.opt("cwnd_update"),
            retransmission: table.opt("retransmission"),
            hold_data_until_confirmed: table.opt("hold_data_until_confirmed"),
            heartbeat_interval: table.opt("heartbeat_interval"),
            probe_interval: table.opt("probe_interval"),
            path_max_retrans: table.opt("path_max_retrans"),
            association_max_retrans: table.opt("association_max_retrans"),
            pf_threshold: table.opt("pf_threshold"),
            window_counted_in: table.opt("window_counted_in"),
            window_check: table.opt("window_check"),
        }
    }

    /// Checks that `low` does not exceed `high`, if both are given.
    pub(super) fn ascending<T: crate::check::FromValue + PartialOrd>(
        &mut self,
        table: &Checked,
        low: &str,
        high: &str,
    ) {
        let (Some(least), Some(most)) = (table.opt::<T>(low), table.opt::<T>(high)) else { return };
        if least > most {
            let path = &table.path;
            let message = format!(
                "`{path}.{low}` = {} is above `{path}.{high}` = {}",
                self.excerpt(table, low),
                self.excerpt(table, high)
            );
            let help = format!("lower `{low}` or raise `{high}`");
            self.wrong(table, low, ProblemKind::Conflict, message, help);
        }
    }
}

pub(super) fn initial_window(value: &Value) -> InitialWindow {
    match value {
        Value::Bytes(bytes) => InitialWindow::Bytes(*bytes),
        Value::Packets(n) => InitialWindow::Packets(u32::try_from(*n).expect("limited to 32 bits")),
        _ => InitialWindow::Auto,
    }
}

fn initial_ssthresh(value: &Value) -> InitialSsthresh {
    match value {
        Value::Bytes(bytes) => InitialSsthresh::Bytes(*bytes),
        Value::Choice(0) => InitialSsthresh::ReceiveBuffer,
        _ => InitialSsthresh::Unlimited,
    }
}
