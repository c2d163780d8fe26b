//! Changes of a link while it runs: steps, and outages.

use ropewalk_base::{Duration, Rate, Time};

use super::builder::Builder;
use super::declare::add_entry;
use super::{Scenario, Side};
use crate::check::{Checked, Value};
use crate::error::ProblemKind;
use crate::keys::{DELAY, Exclusive, INSTANT, Key, Kind, PROBABILITY, RATE, Table};
use crate::toml_text::{Entries, bracketed, inline};

/// Keys that are no fields of one direction, because they describe both.
pub(super) const CHANGES: &[Key] = keys! {
    /// Changes while it runs.
    steps = STEPS.empty().example("[{ at = \"10 s\", rate = \"500 kbit/s\" }]");
    /// Times in which no packet passes.
    outages = OUTAGES.empty().example("[{ from = \"10 s\", to = \"12 s\" }]");
};

const STEPS: Kind = Kind::List { of: &Kind::Table(&STEP), min: 0, max: 100_000 };
const OUTAGES: Kind = Kind::List { of: &Kind::Table(&OUTAGE), min: 0, max: 100_000 };
const AS_IT_WAS: &str = "as it was";

/// A change at a point in time; `None` keeps the previous value.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Time of the change.
    pub at: Time,
    /// New rate.
    pub rate: Option<Rate>,
    /// New propagation delay.
    pub delay: Option<Duration>,
    /// New probability of independent loss.
    pub loss: Option<f64>,
}

const STEP: Table = Table {
    exclusive: &[Exclusive { ways: &[&["delay"], &["delay_up", "delay_down"]], required: false }],
    ..Table::new(
        "steps = [{ ... }, ...]",
        "Changes during the run, in ascending order of `at`.",
        STEP_KEYS,
    )
};

const STEP_KEYS: &[Key] = keys! {
    /// When.
    at = INSTANT.required().example("\"10 s\"");
    /// New rate; of both directions, unless the path or link has a `rate_down` or a trace of its own
    /// for the other.
    rate = RATE.derived(AS_IT_WAS).example("\"500 kbit/s\"");
    /// New rate of the return direction.
    rate_down = RATE.derived(AS_IT_WAS).example("\"1 Mbit/s\"");
    /// New one-way delay, of both directions.
    delay = DELAY.derived(AS_IT_WAS).example("\"80 ms\"");
    /// New one-way delay of the data direction.
    delay_up = DELAY.derived(AS_IT_WAS).example("\"80 ms\"");
    /// New one-way delay of the return direction.
    delay_down = DELAY.derived(AS_IT_WAS).example("\"80 ms\"");
    /// New probability of independent loss of data.
    loss = PROBABILITY.derived(AS_IT_WAS).example("0.02");
    /// The same for the return direction.
    loss_down = PROBABILITY.derived(AS_IT_WAS).example("0.02");
};

impl Step {
    /// The keys of the rate, the delay and the loss in a direction.
    const fn keys(side: Side) -> [&'static str; 3] {
        match side {
            Side::Up => ["rate", "delay_up", "loss"],
            Side::Down => ["rate_down", "delay_down", "loss_down"],
        }
    }
}

/// The steps of one direction.
pub(super) fn steps(builder: &mut Builder<'_>, table: &Checked, side: Side) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut last: Option<Time> = None;
    let [_, delay, loss] = Step::keys(side);
    for item in table.list("steps") {
        let Value::Table(entry) = &item.value else { unreachable!("steps are tables") };
        let at: Time = entry.get("at");
        // Both directions read the same list; only one reports its problems.
        if side == Side::Up {
            check_step(builder, entry, at, last);
        }
        last = Some(at);
        let step = Step {
            at,
            rate: step_rate(builder, table, entry, side),
            delay: entry.opt(delay).or(entry.opt("delay")),
            loss: entry.opt(loss),
        };
        if step.rate.is_some() || step.delay.is_some() || step.loss.is_some() {
            steps.push(step);
        }
    }
    steps
}

/// Merges the steps of both directions; steps at the same time become one.
pub(super) fn steps_toml(up: &[Step], down: &[Step], scenario: &Scenario) -> String {
    let mut times: Vec<_> = up.iter().chain(down).map(|step| step.at).collect();
    times.sort_unstable();
    times.dedup();
    bracketed(times.into_iter().map(|at| {
        let mut out = Entries::new();
        add_entry(&mut out, STEP_KEYS, "at", &at, scenario);
        for (steps, side) in [(up, Side::Up), (down, Side::Down)] {
            let Some(step) = steps.iter().find(|step| step.at == at) else { continue };
            let [rate, delay, loss] = Step::keys(side);
            add_entry(&mut out, STEP_KEYS, rate, &step.rate, scenario);
            add_entry(&mut out, STEP_KEYS, delay, &step.delay, scenario);
            add_entry(&mut out, STEP_KEYS, loss, &step.loss, scenario);
        }
        inline(out)
    }))
}

table! {
    /// Times in which no packet passes in either direction.
    #[derive(Copy, Eq)]
    pub struct Outage {
        /// When it begins.
        from: Time = INSTANT.required().example("\"10 s\"");
        /// When it ends; later than `from`.
        to: Time = INSTANT.required().example("\"12 s\"");
    }
}

const OUTAGE: Table = Table::new("outages = [{ ... }, ...]", Outage::ABOUT, Outage::KEYS);

inline_table!(Outage);

fn check_step(builder: &mut Builder<'_>, entry: &Checked, at: Time, last: Option<Time>) {
    if last.is_some_and(|last| at <= last) {
        let text = builder.excerpt(entry, "at");
        let message = format!("`{}.at` = {text} is not later than the step before it", entry.path);
        let help = "list steps in ascending order, one per time";
        builder.wrong(entry, "at", ProblemKind::Conflict, message, help);
    }
    let changes = entry.table.keys().filter(|key| key.name != "at");
    if changes.filter(|key| entry.place(key.name).is_some()).count() == 0 {
        let message = format!("`{}` changes nothing", entry.path);
        let help = "give it a `rate`, a `delay` or a `loss`";
        builder.wrong(entry, "rate", ProblemKind::Missing, message, help);
    }
}

/// The new rate that a step gives to a direction.
fn step_rate(
    builder: &mut Builder<'_>,
    table: &Checked,
    entry: &Checked,
    side: Side,
) -> Option<Rate> {
    let [own, ..] = Step::keys(side);
    let follows = side == Side::Down
        && table.place("rate_down").is_none()
        && table.place("trace_down").is_none();
    let fallback = if follows { entry.opt("rate") } else { None };
    let rate = entry.opt(own).or(fallback)?;
    if builder.around.follows_trace {
        let message =
            format!("`{}.{own}` changes the rate of a link that follows a trace", entry.path);
        let help = "write the change into the trace, or give the link a `rate`";
        builder.wrong(entry, own, ProblemKind::Conflict, message, help);
    }
    Some(rate)
}

/// The outages of a path or link.
pub(super) fn outages(builder: &mut Builder<'_>, table: &Checked) -> Vec<Outage> {
    let mut outages: Vec<Outage> = Vec::new();
    for item in table.list("outages") {
        let Value::Table(entry) = &item.value else { unreachable!("outages are tables") };
        let outage = Outage::read(builder, entry);
        if outage.to <= outage.from {
            let message = format!(
                "`{}.to` = {} is not later than `from` = {}",
                entry.path,
                builder.excerpt(entry, "to"),
                builder.excerpt(entry, "from")
            );
            let help = "an outage ends after it begins";
            builder.wrong(entry, "to", ProblemKind::Conflict, message, help);
        }
        if outages.last().is_some_and(|before| outage.from < before.to) {
            let message = format!(
                "`{}.from` = {} lies before the end of the outage before it",
                entry.path,
                builder.excerpt(entry, "from")
            );
            let help = "list outages in ascending order; join those that overlap";
            builder.wrong(entry, "from", ProblemKind::Conflict, message, help);
        }
        outages.push(outage);
    }
    outages
}
