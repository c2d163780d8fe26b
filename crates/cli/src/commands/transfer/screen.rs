//! The display of a transfer on a terminal: one bar, a line per path, and notes above them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use ropewalk_apps::files::{PathFigures, Role, TransferStatus};

use crate::console::Console;
use crate::printer::{percent, rate, time_or_dash};

const REDRAW: Duration = Duration::from_millis(250);
/// Approximate number of redraws over which a rate is smoothed.
const SMOOTHING: f64 = 4.0;

const BAR: &str = "{wide_bar} {percent}%, {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left";

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

    /// Does `work` on this thread while another thread draws the progress.
    pub fn show<T>(&self, watch: &Arc<TransferStatus>, work: impl FnOnce() -> T) -> T {
        let Some(bars) = &self.bars else { return work() };
        thread::scope(|scope| {
            let (over, wait) = channel::<()>();
            scope.spawn(move || draw_until_over(bars, watch, self.role, &wait));
            let result = work();
            // Closing the channel ends the drawing thread, also when `work` panics.
            drop(over);
            result
        })
    }
}

fn draw_until_over(bars: &MultiProgress, watch: &TransferStatus, role: Role, wait: &Receiver<()>) {
    let mut main: Option<ProgressBar> = None;
    let mut lines = Lines::new(role);
    while matches!(wait.recv_timeout(REDRAW), Err(RecvTimeoutError::Timeout)) {
        let progress = watch.progress();
        let (association, paths) = watch.paths();
        if progress.files == 0 {
            continue;
        }
        let bar = main.get_or_insert_with(|| {
            let style = ProgressStyle::with_template(BAR).expect("a template that a test tries");
            bars.add(ProgressBar::new(progress.bytes).with_style(style))
        });
        bar.set_length(progress.bytes);
        bar.set_position(progress.placed);
        lines.draw(bars, association, &paths);
    }
    main.iter().for_each(ProgressBar::finish_and_clear);
    lines.bars.iter().for_each(ProgressBar::finish_and_clear);
}

/// Formats a line per path.
struct Lines {
    role: Role,
    bars: Vec<ProgressBar>,
    /// Bytes and smoothed rate of each path at the last redraw.
    before: BTreeMap<(u64, usize), (u64, f64)>,
}

impl Lines {
    const fn new(role: Role) -> Self {
        Self { role, bars: Vec::new(), before: BTreeMap::new() }
    }

    fn draw(&mut self, bars: &MultiProgress, association: u64, paths: &[PathFigures]) {
        let rates: Vec<f64> = paths
            .iter()
            .enumerate()
            .map(|(index, path)| {
                let (bytes, old) =
                    self.before.get(&(association, index)).copied().unwrap_or_default();
                let total = path.bytes(self.role);
                let now = total.saturating_sub(bytes) as f64 * 8.0 / REDRAW.as_secs_f64();
                let rate = old + (now - old) / SMOOTHING;
                self.before.insert((association, index), (total, rate));
                rate
            })
            .collect();
        let total: f64 = rates.iter().sum();
        while self.bars.len() < paths.len() {
            let style =
                ProgressStyle::with_template("  {msg}").expect("a template that a test tries");
            self.bars.push(bars.add(ProgressBar::new(0).with_style(style)));
        }
        for ((line, path), rate) in self.bars.iter().zip(paths).zip(rates) {
            line.set_message(text(path, rate, total));
        }
    }
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
