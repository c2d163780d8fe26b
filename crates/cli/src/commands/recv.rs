//! `ropewalk recv`: files and folders of a `ropewalk send`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ropewalk_apps::files::{
    Broken, Gate, News, Store, StoreError, Summary, Watch, receive, shown, shown_path,
};
use ropewalk_base::Duration;
use ropewalk_runtime::endpoint::Endpoint;
use ropewalk_runtime::seal::PublicKey;
use ropewalk_scenario::parse_duration;

use super::transfer::{Document, Record, Screen, observe, runtime};
use crate::console::Console;
use crate::failure::Failure;
use crate::live::{ListenArgs, TransportArgs, listed, reachable};
use crate::output;
use crate::printer::{count, size};

/// Arguments of `recv`.
#[derive(Debug, Args)]
#[command(
    after_help = "What arrives is checked, synchronised to the disk and only then given its name. What is unfinished waits in\n\
    DIR/.ropewalk until the sender comes again.\n\n\
    Examples:\n  \
    ropewalk recv\n  \
    ropewalk recv inbox --once\n  \
    ropewalk recv inbox --listen 192.0.2.7 --listen 198.51.100.7 --allow PUBKEY"
)]
pub struct RecvArgs {
    /// Directory that they are written to
    #[arg(default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    transport: TransportArgs,
    /// Replace files that exist and differ
    #[arg(long)]
    overwrite: bool,
    /// End when one sender has sent all it has
    #[arg(long)]
    once: bool,
    /// Print one JSON document, in the shape of iperf3's; implies --once
    #[arg(long)]
    json: bool,
    /// Length of its intervals
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = parse_duration)]
    interval: Duration,
}

/// Receives.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &RecvArgs, console: Console) -> Result<(), Failure> {
    let runtime = runtime()?;
    let (endpoint, key) = runtime.block_on(async { args.listen.open(&args.transport, console) })?;
    let store = Arc::new(Store::open(&args.dir, args.overwrite).map_err(unusable)?);
    greet(args, &endpoint, key, console);
    let screen = Screen::new(console);
    let watch = Arc::new(Watch::new(listener(screen.clone())));
    let once = args.once || args.json;
    let gate = Gate { endpoint: Arc::new(endpoint) };
    let mut last = Summary::default();
    let (result, record) = screen.show(&watch, || {
        let finished = |summary: Summary| {
            if !once {
                let [done, failed] = [summary.done, summary.failed].map(|n| count(u64::from(n)));
                let bytes = size(summary.bytes as f64);
                screen.note(format_args!("received {done} files, {bytes}; {failed} failed"));
            }
            last = summary;
            !once
        };
        let receiving = receive(&gate, &store, &watch, finished);
        runtime.block_on(observe(receiving, &watch, args.interval, false))
    });
    drop(gate);
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    conclude(args, last, result, &record)
}

fn conclude(
    args: &RecvArgs,
    last: Summary,
    result: Option<Result<(), Broken>>,
    record: &Record,
) -> Result<(), Failure> {
    let progress = record.progress;
    let unfinished = progress.files_done < progress.files && last.done == 0 && last.failed == 0;
    let error = match result {
        Some(Err(error)) => Some(error.to_string()),
        None if unfinished || args.once || args.json => Some("stopped".to_owned()),
        _ if last.failed > 0 && (args.once || args.json) => {
            Some(format!("{} were not received", count(u64::from(last.failed))))
        }
        _ => None,
    };
    if args.json {
        let document = Document::new("ropewalk.recv/1", record, last.failures, error.clone());
        output::print_json(&document)?;
    } else if error.is_none() && args.once {
        output::print(&record.text("received"))?;
    }
    let Some(error) = error else { return Ok(()) };
    let kept = "what has come is kept: start it again, and the sender goes on where it stopped";
    Err(Failure::Run(format!("{error}\n = help: {kept}")))
}

fn unusable(error: StoreError) -> Failure {
    Failure::input(&error, error.help())
}

/// Says who and where we are, and what is to be typed at the other side.
fn greet(args: &RecvArgs, endpoint: &Endpoint, key: Option<PublicKey>, console: Console) {
    let addresses = reachable(endpoint.locals());
    console.note(format_args!("receiving into {}; Ctrl-C ends it", shown_path(&args.dir)));
    for (address, interface) in &addresses {
        let on = interface.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        console.note(format_args!("  at {address}{on}"));
    }
    let to = listed(&addresses);
    match key {
        None => {
            console.note("in the clear: everybody on the way can read and change what is sent");
            console
                .note(format_args!("at the other side:\n  ropewalk send FILES --to {to} --plain"));
        }
        Some(key) => {
            if args.listen.is_open() {
                console.note("everybody may send who has this public key (--allow is stricter)");
            }
            console.note(format_args!(
                "at the other side:\n  ropewalk send FILES --to {to} --peer {key}"
            ));
        }
    }
}

fn listener(screen: Screen) -> impl Fn(News) + Send + Sync {
    move |news| match news {
        News::Connected => screen.note("a sender has come"),
        News::Lost(why) => {
            let why = shown(why.as_bytes());
            screen
                .note(format_args!("{why}; what has come is kept, and the sender may come again"));
        }
        News::Resumed(name, at) => {
            screen.note(format_args!("{name}: goes on behind {}", size(at as f64)));
        }
        News::Failed(name, why) => screen.note(format_args!("{name}: {why}")),
    }
}
