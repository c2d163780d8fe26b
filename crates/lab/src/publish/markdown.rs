//! The reference page of results, and the columns of sweeps.

use std::fmt::Write;

use crate::output::PACKET_COLUMNS;
use crate::result::{
    Column, DirectionResult, Figure, FlowResult, PathResult, RunResult, Show, Type, figures, swept,
};
use crate::series::{PathSeries, Series, SeriesColumn};

const INTRODUCTION: &str = "\
# Results

This page lists every figure of a result. It is generated from `crates/lab/src/result`; a test compares them.

`ropewalk run --json` prints one document with `\"schema\": \"ropewalk.run/1\"`. The results of other commands contain such documents or single
figures of them. In Python, the keys are attributes: `run.receive_buffer.max_bytes`. Rates are bits per second of user data unless the table says
otherwise. All figures are over the measured interval, which begins after the warm-up.

A scenario with `[[flow]]` is a tunnel and carries data in both directions. Its figures are over both, and `directions` has those of each: `up` from the
scenario's sender to its receiver, `down` the other way.

`ropewalk run --seeds N --json` prints `ropewalk.runs/1`. Its `figures`, `paths[]`, `directions[]` and `flows[]` have `mean` and `half_width` (half of a 95 % confidence interval) for
each figure, and `runs[]` has the document of every run. `--csv` prints the same figures in the same units. In a table of means, `<column>_half_width`
follows each column.
";

/// The page `docs/reference/results.md`.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    page += "\n## A run\n\n| key | type | unit | meaning |\n| --- | --- | --- | --- |\n";
    RunResult::FIGURES.iter().for_each(|figure| page += &document_row(figure));
    page += "\n## A path\n\nEach element of `paths`, summed over all associations; with a tunnel, over both directions. \
             `directions[].paths` has the same figures in one direction.\n\n\
             | key | type | unit | meaning |\n| --- | --- | --- | --- |\n";
    PathResult::FIGURES.iter().for_each(|figure| page += &document_row(figure));
    page += "\n## A direction\n\nEach element of `directions`, of a scenario with `[[flow]]`.\n\n\
             | key | type | unit | meaning |\n| --- | --- | --- | --- |\n";
    DirectionResult::FIGURES.iter().for_each(|figure| page += &document_row(figure));
    page += "\n## A flow\n\nEach element of `flows`, of a scenario with `[[flow]]` or `[[source]]`.\n\n\
             | key | type | unit | meaning |\n| --- | --- | --- | --- |\n";
    FlowResult::FIGURES.iter().for_each(|figure| page += &document_row(figure));
    page += "\n## Tables of several runs\n\nThe columns of `compare`, `sweep` and `tournament`: means over the runs. \
             The last three columns of this table say where a figure occurs: *shown* on the terminal and in documents \
             and files, or *stored* in documents and files only.\n\n\
             | column | key | unit | better | compare | sweep | tournament |\n\
             | --- | --- | --- | --- | --- | --- | --- |\n";
    figures().iter().filter(|figure| is_column(&figure.show)).for_each(|f| page += &table_row(f));
    page += "\nComputed from the document:\n\n";
    for figure in figures().iter().filter(|figure| !figure.in_document) {
        let _ = writeln!(page, "* `{}`: {}", figure.column(), figure.meaning());
    }
    page += "\n## Time series\n\nOne row per `record.interval`. In files, a column of a path has the name of the path \
             before it: `lte.srtt_s`. With a tunnel, the columns are sums over both directions, and goodput and delivered \
             bytes are those of inner packets; the RTT is that of the first end that has one.\n\n| column | unit | meaning |\n| --- | --- | --- |\n";
    Series::COLUMNS.iter().for_each(|column| page += &series_row("", column));
    PathSeries::COLUMNS.iter().for_each(|column| page += &series_row("<path>.", column));
    page += "\n## Packets\n\nOne row per packet, in the order of sending: `run.packets` in \
             [Python](../guides/python.md#packets).\n\n\
             | column | unit | meaning |\n| --- | --- | --- |\n";
    for column in PACKET_COLUMNS {
        let _ = writeln!(page, "| `{}` | {} | {} |", column.name, column.unit, column.meaning);
    }
    page
}

fn is_column(show: &Show) -> bool {
    [show.compare, show.sweep, show.tournament].iter().any(|column| *column != Column::Absent)
}

fn document_row<R>(figure: &Figure<R>) -> String {
    let kind = match figure.kind {
        Type::Text => "text",
        Type::Whole => "whole number",
        Type::Number => "number",
        Type::NumberOrNull => "number or null",
        Type::Numbers => "list of numbers",
        Type::Parts(_) => "list",
        Type::Part(_) => "object",
    };
    let unit = if figure.is_value() { figure.show.unit.symbol() } else { "" };
    format!("| `{}` | {kind} | {unit} | {} |\n", figure.key, figure.meaning())
}

fn table_row(figure: &Figure<RunResult>) -> String {
    let show = &figure.show;
    let key = if figure.in_document { format!("`{}`", figure.key) } else { "computed".to_owned() };
    let place = |column: Column| match column {
        Column::Absent => "",
        Column::Stored => "stored",
        Column::Shown => "shown",
    };
    let cells = [
        format!("`{}`", figure.column()),
        key,
        show.unit.symbol().to_owned(),
        show.better.word().to_owned(),
        place(show.compare).to_owned(),
        place(show.sweep).to_owned(),
        place(show.tournament).to_owned(),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn series_row<S>(prefix: &str, column: &SeriesColumn<S>) -> String {
    let (name, unit) = (column.name, column.unit.symbol());
    format!("| `{prefix}{name}` | {unit} | {} |\n", column.meaning())
}

/// The figures of a sweep as rows of the table in `docs/guides/sweep.md`.
pub fn sweep_columns() -> String {
    let mut rows = String::new();
    for figure in swept() {
        let unit = figure.show.unit.symbol();
        let _ = writeln!(rows, "| `{}` | {unit} | {} |", figure.column(), figure.meaning());
    }
    rows
}
