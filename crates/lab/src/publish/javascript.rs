//! The vocabulary of the report page, `web/report/vocabulary.js`.

use std::fmt::Write;

use serde_json::json;

use crate::result::{
    Column, Figure, Group, RunResult, direction_columns, figures, flow_columns, path_columns,
};

/// The text of the script.
pub fn javascript() -> String {
    let mut script = "// Generated from the declarations in crates/lab/src/result; a test there compares them.\n\
                      (function (rw) {\n  \"use strict\";\n\n  rw.vocabulary = {\n"
        .to_owned();
    let groups = Group::ALL.map(|group| json!(group.label()));
    let _ = writeln!(script, "    groups: {},", json!(groups));
    script += &list("run", figures().iter().map(of_run));
    script += &list("path", path_columns().into_iter().map(|figure| of(figure, figure.key)));
    let directions = direction_columns().into_iter();
    script += &list("direction", directions.map(|figure| of(figure, figure.key)));
    script += &list("flow", flow_columns().into_iter().map(|figure| of(figure, figure.key)));
    script + "  };\n})((window.Ropewalk = window.Ropewalk || {}));\n"
}

fn list(name: &str, figures: impl Iterator<Item = serde_json::Value>) -> String {
    let lines: String = figures.map(|figure| format!("      {figure},\n")).collect();
    format!("    {name}: [\n{lines}    ],\n")
}

fn of_run(figure: &Figure<RunResult>) -> serde_json::Value {
    let mut one = of(figure, if figure.in_document { figure.key } else { "" });
    one["column"] = json!(figure.column());
    one["group"] = json!(figure.show.group.label());
    one["compare"] = json!(figure.show.compare != Column::Absent);
    one["tournament"] = json!(figure.show.tournament != Column::Absent);
    one
}

/// `path` is empty for a figure that the document does not have.
fn of<R>(figure: &Figure<R>, path: &str) -> serde_json::Value {
    json!({
        "path": path,
        "label": figure.show.label,
        "kind": figure.show.unit.kind(),
        "better": figure.show.better.word(),
        "means": figure.meaning().replace('`', ""),
    })
}
