//! The figures that a sweep stores for each run: those of the run, and those of each flow.

use arrow_array::RecordBatch;
use ropewalk_scenario::{FlowKind, Scenario};

use super::axis::Axis;
use crate::result::{Figure, FlowResult, RunResult, Unit, flow_swept, swept};

/// A figure with its column.
#[derive(Clone, Debug)]
pub struct SweptColumn {
    /// Name of the column: that of the figure, or `flow.<name>.<figure>`.
    pub name: String,
    of: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Run(Figure<RunResult>),
    /// Of the flow with this index.
    Flow(usize, Figure<FlowResult>),
}

impl SweptColumn {
    /// The value in a result. `None` if it is unknown or infinite, because JSON cannot represent
    /// infinity.
    pub(super) fn value(&self, result: &RunResult) -> Option<f64> {
        let value = match self.of {
            Source::Run(figure) => (figure.of)(result),
            Source::Flow(index, figure) => (figure.of)(result.flows.get(index)?),
        };
        value.filter(|value| value.is_finite())
    }
}

/// The columns of a sweep of a scenario: each of [`swept`], and for each flow or source of messages each of [`flow_swept`].
/// A flow has a score if it is a call, or if its kind varies.
pub(super) fn columns(scenario: &Scenario, axes: &[Axis]) -> Vec<SweptColumn> {
    let run = swept().into_iter();
    let mut all: Vec<SweptColumn> =
        run.map(|figure| SweptColumn { name: figure.column(), of: Source::Run(figure) }).collect();
    let flows = scenario.flows.iter().map(|flow| (&flow.name, is_call(&flow.kind)));
    let sources = scenario.sources.iter().map(|source| (&source.name, false));
    for (index, (name, call)) in flows.chain(sources).enumerate() {
        let varies = axes.iter().any(|axis| axis.key() == format!("flow.{name}.kind"));
        let own = flow_swept().into_iter();
        for figure in own.filter(|figure| figure.show.unit != Unit::Score || call || varies) {
            let name = format!("flow.{name}.{}", figure.column());
            all.push(SweptColumn { name, of: Source::Flow(index, figure) });
        }
    }
    all
}

const fn is_call(kind: &FlowKind) -> bool {
    matches!(kind, FlowKind::Call)
}

/// The flow and the figure of a column of a table of runs or means. `None` for other columns.
pub fn flow_column(name: &str) -> Option<(&str, Figure<FlowResult>)> {
    let (flow, key) = name.strip_prefix("flow.")?.rsplit_once('.')?;
    let figure = flow_swept().into_iter().find(|figure| figure.column() == key)?;
    Some((flow, figure))
}

/// Names of the columns of figures in a table of single runs: those between the seed and the error.
pub(super) fn figures_of(runs: &RecordBatch) -> Vec<String> {
    let names = runs.schema_ref().fields().iter().map(|field| field.name().clone());
    let after = names.skip_while(|name| name != "seed").skip(1);
    after.take_while(|name| name != "error").collect()
}
