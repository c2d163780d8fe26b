//! The log of a server on stderr: which peer did what.
//!
//! Libraries emit records; this file turns them into events of `tracing`, which a subscriber formats as text
//! or as JSON. Under systemd (`JOURNAL_STREAM`), text lines have no timestamps and begin with a priority
//! that journald understands (sd-daemon(3)).

mod format;
mod rate;

use std::fmt::Display;
use std::io::{IsTerminal, stderr};
use std::net::SocketAddr;
use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use ropewalk_runtime::seal::PublicKey;
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, registry};

use self::format::Journald;
use self::rate::RateLimit;
use crate::console::Console;

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
    /// Every connection of every peer
    Debug,
}

impl LogArgs {
    /// Starts the log, at this level unless the options name one. Returns the console for notes to a person,
    /// which is silent if programs read the log.
    pub fn start(&self, console: Console, default: LogLevel) -> Console {
        let level = match self.log_level.unwrap_or(default) {
            _ if console.is_quiet() => LevelFilter::ERROR,
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
        };
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(stderr)
            .with_ansi(stderr().is_terminal())
            .with_target(false);
        let layer = match self.log_format {
            LogFormat::Json => layer.json().flatten_event(true).boxed(),
            LogFormat::Text if format::is_journal() => layer
                .with_ansi(false)
                .map_event_format(|format| Journald(format.without_time().with_level(false)))
                .boxed(),
            LogFormat::Text => layer.boxed(),
        };
        let subscriber =
            registry().with(layer.with_filter(Targets::new().with_target(TARGET, level)));
        // A second log in one process would be a defect of this program.
        let first = tracing::subscriber::set_global_default(subscriber).is_ok();
        assert!(first, "the log was started twice");
        match self.log_format {
            LogFormat::Text => console,
            LogFormat::Json => Console::new(true),
        }
    }
}

/// The peer that an event concerns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer<'a> {
    /// The operator's name for the peer.
    pub name: Option<&'a str>,
    /// The public key that the peer has proved to own.
    pub key: Option<PublicKey>,
    /// The address from which it connected.
    pub address: Option<SocketAddr>,
}

/// An event. Texts of peers are given as `PeerText`, which escapes them.
#[derive(Clone, Copy)]
pub enum Event<'a> {
    /// The server has started.
    Listening {
        addresses: &'a str,
        key: Option<PublicKey>,
    },
    /// A measure of confinement was taken, or is missing.
    Confined(&'a str),
    /// A problem that the operator should know about.
    Problem(&'a dyn Display),
    /// The list of peers was reloaded.
    PeersChanged(&'a str),
    AssociationOpened,
    AssociationRefused {
        reason: &'a dyn Display,
    },
    AssociationClosed {
        reason: &'a dyn Display,
    },
    /// A path of an association changed its state.
    Path {
        state: &'a dyn Display,
    },
    /// A sender has sent everything.
    FilesReceived {
        files: u64,
        failed: u64,
        bytes: u64,
    },
    FileRefused {
        name: &'a dyn Display,
        reason: &'a dyn Display,
    },
    /// A measurement has ended.
    Measured {
        seconds: f64,
    },
    TargetConnected {
        target: &'a dyn Display,
    },
    TargetRefused {
        target: &'a dyn Display,
        reason: &'a dyn Display,
    },
    LimitReached {
        limit: &'a dyn Display,
    },
}

/// The fields of an event, in their written form.
#[derive(Default)]
struct Fields<'a> {
    object: Option<&'a dyn Display>,
    reason: Option<&'a dyn Display>,
    files: Option<u64>,
    failed: Option<u64>,
    bytes: Option<u64>,
    seconds: Option<f64>,
}

impl<'a> Event<'a> {
    fn level(&self) -> Level {
        match self {
            Self::Problem(_) | Self::LimitReached { .. } => Level::WARN,
            Self::Confined(text) if text.contains(" not ") => Level::WARN,
            Self::TargetConnected { .. } | Self::Path { .. } => Level::DEBUG,
            _ => Level::INFO,
        }
    }

    /// The constant text of an event.
    fn message(&self) -> &'static str {
        match self {
            Self::Listening { .. } => "listening",
            Self::Confined(_) => "confinement",
            Self::Problem(_) => "problem",
            Self::PeersChanged(_) => "peers changed",
            Self::AssociationOpened => "association opened",
            Self::AssociationRefused { .. } => "association refused",
            Self::AssociationClosed { .. } => "association closed",
            Self::Path { .. } => "path changed",
            Self::FilesReceived { .. } => "files received",
            Self::FileRefused { .. } => "file refused",
            Self::Measured { .. } => "measured",
            Self::TargetConnected { .. } => "target connected",
            Self::TargetRefused { .. } => "target refused",
            Self::LimitReached { .. } => "limit reached",
        }
    }

    /// The event as a line for a person.
    pub fn as_note(&self, peer: Peer<'_>) -> String {
        let Fields { object, reason, .. } = self.fields();
        let key = peer.key.as_ref().map(ropewalk_apps::proxy::exit::short_key);
        let whom = peer.name.map(str::to_owned).or(key).map(|name| format!(" of {name}"));
        let from = peer.address.map(|address| format!(" from {address}"));
        let texts = [object, reason].into_iter().flatten().map(|text| format!(": {text}"));
        let parts = whom.into_iter().chain(from).chain(texts);
        format!("{}{}", self.message(), parts.collect::<String>())
    }

    fn fields(&'a self) -> Fields<'a> {
        let none = Fields::default();
        match self {
            Self::AssociationOpened => none,
            Self::Listening { addresses, .. } => Fields { object: Some(addresses), ..none },
            Self::Confined(text) | Self::PeersChanged(text) => {
                Fields { object: Some(text), ..none }
            }
            Self::Problem(what)
            | Self::LimitReached { limit: what }
            | Self::Path { state: what } => Fields { object: Some(*what), ..none },
            Self::AssociationRefused { reason } | Self::AssociationClosed { reason } => {
                Fields { reason: Some(*reason), ..none }
            }
            Self::FilesReceived { files, failed, bytes } => {
                Fields { files: Some(*files), failed: Some(*failed), bytes: Some(*bytes), ..none }
            }
            Self::FileRefused { name: object, reason }
            | Self::TargetRefused { target: object, reason } => {
                Fields { object: Some(*object), reason: Some(*reason), ..none }
            }
            Self::Measured { seconds } => Fields { seconds: Some(*seconds), ..none },
            Self::TargetConnected { target } => Fields { object: Some(*target), ..none },
        }
    }
}

/// Logs an event. Events that a peer can cause often are logged at a limited rate; the next line of the kind
/// says how many were omitted.
pub fn log(peer: Peer<'_>, event: Event<'_>) {
    static RATE: OnceLock<RateLimit> = OnceLock::new();
    let message = event.message();
    let rate = RATE.get_or_init(RateLimit::default);
    let Some(suppressed) = rate.admit(message, peer.key, tokio::time::Instant::now()) else {
        return;
    };
    let suppressed = (suppressed > 0).then_some(suppressed);
    let Fields { object, reason, files, failed, bytes, seconds } = event.fields();
    let (object, reason) =
        (object.map(tracing::field::display), reason.map(tracing::field::display));
    let key = match event {
        Event::Listening { key, .. } => key.map(|key| key.to_string()),
        _ => peer.key.as_ref().map(ropewalk_apps::proxy::exit::short_key),
    };
    let address = peer.address.map(tracing::field::display);
    let name = peer.name;
    macro_rules! emit {
        ($level:expr) => {
            tracing::event!(
                target: TARGET, $level, name, key, address, object, reason, files, failed, bytes, seconds, suppressed,
                "{message}"
            )
        };
    }
    match event.level() {
        Level::WARN => emit!(Level::WARN),
        Level::DEBUG => emit!(Level::DEBUG),
        _ => emit!(Level::INFO),
    }
}
