//! `--capture` and `--qlog` of `run`: files that record the packets of one end.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ropewalk_lab::packet_trace::{PacketTrace, Sink, Vantage};
use ropewalk_scenario::Scenario;

use crate::console::Console;
use crate::failure::Failure;
use crate::files::check_place;

/// Files that record packets.
#[derive(Clone, Debug, Args)]
pub struct PacketFileArgs {
    /// Record the packets of one end in a file for Wireshark (pcapng)
    #[arg(long, value_name = "FILE.pcapng")]
    capture: Option<PathBuf>,
    /// Record packets and measurements of one end as qlog (JSON text sequence)
    #[arg(long, value_name = "FILE.sqlog")]
    qlog: Option<PathBuf>,
    /// The end whose packets `--capture` and `--qlog` record
    #[arg(long, value_name = "END", default_value = "sender")]
    vantage: End,
}

/// An end of the transfer.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum End {
    Sender,
    Receiver,
}

impl PacketFileArgs {
    /// Creates the files; none if no option is given.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn open(&self, scenario: &Scenario, title: &str) -> Result<Option<PacketTrace>, Failure> {
        let sink = |option, path: &Option<PathBuf>| {
            path.as_deref().map(|path| create(option, path)).transpose()
        };
        let capture = sink("--capture", &self.capture)?;
        let qlog = sink("--qlog", &self.qlog)?;
        if capture.is_none() && qlog.is_none() {
            return Ok(None);
        }
        let vantage = match self.vantage {
            End::Sender => Vantage::Sender,
            End::Receiver => Vantage::Receiver,
        };
        let trace = PacketTrace::new(scenario, title, vantage, capture, qlog);
        trace.map(Some).map_err(|error| self.failed(&error))
    }

    /// Refuses the options where there is more than one run to record.
    ///
    /// # Errors
    /// An option is given.
    pub fn refuse(&self, when: &str) -> Result<(), Failure> {
        let given = [("--capture", &self.capture), ("--qlog", &self.qlog)];
        let Some((option, _)) = given.into_iter().find(|(_, path)| path.is_some()) else {
            return Ok(());
        };
        let message = format!("{option} cannot be used {when}: it records the packets of one run");
        Err(Failure::input(message, "leave out --seeds, and choose the run with --seed"))
    }

    /// Completes the files and names them.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn finish(&self, trace: PacketTrace, console: Console) -> Result<(), Failure> {
        trace.finish().map_err(|error| self.failed(&error))?;
        for (what, path) in [("capture", &self.capture), ("qlog", &self.qlog)] {
            if let Some(path) = path {
                console.note(format_args!("{what}: {}", path.display()));
            }
        }
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> Failure {
        let paths = [&self.capture, &self.qlog].into_iter().flatten();
        let shown: Vec<String> = paths.map(|path| format!("`{}`", path.display())).collect();
        Failure::Run(format!(
            "the packets could not be written to {}: {error}",
            shown.join(" and ")
        ))
    }
}

fn create(option: &str, path: &Path) -> Result<Sink, Failure> {
    check_place(option, path)?;
    let file = File::create(path).map_err(|error| {
        let message = format!("{option} {}: {error}", path.display());
        Failure::input(message, "name a file that can be created")
    })?;
    Ok(Box::new(BufWriter::new(file)))
}
