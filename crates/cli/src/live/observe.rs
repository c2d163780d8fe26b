//! Options for observing a running command: metrics, status socket, live page, JSON stream.

#[cfg(unix)]
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
#[cfg(unix)]
use ropewalk_apps::observe::socket;
use ropewalk_apps::observe::{
    BindError, Event, EventRecord, Ledger, Monitor, Observation, Settings, Sink, Sources, Status,
    WebSettings,
};
use ropewalk_apps::proxy::client::parse_listen;
use ropewalk_base::Duration;
use ropewalk_lab::report::live_page;
use ropewalk_scenario::parse_duration;

use super::stream::{Flow, JsonStream};
use crate::console::Console;
use crate::failure::Failure;
use crate::files::VERSION;

/// Figures are published at most this often.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);
/// Longer intervals would hide whether the command is alive.
const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);
/// Length of the shortest token.
const LEAST_TOKEN: usize = 16;

/// Where a running command can be observed.
#[derive(Clone, Debug, Args)]
pub struct ObserveArgs {
    /// Serve metrics for Prometheus (OpenMetrics) at http://ADDR/metrics; a port alone means 127.0.0.1
    #[arg(long, help_heading = "Observation", value_name = "[ADDR:]PORT", value_parser = parse_listen)]
    metrics: Option<SocketAddr>,
    /// Serve a live page at http://ADDR/; a port alone means 127.0.0.1, other machines need --web-token
    #[arg(long, help_heading = "Observation", value_name = "[ADDR:]PORT", value_parser = parse_listen)]
    web: Option<SocketAddr>,
    /// File with a token that browsers must present as ?token=...; at least 16 letters and digits
    #[arg(long, help_heading = "Observation", value_name = "FILE", requires = "web")]
    web_token: Option<PathBuf>,
    /// Print one JSON object per line: each interval in the shape of iperf3's, and each event
    #[arg(long, help_heading = "Observation")]
    json_stream: bool,
    /// Length of the reporting intervals of --json-stream, and of --json where it has intervals: 50 ms to 60 min
    #[arg(long, help_heading = "Observation", value_name = "TIME", default_value = "1 s", value_parser = parse_duration)]
    interval: Duration,
}

impl ObserveArgs {
    /// Binds everything. Must be called before the command restricts its rights.
    ///
    /// # Errors
    /// An address cannot be bound.
    pub fn bind(&self, command: &'static str, console: Console) -> Result<Observation, Failure> {
        let allowed = SHORTEST_INTERVAL..=LONGEST_INTERVAL;
        if !allowed.contains(&self.interval) {
            let message = format!("--interval {} is not between 50 ms and 60 min", self.interval);
            return Err(Failure::input(message, "give a time such as 500ms; 1 s is the default"));
        }
        let settings = Settings {
            command,
            interval: std::time::Duration::from_nanos(self.interval.as_nanos()),
            version: VERSION,
            metrics: self.metrics,
            web: self.web_settings()?,
            sockets: sockets(),
        };
        let observation = Observation::bind(settings).map_err(refused)?;
        if let Some(address) = observation.metrics_address() {
            console.note(format_args!("metrics at http://{address}/metrics"));
        }
        if let Some(address) = observation.web_address() {
            let token = if self.web_token.is_some() { "?token=..." } else { "" };
            console.note(format_args!("live page at http://{address}/{token}"));
        }
        Ok(observation)
    }

    /// Length of the reporting intervals.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Whether the JSON stream takes the place of other output on stdout.
    pub const fn is_streaming(&self) -> bool {
        self.json_stream
    }

    /// Adds the JSON stream, if the option is given. `is_data`: whether a result for programs is wanted at the end.
    ///
    /// # Errors
    /// Both are wanted.
    pub fn stream(
        &self,
        outputs: Outputs,
        command: &str,
        flow: Flow,
        is_data: bool,
    ) -> Result<Outputs, Failure> {
        if is_data && self.json_stream {
            let help =
                "they print a result at the end, --json-stream prints a line for each interval";
            let message = "--json-stream excludes --json, --csv and --markdown";
            return Err(Failure::input(message, help));
        }
        Ok(if self.json_stream { outputs.with(JsonStream::start(command, flow)) } else { outputs })
    }

    fn web_settings(&self) -> Result<Option<WebSettings>, Failure> {
        let Some(address) = self.web else { return Ok(None) };
        let token = self.web_token.as_deref().map(read_token).transpose()?;
        if !address.ip().is_loopback() && token.is_none() {
            return Err(Failure::input(
                format!("--web {address} can be reached by other machines"),
                "give a token with --web-token FILE, or an address of this machine only: --web 8080",
            ));
        }
        Ok(Some(WebSettings { address, token, html: live_page() }))
    }
}

/// Reads the token of the live page.
fn read_token(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Input(format!("cannot read {shown}: {error}")))?;
    let token = text.trim().to_owned();
    let is_plain = token.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(&c));
    if token.len() < LEAST_TOKEN || !is_plain {
        let help = "write for example the output of `openssl rand -hex 16`";
        let message = format!("{shown}: a token has at least {LEAST_TOKEN} letters and digits");
        return Err(Failure::input(message, help));
    }
    Ok(token)
}

#[cfg(unix)]
fn sockets() -> Option<PathBuf> {
    socket::own_directory()
}

#[cfg(not(unix))]
const fn sockets() -> Option<PathBuf> {
    None
}

/// A running command, and how its next status is read.
pub struct Watched {
    /// Its status now.
    pub first: Status,
    /// Reads further ones.
    pub lines: Lines,
}

/// The status lines of a running command.
#[cfg(unix)]
pub struct Lines(socket::Running);

#[cfg(unix)]
impl Lines {
    /// Waits for the next status. None if the command has ended.
    pub fn read(&mut self) -> Option<Status> {
        self.0.read().ok()
    }
}

/// The running commands that this user may see.
///
/// # Errors
/// None was found, and a directory was ignored because others can change it.
#[cfg(unix)]
pub fn watch() -> Result<Vec<Watched>, Failure> {
    let directories = socket::directories();
    let found = socket::running(&directories);
    let watched = found.into_iter().filter_map(|mut running| {
        let first = running.read().ok()?;
        Some(Watched { first, lines: Lines(running) })
    });
    let watched: Vec<Watched> = watched.collect();
    let ignored = directories.iter().find_map(|directory| {
        let error = socket::check_directory(directory).err()?;
        (error.kind() == ErrorKind::PermissionDenied).then_some((directory.display(), error))
    });
    match ignored {
        Some((directory, error)) if watched.is_empty() => Err(Failure::input(
            format!("{directory} is ignored: {error}"),
            "set XDG_RUNTIME_DIR to a directory of your own, for the running commands as well",
        )),
        _ => Ok(watched),
    }
}

/// The status lines of a running command.
#[cfg(not(unix))]
pub enum Lines {}

#[cfg(not(unix))]
impl Lines {
    /// Waits for the next status. None if the command has ended.
    pub const fn read(&mut self) -> Option<Status> {
        match *self {}
    }
}

/// The running commands that this user may see.
///
/// # Errors
/// This system has no Unix sockets.
#[cfg(not(unix))]
pub fn watch() -> Result<Vec<Watched>, Failure> {
    Err(Failure::input(
        "the status of other commands needs a Unix system",
        "use --metrics or --web",
    ))
}

/// The status of all running commands.
///
/// # Errors
/// As [`watch`].
pub fn running() -> Result<Vec<Status>, Failure> {
    Ok(watch()?.into_iter().map(|watched| watched.first).collect())
}

fn refused(error: BindError) -> Failure {
    Failure::input(error, "choose another port, or stop the program that uses it")
}

/// Starts the thread that observes the command.
///
/// # Errors
/// The system refuses a thread.
pub fn start(
    observation: Observation,
    sources: Sources,
    outputs: Outputs,
) -> Result<Monitor, Failure> {
    let started = observation.start(sources, Box::new(outputs));
    started.map_err(|error| Failure::Run(format!("cannot start the observer: {error}")))
}

/// Several sinks.
#[derive(Default)]
pub struct Outputs(Vec<Box<dyn Sink>>);

impl Outputs {
    /// Adds a sink.
    #[must_use]
    pub fn with(mut self, sink: impl Sink + 'static) -> Self {
        self.0.push(Box::new(sink));
        self
    }
}

impl Sink for Outputs {
    fn event(&mut self, record: &EventRecord) {
        self.0.iter_mut().for_each(|sink| sink.event(record));
    }

    fn tick(&mut self, status: &Status, ledger: &Ledger) {
        self.0.iter_mut().for_each(|sink| sink.tick(status, ledger));
    }

    fn uses_time(&self) -> bool {
        self.0.iter().any(|sink| sink.uses_time())
    }

    fn interval(&mut self, status: &Status, ledger: &Ledger) {
        self.0.iter_mut().for_each(|sink| sink.interval(status, ledger));
    }

    fn end(&mut self, status: &Status, ledger: &Ledger) {
        self.0.iter_mut().for_each(|sink| sink.end(status, ledger));
    }
}

/// Shows a person what happens to the links, with the time.
pub struct Notes<F>(pub F);

impl<F: Fn(&str) + Send> Sink for Notes<F> {
    fn event(&mut self, record: &EventRecord) {
        let is_shown = matches!(
            record.event,
            Event::LinkUp { .. } | Event::LinkDown { .. } | Event::PeerRestarted
        );
        if is_shown {
            (self.0)(&record.line(false));
        }
    }

    fn tick(&mut self, _: &Status, _: &Ledger) {}

    fn end(&mut self, _: &Status, _: &Ledger) {}
}
