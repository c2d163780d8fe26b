//! The output of `run`.

use ropewalk_lab::compare::{Estimate, Repeated};
use ropewalk_lab::result::{
    Figure, Group, Unit, figures, flow_columns, path_columns, telling_flow_columns,
};
use ropewalk_lab::{FlowResult, PathResult, RunResult};

use crate::console::{layout, width, wrapped};
use crate::format::Captioned;
use crate::printer::{count, estimate, rate, time};
use crate::table::{Cell, Table};

/// Room for the name of a group.
const GROUP_WIDTH: usize = 16;

/// The results of one run, or of several runs of one scenario.
pub enum Results<'a> {
    /// One run.
    One(&'a RunResult),
    /// One run for each seed.
    Many(&'a Repeated),
}

impl Results<'_> {
    /// A figure: its value in one run, or its mean over several.
    fn figure(&self, figure: &Figure<RunResult>) -> Option<Estimate> {
        match self {
            Self::One(result) => (figure.of)(result).map(exact),
            Self::Many(repeated) => {
                let known = Repeated::figures().iter().any(|one| one.key == figure.key);
                known.then(|| *repeated.figures.get(&figure.column()))?
            }
        }
    }

    /// A figure of the path number `path`.
    fn path(&self, path: usize, figure: &Figure<PathResult>) -> Option<Estimate> {
        match self {
            Self::One(result) => (figure.of)(&result.paths[path]).map(exact),
            Self::Many(repeated) => *repeated.paths[path].figures.get(&figure.column()),
        }
    }

    /// A figure of the flow number `flow`.
    fn flow(&self, flow: usize, figure: &Figure<FlowResult>) -> Option<Estimate> {
        match self {
            Self::One(result) => (figure.of)(&result.flows[flow]).map(exact),
            Self::Many(repeated) => *repeated.flows[flow].figures.get(&figure.column()),
        }
    }

    /// The flows through a tunnel, as the first run has them.
    fn flow_list(&self) -> &[FlowResult] {
        match self {
            Self::One(result) => &result.flows,
            Self::Many(repeated) => {
                let first = repeated.runs.iter().find_map(|run| run.result.as_ref());
                first.map_or(&[], |result| &result.flows)
            }
        }
    }

    fn path_names(&self) -> Vec<&str> {
        match self {
            Self::One(result) => result.paths.iter().map(|path| path.name.as_str()).collect(),
            Self::Many(repeated) => repeated.paths.iter().map(|path| path.name.as_str()).collect(),
        }
    }

    /// Every figure of the run, of each path and of each flow in a row of its own. Without flows there is no column for
    /// their names.
    pub fn tidy(&self) -> Table {
        let flows = self.flow_list();
        let mut table = Table::empty();
        if !flows.is_empty() {
            table.name("flow", "flow");
        }
        table.name("path", "path");
        table.name("figure", "figure");
        table.column("unit", "unit");
        table.column("value", "value");
        let mut row = |part: [&str; 2], name: String, unit: Unit, value: Option<Estimate>| {
            let parts = part.into_iter().skip(usize::from(flows.is_empty())).map(Cell::from);
            let own = [name.into(), unit.symbol().into(), Cell::mean(value, unit)];
            table.row::<Cell>(parts.chain(own).collect());
        };
        for figure in figures().iter().filter(|figure| is_number(figure.show.unit)) {
            row([""; 2], figure.column(), figure.show.unit, self.figure(figure));
        }
        for (number, name) in self.path_names().into_iter().enumerate() {
            for figure in path_columns() {
                let value = self.path(number, figure);
                row(["", name], figure.column(), figure.show.unit, value);
            }
        }
        for (number, flow) in flows.iter().enumerate() {
            for figure in flow_columns() {
                let value = self.flow(number, figure);
                row([&flow.name, ""], figure.column(), figure.show.unit, value);
            }
        }
        table
    }

    /// The figures of the run, those of its paths, and those of its flows.
    pub fn tables(&self) -> Vec<Captioned> {
        let mut table = Table::new(&["figure", "value"]);
        let own = figures();
        let own = own.iter().filter(|figure| {
            is_number(figure.show.unit) && !matches!(figure.show.group, Group::Run | Group::Engine)
        });
        for figure in own {
            if let Some(value) = self.figure(figure) {
                table.row(vec![
                    Cell::from(figure.show.label),
                    Cell::from(estimate(Some(value), figure.show.unit)),
                ]);
            }
        }
        let flows = self.flows().map(|flows| Captioned::new("", flows));
        let tables = [Captioned::new("", table), Captioned::new("", self.paths())];
        tables.into_iter().chain(flows).collect()
    }

    /// The figures of the flows through a tunnel or of the sources of messages; none without either.
    fn flows(&self) -> Option<Table> {
        let flows = self.flow_list();
        let mut table = Table::new(&["flow", "kind"]);
        let columns = telling_flow_columns(|figure| {
            (0..flows.len()).map(|flow| self.flow(flow, figure).map(|value| value.mean)).collect()
        });
        for figure in &columns {
            table.column(&figure.heading(), &figure.column());
        }
        for (number, flow) in flows.iter().enumerate() {
            let names = [flow.name.as_str(), &flow.kind].map(Cell::from);
            let cells = columns
                .iter()
                .map(|figure| Cell::mean(self.flow(number, figure), figure.show.unit));
            table.row(names.into_iter().chain(cells).collect());
        }
        (!flows.is_empty()).then_some(table)
    }

    fn paths(&self) -> Table {
        let mut columns = path_columns();
        let names = self.path_names();
        // A figure that documents leave out if it is zero is left out here if it is zero on all paths.
        columns.retain(|figure| {
            let zero = |path| self.path(path, figure).is_some_and(|value| value.mean == 0.0);
            !figure.omitted_if_zero || !(0..names.len()).all(zero)
        });
        let mut table = Table::new(&["path"]);
        for figure in &columns {
            table.column(&figure.heading(), &figure.column());
        }
        for (number, name) in names.into_iter().enumerate() {
            let cells = columns
                .iter()
                .map(|figure| Cell::mean(self.path(number, figure), figure.show.unit));
            table.row(std::iter::once(Cell::from(name)).chain(cells).collect());
        }
        table
    }
}

/// The value of a single run.
const fn exact(value: f64) -> Estimate {
    Estimate { mean: value, half_width: None }
}

const fn is_number(unit: Unit) -> bool {
    !matches!(unit, Unit::Text | Unit::WholeNumber)
}

/// The whole output. `first` is the only run, or the first of several.
pub fn text(title: &str, results: &Results<'_>, first: &RunResult, notes: &[String]) -> String {
    let seeds = match results {
        Results::One(result) => format!("seed {}", result.seed),
        Results::Many(repeated) => {
            let last = repeated.runs.last().map_or("", |run| run.seed.as_str());
            format!("seeds {} to {last}", first.seed)
        }
    };
    let heading = format!(
        "{title}: {}, {}, {seeds}; {} after a warm-up of {}\n",
        first.protocol,
        first.scheduler,
        time(first.duration_s),
        time(first.warmup_s),
    );
    let mut parts = vec![heading, lines(results, first), results.paths().text(layout())];
    parts.extend(results.flows().map(|flows| flows.text(layout())));
    let interval = matches!(results, Results::Many(_))
        .then(|| "±  half of a 95 % confidence interval of the mean\n".to_owned());
    let notes = notes.iter().map(|note| wrapped("note: ", note, width()));
    let below: String = interval.into_iter().chain(notes).collect();
    parts.extend((!below.is_empty()).then_some(below));
    parts.join("\n")
}

/// A line for each group of figures.
fn lines(results: &Results<'_>, first: &RunResult) -> String {
    let width = width();
    let shown = Group::ALL.iter().filter(|group| **group != Group::Engine);
    let line = |group: &Group| {
        let text = match group {
            Group::Associations if !first.association_goodput_bps.is_empty() => {
                associations(&first.association_goodput_bps)
            }
            Group::Run | Group::Associations => return None,
            group => line(results, *group)?,
        };
        let name = group.label().to_lowercase();
        Some(wrapped(&format!("{name:<GROUP_WIDTH$}"), &text, width))
    };
    shown.filter_map(line).collect()
}

/// The known figures of a group in one line; none if there are none.
pub fn line(results: &Results<'_>, group: Group) -> Option<String> {
    let own = figures().into_iter().filter(|figure| figure.show.group == group);
    let known = own.filter_map(|figure| {
        let value = estimate(Some(results.figure(&figure)?), figure.show.unit);
        Some(figure.phrase().replace("{}", &value))
    });
    let known: Vec<String> = known.collect();
    let note = if group.note().is_empty() { String::new() } else { format!("; {}", group.note()) };
    (!known.is_empty()).then(|| known.join(", ") + &note)
}

fn associations(goodputs: &[f64]) -> String {
    let mean = goodputs.iter().sum::<f64>() / goodputs.len() as f64;
    let least = goodputs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = goodputs.iter().copied().fold(0.0, f64::max);
    let [mean, least, most] = [mean, least, most].map(rate);
    format!(
        "{}; goodput {mean} mean, {least} minimum, {most} maximum",
        count(goodputs.len() as u64)
    )
}
