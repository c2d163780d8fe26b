//! Shared code of `send` and `recv`: display and result of a transfer.

mod document;
mod screen;

use std::future::Future;
use std::sync::Arc;

use ropewalk_apps::files::{Progress, Recorder, Role, Stretch, TransferEvent, TransferStatus};
use ropewalk_apps::observe::{Event, Sources, Transfer};
use ropewalk_base::Duration;
use ropewalk_lab::result::Unit;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

pub use self::document::Document;
pub use self::screen::{Screen, rates};
use crate::console::width;
use crate::failure::Failure;
use crate::format::{Captioned, Format, print_tables};
use crate::live::Interrupt;
use crate::printer::{count, percent, rate, size, time, time_or_dash};
use crate::table::{Cell, Table};

/// Maximum time for a stopped receiver to synchronise complete files to the disk.
const STOP_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

/// The result of a transfer.
#[derive(Debug)]
pub struct Record {
    /// Figures per interval and path.
    pub recorder: Recorder,
    /// Numbers of transferred files and bytes.
    pub progress: Progress,
    /// Duration of the transfer since the first association of this peer was established, seconds.
    pub seconds: f64,
}

/// The runtime of the sockets. It has a single thread: the cost of waking a second one would exceed its
/// benefit.
///
/// # Errors
/// The system cannot create an event queue.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| Failure::Run(format!("cannot create an event queue: {error}")))
}

/// Does the work, and takes a sample at the end of each interval. Returns no result if interrupted.
pub async fn observe<T>(
    work: impl Future<Output = T>,
    interrupt: &mut Interrupt,
    watch: &Arc<TransferStatus>,
    every: Duration,
    role: Role,
) -> (Option<T>, Record) {
    let every = std::time::Duration::from_nanos(every.as_nanos().max(1_000_000));
    let mut recorder = Recorder::new(role);
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    tokio::pin!(work);
    let result = loop {
        tokio::select! {
            result = &mut work => break Some(result),
            _ = ticks.tick() => {
                if let Some(time) = watch.elapsed() {
                    recorder.sample(time.as_secs_f64(), watch);
                }
            }
            () = interrupt.wait() => break None,
        }
    };
    let seconds = watch.elapsed().unwrap_or_default().as_secs_f64();
    recorder.sample(seconds, watch);
    if result.is_none() && role == Role::Sender {
        watch.abort();
        // Leave time to send the abort, so that the peer need not wait for a timeout.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    } else if result.is_none() {
        // Complete files get their names. A second signal ends the wait.
        watch.stop();
        let ended = tokio::time::timeout(STOP_LIMIT, work);
        tokio::select! {
            _ = ended => {}
            () = interrupt.wait() => {}
        }
    }
    let seconds = watch.transfer_time().unwrap_or_default().as_secs_f64();
    (result, Record { recorder, progress: watch.progress(), seconds })
}

/// Progress of the transfer, for its observers.
pub fn sources(watch: &Arc<TransferStatus>) -> Sources {
    let watch = watch.clone();
    let transfer = move || {
        let Progress { files, files_done, bytes, placed, .. } = watch.progress();
        (files > 0).then_some(Transfer { files, files_done, bytes, placed_bytes: placed })
    };
    Sources { transfer: Box::new(transfer), ..Sources::default() }
}

/// The corresponding event for observers. Associations are reported by their endpoint.
pub fn event_of(news: &TransferEvent) -> Option<Event> {
    Some(match news.clone() {
        TransferEvent::Connected(_) | TransferEvent::Resumed(..) => return None,
        TransferEvent::Lost(reason) => Event::TransferInterrupted { reason },
        TransferEvent::Started(name, bytes) => Event::FileStarted { name, bytes },
        TransferEvent::Finished(name, bytes) => Event::FileFinished { name, bytes },
        TransferEvent::Failed(name, reason) => Event::FileRefused { name, reason },
    })
}

/// A number with its noun, in the singular or plural.
pub fn counted(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { several })
}

impl Record {
    /// The result for people.
    pub fn text(&self, verb: &str) -> String {
        let Progress { files_done, brought, .. } = self.progress;
        let bps = brought as f64 * 8.0 / self.seconds.max(1e-9);
        let existing = self.progress.existing();
        let mut text = format!(
            "{verb} {}: {} in {}, {}",
            counted(files_done, "file", "files"),
            size(brought as f64),
            time(self.seconds),
            rate(bps),
        );
        if existing > 0 {
            text.push_str(&format!("; {} were there already", size(existing as f64)));
        }
        text.push('\n');
        text + &self.paths()
    }

    fn paths(&self) -> String {
        let (paths, sum) = self.recorder.whole();
        if paths.is_empty() {
            return String::new();
        }
        let total = paths.iter().map(|path| path.bytes).sum::<u64>().max(1) as f64;
        let columns = ["path", "rate", "share", "RTT", "retransmitted"];
        // Only a sender knows the retransmissions.
        let mut table = Table::new(if sum.sender { &columns } else { &columns[..4] });
        for path in &paths {
            let mut row = vec![
                name(path),
                rate(path.bits_per_second),
                percent(path.bytes as f64 / total),
                time_or_dash(path.rtt.map(|us| us as f64 * 1e-6)),
            ];
            row.extend(path.retransmits.map(count));
            table.row(row);
        }
        table.text(width())
    }
}

impl Record {
    /// Prints the result as CSV, with a row per path and one for all, or as Markdown.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn print(&self, format: Format) -> Result<(), Failure> {
        let csv = self.table();
        print_tables(format, &csv, || vec![Captioned::new("", csv.clone())])
    }

    fn table(&self) -> Table {
        let (paths, sum) = self.recorder.whole();
        let mut table = Table::empty();
        table.name("link", "link");
        table.name("peer", "remote");
        table.columns(&[
            ("data", "bytes"),
            ("time", "seconds"),
            ("rate", "throughput_bps"),
            ("share", "share"),
            ("RTT", "srtt_s"),
            ("retransmitted", "retransmits"),
        ]);
        let total = paths.iter().map(|path| path.bytes).sum::<u64>().max(1) as f64;
        let resent = |stretch: &Stretch| {
            Cell::known(stretch.retransmits.map(|count| count as f64), Unit::Count)
        };
        for path in &paths {
            let (link, remote) = ends(path);
            table.row(vec![
                link.into(),
                remote.into(),
                Cell::of(path.bytes as f64, Unit::Bytes),
                Cell::of(path.seconds, Unit::Seconds),
                Cell::of(path.bits_per_second, Unit::BitsPerSecond),
                Cell::of(path.bytes as f64 / total, Unit::Ratio),
                Cell::known(path.rtt.map(|us| us as f64 * 1e-6), Unit::Seconds),
                resent(path),
            ]);
        }
        let brought = self.progress.brought as f64;
        table.row(vec![
            "all".into(),
            "".into(),
            Cell::of(brought, Unit::Bytes),
            Cell::of(self.seconds, Unit::Seconds),
            Cell::of(brought * 8.0 / self.seconds.max(1e-9), Unit::BitsPerSecond),
            Cell::of(1.0, Unit::Ratio),
            Cell::Unknown,
            resent(&sum),
        ]);
        table
    }
}

/// A path's link, and the peer's address.
fn ends(path: &Stretch) -> (&str, &str) {
    let ends = path.path.as_deref().and_then(|path| path.split_once(" -> "));
    (path.link.as_deref().unwrap_or_default(), ends.map_or("", |ends| ends.1))
}

/// The path's name for users: its link and the peer's address.
fn name(path: &Stretch) -> String {
    let (link, remote) = ends(path);
    format!("{link} -> {remote}")
}
