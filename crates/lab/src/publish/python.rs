//! The module `ropewalk/_figures.py`.

use std::fmt::Write;

use crate::output::PACKET_COLUMNS;
use crate::result::{
    Column, DirectionResult, Figure, FlowResult, Group, PathResult, RunResult, Type, Unit,
    compared, direction_columns, figures, flow_columns, path_columns, swept,
};
use crate::series::{PathSeries, Series};

const HEADER: &str = r#""""The vocabulary of results. Bits per second of user data, bytes and seconds throughout.

Generated from the declarations in crates/lab/src/result; a test there compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ropewalk._delays import DelayDistribution
    from ropewalk._results import Paths


class Figure(NamedTuple):
    """How a figure is shown."""

    key: str
    """Key in the document, with a dot between a part and its figure."""
    label: str
    """Name in lists."""
    heading: str
    """Name in tables."""
    phrase: str
    """Text with ``{}`` for the value, in a line with the other figures of the group."""
    unit: str
    """``bit/s``, ``B``, ``s``, ``count``, ``0 to 1`` or ``text``."""
    group: str
    """Heading of the figures that are shown together."""
"#;

const DELAYS: &str = "Delays";

/// Names of Python's classes for the parts of a result.
const CLASSES: [(&str, &str); 5] = [
    ("ReceiveBufferResult", "ReceiveBuffer"),
    ("BlockingTime", DELAYS),
    ("AppDelay", DELAYS),
    ("OutOfOrder", "OutOfOrder"),
    ("EngineFigures", "EngineFigures"),
];

fn class_of(part: &str) -> &str {
    CLASSES.iter().find(|(rust, _)| *rust == part).map_or(part, |(_, python)| python)
}

/// The text of the module.
pub fn python() -> String {
    let mut module = HEADER.to_owned();
    let mut written: Vec<&str> = Vec::new();
    for part in RunResult::FIGURES {
        let Type::Part(name) = part.kind else { continue };
        let class = class_of(name);
        if written.contains(&class) {
            continue;
        }
        written.push(class);
        let prefix = format!("{}.", part.key);
        let own = RunResult::FIGURES.iter().filter(|figure| figure.key.starts_with(&prefix));
        module += &if class == DELAYS {
            // One class serves two parts, so it describes the statistics alone.
            let about = "A distribution of delays over chunks, s.";
            dataclass(class, about, own, |figure| figure.phrase().replace("{}", "The") + ", s.")
        } else {
            dataclass(class, part.meaning(), own, |figure| figure.meaning().to_owned())
        };
    }
    module += &dataclass(
        "PathResult",
        "One path over the measured interval, summed over all associations, and over the directions of a tunnel.",
        PathResult::FIGURES.iter(),
        |figure| figure.meaning().to_owned(),
    );
    module += &dataclass(
        "DirectionResult",
        "One direction of a tunnel over the measured interval.",
        DirectionResult::FIGURES.iter(),
        |figure| figure.meaning().to_owned(),
    );
    module += &dataclass(
        "FlowResult",
        "One flow through a tunnel, over the part of the measured interval in which it is active.",
        FlowResult::FIGURES.iter(),
        |figure| figure.meaning().to_owned(),
    );
    module += "\n\nclass Figures:\n    \"\"\"The figures of a run, over the measured interval, which begins after the warm-up.\"\"\"\n\n";
    for figure in RunResult::FIGURES.iter().filter(|figure| !figure.key.contains('.')) {
        module += &attribute(figure.key, figure, figure.meaning(), "");
    }
    let run = figures();
    let run = run.iter().filter(|figure| figure.in_document && figure.show.group != Group::Run);
    module += &table("RUN", "The figures of a run by group.", run);
    module += &table("PATH", "The figures of a path.", path_columns().into_iter());
    let directions = direction_columns();
    module +=
        &table("DIRECTION", "The figures of a direction of a tunnel.", directions.into_iter());
    module += &table("FLOW", "The figures of a flow.", flow_columns().into_iter());
    module += &table("COMPARED", "The figures of a comparison by column.", compared().iter());
    module += &names("SWEPT", "The columns of a sweep.", swept().iter().map(Figure::column));
    let swept = swept();
    let shown = swept.iter().filter(|figure| figure.show.sweep == Column::Shown);
    module += &table("SWEPT_SHOWN", "The figures of a sweep that tables show.", shown);
    let series = Series::COLUMNS.iter().map(|column| column.name.to_owned());
    module += &names("SERIES", "The columns of a time series.", series);
    let path = PathSeries::COLUMNS.iter().map(|column| column.name.to_owned());
    module +=
        &names("PATH_SERIES", "The columns of a time series for each path, after its name.", path);
    let packets = PACKET_COLUMNS.iter().map(|column| column.name.to_owned());
    module += &names("PACKETS", "The columns of the table of packets.", packets);
    module
}

fn dataclass<'a, R: 'a>(
    class: &str,
    about: &str,
    own: impl Iterator<Item = &'a Figure<R>>,
    meaning: fn(&Figure<R>) -> String,
) -> String {
    let mut text =
        format!("\n\n@dataclass(frozen=True, slots=True, kw_only=True)\nclass {class}:\n");
    let _ = writeln!(text, "    \"\"\"{}\"\"\"\n", docstring(about));
    for figure in own {
        let name = figure.key.split_once('.').map_or(figure.key, |(_, name)| name);
        let default = if figure.omitted_if_zero { " = 0" } else { "" };
        text += &attribute(name, figure, &meaning(figure), default);
    }
    text
}

fn attribute<R>(name: &str, figure: &Figure<R>, meaning: &str, default: &str) -> String {
    let kind = match figure.kind {
        Type::Text if figure.show.unit == Unit::WholeNumber => "int",
        Type::Text => "str",
        Type::Whole => "int",
        Type::Number => "float",
        Type::NumberOrNull => "float | None",
        Type::Numbers => "list[float]",
        Type::Parts(list) => list,
        // Adds the percentiles to the statistics.
        Type::Part(part) if class_of(part) == DELAYS => "DelayDistribution",
        Type::Part(part) => class_of(part),
    };
    format!("    {name}: {kind}{default}\n    \"\"\"{}\"\"\"\n", docstring(meaning))
}

/// A meaning in Python's terms.
fn docstring(text: &str) -> String {
    text.replace('`', "``").replace("null", "None").replace("left out if", "empty or 0 if")
}

fn table<'a, R: 'a>(name: &str, about: &str, own: impl Iterator<Item = &'a Figure<R>>) -> String {
    let mut text = format!("\n{name} = (\n");
    for figure in own {
        let key = if matches!(name, "COMPARED" | "SWEPT_SHOWN") {
            figure.column()
        } else {
            figure.key.to_owned()
        };
        let cells = [
            key,
            figure.show.label.to_owned(),
            figure.heading(),
            figure.phrase(),
            figure.show.unit.symbol().to_owned(),
            figure.show.group.label().to_owned(),
        ];
        let _ =
            writeln!(text, "    Figure({}),", cells.map(|cell| format!("\"{cell}\"")).join(", "));
    }
    text + ")\n\"\"\"" + about + "\"\"\"\n"
}

fn names(name: &str, about: &str, own: impl Iterator<Item = String>) -> String {
    let lines: String = own.map(|column| format!("    \"{column}\",\n")).collect();
    format!("\n{name} = (\n{lines})\n\"\"\"{about}\"\"\"\n")
}
