//! One direction of a path or link.

use ropewalk_base::{Duration, Rate, Time};

use super::Builder;
use crate::check::{Checked, Value};
use crate::error::ProblemKind;
use crate::types::{Capacity, Jitter, JitterShape, LinkSide, Reorder, Step};

/// The direction of a link that is being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

impl Direction {
    /// The key of this direction among the two.
    pub(super) const fn key(self, up: &'static str, down: &'static str) -> &'static str {
        match self {
            Self::Up => up,
            Self::Down => down,
        }
    }
}

/// Properties of the whole link that a direction depends on.
pub(super) struct Surroundings {
    /// Delays of the link itself, up and down.
    pub(super) delays: (Duration, Duration),
    /// Round trip of the path, or of the longest path over a shared link.
    pub(super) longest: Option<Duration>,
}

impl Builder<'_> {
    pub(super) fn side(
        &mut self,
        table: &Checked,
        direction: Direction,
        around: &Surroundings,
    ) -> LinkSide {
        let up = direction == Direction::Up;
        let capacity = self.capacity(table, direction);
        let rate = capacity.mean_rate();
        LinkSide {
            delay: if up { around.delays.0 } else { around.delays.1 },
            queue: self.queue(table, direction.key("queue", "queue_down"), rate, around),
            loss: self.loss(table, direction.key("loss", "loss_down")),
            jitter: jitter(table, direction.key("jitter", "jitter_down")),
            reorder: table.value("reorder").filter(|_| up).map(reorder),
            duplicate: if up { table.get("duplicate") } else { 0.0 },
            corrupt: if up { table.get("corrupt") } else { 0.0 },
            steps: self.steps(table, direction, &capacity),
            capacity,
        }
    }

    fn capacity(&mut self, table: &Checked, direction: Direction) -> Capacity {
        if let Some(trace) = self.trace(table, direction.key("trace", "trace_down")) {
            return Capacity::Trace(trace);
        }
        if direction == Direction::Down {
            if let Some(rate) = table.opt("rate_down") {
                return Capacity::Rate(rate);
            }
            if let Some(trace) = table.opt::<String>("trace").and_then(|f| self.traces.get(&f)) {
                return Capacity::Rate(trace.mean_rate());
            }
        }
        Capacity::Rate(table.get("rate"))
    }

    fn steps(&mut self, table: &Checked, direction: Direction, capacity: &Capacity) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut last: Option<Time> = None;
        for item in table.list("steps") {
            let Value::Table(entry) = &item.value else { unreachable!("steps are tables") };
            let at: Time = entry.get("at");
            // Both directions read the same list; only one reports its problems.
            if direction == Direction::Up {
                self.check_step(entry, at, last);
            }
            last = Some(at);
            let step = Step {
                at,
                rate: self.step_rate(table, entry, direction, capacity),
                delay: entry.opt(direction.key("delay_up", "delay_down")).or(entry.opt("delay")),
                loss: entry.opt(direction.key("loss", "loss_down")),
            };
            if step.rate.is_some() || step.delay.is_some() || step.loss.is_some() {
                steps.push(step);
            }
        }
        steps
    }

    fn check_step(&mut self, entry: &Checked, at: Time, last: Option<Time>) {
        if last.is_some_and(|last| at <= last) {
            let text = self.excerpt(entry, "at");
            let message =
                format!("`{}.at` = {text} is not later than the step before it", entry.path);
            let help = "list steps in ascending order, one per time";
            self.wrong(entry, "at", ProblemKind::Conflict, message, help);
        }
        let changes = entry.table.keys.iter().filter(|key| key.name != "at");
        if changes.filter(|key| entry.place(key.name).is_some()).count() == 0 {
            let message = format!("`{}` changes nothing", entry.path);
            let help = "give it a `rate`, a `delay` or a `loss`";
            self.wrong(entry, "rate", ProblemKind::Missing, message, help);
        }
    }

    /// The new rate that a step gives to a direction.
    fn step_rate(
        &mut self,
        table: &Checked,
        entry: &Checked,
        direction: Direction,
        capacity: &Capacity,
    ) -> Option<Rate> {
        let own = direction.key("rate", "rate_down");
        let follows = direction == Direction::Down
            && table.place("rate_down").is_none()
            && table.place("trace_down").is_none();
        let fallback = if follows { entry.opt("rate") } else { None };
        let rate = entry.opt(own).or(fallback)?;
        if matches!(capacity, Capacity::Trace(_)) {
            let message =
                format!("`{}.{own}` changes the rate of a link that follows a trace", entry.path);
            let help = "write the change into the trace, or give the link a `rate`";
            self.wrong(entry, own, ProblemKind::Conflict, message, help);
        }
        Some(rate)
    }
}

fn jitter(table: &Checked, key: &str) -> Option<Jitter> {
    let (shape, keep_order) = match table.value(key)? {
        Value::Time(max) => (JitterShape::Uniform { max: *max }, true),
        Value::Tagged(variant, entry) => {
            let shape = match variant {
                0 => JitterShape::Uniform { max: entry.get("max") },
                1 => JitterShape::Normal {
                    mean: entry.get("mean"),
                    deviation: entry.get("deviation"),
                },
                _ => JitterShape::Exponential { mean: entry.get("mean") },
            };
            (shape, entry.get("keep_order"))
        }
        other => unreachable!("{other:?} as jitter"),
    };
    let nothing = matches!(shape, JitterShape::Uniform { max: d } | JitterShape::Exponential { mean: d } if d.is_zero());
    (!nothing).then_some(Jitter { shape, keep_order })
}

fn reorder(value: &Value) -> Reorder {
    let Value::Table(entry) = value else { unreachable!("reorder is a table") };
    Reorder { probability: entry.get("probability"), delay: entry.get("delay") }
}
