//! `ropewalk send`: sends files and folders to a `ropewalk recv`, over all paths at the same time.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use parking_lot::Mutex;
use ropewalk_apps::files::{
    FileConnector, Job, Manifest, ManifestError, Role, SendError, TransferEvent, TransferStatus,
    send, shown_path,
};
use ropewalk_apps::observe::{PeerIdentity, Reporter};
use ropewalk_base::{Duration, PeerText};
use ropewalk_scenario::parse_duration;

use super::transfer::{Document, Record, Screen, counted, event_of, observe, runtime, sources};
use crate::args::command_line;
use crate::console::Console;
use crate::failure::Failure;
use crate::format::{Format, FormatArgs};
use crate::live::{
    Announcer, ExtensionArgs, Flow, Interrupt, ObserveArgs, Outputs, ReachArgs, Reload,
    TransportArgs, help_for_silence, start,
};
use crate::output;
use crate::printer::{count, size};

/// Entries that are named when they are left out; of further ones only the number is shown.
const NAMED: usize = 5;

/// Arguments of `send`.
#[derive(Debug, Args)]
#[command(
    after_help = "`ropewalk recv` prints the command to type here. The same command resumes an interrupted \
    transfer where it stopped.\n\n\
    Examples:\n  \
    ropewalk send video.mkv photos --to 192.0.2.7 --peer PUBKEY\n  \
    ropewalk send video.mkv --to 192.0.2.7,198.51.100.7 --from wlan0,wwan0 --peer PUBKEY\n  \
    ropewalk send video.mkv --to 127.0.0.1 --plain --json\n  \
    ropewalk send video.mkv --to 127.0.0.1 --plain --secrets-file secrets"
)]
pub struct SendArgs {
    /// Files and folders
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reach: ReachArgs,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    extensions: ExtensionArgs,
    /// How long to retry when the receiver does not answer
    #[arg(long, value_name = "TIME", default_value = "1 min", value_parser = parse_duration)]
    retry: Duration,
    /// Ask the receiver to keep these files' permissions; it does so only with its own --preserve-modes
    #[arg(long)]
    preserve_modes: bool,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    observe: ObserveArgs,
}

/// Sends the files.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &SendArgs, console: Console) -> Result<(), Failure> {
    let manifest = Manifest::of(&args.files, args.preserve_modes).map_err(unsendable)?;
    tell_left_out(&manifest, console);
    let job = Arc::new(Job::new(manifest));
    let screen = Screen::new(console, Role::Sender);
    let observation = args.observe.bind("send", console)?;
    let news = listener(screen.clone(), observation.reporter(), args.retry);
    let watch = Arc::new(TransferStatus::new(news));
    let observer = observation.observer();
    let runtime = runtime()?;
    let (reach, mut interrupt) = runtime.block_on(async {
        let observer = Some(observation.observer());
        let (endpoint, target) =
            args.reach.open(&args.transport, &args.extensions, observer, console)?;
        let announcer = Announcer::with_notes(observation.reporter(), console);
        Reload::<SendArgs>::new(announcer).watch(args.transport.config());
        let place = Arc::new(args.reach.whereabouts(target.addresses)?);
        let reach = FileConnector { endpoint: Arc::new(endpoint), key: target.key, place };
        Ok::<_, Failure>((reach, Interrupt::install()))
    })?;
    let outputs = Outputs::default().with(screen.notes()).with(screen.periodic());
    let outputs = args.observe.stream(outputs, "send", Flow::Sent, args.format.is_data())?;
    let monitor = start(observation, sources(&watch), outputs)?;
    let retry = std::time::Duration::from_nanos(args.retry.as_nanos());
    let (result, record) = screen.show(&watch, &observer, || {
        let sending = send(&reach, &job, &watch, retry);
        runtime.block_on(observe(
            sending,
            &mut interrupt,
            &watch,
            args.observe.interval(),
            Role::Sender,
        ))
    });
    drop(reach);
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    drop(monitor);
    conclude(args, &job, result, &record)
}

fn conclude(
    args: &SendArgs,
    job: &Job,
    result: Option<Result<(), SendError>>,
    record: &Record,
) -> Result<(), Failure> {
    let failures = job.failures();
    let progress = record.progress;
    let nobody = matches!(result, Some(Err(SendError::Unreachable(_))));
    // Refused entries would be refused again.
    let resumable = match &result {
        Some(Ok(())) => false,
        Some(Err(error)) => !error.is_refusal(),
        None => true,
    };
    let error = match result {
        None => Some("stopped".to_owned()),
        Some(Err(error)) => Some(error.to_string()),
        Some(Ok(())) if job.failed() > 0 => {
            Some(format!("{} not sent", counted(job.failed(), "entry was", "entries were")))
        }
        Some(Ok(())) => None,
    };
    match args.format.format() {
        Format::Json => {
            output::print_json(&Document::new("ropewalk.send/1", record, failures, error.clone()))?;
        }
        _ if error.is_some() || args.observe.is_streaming() => {}
        Format::Text => output::print(&record.text("sent"))?,
        format => record.print(format)?,
    }
    let Some(error) = error else { return Ok(()) };
    let mut done = format!(
        "{} of {}, {} of {} are at the receiver",
        count(progress.files_done),
        counted(progress.files, "file", "files"),
        size(progress.placed as f64),
        size(progress.bytes as f64),
    );
    if resumable {
        done.push_str(&format!("; to resume where it stopped: {}", command_line()));
    }
    let help = match nobody {
        true => format!("{}{}", help_for_silence("ropewalk recv"), args.extensions.question()),
        false => done,
    };
    Err(Failure::Run(format!("{error}\n = help: {help}")))
}

fn unsendable(error: ManifestError) -> Failure {
    Failure::input(&error, error.help())
}

fn tell_left_out(manifest: &Manifest, console: Console) {
    for (path, why) in manifest.left_out.iter().take(NAMED) {
        console.note(format_args!("left out: {} ({why})", shown_path(path)));
    }
    if let Some(more) = manifest.left_out.len().checked_sub(NAMED + 1) {
        console.note(format_args!("left out: {} more", count(more as u64 + 1)));
    }
    for (path, why) in &manifest.unreadable {
        console.note(format_args!("not sent: {} ({why})", shown_path(path)));
    }
}

fn listener(
    screen: Screen,
    reporter: Reporter,
    retry: Duration,
) -> impl Fn(TransferEvent) + Send + Sync {
    let last = Mutex::new(PeerText::default());
    move |news| {
        if let Some(event) = event_of(&news) {
            reporter.report(PeerIdentity::default(), event);
        }
        show(&screen, &last, retry, news);
    }
}

fn show(screen: &Screen, last: &Mutex<PeerText>, retry: Duration, news: TransferEvent) {
    match news {
        TransferEvent::Lost(why) => {
            let mut last = last.lock();
            if *last != why {
                screen.note(format_args!("{why}; trying again for {retry}"));
                *last = why;
            }
        }
        TransferEvent::Resumed(name, at) => {
            screen.note(format_args!("{name}: resumed after {}", size(at as f64)));
        }
        TransferEvent::Failed(name, why) => screen.note(format_args!("{name}: {why}")),
        // After progress, the same reason is reported again.
        TransferEvent::Started(..) | TransferEvent::Finished(..) => {
            *last.lock() = PeerText::default();
        }
        TransferEvent::Connected(_) => {}
    }
}
