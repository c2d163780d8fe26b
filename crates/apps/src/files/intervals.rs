//! Statistics per interval and path, in the format of iperf3.

use serde::Serialize;

use super::link::{PathFigures, Role};
use super::watch::TransferStatus;

/// Statistics of one path, or of all paths, over a period.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// Number of the path, counted from 1 over all associations of the transfer. `None` for the sum of all
    /// paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<u64>,
    /// Name of the path's link: its interface, or its local address if there is none. `None` for the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Local and remote address of the path. `None` for the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// State of the path at the end of the period. `None` for the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// Start of the period, in seconds since the beginning.
    pub start: f64,
    /// End of the period, in seconds since the beginning.
    pub end: f64,
    /// Length of the period, seconds.
    pub seconds: f64,
    /// User data that arrived, bytes.
    pub bytes: u64,
    /// User data per second that arrived, bits.
    pub bits_per_second: f64,
    /// Retransmitted chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Congestion window at the end of the period, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_cwnd: Option<u64>,
    /// Smoothed round-trip time at the end of the period, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt: Option<u64>,
    /// Whether iperf3 omits the period from its totals. Always false: the transfer has no warm-up.
    pub omitted: bool,
    /// Whether this end was the sender.
    pub sender: bool,
}

/// Statistics of one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Each path.
    pub streams: Vec<Stretch>,
    /// All paths together.
    pub sum: Stretch,
}

/// Takes a sample at the end of each interval.
#[derive(Debug)]
pub struct Recorder {
    role: Role,
    /// All paths of the transfer, including those of ended associations.
    paths: Vec<Seen>,
    last: f64,
    moved: u64,
    intervals: Vec<Interval>,
}

/// A path, and its figures at the last sample.
#[derive(Clone, Debug)]
struct Seen {
    association: u64,
    index: usize,
    figures: PathFigures,
    now: bool,
    bytes: u64,
    retransmits: u64,
}

impl Recorder {
    /// A recorder without samples.
    pub const fn new(role: Role) -> Self {
        Self { role, paths: Vec::new(), last: 0.0, moved: 0, intervals: Vec::new() }
    }

    /// Ends an interval `seconds` after the beginning.
    pub fn sample(&mut self, seconds: f64, watch: &TransferStatus) {
        let (association, paths) = watch.paths();
        let moved = watch.progress().moved;
        self.take(seconds, association, &paths, moved);
    }

    fn take(&mut self, end: f64, association: u64, paths: &[PathFigures], moved: u64) {
        self.paths.iter_mut().for_each(|seen| seen.now = false);
        for (index, figures) in paths.iter().enumerate() {
            let is_it = |seen: &&mut Seen| (seen.association, seen.index) == (association, index);
            let (bytes, retransmits) = (figures.bytes(self.role), figures.retransmits);
            let before = match self.paths.iter_mut().find(is_it) {
                Some(seen) => std::mem::replace(&mut seen.figures, figures.clone()),
                None => {
                    let figures = figures.clone();
                    let fresh =
                        Seen { association, index, figures, now: true, bytes: 0, retransmits: 0 };
                    self.paths.push(fresh);
                    PathFigures::default()
                }
            };
            if let Some(seen) = self.paths.iter_mut().find(is_it) {
                seen.now = true;
                seen.bytes = bytes.saturating_sub(before.bytes(self.role));
                seen.retransmits = retransmits.saturating_sub(before.retransmits);
            }
        }
        let span = Span { start: self.last, end, role: self.role };
        let numbered = self.paths.iter().zip(1..).filter(|(seen, _)| seen.now);
        let streams: Vec<_> = numbered.map(|(seen, number)| span.path(number, seen)).collect();
        let resent = streams.iter().filter_map(|stretch| stretch.retransmits).sum();
        // A sender's disk may be far ahead of what has arrived; only the paths' counters are correct.
        let bytes = match self.role {
            Role::Sender => streams.iter().map(|stretch| stretch.bytes).sum(),
            Role::Receiver => moved.saturating_sub(self.moved),
        };
        let sum = span.sum(bytes, resent);
        (self.last, self.moved) = (end, moved);
        self.intervals.push(Interval { streams, sum });
    }

    /// All intervals so far.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Each path, and all paths together, over the entire time.
    pub fn whole(&self) -> (Vec<Stretch>, Stretch) {
        let span = Span { start: 0.0, end: self.last, role: self.role };
        let total = |seen: &Seen| Seen {
            bytes: seen.figures.bytes(self.role),
            retransmits: seen.figures.retransmits,
            ..seen.clone()
        };
        let streams: Vec<_> = self
            .paths
            .iter()
            .zip(1..)
            .map(|(seen, number)| span.path(number, &total(seen)))
            .collect();
        let sums = self.intervals.iter().map(|interval| &interval.sum);
        let bytes = sums.clone().map(|sum| sum.bytes).sum();
        let sum = span.sum(bytes, sums.filter_map(|sum| sum.retransmits).sum());
        (streams, sum)
    }
}

/// A period.
#[derive(Clone, Copy)]
struct Span {
    start: f64,
    end: f64,
    role: Role,
}

impl Span {
    fn rate(self, bytes: u64) -> f64 {
        let seconds = self.end - self.start;
        if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
    }

    fn sum(self, bytes: u64, retransmits: u64) -> Stretch {
        let Self { start, end, role } = self;
        let sender = role == Role::Sender;
        Stretch {
            socket: None,
            link: None,
            path: None,
            state: None,
            start,
            end,
            seconds: end - start,
            bytes,
            bits_per_second: self.rate(bytes),
            retransmits: sender.then_some(retransmits),
            snd_cwnd: None,
            rtt: None,
            omitted: false,
            sender,
        }
    }

    fn path(self, number: u64, seen: &Seen) -> Stretch {
        let figures = &seen.figures;
        Stretch {
            socket: Some(number),
            link: Some(figures.link.clone()),
            path: Some(format!("{} -> {}", figures.local, figures.remote)),
            state: Some(figures.state),
            snd_cwnd: (self.role == Role::Sender).then_some(figures.cwnd),
            rtt: figures.rtt_us,
            ..self.sum(seen.bytes, seen.retransmits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bytes: u64, retransmits: u64) -> PathFigures {
        PathFigures { delivered_bytes: bytes, retransmits, ..PathFigures::default() }
    }

    #[test]
    fn each_interval_has_what_came_in_it_and_the_whole_has_all() {
        let mut recorder = Recorder::new(Role::Sender);
        recorder.take(1.0, 1, &[path(1000, 1), path(500, 0)], 9);
        recorder.take(2.0, 1, &[path(3000, 1), path(500, 2)], 9);
        // Another association, whose counters start at zero.
        recorder.take(4.0, 2, &[path(100, 0)], 9);
        let found: Vec<_> = recorder
            .intervals()
            .iter()
            .map(|interval| {
                let streams: Vec<_> =
                    interval.streams.iter().map(|s| (s.socket, s.bytes, s.retransmits)).collect();
                (streams, interval.sum.bytes, interval.sum.bits_per_second)
            })
            .collect();
        let some = |a, b, c| (Some(a), b, Some(c));
        assert_eq!(
            found,
            [
                (vec![some(1, 1000, 1), some(2, 500, 0)], 1500, 12_000.0),
                (vec![some(1, 2000, 0), some(2, 0, 2)], 2000, 16_000.0),
                (vec![some(3, 100, 0)], 100, 400.0),
            ]
        );
        let (streams, sum) = recorder.whole();
        let bytes: Vec<_> = streams.iter().map(|stretch| stretch.bytes).collect();
        assert_eq!(bytes, [3000, 500, 100]);
        assert_eq!((sum.bytes, sum.retransmits, sum.seconds), (3600, Some(3), 4.0));
    }

    #[test]
    fn a_receiver_counts_what_arrived_and_not_what_it_sent_itself() {
        let mut recorder = Recorder::new(Role::Receiver);
        let path = |received_bytes| PathFigures { received_bytes, ..path(40, 1) };
        recorder.take(1.0, 1, &[path(720)], 700);
        recorder.take(2.0, 1, &[path(1030)], 1000);
        let interval = &recorder.intervals()[1];
        assert_eq!((interval.sum.bytes, interval.streams[0].bytes), (300, 310));
        assert_eq!(interval.sum.retransmits, None);
    }
}
