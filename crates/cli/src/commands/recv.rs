//! `ropewalk recv`: receives the files and folders of a `ropewalk send`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use parking_lot::Mutex;
use ropewalk_apps::access::AccessList;
use ropewalk_apps::files::{
    Admission, Admit, FileListener, Peer, Progress, Role, Rules, StoreError, Summary,
    TransferError, TransferEvent, TransferStatus, receive, shown_path,
};
use ropewalk_apps::observe::{Event, PeerIdentity, Reporter, Sources};
use ropewalk_runtime::endpoint::Endpoint;
use ropewalk_runtime::seal::PublicKey;
use ropewalk_scenario::parse_size;

use super::transfer::{Document, Record, Screen, counted, event_of, observe, runtime, sources};
use crate::console::Console;
use crate::failure::Failure;
use crate::format::{Format, FormatArgs};
use crate::live::{
    Access, Announcer, ConfineArgs, ExtensionArgs, Files, Flow, Interrupt, LimitArgs, ListenArgs,
    Listening, Log, LogArgs, LogControl, LogLevel, ObserveArgs, Outputs, Reload, TransportArgs,
    listed, reachable, start,
};
use crate::output;
use crate::printer::size;

/// Arguments of `recv`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Received files are checked, synchronised to the disk and only then given their names. Unfinished files wait in \
    DIR/.ropewalk until the sender returns.\n\n\
    Exit status: 0 if everything arrived (--once), or when stopped by SIGTERM or Ctrl-C without --once; 1 if something did \
    not arrive or the receiver failed; 2 if the command line was wrong.\n\n\
    Examples:\n  \
    ropewalk recv\n  \
    ropewalk recv inbox --once\n  \
    ropewalk recv inbox --listen 192.0.2.7 --listen 198.51.100.7 --allow PUBKEY\n  \
    ropewalk recv inbox --plain --secrets-file secrets"
)]
pub struct RecvArgs {
    /// Directory to write to
    #[arg(default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    listen: ListenArgs,
    /// Accept files from everyone who knows this public key, even if peers are paired
    #[arg(long, conflicts_with_all = ["allow", "allow_file", "plain"])]
    allow_anyone: bool,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    extensions: ExtensionArgs,
    /// Replace files that exist and differ
    #[arg(long)]
    overwrite: bool,
    /// Keep the sender's permissions if the sender requests it; by default the umask decides
    #[arg(long)]
    preserve_modes: bool,
    /// Most bytes in a sender's directory, counted in blocks of 4 KiB plus one block per entry
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    quota: Option<u64>,
    /// Largest file to accept
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_file: Option<u64>,
    /// End when one sender has sent everything. --json, --csv and --markdown imply this
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    observe: ObserveArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    confine: ConfineArgs,
}

/// Receives files until it is stopped, with `--once` those of one sender.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &RecvArgs, console: Console) -> Result<(), Failure> {
    let mut args = args.clone();
    let paired = if args.allow_anyone { Vec::new() } else { args.listen.admit_paired()? };
    serve(&args, &paired, console)
}

/// Receives from these paired peers; without any, from those that the options admit.
fn serve(args: &RecvArgs, paired: &[String], console: Console) -> Result<(), Failure> {
    let level = if console.has_viewer() { LogLevel::Warn } else { LogLevel::Info };
    let (console, log) = args.log.start(console, level);
    let observation = args.observe.bind("recv", console)?;
    let (reporter, observer) = (observation.reporter(), observation.observer());
    let runtime = runtime()?;
    let (listening, mut interrupt) = runtime.block_on(async {
        let listening =
            args.listen.listen(&args.transport, &args.extensions, &observation, console)?;
        Ok::<_, Failure>((listening, Interrupt::install()))
    })?;
    let Listening { endpoint, public, access } = listening;
    let opened = Admission::open(&args.dir, access.clone(), args.rules()).map_err(unusable)?;
    let admission = Arc::new(opened);
    let (admit, rules): (Arc<Admit>, _) = {
        let rules = admission.clone();
        (Arc::new(move |peer: &Peer| admission.admit(peer)), rules)
    };
    {
        let _context = runtime.enter();
        let announcer = Announcer::with_log(reporter.clone(), console);
        reload(announcer, log, &endpoint, &access, rules).watch(args.transport.config());
    }
    confine(args, &endpoint, public, &access, &reporter)?;
    let screen = Screen::new(console, Role::Receiver);
    let news = listener(screen.clone(), reporter.clone(), access.clone());
    let watch = Arc::new(TransferStatus::new(news));
    let mut outputs = Outputs::default().with(Log::default());
    if console.has_viewer() {
        outputs = outputs.with(screen.notes());
    }
    let outputs = args.observe.stream(outputs, "recv", Flow::Received, args.format.is_data())?;
    let names = access.clone();
    let sources = Sources { name: Box::new(move |key| names.listed_name(key)), ..sources(&watch) };
    let monitor = start(observation, sources, outputs)?;
    greet(args, paired, &endpoint, public, console);
    let once = args.once || args.format.is_data();
    let gate = FileListener { endpoint: Arc::new(endpoint) };
    let mut last = Ok(Summary::default());
    let (result, record) = screen.show(&watch, &observer, || {
        let finished = |outcome: Result<Summary, String>| {
            if let Ok(summary) = &outcome {
                let progress = watch.progress();
                report_summary(&reporter, summary, progress);
                if !once {
                    screen.note(brought(summary, progress));
                }
            }
            last = outcome;
            !once
        };
        let receiving = receive(&gate, &admit, &watch, finished);
        runtime.block_on(observe(
            receiving,
            &mut interrupt,
            &watch,
            args.observe.interval(),
            Role::Receiver,
        ))
    });
    drop((gate, admit));
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    drop(monitor);
    conclude(args, last, result, &record)
}

impl RecvArgs {
    fn rules(&self) -> Rules {
        Rules {
            overwrite: self.overwrite,
            exact_modes: self.preserve_modes,
            quota_bytes: self.quota,
            max_file_bytes: self.max_file,
        }
    }
}

/// What a SIGHUP may change.
fn reload(
    announcer: Announcer,
    log: LogControl,
    endpoint: &Endpoint,
    access: &AccessList,
    rules: Arc<Admission>,
) -> Reload<RecvArgs> {
    let (list, admission, limits) = (access.clone(), endpoint.admission(), endpoint.admission());
    Reload::<RecvArgs>::new(announcer)
        .set(&["log-level"], move |args| log.set(&args.log))
        .on(&["allow"], move |args| {
            Access::check_allow(&list, &admission, args.listen.access(), false, |_| {})
        })
        .on(LimitArgs::NAMES, move |args| args.listen.limits().check(&limits, |_| {}))
        .set(&["overwrite", "preserve-modes", "quota", "max-file"], move |args| {
            rules.set_rules(args.rules());
        })
}

/// Restricts the process to the inbox and the list of peers: everything else that it needs is already open.
fn confine(
    args: &RecvArgs,
    endpoint: &Endpoint,
    key: Option<PublicKey>,
    access: &AccessList,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let files =
        Files::below(&args.dir).and_reading(access.file()).and_reading(args.transport.config());
    let report = |event| reporter.report(PeerIdentity::default(), event);
    report(Event::Confined(args.confine.restrict_files(&files)?));
    report(Event::Confined(args.confine.restrict_calls(&files)?));
    let addresses: Vec<_> = endpoint.locals().iter().map(ToString::to_string).collect();
    report(Event::Listening { addresses: addresses.join(" and "), key });
    Ok(())
}

/// The sender as the log names it.
fn identity(peer: &Peer) -> PeerIdentity {
    PeerIdentity { name: peer.name.clone(), key: peer.key, address: None }
}

fn report_summary(reporter: &Reporter, summary: &Summary, progress: Progress) {
    let event = Event::FilesReceived {
        files: progress.files_done,
        failed: u64::from(summary.missing()),
        bytes: progress.placed,
    };
    reporter.report(identity(&summary.peer), event);
}

/// What a sender has sent, in one line.
fn brought(summary: &Summary, progress: Progress) -> String {
    let files = counted(progress.files_done, "file", "files");
    let bytes = size(progress.brought as f64);
    let existing = match progress.existing() {
        0 => String::new(),
        existing => format!("; {} were there already", size(existing as f64)),
    };
    let missing = match summary.missing() {
        0 => String::new(),
        missing => {
            format!("; {} not received", counted(u64::from(missing), "entry was", "entries were"))
        }
    };
    format!("received {files}, {bytes} from {}{existing}{missing}", summary.peer)
}

/// Exit status at the end. A receiver that serves one sender after another succeeds when it is stopped. One
/// that waits for a single sender (`--once`) has failed unless everything listed has arrived.
fn conclude(
    args: &RecvArgs,
    last: Result<Summary, String>,
    result: Option<Result<(), TransferError>>,
    record: &Record,
) -> Result<(), Failure> {
    let once = args.once || args.format.is_data();
    let error = match (&result, &last) {
        (Some(Err(error)), _) => Some(error.to_string()),
        (None, _) if once => Some("stopped before a sender had sent everything".to_owned()),
        (_, Err(why)) if once => Some(why.clone()),
        (_, Ok(summary)) if once && summary.missing() > 0 => {
            let missing = counted(u64::from(summary.missing()), "entry was", "entries were");
            Some(format!("{missing} not received"))
        }
        _ => None,
    };
    let failures = last.map(|summary| summary.failures).unwrap_or_default();
    match args.format.format() {
        Format::Json => {
            let document = Document::new("ropewalk.recv/1", record, failures, error.clone());
            output::print_json(&document)?;
        }
        _ if error.is_some() || !once || args.observe.is_streaming() => {}
        Format::Text => output::print(&record.text("received"))?,
        format => record.print(format)?,
    }
    let Some(error) = error else { return Ok(()) };
    let kept = "received data is kept: start it again, and the sender resumes where it stopped";
    Err(Failure::Run(format!("{error}\n = help: {kept}")))
}

fn unusable(error: StoreError) -> Failure {
    Failure::input(&error, error.help())
}

/// Prints the receiver's addresses and key, and the command for the other side.
fn greet(
    args: &RecvArgs,
    paired: &[String],
    endpoint: &Endpoint,
    key: Option<PublicKey>,
    console: Console,
) {
    let addresses = reachable(endpoint.locals());
    console.note(format_args!("receiving into {}; stop with Ctrl-C", shown_path(&args.dir)));
    for (address, interface) in &addresses {
        let on = interface.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        console.note(format_args!("  at {address}{on}"));
    }
    let to = listed(&addresses);
    let more = args.extensions.options();
    match key {
        None => {
            console.note("not encrypted: anyone on the way can read and change the data");
            let plain = args.listen.plain_options();
            console.note(format_args!(
                "at the other side:\n  ropewalk send FILES --to {to} {plain}{more}"
            ));
        }
        Some(key) => {
            if args.listen.is_open() {
                console.note("everyone who has this public key may send (--allow restricts this)");
            } else if !paired.is_empty() {
                let names = paired.join(", ");
                console.note(format_args!("paired peers may send: {names} (or --allow-anyone)"));
            }
            console.note(format_args!(
                "at the other side:\n  ropewalk send FILES --to {to} --peer {key}{more}"
            ));
        }
    }
}

fn listener(
    screen: Screen,
    reporter: Reporter,
    access: AccessList,
) -> impl Fn(TransferEvent) + Send + Sync {
    // Senders are served one at a time, so later events belong to the one that connected last.
    let sender = Mutex::new(Peer::default());
    move |news| {
        let mut sender = sender.lock();
        if let TransferEvent::Connected(peer) = &news {
            let name = peer.key.and_then(|key| access.listed_name(&key));
            *sender = Peer { name: peer.name.clone().or(name), ..peer.clone() };
        }
        if let Some(event) = event_of(&news) {
            reporter.report(identity(&sender), event);
        }
        show_news(&screen, &sender, news);
    }
}

fn show_news(screen: &Screen, sender: &Peer, news: TransferEvent) {
    match news {
        TransferEvent::Connected(_) => {
            screen.note(format_args!("a sender has connected: {sender}"))
        }
        TransferEvent::Lost(why) => {
            screen.note(format_args!("{why}; received data is kept, and the sender may resume"));
        }
        TransferEvent::Resumed(name, at) => {
            screen.note(format_args!("{name}: resumed after {}", size(at as f64)));
        }
        TransferEvent::Failed(name, why) => screen.note(format_args!("{name}: {why}")),
        TransferEvent::Started(..) | TransferEvent::Finished(..) => {}
    }
}
