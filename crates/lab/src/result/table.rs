//! All figures of a run, including those computed from others.

use serde::{Serialize, Serializer};

use super::figure::Column::{Shown, Stored};
use super::figure::{Column, Figure, Group, Show, Type, Unit};
use super::{DirectionResult, FlowResult, PathResult, RunResult};

/// Figures that are computed from those of the document.
const COMPUTED: [Figure<RunResult>; 6] = [
    computed(
        "blocked_share",
        "Share of the measured time in which the receive window blocked a sender: the mean over all associations.",
        Show::new(Unit::Ratio, "Blocked, share")
            .of(Group::ReceiveBuffer)
            .heading("blocked")
            .phrase("{} of the time")
            .low()
            .compare(Shown)
            .sweep(Shown),
        |result| Some(blocked_share(result)),
    ),
    computed(
        "retransmitted_packets",
        "Chunks retransmitted, summed over all paths.",
        Show::new(Unit::Count, "Retransmitted")
            .of(Group::Retransmissions)
            .heading("resent")
            .phrase("{} in total")
            .low()
            .sweep(Shown),
        |result| Some(total(result, |path| path.retransmitted_packets)),
    ),
    computed(
        "lost_packets",
        "Transmissions that counted as lost, summed over all paths.",
        Show::new(Unit::Count, "Lost")
            .of(Group::Retransmissions)
            .phrase("{} losses")
            .low()
            .sweep(Stored),
        |result| Some(total(result, |path| path.lost_packets)),
    ),
    computed(
        "timeouts",
        "Expiries of the retransmission timer, summed over all paths.",
        Show::new(Unit::Count, "Timeouts").of(Group::Retransmissions).low().sweep(Stored),
        |result| Some(total(result, |path| path.timeouts)),
    ),
    computed(
        "return_share",
        "Bytes carried in the return direction divided by user data acknowledged, over all paths; null with a tunnel.",
        Show::new(Unit::Ratio, "Return traffic")
            .of(Group::Delivery)
            .heading("return")
            .phrase("return traffic {}")
            .low()
            .tournament(Stored),
        return_share,
    ),
    computed(
        "return_utilisation",
        "Highest return utilisation of a path; null with a tunnel.",
        Show::new(Unit::Ratio, "Return utilisation")
            .of(Group::Delivery)
            .heading("return used")
            .phrase("at most {} of a return path")
            .low()
            .tournament(Stored),
        return_utilisation,
    ),
];

const fn computed(
    key: &'static str,
    meaning: &'static str,
    show: Show,
    of: fn(&RunResult) -> Option<f64>,
) -> Figure<RunResult> {
    let kind = Type::NumberOrNull;
    Figure { key, in_document: false, omitted_if_zero: false, kind, show, of, meaning }
}

/// A result sums the times of all associations and, with a tunnel, of both directions.
fn blocked_share(result: &RunResult) -> f64 {
    let senders = result.association_goodput_bps.len().max(result.directions.len()).max(1);
    let measured = result.duration_s * senders as f64;
    if measured > 0.0 { result.receive_buffer.blocked_s / measured } else { 0.0 }
}

fn return_share(result: &RunResult) -> Option<f64> {
    let delivered = total(result, |path| path.delivered_bytes);
    let returned = total(result, |path| path.return_bytes);
    (result.directions.is_empty() && delivered > 0.0).then_some(returned / delivered)
}

fn return_utilisation(result: &RunResult) -> Option<f64> {
    let shares = result.paths.iter().map(|path| path.return_utilisation);
    result.directions.is_empty().then(|| shares.fold(0.0, f64::max))
}

fn total(result: &RunResult, of: fn(&PathResult) -> u64) -> f64 {
    result.paths.iter().map(of).sum::<u64>() as f64
}

/// All figures by group, the computed ones last in their group. This is the order of all tables. Parts are
/// replaced by their figures.
pub fn figures() -> Vec<Figure<RunResult>> {
    let declared = RunResult::FIGURES.iter().filter(|figure| figure.is_value());
    let mut all: Vec<_> = declared.chain(&COMPUTED).copied().collect();
    all.sort_by_key(|figure| figure.show.group);
    all
}

fn chosen(table: fn(&Show) -> Column) -> Vec<Figure<RunResult>> {
    let mut all = figures();
    all.retain(|figure| table(&figure.show) != Column::Absent);
    all
}

/// The figures that sweeps have, in the order of their columns.
pub fn swept() -> Vec<Figure<RunResult>> {
    chosen(|show| show.sweep)
}

/// The figures of each flow that sweeps have.
pub fn flow_swept() -> Vec<Figure<FlowResult>> {
    let has = |figure: &&Figure<FlowResult>| figure.show.sweep != Column::Absent;
    FlowResult::FIGURES.iter().filter(has).copied().collect()
}

/// The figures that comparisons have.
pub fn compared() -> Vec<Figure<RunResult>> {
    chosen(|show| show.compare)
}

/// The figures that tournaments have.
pub fn ranked() -> Vec<Figure<RunResult>> {
    chosen(|show| show.tournament)
}

/// The figure whose column has this name.
///
/// # Panics
/// If there is none: names of columns in the code are those of declared figures.
pub fn column(name: &str) -> Figure<RunResult> {
    let found = figures().into_iter().find(|figure| figure.column() == name);
    found.unwrap_or_else(|| panic!("no figure has the column `{name}`"))
}

/// The figures of a path in the order in which tables show them: quantities before counts.
pub fn path_columns() -> Vec<&'static Figure<PathResult>> {
    let mut all: Vec<_> =
        PathResult::FIGURES.iter().filter(|figure| figure.show.unit != Unit::Text).collect();
    all.sort_by_key(|figure| figure.show.unit == Unit::Count);
    all
}

/// The figures of a direction of a tunnel.
pub fn direction_columns() -> Vec<&'static Figure<DirectionResult>> {
    let is_shown =
        |figure: &&Figure<DirectionResult>| figure.is_value() && figure.show.unit != Unit::Text;
    DirectionResult::FIGURES.iter().filter(is_shown).collect()
}

/// The figures of a flow.
pub fn flow_columns() -> Vec<&'static Figure<FlowResult>> {
    FlowResult::FIGURES.iter().filter(|figure| figure.show.unit != Unit::Text).collect()
}

/// The figures worth showing for some flows. `values` returns the values of a figure for all flows. A figure that
/// documents omit if it is zero is omitted if it is zero for all flows, and so is one that no flow has.
pub fn telling_flow_columns(
    values: impl Fn(&Figure<FlowResult>) -> Vec<Option<f64>>,
) -> Vec<&'static Figure<FlowResult>> {
    let mut columns = flow_columns();
    columns.retain(|figure| {
        let tells = |value: &f64| !figure.omitted_if_zero || *value != 0.0;
        values(figure).iter().flatten().any(tells)
    });
    columns
}

/// Values of figures, by the names of their columns. It serialises as one key per figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<T>(Vec<(String, T)>);

impl<T> Row<T> {
    /// The values that `of` returns.
    pub fn new<R>(figures: &[Figure<R>], of: impl Fn(&Figure<R>) -> T) -> Self {
        Self(figures.iter().map(|figure| (figure.column(), of(figure))).collect())
    }

    /// The value of a column.
    ///
    /// # Panics
    /// If the row does not have the column.
    pub fn get(&self, column: &str) -> &T {
        let found = self.0.iter().find(|(name, _)| name == column);
        &found.unwrap_or_else(|| panic!("the row has no column `{column}`")).1
    }
}

impl<T: Serialize> Serialize for Row<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
