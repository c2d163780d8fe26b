//! Messages of several sources on one association (`[[source]]`).
//!
//! The payload protocol identifier of each message is its number in its stream, from 1. With it, the receiver knows
//! which messages it has read even if others were abandoned.

mod results;

use ropewalk_base::{Duration, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::{Association, Delivery, Message, Part};
use ropewalk_scenario::{Scenario, Source};

pub use results::results;

/// One end's state of the messages.
#[derive(Clone, Debug, Default)]
pub struct SourcesEnd {
    /// The sources that this end sends. Empty at the receiver.
    sources: Vec<Sending>,
    /// For each stream, the times at which its messages were due (at the sender) or read (at the receiver), by
    /// number.
    times: Vec<Vec<Option<Time>>>,
    /// For each stream, the number of the message that is being read in parts.
    in_parts: Vec<u32>,
}

/// A source at the sender.
#[derive(Clone, Debug)]
struct Sending {
    message: u32,
    every: Duration,
    next: Time,
    stop: Option<Time>,
    delivery: Delivery,
    /// First stream, number of streams, and the next stream to use.
    first: u16,
    streams: u16,
    turn: u16,
    /// Whether the engine has refused the due message.
    waits: bool,
}

impl Sending {
    fn new(source: &Source, streams: &std::ops::Range<usize>, start: Time) -> Self {
        Self {
            message: source.message.min(u64::from(u32::MAX)) as u32,
            every: source.every,
            next: start.max(source.start),
            stop: source.stop,
            delivery: Delivery {
                lifetime: source.lifetime,
                retransmissions: source.retransmissions,
                ordered: !source.unordered,
                ..Delivery::RELIABLE
            },
            first: streams.start as u16,
            streams: source.streams,
            turn: 0,
            waits: false,
        }
    }

    fn stream(&self) -> StreamId {
        StreamId(self.first + self.turn)
    }

    /// When the next message is due. `None` if there are no more messages.
    fn due(&self) -> Option<Time> {
        Some(self.next).filter(|at| self.stop.is_none_or(|stop| *at < stop))
    }

    /// Delivery parameters with the remaining lifetime of a message that was due at `due`. `None`
    /// if the lifetime has expired.
    fn delivery(&self, due: Time, now: Time) -> Option<Delivery> {
        let Some(lifetime) = self.delivery.lifetime else { return Some(self.delivery) };
        let left = (due + lifetime).since(now);
        (left > Duration::ZERO).then_some(Delivery { lifetime: Some(left), ..self.delivery })
    }

    /// Number of messages that became due from `from` to `now` and that the engine has not accepted.
    fn waiting(&self, from: Time, now: Time) -> u64 {
        let due = std::iter::successors(self.due(), |at| Some(*at + self.every));
        let due = due.take_while(|at| *at <= now && self.stop.is_none_or(|stop| *at < stop));
        due.filter(|at| *at >= from).count() as u64
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
    /// Creates the sender and the receiver.
    pub fn both(scenario: &Scenario, start: Time) -> [Self; 2] {
        let streams = usize::from(stream_count(scenario));
        let receiver = Self {
            sources: Vec::new(),
            times: vec![Vec::new(); streams],
            in_parts: vec![0; streams],
        };
        let sending = |(source, streams)| Sending::new(source, &streams, start);
        let sources = ranges(&scenario.sources).map(sending).collect();
        [Self { sources, ..receiver.clone() }, receiver]
    }

    /// Gives each stream its priority or weight.
    pub fn set_values(scenario: &Scenario, association: &mut Association) {
        for (source, streams) in ranges(&scenario.sources) {
            for stream in streams {
                let _ = association.set_stream_value(StreamId(stream as u16), source.value);
            }
        }
    }

    /// Sends the messages that are due. A message that the engine refuses delays only its own source. A message
    /// whose lifetime ends before the engine accepts it is abandoned.
    pub fn send(&mut self, now: Time, association: &mut Association) {
        for source in &mut self.sources {
            source.waits = false;
            while let Some(due) = source.due().filter(|due| *due <= now) {
                let (stream, payload) = (source.stream(), Payload::Length(source.message));
                let times = &mut self.times[usize::from(stream.0)];
                let number = times.len() as u32 + 1;
                if let Some(delivery) = source.delivery(due, now)
                    && association.send_message(now, stream, number, payload, delivery).is_err()
                {
                    source.waits = true;
                    break;
                }
                times.push(Some(due));
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
            self.note_read(now, &message);
        }
        bytes
    }

    /// Records the delivery of a complete message.
    fn note_read(&mut self, now: Time, message: &Message) {
        let stream = usize::from(message.stream.0);
        let number = match message.part {
            Part::Whole => message.ppid,
            Part::First => {
                self.in_parts[stream] = message.ppid;
                return;
            }
            Part::Middle => return,
            // The sender has abandoned the rest of the message.
            Part::Last if message.payload.is_empty() => return,
            Part::Last => self.in_parts[stream],
        };
        let times = &mut self.times[stream];
        let at = number as usize - 1;
        if times.len() <= at {
            times.resize(at + 1, None);
        }
        times[at] = Some(now);
    }

    /// When the next message is due.
    pub fn deadline(&self) -> Option<Time> {
        self.sources.iter().filter(|source| !source.waits).filter_map(Sending::due).min()
    }
}
