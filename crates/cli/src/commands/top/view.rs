//! The screen of `ropewalk top`. Everything fits into 80 x 24 characters.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Gauge, Paragraph, Row, Sparkline, Table};
use ropewalk_apps::observe::{EventStatus, LinkCap, LinkStatus, Status, clock};

use crate::printer::{percent, rate, size, time, time_or_dash};

/// Maximum number of links that are shown. The rest is counted.
const LINKS: usize = 8;
/// Width of the column with the names of links.
const NAME: usize = 10;
/// Height of the sparkline, without its heading.
const SPARKLINE: u16 = 3;

/// The state of the screen.
pub struct View<'a> {
    /// The latest status.
    pub status: &'a Status,
    /// Rates of all links, bit/s, oldest first.
    pub rates: &'a VecDeque<u64>,
    /// Whether Tab shows another command.
    pub several: bool,
}

impl View<'_> {
    /// Draws everything.
    pub fn render(&self, frame: &mut Frame<'_>) {
        let transfer = u16::from(self.status.transfer.is_some());
        let rows = self.status.links.len().min(LINKS) as u16;
        let more = u16::from(self.status.links.len() > LINKS);
        let caps = caps(self.status);
        let areas = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(transfer),
            Constraint::Length(rows + 1),
            Constraint::Length(more),
            Constraint::Length(u16::from(caps.is_some())),
            Constraint::Length(SPARKLINE + 1),
            Constraint::Min(2),
            Constraint::Length(1),
        ]);
        let [head, gauge, links, rest, cap, spark, events, keys] = areas.areas(frame.area());
        self.head(frame, head);
        self.transfer(frame, gauge);
        self.links(frame, links);
        if more > 0 {
            let text = format!("and {} more", self.status.links.len() - LINKS);
            frame.render_widget(Paragraph::new(text.dim()), rest);
        }
        caps.into_iter().for_each(|text| frame.render_widget(Paragraph::new(text), cap));
        self.sparkline(frame, spark);
        self.events(frame, events);
        let tab = if self.several { "   Tab next command" } else { "" };
        frame.render_widget(Paragraph::new(format!("q quit{tab}").dim()), keys);
    }

    fn head(&self, frame: &mut Frame<'_>, area: Rect) {
        let Status { command, pid, uptime_s, links, .. } = self.status;
        let up = rate(links.iter().map(|link| link.up_bps).sum());
        let down = rate(links.iter().map(|link| link.down_bps).sum());
        let line = Line::from(vec![
            Span::from(format!("ropewalk {command}")).bold(),
            Span::from(format!("  pid {pid}  {}  up {up}  down {down}", time(*uptime_s))),
        ]);
        frame.render_widget(Paragraph::new(line), area);
    }

    fn transfer(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(transfer) = self.status.transfer else { return };
        let (placed, all) = (transfer.placed_bytes as f64, transfer.bytes as f64);
        let share = if all > 0.0 { (placed / all).clamp(0.0, 1.0) } else { 1.0 };
        let label = format!(
            "{} of {}, {} of {} files",
            size(placed),
            size(all),
            transfer.files_done,
            transfer.files
        );
        let gauge = Gauge::default().ratio(share).label(label).gauge_style(Color::Blue);
        frame.render_widget(gauge, area);
    }

    fn links(&self, frame: &mut Frame<'_>, area: Rect) {
        let titles = ["LINK", "PEER", "STATE", "UP", "DOWN", "SHARE", "RTT", "LOSS", "QUEUE"];
        // Names with addresses need the space of losses and queues.
        let is_wide = self.status.links.iter().any(|link| link.name().len() >= NAME);
        let (name, count) =
            if is_wide { (NAME + 14, titles.len() - 2) } else { (NAME, titles.len()) };
        let widths = [name as u16, 9, 8, 11, 11, 7, 8, 6, 8].map(Constraint::Length);
        let (titles, widths) = (&titles[..count], &widths[..count]);
        let rows = self.status.links.iter().take(LINKS).map(|link| row(link, name - 1, count));
        let header =
            Row::new(titles.iter().copied()).style(Style::new().add_modifier(Modifier::BOLD));
        let table = Table::new(rows, widths.iter().copied()).header(header).column_spacing(0);
        frame.render_widget(table, area);
    }

    fn sparkline(&self, frame: &mut Frame<'_>, area: Rect) {
        let [heading, chart] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
        let shown = self.rates.len().saturating_sub(chart.width as usize);
        let rates: Vec<u64> = self.rates.iter().skip(shown).copied().collect();
        let top = rates.iter().copied().max().unwrap_or(0);
        let text =
            format!("rate of all links, last {} s, at most {}", rates.len(), rate(top as f64));
        frame.render_widget(Paragraph::new(text.bold()), heading);
        let line = Sparkline::default().data(rates).style(Color::Cyan);
        frame.render_widget(line, chart);
    }

    fn events(&self, frame: &mut Frame<'_>, area: Rect) {
        let room = usize::from(area.height.saturating_sub(1));
        let first = self.status.events.len().saturating_sub(room);
        let mut lines = vec![Line::from("events (UTC)".bold())];
        lines.extend(self.status.events[first..].iter().map(event_line));
        frame.render_widget(Paragraph::new(lines), area);
    }
}

/// Data carried by links with caps, in one line.
fn caps(status: &Status) -> Option<String> {
    let caps = status.tunnel.iter().flat_map(|tunnel| &tunnel.caps);
    let used = |cap: &LinkCap| {
        format!("{} {} of {}", cap.link, size(cap.used_bytes as f64), size(cap.cap_bytes as f64))
    };
    let all: Vec<String> = caps.map(used).collect();
    (!all.is_empty()).then(|| format!("caps, this month: {}", all.join(", ")))
}

/// A row for a link, with this many characters of its name and this many columns.
fn row(link: &LinkStatus, room: usize, columns: usize) -> Row<'_> {
    let colour = match link.state.as_str() {
        "active" => Color::Green,
        "unconfirmed" => Color::Yellow,
        _ => Color::Red,
    };
    // For an active link that carries no data now, its use is more informative.
    let state = match link.usage.as_str() {
        usage @ ("backup" | "never") if link.state == "active" => usage,
        _ => &link.state,
    };
    let short = |text: &str, room: usize| text.chars().take(room).collect::<String>();
    // The end of a long address is more informative.
    let hidden = link.name().chars().count().saturating_sub(room);
    let name: String = link.name().chars().skip(hidden).collect();
    let cells = [
        Cell::from(name),
        Cell::from(short(&link.peer, 8)),
        Cell::from(short(state, 7)).style(colour),
        Cell::from(short(&compact(&rate(link.up_bps)), 10)),
        Cell::from(short(&compact(&rate(link.down_bps)), 10)),
        Cell::from(compact(&percent(link.share))),
        Cell::from(compact(&time_or_dash(link.rtt_s))),
        Cell::from(link.loss.map_or_else(|| "-".to_owned(), |loss| compact(&percent(loss)))),
        Cell::from(compact(&time(link.queue_s))),
    ];
    Row::new(cells.into_iter().take(columns))
}

/// A quantity without the space before its unit, and with `b/s` for `bit/s`, for narrow columns.
fn compact(text: &str) -> String {
    text.replace("bit/s", "b/s").replace(' ', "")
}

fn event_line(event: &EventStatus) -> Line<'_> {
    let peer = if event.peer.is_empty() { String::new() } else { format!("{}: ", event.peer) };
    let text = Span::from(event.text.as_str());
    let text = match event.event.as_str() {
        "link down" | "problem" | "limit reached" | "file refused" => text.red(),
        "link up" => text.green(),
        _ => text,
    };
    Line::from(vec![Span::from(format!("{} {peer}", clock(event.time_s))).dim(), text])
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ropewalk_apps::observe::{SCHEMA, Transfer, TunnelFigures};

    use super::*;

    fn link(name: &str, state: &str, up_bps: f64, share: f64) -> LinkStatus {
        LinkStatus {
            number: 1,
            link: name.to_owned(),
            shown: name.to_owned(),
            peer: "anna".to_owned(),
            local: "192.0.2.1:40000".to_owned(),
            remote: "198.51.100.1:9899".to_owned(),
            state: state.to_owned(),
            usage: "always".to_owned(),
            up_bps,
            down_bps: 0.0,
            share,
            rtt_s: Some(0.0205),
            queue_s: 0.004,
            loss: Some(0.001),
            cwnd_bytes: 60_000,
            in_flight_bytes: 40_000,
            data_sent_bytes: 1_000_000,
            data_received_bytes: 0,
            retransmitted: 3,
        }
    }

    fn status() -> Status {
        let event = |event: &str, text: &str| EventStatus {
            time_s: 50_587.0,
            event: event.to_owned(),
            peer: "anna".to_owned(),
            link: None,
            text: text.to_owned(),
        };
        Status {
            schema: SCHEMA.to_owned(),
            command: "send".to_owned(),
            pid: 4711,
            version: "1".to_owned(),
            time_s: 50_590.0,
            uptime_s: 12.0,
            transfer: Some(Transfer { files: 2, files_done: 1, bytes: 4_000, placed_bytes: 1_000 }),
            tunnel: None,
            associations: Vec::new(),
            links: vec![link("wlan0", "active", 45e6, 1.0), link("wwan0", "down", 0.0, 0.0)],
            events: vec![
                event("link up", "link wlan0 up"),
                event("link down", "link wwan0 down: no reply for 0.4 s"),
            ],
        }
    }

    fn drawn(status: &Status) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal");
        let rates = (0..200).map(|i| i * 1_000_000).collect();
        let view = View { status, rates: &rates, several: true };
        terminal.draw(|frame| view.render(frame)).expect("a frame");
        terminal.backend().to_string()
    }

    #[test]
    fn links_rates_and_events_fit_into_80_by_24() {
        let text = drawn(&status());
        for words in [
            "ropewalk send  pid 4711  12.00 s  up 45.00 Mbit/s  down 0 bit/s",
            "1.000 kB of 4.000 kB, 1 of 2 files",
            "wlan0     anna     active  45.00Mb/s  0b/s       100.0% 20.50ms 0.1%  4.000ms",
            "last 80 s, at most 199.0 Mbit/s",
            "14:03:07Z anna: link wwan0 down: no reply for 0.4 s",
            "q quit   Tab next command",
        ] {
            assert!(text.contains(words), "no {words:?} in:\n{text}");
        }
    }

    #[test]
    fn links_of_a_client_are_told_apart_by_its_addresses() {
        let mut status = status();
        status.links[0].shown = "eth0 from 198.51.100.1".to_owned();
        status.links[1].shown = "eth0 from 2001:db8:1111:2222::77".to_owned();
        let text = drawn(&status);
        for words in [
            "eth0 from 198.51.100.1  anna     active  45.00Mb/s  0b/s       100.0% 20.50ms",
            "1:db8:1111:2222::77 anna ",
        ] {
            assert!(text.contains(words), "no {words:?} in:\n{text}");
        }
    }

    #[test]
    fn the_use_of_links_and_their_caps_are_shown() {
        let mut status = status();
        status.links[0].usage = "backup".to_owned();
        status.links[1].usage = "backup".to_owned();
        let link = "wlan0".to_owned();
        let caps = vec![LinkCap { link, used_bytes: 18_100_000_000, cap_bytes: 20_000_000_000 }];
        status.tunnel = Some(TunnelFigures { caps, ..TunnelFigures::default() });
        let text = drawn(&status);
        for words in [
            "wlan0     anna     backup ",
            "wwan0     anna     down ",
            "caps, this month: wlan0 18.10 GB of 20.00 GB",
        ] {
            assert!(text.contains(words), "no {words:?} in:\n{text}");
        }
    }

    #[test]
    fn many_links_and_events_leave_room_for_each_other() {
        let mut status = status();
        status.links = (0..30).map(|i| link(&format!("eth{i}"), "active", 1e6, 0.03)).collect();
        status.events = vec![status.events[1].clone(); 100];
        let text = drawn(&status);
        assert!(text.contains("and 22 more") && text.contains("eth7 "), "{text}");
        assert!(text.matches("link wwan0 down").count() >= 4, "{text}");
        assert!(text.contains("q quit"), "{text}");
    }
}
