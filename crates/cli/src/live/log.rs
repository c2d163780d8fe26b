//! The log of a server on stderr: the actions of its peers.
//!
//! Libraries emit records. This file turns them into events of `tracing`, which a subscriber formats as text
//! or as JSON. Under systemd (`JOURNAL_STREAM`), text lines have no timestamps and begin with a priority
//! that journald understands (sd-daemon(3)).

mod format;
mod rate;

use std::io::stderr;

use clap::{Args, ValueEnum};
use ropewalk_apps::observe::{Event, EventRecord, Ledger, PeerIdentity, Severity, Sink, Status};
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, registry, reload};

use self::format::Journald;
use self::rate::RateLimit;
use crate::console::{Console, stderr_has_colour};

/// Only events of this program are logged, not those of its dependencies.
const TARGET: &str = "ropewalk";

/// Options of a server's log.
#[derive(Clone, Debug, Args)]
pub struct LogArgs {
    /// Format of the log on stderr
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
    /// Least severe events to log; `info` by default, but at a terminal notes replace the log
    #[arg(long, value_name = "LEVEL", value_enum)]
    log_level: Option<LogLevel>,
}

/// Formats of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// A line of text for each event
    #[default]
    Text,
    /// A JSON object for each event, and nothing else on stderr
    Json,
}

/// Severities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Events that end the server
    Error,
    /// Events that need the operator's attention: limits that were reached, confinement that is missing
    Warn,
    /// Peers that connect and disconnect, files, refusals
    Info,
    /// Every connection, file and link of every peer
    Debug,
}

impl LogArgs {
    /// Starts the log, at this level unless the options name one. Returns the console for notes to a person, which is
    /// silent if programs read the log, and what changes the level later.
    pub fn start(&self, console: Console, default: LogLevel) -> (Console, LogControl) {
        let (filter, handle) = reload::Layer::new(Targets::new());
        let control = LogControl { handle, default, is_quiet: console.is_quiet() };
        control.set(self);
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(stderr)
            .with_ansi(stderr_has_colour())
            .with_target(false);
        let layer = match self.log_format {
            LogFormat::Json => layer.json().flatten_event(true).boxed(),
            LogFormat::Text if format::is_journal() => layer
                .with_ansi(false)
                .map_event_format(|format| Journald(format.without_time().with_level(false)))
                .boxed(),
            LogFormat::Text => layer.boxed(),
        };
        let subscriber = registry().with(layer.with_filter(filter));
        // A second log in one process would be a defect of this program.
        let first = tracing::subscriber::set_global_default(subscriber).is_ok();
        assert!(first, "the log was started twice");
        let console = match self.log_format {
            LogFormat::Text => console,
            LogFormat::Json => Console::new(true),
        };
        (console, control)
    }
}

/// Changes the level of the log while the server runs.
#[derive(Clone, Debug)]
pub struct LogControl {
    handle: reload::Handle<Targets, Registry>,
    default: LogLevel,
    is_quiet: bool,
}

impl LogControl {
    /// Logs at the level of these options.
    pub fn set(&self, args: &LogArgs) {
        let level = match args.log_level.unwrap_or(self.default) {
            _ if self.is_quiet => LevelFilter::ERROR,
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
        };
        // Fails only if the log does not exist, but it exists as long as the process.
        let _ = self.handle.reload(Targets::new().with_target(TARGET, level));
    }
}

/// An event as a line for a person, without its time.
pub fn as_note(peer: &PeerIdentity, event: &Event) -> String {
    let key = peer.key.as_ref().map(ropewalk_apps::proxy::exit::short_key);
    let whom = peer.name.clone().or(key).map(|name| format!(" of {name}"));
    let from = peer.address.map(|address| format!(" from {address}"));
    let texts = event.object().into_iter().chain(event.reason()).map(|text| format!(": {text}"));
    let parts = whom.into_iter().chain(from).chain(texts);
    format!("{}{}", event.name(), parts.collect::<String>())
}

/// Writes events to the log. Events that a peer can cause often are logged at a limited rate; the next line of the kind
/// says how many were omitted.
#[derive(Debug, Default)]
pub struct Log {
    rate: RateLimit,
}

impl Sink for Log {
    fn event(&mut self, record: &EventRecord) {
        let EventRecord { peer, event, .. } = record;
        let message = event.name();
        let now = tokio::time::Instant::now();
        if let Some(suppressed) = self.rate.admit(message, peer.key, now) {
            write(peer, event, (suppressed > 0).then_some(suppressed));
        }
    }

    fn tick(&mut self, _: &Status, _: &Ledger) {}

    fn end(&mut self, _: &Status, _: &Ledger) {}
}

fn write(peer: &PeerIdentity, event: &Event, suppressed: Option<u64>) {
    let message = event.name();
    let (object, reason) = (event.object(), event.reason());
    let (object, reason) = (object.as_deref(), reason.as_deref());
    let key = match event {
        Event::Listening { key, .. } => key.map(|key| key.to_string()),
        _ => peer.key.as_ref().map(ropewalk_apps::proxy::exit::short_key),
    };
    let address = match event {
        Event::LinkUp { remote, .. } | Event::LinkDown { remote, .. } => *remote,
        _ => peer.address,
    };
    let address = address.map(tracing::field::display);
    let name = peer.name.as_deref();
    let (files, failed, bytes) = match event {
        Event::FilesReceived { files, failed, bytes } => {
            (Some(*files), Some(*failed), Some(*bytes))
        }
        Event::FileStarted { bytes, .. } | Event::FileFinished { bytes, .. } => {
            (None, None, Some(*bytes))
        }
        _ => (None, None, None),
    };
    let seconds = match event {
        Event::Measured { seconds } => Some(*seconds),
        _ => None,
    };
    let (object, reason) =
        (object.map(tracing::field::display), reason.map(tracing::field::display));
    macro_rules! emit {
        ($level:expr) => {
            tracing::event!(
                target: TARGET, $level, name, key, address, object, reason, files, failed, bytes, seconds, suppressed,
                "{message}"
            )
        };
    }
    match event.severity() {
        Severity::Warning => emit!(Level::WARN),
        Severity::Debug => emit!(Level::DEBUG),
        Severity::Info => emit!(Level::INFO),
    }
}
