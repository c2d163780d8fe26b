//! Builds the types from checked tables, and checks the rules that involve several keys.

mod cross;
mod loss;
mod network;
mod queue;
mod sctp;
mod side;
mod tcp;
mod transfer;
mod wifi;

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use crate::check::{Checked, Checker};
use crate::error::{ProblemKind, ScenarioError};
use crate::tree::{Source, Span};
use crate::types::{
    Preset, Quota, Record, Scenario, SchedulerName, SchedulerOptions, Trace, World,
};

/// Size limit of a trace file, bytes.
const LARGEST_FILE: u64 = 256 << 20;

/// Shared state while the parts of a scenario are built.
pub(crate) struct Builder<'a> {
    checker: Checker<'a>,
    /// Directory of the scenario file.
    directory: PathBuf,
    /// Size of a full packet, bytes.
    packet: u32,
    /// Traces read so far by file name, so that a trace used twice is stored once.
    traces: BTreeMap<String, Arc<Trace>>,
}

/// The guard is an addition of Ropewalk; presets of papers disable it.
const fn guard_by_default(preset: Preset) -> bool {
    match preset {
        Preset::Rfc9260 | Preset::Live | Preset::Rfc8684 => true,
        // The model of 2011 has no flow control.
        Preset::Chihani2011 | Preset::Paper2013 => false,
    }
}

/// This preset has one scheduler: a segment for each open subflow in turn.
fn strict_round_robin(root: &Checked, options: &mut SchedulerOptions) {
    let (transfer, table) = (root.table("transfer"), root.table("scheduler"));
    if transfer.place("scheduler").is_none() && table.place("name").is_none() {
        options.name = SchedulerName::RoundRobin;
    }
    if table.place("quota").is_none() {
        options.quota = Quota::Packet;
    }
}

/// Builds the scenario that `root` describes, with files relative to `directory`.
pub(crate) fn scenario(
    checker: Checker<'_>,
    root: &Checked,
    directory: PathBuf,
) -> Result<Scenario, ScenarioError> {
    let packet = root.table("transfer").get("packet");
    let mut builder = Builder { checker, directory, packet, traces: BTreeMap::new() };
    let mut transfer = builder.transfer(root.table("transfer"));
    let network = builder.network(root);
    let mut scheduler =
        builder.scheduler(root.table("transfer"), root.table("scheduler"), network.paths.len());
    if transfer.preset == Preset::Chihani2011 {
        strict_round_robin(root, &mut scheduler);
    }
    if root.table("transfer").opt::<bool>("guard").is_none() {
        transfer.guard = guard_by_default(transfer.preset);
    }
    builder.window_limits(root, transfer.window_manager);
    let sctp = builder.sctp(root.table("sctp"));
    let tcp = builder.tcp(root.table("tcp"), transfer.preset);
    let cross = builder.cross(root, &network);
    let stations = builder.stations(root);
    let world = root.table("world");
    let record = root.table("record");
    builder.checker.finish()?;
    Ok(Scenario {
        transfer,
        scheduler,
        sctp,
        tcp,
        paths: network.paths,
        links: network.links,
        cross,
        stations,
        world: World { associations: world.get("associations"), stagger: world.get("stagger") },
        record: Record {
            interval: record.get("interval"),
            decisions: record.get("decisions"),
            packets: record.get("packets"),
        },
    })
}

impl Builder<'_> {
    /// Records a problem with `key` of `table`. It points at the value if one is given, otherwise at the table.
    fn wrong(
        &mut self,
        table: &Checked,
        key: &str,
        kind: ProblemKind,
        message: String,
        help: impl Into<String>,
    ) {
        let span = table.place(key).unwrap_or(&table.span).clone();
        self.wrong_at(&span, &format!("{}.{key}", table.path), kind, message, help);
    }

    fn wrong_at(
        &mut self,
        span: &Span,
        key: &str,
        kind: ProblemKind,
        message: String,
        help: impl Into<String>,
    ) {
        self.checker.problem(span, kind, key, message, help.into());
    }

    /// The text in the file for `key` of `table`; the fallback if it is not given.
    fn excerpt<'t>(&'t self, table: &Checked, key: &str) -> &'t str {
        table.place(key).map_or("its default", |place| piece(self.checker.sources, place))
    }

    /// Reads the file that `key` names.
    fn read_file(&mut self, table: &Checked, key: &str, file: &str) -> Option<String> {
        let path = self.directory.join(file);
        let size = std::fs::metadata(&path).map(|meta| meta.len());
        let text = match size {
            Ok(size) if size > LARGEST_FILE => Err(format!("it has {size} bytes")),
            _ => std::fs::read_to_string(&path).map_err(|error| error.to_string()),
        };
        match text {
            Ok(text) => Some(text),
            Err(reason) => {
                let message =
                    format!("`{}.{key}` = \"{file}\" cannot be read: {reason}", table.path);
                let help = format!(
                    "the name is relative to the scenario file; looked for {}",
                    path.display()
                );
                self.wrong(table, key, ProblemKind::Unreadable, message, help);
                None
            }
        }
    }

    /// Reads the trace that `key` names.
    fn trace(&mut self, table: &Checked, key: &str) -> Option<Arc<Trace>> {
        let file: String = table.opt(key)?;
        if let Some(trace) = self.traces.get(&file) {
            return Some(Arc::clone(trace));
        }
        let text = self.read_file(table, key, &file)?;
        match Trace::parse(&file, &text) {
            Ok(trace) => {
                let trace = Arc::new(trace);
                self.traces.insert(file, Arc::clone(&trace));
                Some(trace)
            }
            Err((line, reason)) => {
                self.bad_file(table, key, &file, line, &reason);
                None
            }
        }
    }

    /// Records a problem in the content of a file, at `line` (0 for the whole file).
    fn bad_file(&mut self, table: &Checked, key: &str, file: &str, line: usize, reason: &str) {
        let place = if line == 0 { file.to_owned() } else { format!("{file}:{line}") };
        let message = format!("`{}.{key}`: {place}: {reason}", table.path);
        let help = "one whole number per line, ascending; lines that begin with # do not count";
        self.wrong(table, key, ProblemKind::OutOfRange, message, help);
    }
}

fn piece<'s>(sources: &'s [Source], span: &Span) -> &'s str {
    sources[span.source].text.get(span.start..span.end).unwrap_or_default()
}

/// The directory that names in a file called `source_name` are relative to.
pub(crate) fn directory_of(source_name: &str) -> PathBuf {
    FilePath::new(source_name).parent().map(FilePath::to_path_buf).unwrap_or_default()
}
