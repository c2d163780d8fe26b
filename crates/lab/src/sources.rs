//! Messages of several sources on one association (`[[source]]`), and how long each takes.

use ropewalk_base::{Duration, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::{Association, Part};
use ropewalk_scenario::{Scenario, Source};

use crate::result::FlowResult;

/// What one end knows of the messages.
#[derive(Clone, Debug, Default)]
pub struct SourcesEnd {
    /// What this end sends; none at the receiver.
    sources: Vec<Sending>,
    /// For each stream, when its messages were due (at the sender), or read (at the receiver).
    times: Vec<Vec<Time>>,
}

/// A source at the sender.
#[derive(Clone, Debug)]
struct Sending {
    message: u32,
    every: Duration,
    next: Time,
    stop: Option<Time>,
    /// Its first stream, their number, and the next of them.
    first: u16,
    streams: u16,
    turn: u16,
    /// Whether the engine has refused the message that is due.
    waits: bool,
}

impl Sending {
    fn stream(&self) -> StreamId {
        StreamId(self.first + self.turn)
    }

    /// When the next message is due; none: there is none.
    fn due(&self) -> Option<Time> {
        Some(self.next).filter(|at| self.stop.is_none_or(|stop| *at < stop))
    }
}

/// Number of streams of all sources.
pub fn stream_count(scenario: &Scenario) -> u16 {
    scenario.sources.iter().map(|source| source.streams).sum()
}

/// The streams of each source.
fn ranges(sources: &[Source]) -> impl Iterator<Item = (&Source, std::ops::Range<usize>)> {
    let mut first = 0;
    sources.iter().map(move |source| {
        let streams = first..first + usize::from(source.streams);
        first = streams.end;
        (source, streams)
    })
}

impl SourcesEnd {
    /// The sender and the receiver.
    pub fn both(scenario: &Scenario, start: Time) -> [Self; 2] {
        let sending = |(source, streams): (&Source, std::ops::Range<usize>)| Sending {
            message: source.message.min(u64::from(u32::MAX)) as u32,
            every: source.every,
            next: start.max(source.start),
            stop: source.stop,
            first: streams.start as u16,
            streams: source.streams,
            turn: 0,
            waits: false,
        };
        let times = vec![Vec::new(); usize::from(stream_count(scenario))];
        let sources = ranges(&scenario.sources).map(sending).collect();
        [Self { sources, times: times.clone() }, Self { sources: Vec::new(), times }]
    }

    /// Gives each stream its priority or weight.
    pub fn set_values(scenario: &Scenario, association: &mut Association) {
        for (source, streams) in ranges(&scenario.sources) {
            for stream in streams {
                let _ = association.set_stream_value(StreamId(stream as u16), source.value);
            }
        }
    }

    /// Sends the messages that are due. A message that the engine refuses holds up its own source only.
    pub fn send(&mut self, now: Time, association: &mut Association) {
        for source in &mut self.sources {
            source.waits = false;
            while let Some(due) = source.due().filter(|due| *due <= now) {
                let (stream, payload) = (source.stream(), Payload::Length(source.message));
                if association.send(stream, payload, false).is_err() {
                    source.waits = true;
                    break;
                }
                self.times[usize::from(stream.0)].push(due);
                source.next += source.every;
                source.turn = (source.turn + 1) % source.streams;
            }
        }
    }

    /// Reads all that has arrived. Returns the bytes.
    pub fn read(&mut self, now: Time, association: &mut Association) -> u64 {
        let mut bytes = 0;
        while let Some(message) = association.read(now) {
            bytes += u64::from(message.payload.len());
            if matches!(message.part, Part::Whole | Part::Last) {
                self.times[usize::from(message.stream.0)].push(now);
            }
        }
        bytes
    }

    /// When the next message is due.
    pub fn deadline(&self) -> Option<Time> {
        self.sources.iter().filter(|source| !source.waits).filter_map(Sending::due).min()
    }
}

/// The results of all sources: their messages that were due from `from` on.
pub fn results(
    scenario: &Scenario,
    (sender, receiver): (&SourcesEnd, &SourcesEnd),
    (from, now): (Time, Time),
) -> Vec<FlowResult> {
    ranges(&scenario.sources)
        .map(|(source, streams)| {
            let mut of_source = Delays::default();
            for stream in streams {
                of_source.add_stream(&sender.times[stream], &receiver.times[stream], from);
            }
            let begin = source.start.max(from);
            let end = source.stop.unwrap_or(now).min(now);
            let seconds = if end > begin { end.since(begin).as_secs_f64() } else { 0.0 };
            of_source.result(source, seconds)
        })
        .collect()
}

/// How long the messages of a source took.
#[derive(Default)]
struct Delays {
    /// Of those that arrived.
    known: Vec<Duration>,
    arrivals: Vec<Time>,
    sent: usize,
}

impl Delays {
    /// Adds the messages of a stream, which arrive in order: the first one that was read is the first one that was sent.
    fn add_stream(&mut self, due: &[Time], read: &[Time], from: Time) {
        let measured = due.iter().filter(|at| **at >= from).count();
        let skipped = due.len() - measured;
        self.sent += measured;
        for (due, read) in due.iter().zip(read).skip(skipped) {
            self.known.push(read.since(*due));
            self.arrivals.push(*read);
        }
    }

    fn result(mut self, source: &Source, seconds: f64) -> FlowResult {
        self.known.sort_unstable();
        self.arrivals.sort_unstable();
        let delay = |share: f64| {
            let last = self.known.len().checked_sub(1)?;
            let at = (share * self.known.len() as f64).ceil() as usize;
            Some(self.known[at.saturating_sub(1).min(last)].as_secs_f64())
        };
        let bytes = self.known.len() as f64 * source.message as f64;
        let gaps = self.arrivals.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64());
        FlowResult {
            name: source.name.clone(),
            kind: "messages".to_owned(),
            goodput_bps: if seconds > 0.0 { bytes * 8.0 / seconds } else { 0.0 },
            delay_p50_s: delay(0.5),
            delay_p99_s: delay(0.99),
            delay_max_s: delay(1.0),
            lost: (self.sent > 0).then(|| 1.0 - self.known.len() as f64 / self.sent as f64),
            out_of_order: 0.0,
            longest_gap_s: gaps.reduce(f64::max),
            mos: None,
        }
    }
}
