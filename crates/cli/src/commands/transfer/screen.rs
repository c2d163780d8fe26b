//! The display of a transfer on a terminal: one bar, a line per path, and notes above them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use ropewalk_apps::files::{PathFigures, Role, TransferStatus};
use ropewalk_apps::observe::{EventRecord, Ledger, LinkStatus, Sink, Status, clock};
use ropewalk_base::Time;
use ropewalk_runtime::endpoint::Observer;

use crate::console::Console;
use crate::live::Notes;
use crate::printer::{percent, rate, size, time_or_dash};

const REDRAW: Duration = Duration::from_millis(250);
/// Approximate number of redraws over which a rate is smoothed.
const SMOOTHING: f64 = 4.0;

const BAR: &str =
    "{wide_bar} {percent}%, {decimal_bytes} of {decimal_total_bytes}, {msg}, {eta} left";
/// Interval between lines of progress if there are no bars, seconds.
const LINE_INTERVAL: u64 = 5;

/// Writes to stderr while a transfer runs.
#[derive(Clone, Debug)]
pub struct Screen {
    console: Console,
    bars: Option<MultiProgress>,
    role: Role,
}

impl Screen {
    /// A display, with bars if stderr is a terminal.
    pub fn new(console: Console, role: Role) -> Self {
        Self { console, bars: console.has_viewer().then(MultiProgress::new), role }
    }

    /// Prints a note above the bars.
    pub fn note(&self, text: impl fmt::Display) {
        match &self.bars {
            Some(bars) => bars.suspend(|| self.console.note(text)),
            None => self.console.note(text),
        }
    }

    /// Shows events of links above the bars.
    pub fn notes(&self) -> Notes<impl Fn(&str) + Send + 'static> {
        let screen = self.clone();
        Notes(move |text: &str| screen.note(text))
    }

    /// Prints the progress from time to time, if there are no bars.
    pub fn periodic(&self) -> Periodic {
        Periodic { console: self.console, is_shown: self.bars.is_none(), ticks: 0 }
    }

    /// Does `work` on this thread while another thread draws the progress. The figures of the paths are those that
    /// the endpoint publishes, so drawing never holds its lock.
    pub fn show<T>(
        &self,
        watch: &Arc<TransferStatus>,
        observer: &Observer,
        work: impl FnOnce() -> T,
    ) -> T {
        let Some(bars) = &self.bars else { return work() };
        thread::scope(|scope| {
            let (over, wait) = channel::<()>();
            scope.spawn(move || draw_until_over(bars, (watch, observer), self.role, &wait));
            let result = work();
            // Closing the channel ends the drawing thread, also when `work` panics.
            drop(over);
            result
        })
    }
}

fn draw_until_over(
    bars: &MultiProgress,
    (watch, observer): (&TransferStatus, &Observer),
    role: Role,
    wait: &Receiver<()>,
) {
    let mut main: Option<ProgressBar> = None;
    let mut lines = Lines::new(role);
    while matches!(wait.recv_timeout(REDRAW), Err(RecvTimeoutError::Timeout)) {
        let progress = watch.progress();
        if progress.files == 0 {
            continue;
        }
        let bar = main.get_or_insert_with(|| {
            let style = ProgressStyle::with_template(BAR).expect("a template that a test tries");
            bars.add(ProgressBar::new(progress.bytes).with_style(style))
        });
        bar.set_length(progress.bytes.saturating_sub(progress.failed));
        bar.set_position(progress.placed);
        let total = lines.draw(bars, &open_paths(observer));
        // Without a request, an endpoint publishes nothing while no data passes, and the last rates would remain.
        observer.request();
        bar.set_message(rate(total));
    }
    main.iter().for_each(ProgressBar::finish_and_clear);
    lines.bars.iter().for_each(ProgressBar::finish_and_clear);
}

/// A path of an open association, as last published by its endpoint.
struct ShownPath {
    /// Endpoint, association, index.
    key: (u64, u64, usize),
    /// Time of publication.
    at: Time,
    figures: PathFigures,
}

fn open_paths(observer: &Observer) -> Vec<ShownPath> {
    let mut paths = Vec::new();
    for endpoint in observer.snapshots() {
        for open in endpoint.associations.iter().filter(|association| association.is_open) {
            let key = |index| (open.about.endpoint, open.about.association, index);
            let numbered = open.stats.paths.iter().enumerate();
            paths.extend(numbered.map(|(index, path)| ShownPath {
                key: key(index),
                at: open.stats.at,
                figures: path.into(),
            }));
        }
    }
    paths
}

/// State of a path at its last redraw.
#[derive(Clone, Copy, Default)]
struct Drawn {
    at: Time,
    bytes: u64,
    /// Smoothed, bit/s.
    rate: f64,
}

/// Formats a line per path.
struct Lines {
    role: Role,
    bars: Vec<ProgressBar>,
    before: BTreeMap<(u64, u64, usize), Drawn>,
}

impl Lines {
    const fn new(role: Role) -> Self {
        Self { role, bars: Vec::new(), before: BTreeMap::new() }
    }

    /// Returns the rate of all paths, bit/s.
    fn draw(&mut self, bars: &MultiProgress, paths: &[ShownPath]) -> f64 {
        let rates = self.rates(paths);
        let total: f64 = rates.iter().sum();
        while self.bars.len() < paths.len() {
            let style =
                ProgressStyle::with_template("  {msg}").expect("a template that a test tries");
            self.bars.push(bars.add(ProgressBar::new(0).with_style(style)));
        }
        for ((line, path), rate) in self.bars.iter().zip(paths).zip(rates) {
            line.set_message(text(&path.figures, rate, total));
        }
        // Paths of an ended association.
        self.bars.iter().skip(paths.len()).for_each(|line| line.set_message(""));
        total
    }

    /// The smoothed rate of each path, bit/s. It stays unchanged until the endpoint publishes again.
    fn rates(&mut self, paths: &[ShownPath]) -> Vec<f64> {
        let before = std::mem::take(&mut self.before);
        let role = self.role;
        let now = |path: &ShownPath| {
            let old = before.get(&path.key).copied().unwrap_or_default();
            let seconds = match old.at {
                Time::ZERO => REDRAW.as_secs_f64(),
                at => path.at.since(at).as_secs_f64(),
            };
            if seconds <= 0.0 {
                return (path.key, old);
            }
            let bytes = path.figures.bytes(role);
            let latest = bytes.saturating_sub(old.bytes) as f64 * 8.0 / seconds;
            let rate = old.rate + (latest - old.rate) / SMOOTHING;
            (path.key, Drawn { at: path.at, bytes, rate })
        };
        let all: Vec<_> = paths.iter().map(now).collect();
        self.before = all.iter().copied().collect();
        all.into_iter().map(|(_, drawn)| drawn.rate).collect()
    }
}

/// Prints lines of progress.
pub struct Periodic {
    console: Console,
    is_shown: bool,
    ticks: u64,
}

impl Sink for Periodic {
    fn event(&mut self, _: &EventRecord) {}

    fn tick(&mut self, status: &Status, _: &Ledger) {
        self.ticks += 1;
        if self.is_shown && self.ticks.is_multiple_of(LINE_INTERVAL) && !status.links.is_empty() {
            self.console.note(progress_line(status));
        }
    }

    fn uses_time(&self) -> bool {
        self.is_shown
    }

    fn end(&mut self, _: &Status, _: &Ledger) {}
}

/// `14:03:07Z 37 %, 1.200 GB of 3.200 GB, 60.10 Mbit/s: wlan0 45.00 Mbit/s, lte 15.10 Mbit/s`.
fn progress_line(status: &Status) -> String {
    let mut line = clock(status.time_s);
    if let Some(transfer) = status.transfer {
        let (placed, all) = (transfer.placed_bytes as f64, transfer.bytes as f64);
        let share = 100.0 * placed / all.max(1.0);
        line.push_str(&format!(" {share:.0} %, {} of {},", size(placed), size(all)));
    }
    line + " " + &rates(status)
}

/// The rate of all links, and of each: `60.10 Mbit/s: wlan0 45.00 Mbit/s, lte 15.10 Mbit/s`.
pub fn rates(status: &Status) -> String {
    let of = |link: &LinkStatus| link.up_bps.max(link.down_bps);
    let total = status.links.iter().map(of).sum();
    let each = status.links.iter().map(|link| format!("{} {}", link.link, rate(of(link))));
    format!("{}: {}", rate(total), each.collect::<Vec<_>>().join(", "))
}

fn text(path: &PathFigures, bps: f64, total: f64) -> String {
    let rtt = time_or_dash(path.rtt_us.map(|us| us as f64 * 1e-6));
    let way = path.name();
    if total <= 0.0 {
        return format!("{way}  RTT {rtt}  {}", path.state);
    }
    format!("{way}  {}  {}  RTT {rtt}  {}", rate(bps), percent(bps / total), path.state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_line_have_a_valid_template() {
        for template in [BAR, "  {msg}"] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn a_rate_follows_what_is_published_and_ended_associations_are_forgotten() {
        let mut lines = Lines::new(Role::Sender);
        let path = |association, ms, bytes| ShownPath {
            key: (0, association, 0),
            at: Time::from_millis(ms),
            figures: PathFigures { delivered_bytes: bytes, ..PathFigures::default() },
        };
        let first = lines.rates(&[path(1, 1000, 0)]);
        assert_eq!(first, [0.0]);
        // A million bytes in half a second, smoothed over four redraws.
        assert_eq!(lines.rates(&[path(1, 1500, 1_000_000)]), [4e6]);
        assert_eq!(lines.rates(&[path(1, 1500, 1_000_000)]), [4e6], "the same snapshot");
        assert_eq!(lines.rates(&[path(2, 1600, 0)]), [0.0]);
        assert_eq!(lines.before.len(), 1);
    }

    #[test]
    fn a_path_is_shown_with_its_rate_share_round_trip_and_state() {
        let path = PathFigures {
            link: "wlan0".into(),
            local: "10.0.1.1:40000".into(),
            remote: "10.0.1.2:9899".into(),
            state: "active",
            rtt_us: Some(20_500),
            ..PathFigures::default()
        };
        let expected = "wlan0 -> 10.0.1.2:9899  3.000 Mbit/s  75.0 %  RTT 20.50 ms  active";
        assert_eq!(text(&path, 3e6, 4e6), expected);
        assert!(text(&path, 0.0, 0.0).ends_with("RTT 20.50 ms  active"));
    }
}
