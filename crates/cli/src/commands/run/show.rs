//! The output of `run`.

use ropewalk_base::statistics::mean;
use ropewalk_lab::compare::{Estimate, Repeated};
use ropewalk_lab::result::{
    Figure, Group, Unit, direction_columns, figures, flow_columns, path_columns,
    telling_flow_columns,
};
use ropewalk_lab::{DirectionResult, FlowResult, PathResult, RunResult};

use crate::console::{layout, width, wrapped};
use crate::format::Captioned;
use crate::printer::{count, estimate, rate, time};
use crate::table::{Cell, Table};

/// Width of the name of a group.
const GROUP_WIDTH: usize = 16;

/// A path and, for a tunnel, a direction: their numbers.
type Place = (Option<usize>, usize);

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

    /// A figure of the path with this number and, for a tunnel, in the direction with this number.
    fn path(&self, (direction, path): Place, figure: &Figure<PathResult>) -> Option<Estimate> {
        match self {
            Self::One(result) => {
                let paths = direction.map_or(&result.paths, |way| &result.directions[way].paths);
                (figure.of)(&paths[path]).map(exact)
            }
            Self::Many(repeated) => {
                let paths =
                    direction.map_or(&repeated.paths, |way| &repeated.directions[way].paths);
                *paths[path].figures.get(&figure.column())
            }
        }
    }

    /// A figure of the direction number `direction` of a tunnel.
    fn direction(&self, direction: usize, figure: &Figure<DirectionResult>) -> Option<Estimate> {
        match self {
            Self::One(result) => (figure.of)(&result.directions[direction]).map(exact),
            Self::Many(repeated) => {
                *repeated.directions[direction].own.figures.get(&figure.column())
            }
        }
    }

    /// The directions of a tunnel. Empty without a tunnel.
    fn direction_names(&self) -> Vec<&str> {
        match self {
            Self::One(result) => result.directions.iter().map(|one| one.name.as_str()).collect(),
            Self::Many(repeated) => {
                repeated.directions.iter().map(|one| one.own.name.as_str()).collect()
            }
        }
    }

    /// Numbers of a direction and a path, with their names, in the order of tables: each path and, for a tunnel,
    /// each path in each direction.
    fn path_rows(&self) -> Vec<(Place, [&str; 2])> {
        let directions = self.direction_names();
        let mut rows = Vec::new();
        for (path, name) in self.path_names().into_iter().enumerate() {
            if directions.is_empty() {
                rows.push(((None, path), ["", name]));
            }
            for (number, direction) in directions.iter().enumerate() {
                rows.push(((Some(number), path), [*direction, name]));
            }
        }
        rows
    }

    /// A figure of the flow number `flow`.
    fn flow(&self, flow: usize, figure: &Figure<FlowResult>) -> Option<Estimate> {
        match self {
            Self::One(result) => (figure.of)(&result.flows[flow]).map(exact),
            Self::Many(repeated) => *repeated.flows[flow].figures.get(&figure.column()),
        }
    }

    /// The flows through a tunnel, from the first run.
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

    /// Every figure of the run, of each direction, of each path and of each flow in its own row. The columns for
    /// the names of flows and directions exist only if there are any.
    pub fn tidy(&self) -> Table {
        let (flows, directions) = (self.flow_list(), self.direction_names());
        let shown = [!flows.is_empty(), !directions.is_empty(), true];
        let mut table = Table::empty();
        for (name, _) in ["flow", "direction", "path"].iter().zip(shown).filter(|(_, shown)| *shown)
        {
            table.name(name, name);
        }
        table.name("figure", "figure");
        table.column("unit", "unit");
        table.column("value", "value");
        let mut row = |part: [&str; 3], name: String, unit: Unit, value: Option<Estimate>| {
            let parts = part.into_iter().zip(shown).filter(|(_, shown)| *shown);
            let parts = parts.map(|(name, _)| Cell::from(name));
            let own = [name.into(), unit.symbol().into(), Cell::mean(value, unit)];
            table.row::<Cell>(parts.chain(own).collect());
        };
        for figure in figures().iter().filter(|figure| is_number(figure.show.unit)) {
            row([""; 3], figure.column(), figure.show.unit, self.figure(figure));
        }
        for (number, name) in directions.iter().enumerate() {
            for figure in direction_columns() {
                let value = self.direction(number, figure);
                row(["", name, ""], figure.column(), figure.show.unit, value);
            }
        }
        for (place, [direction, name]) in self.path_rows() {
            for figure in path_columns() {
                let value = self.path(place, figure);
                row(["", direction, name], figure.column(), figure.show.unit, value);
            }
        }
        for (number, flow) in flows.iter().enumerate() {
            for figure in flow_columns() {
                let value = self.flow(number, figure);
                row([&flow.name, "", ""], figure.column(), figure.show.unit, value);
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
        let own = [Some(table), self.directions(), Some(self.paths()), self.flows()];
        own.into_iter().flatten().map(|table| Captioned::new("", table)).collect()
    }

    /// The figures of a tunnel's directions that are not zero in all of them. `None` if there is no
    /// tunnel.
    fn directions(&self) -> Option<Table> {
        let names = self.direction_names();
        let mut columns = direction_columns();
        columns.retain(|figure| {
            let values = (0..names.len()).filter_map(|number| self.direction(number, figure));
            values.map(|value| value.mean).any(|mean| mean != 0.0)
        });
        let mut table = Table::new(&["direction"]);
        for figure in &columns {
            table.column(&figure.heading(), &figure.column());
        }
        for (number, name) in names.iter().enumerate() {
            let cells = columns
                .iter()
                .map(|figure| Cell::mean(self.direction(number, figure), figure.show.unit));
            table.row(std::iter::once(Cell::from(*name)).chain(cells).collect());
        }
        (!names.is_empty()).then_some(table)
    }

    /// The figures of the flows through a tunnel or of the sources of messages. `None` if there are
    /// neither.
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
        let rows = self.path_rows();
        // A figure that documents omit if it is zero is omitted here if it is zero on all paths.
        columns.retain(|figure| {
            let zero = |place| self.path(place, figure).is_some_and(|value| value.mean == 0.0);
            !figure.omitted_if_zero || !rows.iter().all(|(place, _)| zero(*place))
        });
        let directed = !self.direction_names().is_empty();
        let mut table = Table::new(&["path"]);
        if directed {
            table.name("direction", "direction");
        }
        for figure in &columns {
            table.column(&figure.heading(), &figure.column());
        }
        for (place, [direction, name]) in rows {
            let names = [Some(name), directed.then_some(direction)];
            let names = names.into_iter().flatten().map(Cell::from);
            let cells =
                columns.iter().map(|figure| Cell::mean(self.path(place, figure), figure.show.unit));
            table.row(names.chain(cells).collect());
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

/// The complete output. `first` is the only run, or the first of several.
pub fn text(title: &str, results: &Results<'_>, first: &RunResult, notes: &[String]) -> String {
    let seeds = match results {
        Results::One(result) => format!("seed {}", result.seed),
        Results::Many(repeated) => {
            let last = repeated.runs.last().map_or("", |run| run.seed.as_str());
            format!("seeds {} to {last}", first.seed)
        }
    };
    let both = if first.directions.is_empty() { "" } else { "; both directions" };
    let heading = format!(
        "{title}: {}, {}, {seeds}; {} after a warm-up of {}{both}\n",
        first.protocol,
        first.scheduler,
        time(first.duration_s),
        time(first.warmup_s),
    );
    let tables = [results.directions(), Some(results.paths()), results.flows()];
    let tables = tables.iter().flatten().map(|table| table.text(layout()));
    let mut parts = vec![heading, lines(results, first)];
    parts.extend(tables);
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

/// The known figures of a group in one line. `None` if there are none.
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
    let mean = mean(goodputs);
    let least = goodputs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = goodputs.iter().copied().fold(0.0, f64::max);
    let [mean, least, most] = [mean, least, most].map(rate);
    format!(
        "{}; goodput {mean} mean, {least} minimum, {most} maximum",
        count(goodputs.len() as u64)
    )
}
