//! `[scheduler]`.

use std::sync::Arc;

use ropewalk_base::Duration;

use super::builder::Builder;
use super::{
    ForwardDelay, LinuxTurns, OtiasForm, Preset, Quota, Scenario, ScheduleCapacity,
    ScheduleWindows, SchedulerName, Weights, WhenBlocked,
};
use crate::check::Checked;
use crate::error::ProblemKind;
use crate::keys::{
    Kind, LARGEST_WINDOW, NS_PER_MS, NS_PER_S, NS_PER_US, PROBABILITY, names, size, time,
};
use crate::toml_text::{Entries, quoted};

/// Relative errors of delays, from -90 % to +1000 %.
pub(super) const DELAY_ERROR: Kind = Kind::Number { min: -0.9, max: 10.0 };

/// Factors of `blest`.
const LAMBDA: Kind = Kind::Number { min: 0.0, max: 100.0 };

table! {
    /// Options of the schedulers. Each scheduler reads its own options, so one file can be used to compare
    /// several.
    pub struct SchedulerOptions {
        /// The scheduler; the long form of `transfer.scheduler`.
        name: SchedulerName => scheduler_name =
            names::<SchedulerName>().derived("`transfer.scheduler`").example("\"daps\"");
        /// Where delay-aware schedulers take forward delays from.
        forward_delay: ForwardDelay =
            names::<ForwardDelay>().is("timestamp").example("\"half-rtt\"");
        /// Relative error added to every forward delay, for sensitivity studies: 0.1 means 10 % too long.
        /// A path can have its own value.
        delay_error: f64 = DELAY_ERROR.is("0.0").example("0.1");
        /// Delays are rounded to multiples of this time before their common period is computed. A smaller
        /// value follows the delays more closely and makes longer schedules.
        quantum: Duration = time(NS_PER_US, NS_PER_S).is("1 ms").example("\"1 ms\"");
        /// A schedule spans at most this many times the largest delay, however large the least common
        /// multiple is.
        period_cap: u32 = Kind::Integer { min: 1, max: 1_000_000 }.is("64").example("64");
        /// Which congestion windows a schedule is made from.
        windows: ScheduleWindows = names::<ScheduleWindows>().is("frozen").example("\"smoothed\"");
        /// `daps`, `daps-lcm`: how much of its congestion window a path emits in one forward delay
        /// (C_i of Sarwar et al., 2013).
        capacity: ScheduleCapacity =
            names::<ScheduleCapacity>().is("window-per-round-trip").example("\"window\"");
        /// `daps`, `daps-lcm`: what to do when the receive window is full.
        when_blocked: WhenBlocked =
            names::<WhenBlocked>().is("nothing").example("\"resend-oldest\"");
        /// Any scheduler: while the receive window is full, the oldest unacknowledged data is
        /// retransmitted on the fast path, if that has less than a quarter of the round-trip time of the
        /// path that holds it, or that path's window is at most 4 packets (Raiciu et al., 2012).
        /// Costs duplicates.
        opportunistic: bool = Kind::Bool.is("false").example("true");
        /// Any scheduler: a slow path that keeps the receive window full has its congestion window
        /// halved, at most once per round trip of the fast path (Raiciu et al., 2012).
        /// The slow path then carries less for a while.
        penalise: bool = Kind::Bool.is("false").example("true");
        /// Whether delay-aware schedules are made while a path is in slow start. Windows then double
        /// within one schedule, which is soon outdated.
        in_slow_start: bool = Kind::Bool.is("true").example("false");
        /// `round-robin`: what a path gets when its turn comes.
        quota: Quota = names::<Quota>().is("window").example("\"packet\"");
        /// `weighted`: where the weights come from.
        weights: Weights = names::<Weights>().is("configured").example("\"measured\"");
        /// `redundant`: how many paths carry each packet; not more than there are paths.
        copies: u32 => copies = Kind::Integer { min: 1, max: 64 }.is("2").example("2");
        /// `bas`: whether the forward delay is added to the time that a path takes to send. The
        /// published rule leaves it out, and so reorders on unequal paths.
        bas_with_delay: bool = Kind::Bool.is("false").example("true");
        /// `otias`: how the wait behind n packets is counted in round trips, with a window of w
        /// packets.
        otias_form: OtiasForm = names::<OtiasForm>().is("ceil").example("\"floor\"");
        /// `blest`: initial factor on the data that the fast path is expected to send. A larger value
        /// keeps the slow path idle more often (Ferlin et al., 2016).
        blest_lambda: f64 = LAMBDA.is("1.2").example("1.2");
        /// `blest`: lower limit of the factor, which falls by 0.01 per round trip without blocking. If
        /// both limits are equal, the factor is fixed.
        blest_lambda_min: f64 = LAMBDA.is("1.0").example("1.0");
        /// `blest`: upper limit of the factor, which rises by 0.04 per round trip with blocking.
        blest_lambda_max: f64 = LAMBDA.is("1.3").example("1.3");
        /// `ecf`: margin by which the slow path must be better before waiting for the fast one ends. A
        /// larger value switches less often (Lim et al., 2017).
        ecf_beta: f64 = Kind::Number { min: 0.0, max: 10.0 }.is("0.25").example("0.25");
        /// `stms`: share of an observed misalignment by which the gap moves. 0 keeps the gap that follows
        /// from the delays; a larger value follows faster and varies more.
        stms_gain: f64 = PROBABILITY.is("0.125").example("0.125");
        /// `linux`: data that a path gets before the next choice; at least a packet. The default is the
        /// kernel's.
        linux_burst: u64 = size(1, LARGEST_WINDOW).is("65428 B").example("\"65428 B\"");
        /// `linux`: when a path is chosen again.
        linux_turns: LinuxTurns => linux_turns = names::<LinuxTurns>()
            .derived("push under the preset `linux-6`, otherwise burst")
            .example("\"push\"");
        /// `lay`: behind faster paths that often lose packets, the share of the way by which a chunk is
        /// taken nearer to the head of the queue than where it would be due. 0 has the shortest median
        /// delay, 1 the shortest 99th percentile.
        reorder_margin: f64 = PROBABILITY.is("0.6").example("0");
        /// `lay`: the longest time from a chunk's transmission to its arrival. Paths that take longer are
        /// not used while another path stays within it. If a loss would exceed the budget, a second copy is
        /// sent on another path.
        latency_budget: Option<Duration> =
            time(NS_PER_MS, 3_600 * NS_PER_S).derived("none: goodput first").example("\"50 ms\"");
        also {
            /// A custom scheduler that replaces it: one of the names given to
            /// [`Scenario::parse_custom`](crate::Scenario::parse_custom).
            custom: Option<Arc<str>> => no_custom;
        }
    }
}

impl SchedulerOptions {
    /// The name as the scenario has it.
    pub fn label(&self) -> &str {
        match &self.custom {
            Some(custom) => custom,
            None => self.name.as_str(),
        }
    }
}

impl SchedulerOptions {
    pub(crate) fn toml(&self, scenario: &Scenario) -> Entries {
        let mut out = self.entries(scenario);
        for (_, text) in out.iter_mut().filter(|(key, _)| *key == "name") {
            *text = quoted(self.label());
        }
        out
    }
}

/// The parser adds the custom scheduler: its name is not among the choices.
const fn no_custom(_: &mut Builder<'_>, _: &Checked) -> Option<Arc<str>> {
    None
}

fn scheduler_name(builder: &mut Builder<'_>, table: &Checked, _: &str) -> SchedulerName {
    table.opt("name").unwrap_or(builder.scheduler)
}

fn linux_turns(builder: &mut Builder<'_>, table: &Checked, key: &str) -> LinuxTurns {
    let kernel = builder.preset == Preset::Linux6;
    table.opt(key).unwrap_or(if kernel { LinuxTurns::Push } else { LinuxTurns::Burst })
}

/// With one path, the default of 2 is not an error; it means "all".
fn copies(builder: &mut Builder<'_>, table: &Checked, key: &str) -> u32 {
    table.get::<u32>(key).min(builder.path_count)
}

impl Builder<'_> {
    pub(crate) fn scheduler(&mut self, transfer: &Checked, table: &Checked) -> SchedulerOptions {
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
        if table.place("copies").is_some() && table.get::<u32>("copies") > self.path_count {
            let message = format!(
                "`scheduler.copies` = {} is more than the number of paths, {}",
                self.excerpt(table, "copies"),
                self.path_count
            );
            let help = format!("the nearest valid value is {}", self.path_count);
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
        let mut options = SchedulerOptions::read(self, table);
        match self.preset {
            Preset::Chihani2011 => strict_round_robin(transfer, table, &mut options),
            Preset::Linux6 if !names_scheduler(transfer, table) => {
                options.name = SchedulerName::Linux;
            }
            _ => {}
        }
        options
    }
}

/// Whether the file names a scheduler.
fn names_scheduler(transfer: &Checked, table: &Checked) -> bool {
    transfer.place("scheduler").is_some() || table.place("name").is_some()
}

/// The only scheduler of this preset: a segment for each open subflow in turn.
fn strict_round_robin(transfer: &Checked, table: &Checked, options: &mut SchedulerOptions) {
    if !names_scheduler(transfer, table) {
        options.name = SchedulerName::RoundRobin;
    }
    if table.place("quota").is_none() {
        options.quota = Quota::Packet;
    }
}
