//! Results of the messages of each source.

use std::collections::BTreeSet;

use ropewalk_base::{Duration, StreamId, Time};
use ropewalk_engine::sctp::Association;
use ropewalk_scenario::{Scenario, Source};

use super::{SourcesEnd, ranges};
use crate::result::FlowResult;

/// The results of all sources for messages that became due at `from` or later. `association`: the end that sends
/// them.
pub fn results(
    scenario: &Scenario,
    (sender, receiver): (&SourcesEnd, &SourcesEnd),
    association: &Association,
    (from, now): (Time, Time),
) -> Vec<FlowResult> {
    let mut kept = Kept::by(association);
    let mut results = Vec::new();
    for ((source, streams), sending) in ranges(&scenario.sources).zip(&sender.sources) {
        let limited = source.lifetime.is_some() || source.retransmissions.is_some();
        let mut messages = Messages::default();
        for stream in streams {
            let due = sender.times[stream].iter().copied().flatten();
            let read = receiver.times[stream].iter().copied().chain(std::iter::repeat(None));
            let measured: Vec<_> =
                (1..).zip(due.zip(read)).filter(|(_, (due, _))| *due >= from).collect();
            messages.begin_stream();
            for (number, (due, read)) in measured.into_iter().rev() {
                match read {
                    Some(read) => messages.add_delivered(due, read),
                    None if limited && !kept.take(stream, number) => messages.abandoned += 1,
                    None => messages.under_way += 1,
                }
            }
        }
        messages.under_way += sending.waiting(from, now);
        let (begin, end) = (source.start.max(from), source.stop.unwrap_or(now).min(now));
        results.push(messages.result(source, end.since(begin).as_secs_f64()));
    }
    results
}

/// Messages that the sender still tries to deliver, or that wait at the receiver for earlier ones. With NR-SACK,
/// the sender does not know the latter.
struct Kept {
    /// By stream and number.
    known: BTreeSet<(StreamId, u32)>,
    /// Streams with a message whose number the engine does not know, because the beginning of an interleaved
    /// message has been acknowledged.
    begun: BTreeSet<StreamId>,
}

impl Kept {
    fn by(association: &Association) -> Self {
        let all = association.unsent().chain(association.unacknowledged());
        let all = all.map(|message| (message.stream, message.ppid));
        let (known, begun): (BTreeSet<_>, BTreeSet<_>) = all.partition(|(_, number)| *number > 0);
        Self { known, begun: begun.into_iter().map(|(stream, _)| stream).collect() }
    }

    /// Whether an unread message is one of them. The caller must visit the messages of a stream from the last to
    /// the first: the numbers of all messages submitted after a begun one are known.
    fn take(&mut self, stream: usize, number: u32) -> bool {
        let stream = StreamId(stream as u16);
        self.known.contains(&(stream, number)) || self.begun.remove(&stream)
    }
}

/// The messages of a source.
#[derive(Default)]
struct Messages {
    delays: Vec<Duration>,
    arrivals: Vec<Time>,
    /// Earliest time at which one of the added messages of the current stream was read.
    earliest: Option<Time>,
    abandoned: u64,
    under_way: u64,
    disordered: u64,
}

impl Messages {
    fn begin_stream(&mut self) {
        self.earliest = None;
    }

    /// Adds a message. Messages of a stream must be added from the last to the first.
    fn add_delivered(&mut self, due: Time, read: Time) {
        self.delays.push(read.since(due));
        self.arrivals.push(read);
        self.disordered += u64::from(self.earliest.is_some_and(|earliest| earliest < read));
        self.earliest = Some(self.earliest.map_or(read, |earliest| earliest.min(read)));
    }

    fn result(mut self, source: &Source, seconds: f64) -> FlowResult {
        self.delays.sort_unstable();
        self.arrivals.sort_unstable();
        let delay = |share: f64| {
            let last = self.delays.len().checked_sub(1)?;
            let at = (share * self.delays.len() as f64).ceil() as usize;
            Some(self.delays[at.saturating_sub(1).min(last)].as_secs_f64())
        };
        let delivered = self.delays.len() as u64;
        let settled = delivered + self.abandoned;
        let bytes = delivered as f64 * source.message as f64;
        let gaps = self.arrivals.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64());
        FlowResult {
            name: source.name.clone(),
            kind: "messages".to_owned(),
            goodput_bps: if seconds > 0.0 { bytes * 8.0 / seconds } else { 0.0 },
            sent: settled + self.under_way,
            delivered,
            abandoned: self.abandoned,
            under_way: self.under_way,
            delay_p50_s: delay(0.5),
            delay_p99_s: delay(0.99),
            delay_max_s: delay(1.0),
            lost: (settled > 0).then(|| self.abandoned as f64 / settled as f64),
            out_of_order: self.disordered as f64 / delivered.max(1) as f64,
            longest_gap_s: gaps.reduce(f64::max),
            mos: None,
        }
    }
}
