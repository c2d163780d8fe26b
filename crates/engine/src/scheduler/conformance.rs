//! The test kit: virtual paths with constant windows and delays, and a transfer that can run with any
//! scheduler. Windows are counted in full chunks. Nothing is lost unless a path fails.

mod properties;
mod suite;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::{
    Action, Decision, DecisionKind, DelaySource, PathView, Schedule, SentReport, View, check,
};

/// Claims of a scheduler about its decisions, which the tests verify.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claims {
    /// It predicts arrivals: equal paths alternate, and with unequal paths the reorder buffer is less
    /// full than with round robin.
    pub predicts_arrivals: bool,
    /// It always takes the head of the queue, and never leaves an open path idle.
    pub takes_the_head: bool,
    /// It assigns chunks to a path permanently. While estimates are wrong, it may assign all of them to
    /// the slower path.
    pub assigns_for_good: bool,
    /// It trusts its estimates. While they are wrong, it may be slower than the better path alone.
    pub trusts_estimates: bool,
}

/// Size of every chunk, bytes.
pub(super) const CHUNK: u64 = 1000;
/// Time from the failure of a path to its detection.
const DETECTION: Duration = Duration::from_secs(1);

/// A view of an ordinary path: open, with a round trip of 20 ms.
pub(super) fn path_view(id: u8) -> PathView {
    PathView {
        id: PathId(id),
        usable: true,
        cost: 0,
        usage: crate::path::PathUse::Always,
        reserved: false,
        overdue: Duration::ZERO,
        weight: 1.0,
        srtt: Some(Duration::from_millis(20)),
        last_rtt: Some(Duration::from_millis(20)),
        rttvar: Duration::ZERO,
        queueing: Duration::ZERO,
        rtt_age: Duration::ZERO,
        forward_delay: Some(Duration::from_millis(10)),
        delay_source: DelaySource::HalfRtt,
        cwnd: 10 * CHUNK,
        ssthresh: 5 * CHUNK,
        window: 10 * CHUNK,
        in_flight: 0,
        unacknowledged: 0,
        delivered: 0,
        burst_room: u64::MAX,
        rate: None,
        pacing_rate: Rate::ZERO,
        drain: None,
        rate_confidence: 0.0,
        loss: 0.0,
        mtu: 1500,
        probing: false,
    }
}

/// An unlimited amount of new data on these paths.
pub(super) fn view(paths: &[PathView]) -> View<'_> {
    View {
        now: Time::ZERO,
        occasion: DecisionKind::NewData,
        backlog_chunks: 1000,
        backlog_bytes: 1000 * CHUNK,
        sendable: 1000,
        window_room: 1000 * CHUNK,
        receive_buffer: 1000 * CHUNK,
        unordered: false,
        acknowledged_chunks: 0,
        closing: false,
        chunk_bytes: CHUNK,
        epoch: 0,
        fragment_ends: &[],
        paths,
    }
}

/// A path of the test kit.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualPath {
    /// Window in chunks.
    pub window: u64,
    /// One-way delay of data.
    pub forward: Duration,
    /// Serialisation time of a chunk.
    pub gap: Duration,
    /// One-way delay of acknowledgements.
    pub back: Duration,
    /// Time from which on the path delivers nothing.
    pub dies: Time,
    /// Forward delay in the view instead of `forward`; `None` for no estimates.
    pub told: Option<Duration>,
}

impl VirtualPath {
    /// A path with a window of `window` chunks and a delay of `millis` in each direction.
    pub fn new(window: u64, millis: u64) -> Self {
        let forward = Duration::from_millis(millis);
        Self {
            window,
            forward,
            gap: Duration::ZERO,
            back: forward,
            dies: Time::FAR_FUTURE,
            told: Some(forward),
        }
    }

    /// Time from the transmission of a chunk to its acknowledgement, including the wait behind a full
    /// window.
    pub fn round_trip(&self) -> Duration {
        (self.forward + self.gap + self.back).max(self.gap * self.window)
    }

    /// The same, with acknowledgements without delay.
    pub fn instant_ack(window: u64, millis: u64) -> Self {
        Self { back: Duration::ZERO, ..Self::new(window, millis) }
    }
}

/// A transfer to run.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    /// The paths.
    pub virtual_paths: Vec<VirtualPath>,
    /// Chunks to deliver.
    pub chunks: u64,
    /// Receive buffer in chunks.
    pub buffer: u64,
    /// The run is given up at this time.
    pub deadline: Time,
}

/// Results of a transfer.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Every transmission: time, path and chunk.
    pub sent: Vec<(Time, PathId, u64)>,
    /// Chunks delivered in order.
    pub delivered: u64,
    /// When the last chunk was delivered.
    pub finished: Time,
    /// Maximum number of chunks in the reorder buffer.
    pub most_buffered: usize,
}

impl Outcome {
    /// The chunks sent first on `path`, in order of transmission.
    pub fn carried(&self, path: u8) -> Vec<u64> {
        let own = self.sent.iter().filter(|(_, p, _)| *p == PathId(path));
        own.map(|(_, _, seq)| *seq).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Arrives { path: usize, seq: u64 },
    Acknowledged { path: usize, seq: u64, cumulative: u64 },
    Noticed { path: usize },
    Timer,
}

struct Run<'a, S> {
    transfer: &'a Transfer,
    scheduler: &'a mut S,
    now: Time,
    /// Chunks not assigned yet, ascending.
    queue: VecDeque<u64>,
    /// Lost chunks and where they were lost.
    lost: BTreeMap<u64, PathId>,
    /// Per path: outstanding chunks.
    flight: Vec<BTreeSet<u64>>,
    /// Per path: chunks acknowledged.
    delivered: Vec<u64>,
    dead: Vec<bool>,
    /// Per path: when its sender has sent all queued data.
    idle_from: Vec<Time>,
    epoch: u64,
    /// First chunk that the sender does not know to be delivered.
    cumulative: u64,
    /// First chunk that the receiver lacks, and the later ones that it has.
    expected: u64,
    held: BTreeSet<u64>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    order: u64,
    outcome: Outcome,
}

/// Runs the transfer to its end or its deadline. Panics at the first illegal decision.
pub(super) fn run<S: Schedule>(transfer: &Transfer, scheduler: &mut S) -> Outcome {
    let mut run = Run {
        transfer,
        scheduler,
        now: Time::ZERO,
        queue: (0..transfer.chunks).collect(),
        lost: BTreeMap::new(),
        flight: vec![BTreeSet::new(); transfer.virtual_paths.len()],
        delivered: vec![0; transfer.virtual_paths.len()],
        dead: vec![false; transfer.virtual_paths.len()],
        idle_from: vec![Time::ZERO; transfer.virtual_paths.len()],
        epoch: 0,
        cumulative: 0,
        expected: 0,
        held: BTreeSet::new(),
        events: BinaryHeap::new(),
        order: 0,
        outcome: Outcome::default(),
    };
    for (path, virtual_path) in transfer.virtual_paths.iter().enumerate() {
        if virtual_path.dies != Time::FAR_FUTURE {
            run.at(virtual_path.dies.saturating_add(DETECTION), Event::Noticed { path });
        }
    }
    run.go();
    run.outcome
}

impl<S: Schedule> Run<'_, S> {
    fn at(&mut self, time: Time, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, event)));
    }

    fn go(&mut self) {
        self.send_all();
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            if time > self.transfer.deadline || self.expected == self.transfer.chunks {
                break;
            }
            self.now = time;
            self.handle(event);
            // Simultaneous events are handled together, so that one acknowledgement may open two paths.
            if self.events.peek().is_none_or(|Reverse((next, _, _))| *next > time) {
                self.send_all();
            }
        }
        self.outcome.delivered = self.expected;
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrives { path, seq } => self.arrive(path, seq),
            Event::Acknowledged { path, seq, cumulative } => {
                self.delivered[path] += u64::from(self.flight[path].remove(&seq));
                self.cumulative = self.cumulative.max(cumulative);
            }
            Event::Noticed { path } => {
                self.dead[path] = true;
                self.epoch += 1;
                let id = PathId::from_index(path);
                let gone = core::mem::take(&mut self.flight[path]);
                self.lost.extend(gone.into_iter().map(|seq| (seq, id)));
            }
            Event::Timer => {}
        }
    }

    fn arrive(&mut self, path: usize, seq: u64) {
        if seq >= self.expected {
            self.held.insert(seq);
        }
        while self.held.remove(&self.expected) {
            self.expected += 1;
            self.outcome.finished = self.now;
        }
        self.outcome.most_buffered = self.outcome.most_buffered.max(self.held.len());
        let back = self.now + self.transfer.virtual_paths[path].back;
        self.at(back, Event::Acknowledged { path, seq, cumulative: self.expected });
    }

    fn paths(&self) -> Vec<PathView> {
        let virtual_paths = self.transfer.virtual_paths.iter().enumerate();
        let view = |(i, virtual_path): (usize, &VirtualPath)| PathView {
            usable: !self.dead[i],
            srtt: virtual_path.told.map(|_| virtual_path.round_trip()),
            forward_delay: virtual_path.told,
            cost: 0,
            window: virtual_path.window * CHUNK,
            cwnd: virtual_path.window * CHUNK,
            ssthresh: virtual_path.window * CHUNK,
            in_flight: self.flight[i].len() as u64 * CHUNK,
            last_rtt: virtual_path.told.map(|_| virtual_path.round_trip()),
            delivered: self.delivered[i] * CHUNK,
            rate: Some(Rate::from_bps(1_000_000)),
            ..path_view(i as u8)
        };
        virtual_paths.map(view).collect()
    }

    fn send_all(&mut self) {
        while !self.queue.is_empty() || !self.lost.is_empty() {
            let lost = self.lost.first_key_value().map(|(seq, on)| (*seq, *on));
            let paths = self.paths();
            let span_end = self.cumulative + self.transfer.buffer;
            let view = View {
                now: self.now,
                occasion: lost.map_or(DecisionKind::NewData, |(_, lost_on)| {
                    DecisionKind::Retransmission { lost_on }
                }),
                backlog_chunks: self.queue.len() as u64,
                backlog_bytes: self.queue.len() as u64 * CHUNK,
                sendable: self.queue.partition_point(|seq| *seq < span_end) as u64,
                receive_buffer: self.transfer.buffer * CHUNK,
                acknowledged_chunks: self.cumulative,
                closing: false,
                epoch: self.epoch,
                ..view(&paths)
            };
            let decision = self.scheduler.decide(&view);
            if let Err(illegal) = check(&view, &decision) {
                panic!("{illegal}: {decision:?} at {} on {view:#?}", self.now);
            }
            if !self.carry_out(decision) {
                break;
            }
        }
    }

    /// Carries the decision out. Returns whether to request another one immediately.
    fn carry_out(&mut self, decision: Decision) -> bool {
        match decision.action {
            Action::Send { path, position } => self.send(&[path], position),
            Action::Copies { paths, position } => {
                self.send(&paths.iter().collect::<Vec<_>>(), position);
            }
            Action::Wait { until } => {
                self.at(until, Event::Timer);
                return false;
            }
            Action::Blocked => return false,
        }
        true
    }

    fn send(&mut self, paths: &[PathId], position: u64) {
        let seq = match self.lost.pop_first() {
            Some((seq, _)) => seq,
            None => self.queue.remove(position as usize).expect("a checked position"),
        };
        for id in paths {
            let path = id.index();
            let virtual_path = self.transfer.virtual_paths[path];
            self.outcome.sent.push((self.now, *id, seq));
            self.flight[path].insert(seq);
            self.idle_from[path] = self.idle_from[path].max(self.now) + virtual_path.gap;
            let arrival = self.idle_from[path] + virtual_path.forward;
            if arrival < virtual_path.dies {
                self.at(arrival, Event::Arrives { path, seq });
            }
            self.scheduler.on_sent(&SentReport {
                path: *id,
                position,
                sequence: seq,
                bytes: CHUNK,
            });
        }
    }
}
