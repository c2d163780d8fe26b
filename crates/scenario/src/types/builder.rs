//! Shared parts of the readers of keys: the context of a key, and problems.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use ropewalk_base::{Duration, Rate, Time};

use super::{Preset, Scenario, SchedulerName, Trace};
use crate::check::{Checked, Checker, Item, Value};
use crate::error::{ProblemKind, ScenarioError};
use crate::ready::ReadyScenario;
use crate::tree::{Source, Span};

/// Size limit of a trace file, bytes.
const LARGEST_FILE: u64 = 256 << 20;

/// Shared state while the parts of a scenario are built.
pub(crate) struct Builder<'a> {
    checker: Checker<'a>,
    /// Directory of the scenario file.
    directory: PathBuf,
    /// The ready scenario that is being read. Its files are part of the program.
    ready: Option<&'static ReadyScenario>,
    /// Size of a full packet, bytes.
    pub(crate) packet: u32,
    /// The preset, once it is known.
    pub(crate) preset: Preset,
    /// `transfer.scheduler`.
    pub(crate) scheduler: SchedulerName,
    /// `scheduler.delay_error`.
    pub(crate) delay_error: f64,
    /// Whether a tunnel sends the data.
    pub(crate) has_tunnel: bool,
    pub(crate) path_count: u32,
    pub(crate) path_names: Vec<String>,
    pub(crate) link_names: Vec<String>,
    /// The path or link that is being read.
    pub(crate) around: Around,
    /// Traces read so far by file name, so that a trace used twice is stored once.
    pub(crate) traces: BTreeMap<String, Arc<Trace>>,
}

/// What keys of a path or link depend on.
#[derive(Debug)]
pub(crate) struct Around {
    pub(crate) name: String,
    /// Delays of the link itself, up and down.
    pub(crate) delays: (Duration, Duration),
    /// Round trip of the path, or of the longest path over a shared link.
    pub(crate) longest: Option<Duration>,
    /// Positions of the shared links.
    pub(crate) via: Vec<usize>,
    /// Mean rate of the direction that is being read.
    pub(crate) rate: Rate,
    /// Whether that direction follows a trace.
    pub(crate) follows_trace: bool,
}

impl Default for Around {
    fn default() -> Self {
        Self {
            name: String::new(),
            delays: (Duration::ZERO, Duration::ZERO),
            longest: None,
            via: Vec::new(),
            rate: Rate::from_bps(1),
            follows_trace: false,
        }
    }
}

/// Builds the scenario that `root` describes, with files relative to `directory`.
pub(crate) fn build(
    checker: Checker<'_>,
    root: &Checked,
    directory: PathBuf,
    ready: Option<&'static ReadyScenario>,
) -> Result<Scenario, ScenarioError> {
    let transfer = root.table("transfer");
    let mut builder = Builder {
        checker,
        directory,
        ready,
        packet: transfer.get("packet"),
        preset: Preset::Rfc9260,
        scheduler: transfer.get("scheduler"),
        delay_error: root.table("scheduler").get("delay_error"),
        has_tunnel: !root.list("flow").is_empty(),
        path_count: u32::try_from(root.list("path").len()).expect("at most 64"),
        path_names: Vec::new(),
        link_names: Vec::new(),
        around: Around::default(),
        traces: BTreeMap::new(),
    };
    let scenario = Scenario::read(&mut builder, root);
    builder.checker.finish()?;
    Ok(scenario)
}

impl Builder<'_> {
    /// Records a problem with `key` of `table`, at the value if one is given, otherwise at the table.
    pub(crate) fn wrong(
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

    pub(crate) fn wrong_at(
        &mut self,
        span: &Span,
        key: &str,
        kind: ProblemKind,
        message: String,
        help: impl Into<String>,
    ) {
        self.checker.problem(span, kind, key, message, help.into());
    }

    /// Checks that the end of traffic is later than its beginning.
    pub(crate) fn later_than_start(&mut self, table: &Checked, start: Time, stop: Option<Time>) {
        if stop.is_some_and(|stop| stop <= start) {
            let stop = self.excerpt(table, "stop");
            let message = format!("`{}.stop` = {stop} is not later than its start", table.path);
            let help = "leave `stop` out to go on until the run ends";
            self.wrong(table, "stop", ProblemKind::Conflict, message, help);
        }
    }

    /// The text in the file for `key` of `table`, or the fallback if it is not given.
    pub(crate) fn excerpt<'t>(&'t self, table: &Checked, key: &str) -> &'t str {
        table.place(key).map_or("its default", |place| piece(self.checker.sources, place))
    }

    /// Reads the file that `key` names.
    pub(crate) fn read_file(&mut self, table: &Checked, key: &str, file: &str) -> Option<String> {
        if let Some(text) = self.ready.and_then(|ready| ready.file(file)) {
            return Some(text.to_owned());
        }
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
    pub(crate) fn trace(&mut self, table: &Checked, key: &str) -> Option<Arc<Trace>> {
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
                let help = format!(
                    "one whole number per line, ascending; `ropewalk new --from {file}` writes a scenario that follows other \
                     logs of rates"
                );
                self.bad_file(table, key, (&file, line), &reason, help);
                None
            }
        }
    }

    /// Records a problem in the content of a file, at `line` (0 for the entire file).
    pub(crate) fn bad_file(
        &mut self,
        table: &Checked,
        key: &str,
        (file, line): (&str, usize),
        reason: &str,
        help: impl Into<String>,
    ) {
        let place = if line == 0 { file.to_owned() } else { format!("{file}:{line}") };
        let message = format!("`{}.{key}`: {place}: {reason}", table.path);
        self.wrong(table, key, ProblemKind::OutOfRange, message, help);
    }
}

fn piece<'s>(sources: &'s [Source], span: &Span) -> &'s str {
    sources[span.source].text.get(span.start..span.end).unwrap_or_default()
}

/// The tables of a list.
pub(crate) fn tables<'a>(root: &'a Checked, key: &str) -> Vec<&'a Checked> {
    let table = |item: &'a Item| match &item.value {
        Value::Table(table) => table,
        other => unreachable!("{other:?} in a list of tables"),
    };
    root.list(key).iter().map(table).collect()
}

/// The directory that names in a file called `source_name` are relative to.
pub(crate) fn directory_of(source_name: &str) -> PathBuf {
    FilePath::new(source_name).parent().map(FilePath::to_path_buf).unwrap_or_default()
}
