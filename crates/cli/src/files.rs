//! `--report` and `--out`: files that are written in addition to the printed output.

use std::path::{Path, PathBuf};

use clap::Args;
use ropewalk_base::Duration;
use ropewalk_lab::Run;
use ropewalk_lab::compare::{Compared, Comparison, Variant};
use ropewalk_lab::output::{
    SeriesFormat, SeriesOrigin, write_atomically, write_labelled_series, write_series,
};
use ropewalk_lab::report::{Report, ReportKind, ReportRun};
use ropewalk_scenario::Scenario;

use crate::args::command_line;
use crate::console::Console;
use crate::failure::Failure;

/// How much of a run its sequence-time plot shows.
const SEQUENCE: Duration = Duration::from_secs(5);

/// The version in reports and files.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Files that a command can write.
#[derive(Clone, Debug, Args)]
pub struct OutputFiles {
    /// Write a report, one file that opens in any browser
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the time series: .parquet, .arrow, .feather or .csv
    #[arg(long, value_name = "FILE.parquet")]
    out: Option<PathBuf>,
}

/// Output files whose paths have been checked as far as possible.
#[derive(Clone, Debug)]
pub struct CheckedFiles {
    console: Console,
    report: Option<PathBuf>,
    out: Option<(PathBuf, SeriesFormat)>,
}

impl OutputFiles {
    /// Checks the paths before anything runs.
    ///
    /// # Errors
    /// An extension that names no format, or a directory that does not exist.
    pub fn check(&self, console: Console) -> Result<CheckedFiles, Failure> {
        self.report.as_deref().map_or(Ok(()), check_report)?;
        let out = self.out.as_ref().map(|path| with_format(path)).transpose()?;
        Ok(CheckedFiles { console, report: self.report.clone(), out })
    }
}

fn with_format(path: &Path) -> Result<(PathBuf, SeriesFormat), Failure> {
    check_place("--out", path)?;
    let format = SeriesFormat::from_path(path)
        .map_err(|e| Failure::input(format!("--out {}: {e}", path.display()), e.help()))?;
    Ok((path.to_owned(), format))
}

/// Checks the path of a report before anything runs.
///
/// # Errors
/// An extension other than that of HTML, or a directory that does not exist.
pub fn check_report(path: &Path) -> Result<(), Failure> {
    check_place("--report", path)?;
    if path.extension().is_some_and(|ending| ending == "html" || ending == "htm") {
        return Ok(());
    }
    let message = format!("--report {}: a report is an HTML page", path.display());
    Err(Failure::input(message, "end the file's name in .html"))
}

/// Writes a report whose path has been checked.
///
/// # Errors
/// The file cannot be written.
pub fn save_report(path: &Path, report: &Report, console: Console) -> Result<(), Failure> {
    write_atomically(path, report.to_html().as_bytes())
        .map_err(|error| failed("--report", path, error))?;
    console.note(format_args!("report: {}", path.display()));
    Ok(())
}

/// Checks the path of a file before anything runs.
///
/// # Errors
/// The path is a directory, or lies in a directory that does not exist.
pub fn check_place(option: &str, path: &Path) -> Result<(), Failure> {
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let wrong = if path.is_dir() {
        "it is a directory".to_owned()
    } else if !directory.is_dir() {
        format!("there is no directory `{}`", directory.display())
    } else {
        return Ok(());
    };
    let message = format!("{option} {}: {wrong}", path.display());
    Err(Failure::input(message, "give the name of a file in a directory that exists"))
}

impl CheckedFiles {
    /// Whether time series are needed.
    pub fn wants_series(&self) -> bool {
        self.report.is_some() || self.out.is_some()
    }

    /// How much of the start of the run is needed packet by packet.
    pub fn sequence(&self) -> Option<Duration> {
        self.report.as_ref().map(|_| SEQUENCE)
    }

    /// Checks that the series of all variants fit into one table.
    ///
    /// # Errors
    /// `--out` is given, and the paths of two variants differ.
    pub fn check_same_paths(&self, variants: &[Variant]) -> Result<(), Failure> {
        let names = |variant: &Variant| -> Vec<String> {
            variant.scenario.paths.iter().map(|path| path.name.clone()).collect()
        };
        let Some((path, _)) = &self.out else { return Ok(()) };
        let same = variants.windows(2).all(|pair| names(&pair[0]) == names(&pair[1]));
        if same {
            return Ok(());
        }
        let message = format!("--out {}: the scenarios have different paths", path.display());
        Err(Failure::input(message, "write the series of each with `ropewalk run --out`"))
    }

    /// Writes the files of one run.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_run(&self, title: String, scenario: &Scenario, run: &Run) -> Result<(), Failure> {
        if let Some((path, format)) = &self.out {
            let series = run.series.as_ref().expect("series were requested");
            write_series(path, *format, series, &origin(scenario, run))
                .map_err(|e| failed("--out", path, e))?;
        }
        let label = run.result.scheduler.clone();
        let fill = |report: &mut Report| report.runs = vec![ReportRun::new(label, scenario, run)];
        self.write_report(title, ReportKind::Run, fill)
    }

    /// Writes the files of several runs of one scenario: series and report show the first successful one.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_repeated(&self, title: String, runs: &[Compared]) -> Result<(), Failure> {
        let first = runs.iter().find_map(|compared| {
            let run = compared.outcome.as_ref().ok()?;
            run.series.as_ref().map(|series| (compared, run, series))
        });
        let Some((compared, run, series)) = first else { return Ok(()) };
        if let Some((path, format)) = &self.out {
            write_series(path, *format, series, &origin(&compared.scenario, run))
                .map_err(|e| failed("--out", path, e))?;
        }
        let fill = |report: &mut Report| {
            let label = compared.label.clone();
            report.runs = vec![ReportRun::new(label, &compared.scenario, run)];
            report.add_seeds(runs);
        };
        self.write_report(title, ReportKind::Run, fill)
    }

    /// Writes the files of a comparison: the first successful run of each variant.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_compared(
        &self,
        title: String,
        runs: &[Compared],
        comparison: &Comparison,
    ) -> Result<(), Failure> {
        let kept = runs.iter().filter_map(|compared| {
            let run = compared.outcome.as_ref().ok()?;
            run.series.as_ref().map(|series| (compared, run, series))
        });
        if let Some((path, format)) = &self.out {
            let tables = kept.clone().map(|(compared, run, series)| {
                (compared.label.as_str(), series, origin(&compared.scenario, run))
            });
            write_labelled_series(path, *format, &tables.collect::<Vec<_>>())
                .map_err(|e| failed("--out", path, e))?;
        }
        let fill = |report: &mut Report| {
            let one = |(compared, run, _): (&Compared, &Run, _)| {
                ReportRun::new(compared.label.clone(), &compared.scenario, run)
            };
            report.runs = kept.map(one).collect();
            report.add_seeds(runs);
            // Cannot fail: the values are only numbers and text.
            report.paired = comparison
                .paired
                .iter()
                .filter_map(|pair| serde_json::to_value(pair).ok())
                .collect();
        };
        self.write_report(title, ReportKind::Compare, fill)
    }

    /// Writes the report if `--report` was given.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_report(
        &self,
        title: String,
        kind: ReportKind,
        fill: impl FnOnce(&mut Report),
    ) -> Result<(), Failure> {
        let Some(path) = &self.report else { return Ok(()) };
        let mut report = Report::new(title, kind, VERSION.to_owned(), command_line());
        fill(&mut report);
        save_report(path, &report, self.console)
    }
}

fn origin(scenario: &Scenario, run: &Run) -> SeriesOrigin {
    SeriesOrigin {
        scenario_toml: scenario.to_toml(),
        seed: run.result.seed.clone(),
        version: VERSION.to_owned(),
    }
}

/// The failure for a file that could not be written.
pub fn failed(option: &str, path: &Path, error: impl core::fmt::Display) -> Failure {
    Failure::Run(format!("{option} {} cannot be written: {error}", path.display()))
}

/// The text of a scenario for `--write place`, after a check that it loads there as `expected`. `source` is the file that
/// it comes from.
///
/// # Errors
/// The scenario would not load, or would differ.
pub fn verified(
    text: String,
    place: &str,
    expected: &Scenario,
    source: &str,
) -> Result<String, Failure> {
    match Scenario::parse(&text, place) {
        Ok(found) if found == *expected => Ok(text),
        Ok(_) => Err(Failure::Run(format!(
            "--write {place}: verification failed: the written scenario differs"
        ))),
        // Files that a scenario names are resolved relative to its directory.
        Err(error) => Err(Failure::input(
            format!("--write {place}: the scenario would not load from there\n{error}"),
            format!("write it into the directory of `{source}`, where its files are"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_needs_a_directory_and_the_ending_of_a_page() {
        for (path, said) in [
            ("/no/such/place/a.html", "no directory"),
            ("a.pdf", "HTML page"),
            (".", "it is a directory"),
        ] {
            assert!(
                check_report(Path::new(path)).unwrap_err().to_string().contains(said),
                "{path}"
            );
        }
        assert!(check_report(Path::new("a.html")).is_ok());
    }
}
