//! A small exact model of a bundle, to check what the guard promises. Time advances in ticks of 1 ms. Paths
//! have constant rates and delays and no losses, and the receiver reads in-order data at once. The guard is
//! the real one, and gets exact rates, delays and queueing delays.
//!
//! ```text
//!   unsent --scheduler--> queue of a link --service--> propagation --> receiver
//!      ^                                                                  |
//!      +---- end of the receive window <---- report, on the same path ----+
//! ```

use std::collections::VecDeque;

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::guard::{Guard, SharedWindow};
use crate::scheduler::{DelaySource, PathView};

/// Bytes of a chunk.
pub(super) const CHUNK: u64 = 1000;

/// A path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Link {
    /// Ticks that the link takes to send a chunk.
    pub service: u64,
    /// Ticks of propagation, each way.
    pub delay: u64,
}

/// The scheduler: which path is offered a chunk first, and which chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Order {
    /// The shortest round trip first, the next chunk of the stream, as `min-rtt` does.
    QuickestFirst,
    /// Each in turn, the next chunk of the stream, as `round-robin` does.
    InTurn,
    /// The longest round trip first, the next chunk of the stream: the most harmful choice.
    SlowestFirst,
    /// The longest round trip first, the first chunk that the path may take: the slow paths carry as much as
    /// the guard allows.
    SlowestAhead,
}

/// What limits the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Judge {
    /// The guard.
    Guard,
    /// The guard for each pair of the quickest path and another one.
    Pairwise,
    /// No guard.
    Off,
}

/// All parameters of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Case {
    /// The paths.
    pub links: Vec<Link>,
    /// Receive buffer, chunks.
    pub buffer: u64,
    /// Congestion windows as a multiple of the BDP, to which three chunks are added.
    pub pipes: u64,
    /// The scheduler.
    pub order: Order,
    /// How the guard is used.
    pub judge: Judge,
    /// Whether out-of-order data waits in the receive buffer.
    pub in_order: bool,
    /// Whether a path takes a chunk only shortly before the link can send it, instead of a whole window at
    /// once.
    pub paced: bool,
    /// Whether rule 4 may probe single paths.
    pub trials: bool,
}

#[derive(Debug, Default)]
struct Lane {
    /// When the link is idle again.
    free_at: u64,
    /// Chunks in flight or not yet reported: their arrival times and numbers.
    out: VecDeque<(u64, u64)>,
    /// How many of them have arrived.
    arrived: usize,
    /// Chunks that the path was given.
    carried: u64,
}

struct Bundle<'a> {
    case: &'a Case,
    lanes: Vec<Lane>,
    guards: Vec<Guard>,
    turn: usize,
    /// For each number from `base` on, whether it was sent.
    sent: VecDeque<bool>,
    base: u64,
    /// For each number from `delivered` on, whether it has arrived.
    stored: VecDeque<bool>,
    delivered: u64,
    total_arrived: u64,
    /// Reports: when each reaches the sender, the tick up to which it covers arrivals, and the chunks in
    /// order at that time.
    reports: Vec<(u64, u64, u64)>,
    /// The latest values that reports have brought.
    known_until: u64,
    acknowledged: u64,
}

impl Case {
    /// Chunks that are delivered in `ticks` ticks, after `settling`.
    pub(super) fn delivered(&self, settling: u64, ticks: u64) -> u64 {
        let mut bundle = Bundle::new(self);
        (1..=settling).for_each(|now| bundle.tick(now));
        let before = bundle.received();
        (settling + 1..=settling + ticks).for_each(|now| bundle.tick(now));
        bundle.received() - before
    }

    /// Chunks that each path is given in `ticks` ticks.
    pub(super) fn carried(&self, ticks: u64) -> Vec<u64> {
        let mut bundle = Bundle::new(self);
        (1..=ticks).for_each(|now| bundle.tick(now));
        bundle.lanes.iter().map(|lane| lane.carried).collect()
    }

    /// Propagation delay of the fastest return path.
    pub(super) fn way_back(&self) -> u64 {
        self.links.iter().map(|link| link.delay).min().unwrap_or(0)
    }

    fn window(&self, link: &Link) -> u64 {
        let pipe = (link.service + link.delay + self.way_back()) * CHUNK / link.service;
        pipe * self.pipes + 3 * CHUNK
    }
}

impl<'a> Bundle<'a> {
    fn new(case: &'a Case) -> Self {
        let lanes = case.links.iter().map(|_| Lane::default()).collect();
        let guards = vec![Guard::new(case.judge != Judge::Off); case.links.len()];
        Self {
            case,
            lanes,
            guards,
            turn: 0,
            sent: VecDeque::new(),
            base: 0,
            stored: VecDeque::new(),
            delivered: 0,
            total_arrived: 0,
            reports: Vec::new(),
            known_until: 0,
            acknowledged: 0,
        }
    }

    /// Chunks that the receiving application has.
    fn received(&self) -> u64 {
        if self.case.in_order { self.delivered } else { self.total_arrived }
    }

    fn tick(&mut self, now: u64) {
        self.arrive(now);
        self.report(now);
        self.send(now);
    }

    fn arrive(&mut self, now: u64) {
        let from = self.reports.len();
        for (lane, link) in self.lanes.iter_mut().zip(&self.case.links) {
            while let Some((_, number)) = lane.out.get(lane.arrived).filter(|(at, _)| *at <= now) {
                let at = (number - self.delivered) as usize;
                if self.stored.len() <= at {
                    self.stored.resize(at + 1, false);
                }
                self.stored[at] = true;
                lane.arrived += 1;
                self.total_arrived += 1;
                // The report returns on the path of the chunk that caused it.
                self.reports.push((now + link.delay, now, 0));
            }
        }
        while self.stored.front() == Some(&true) {
            self.stored.pop_front();
            self.delivered += 1;
        }
        for report in &mut self.reports[from..] {
            report.2 = self.delivered;
        }
    }

    fn report(&mut self, now: u64) {
        let Self { reports, known_until, acknowledged, .. } = self;
        reports.retain(|(due, until, in_order)| {
            if *due <= now {
                *known_until = (*known_until).max(*until);
                *acknowledged = (*acknowledged).max(*in_order);
            }
            *due > now
        });
        for lane in &mut self.lanes {
            while lane.out.front().is_some_and(|(at, _)| *at <= self.known_until) {
                lane.out.pop_front();
                lane.arrived -= 1;
            }
        }
    }

    fn view(&self, now: u64, path: usize) -> PathView {
        let (link, lane) = (&self.case.links[path], &self.lanes[path]);
        let queueing = lane.free_at.saturating_sub(now);
        let forward = link.service + link.delay + queueing;
        let millis = Duration::from_millis;
        let window = self.case.window(link);
        PathView {
            id: PathId::from_index(path),
            usable: true,
            cost: 0,
            usage: crate::path::PathUse::Always,
            reserved: false,
            overdue: Duration::ZERO,
            weight: 1.0,
            srtt: Some(millis(forward + self.case.way_back())),
            last_rtt: None,
            rttvar: Duration::ZERO,
            queueing: millis(queueing),
            rtt_age: Duration::ZERO,
            forward_delay: Some(millis(forward)),
            delay_source: DelaySource::HalfRtt,
            cwnd: window,
            ssthresh: window,
            window,
            in_flight: lane.out.len() as u64 * CHUNK,
            unacknowledged: 0,
            delivered: 0,
            burst_room: if self.case.paced && queueing > link.service { 0 } else { u64::MAX },
            rate: Some(Rate::from_bps(8 * CHUNK * 1000 / link.service)),
            pacing_rate: Rate::ZERO,
            drain: None,
            rate_confidence: 1.0,
            loss: 0.0,
            mtu: 1500,
            earliest_position: 0,
            probing: false,
        }
    }

    /// The views after the guard has been applied.
    fn judged(&mut self, now: u64) -> Vec<PathView> {
        let mut views: Vec<PathView> = (0..self.lanes.len()).map(|i| self.view(now, i)).collect();
        let shared = SharedWindow {
            buffer: self.case.buffer * CHUNK,
            chunk: CHUNK,
            acknowledged: self.acknowledged * CHUNK,
            // The guard does not probe single paths while the application limits the transfer.
            busy: self.case.trials,
            shared: false,
            in_order: self.case.in_order,
        };
        let at = Time::from_millis(now);
        if self.case.judge == Judge::Pairwise {
            let quickest = (0..views.len()).min_by_key(|i| views[*i].forward_delay).unwrap_or(0);
            for other in (0..views.len()).filter(|i| *i != quickest) {
                let mut pair = [views[quickest], views[other]];
                self.guards[other].apply(at, 0, shared, &mut pair);
                views[quickest].window = views[quickest].window.min(pair[0].window);
                views[other] = pair[1];
            }
        } else {
            self.guards[0].apply(at, 0, shared, &mut views);
        }
        if self.lanes.iter().all(|lane| lane.out.is_empty()) {
            PathView::allow_one_chunk(&mut views);
        }
        views
    }

    fn send(&mut self, now: u64) {
        let mut views = self.judged(now);
        loop {
            let mut ranked: Vec<usize> = (0..views.len()).collect();
            match self.case.order {
                Order::QuickestFirst => ranked.sort_by_key(|i| views[*i].srtt),
                Order::SlowestFirst | Order::SlowestAhead => {
                    ranked.sort_by_key(|i| std::cmp::Reverse(views[*i].srtt));
                }
                Order::InTurn => ranked.rotate_left(self.turn % views.len()),
            }
            let able = ranked.iter().find_map(|path| {
                let view = &views[*path];
                if self.case.order != Order::SlowestAhead && view.earliest_position > 0 {
                    return None;
                }
                let number = self.unsent(view.earliest_position)?;
                view.is_open().then_some((*path, number))
            });
            let Some((path, number)) = able else { return };
            self.turn = path + 1;
            self.dispatch(now, path, number);
            views[path].in_flight += CHUNK;
            views[path].burst_room = self.view(now, path).burst_room;
        }
    }

    /// The number at this position of the unsent queue, if the receive window reaches that far.
    fn unsent(&self, position: u64) -> Option<u64> {
        let mut left = position;
        let outstanding: u64 = self.lanes.iter().map(|lane| lane.out.len() as u64).sum();
        let end = match self.case.in_order {
            true => self.acknowledged + self.case.buffer,
            // Only chunks in flight occupy the window.
            false if outstanding >= self.case.buffer => return None,
            false => u64::MAX,
        };
        for number in self.base.. {
            if number >= end {
                return None;
            }
            if self.sent.get((number - self.base) as usize) != Some(&true) {
                if left == 0 {
                    return Some(number);
                }
                left -= 1;
            }
        }
        None
    }

    fn dispatch(&mut self, now: u64, path: usize, number: u64) {
        let at = (number - self.base) as usize;
        if self.sent.len() <= at {
            self.sent.resize(at + 1, false);
        }
        self.sent[at] = true;
        while self.sent.front() == Some(&true) {
            self.sent.pop_front();
            self.base += 1;
        }
        let (link, lane) = (&self.case.links[path], &mut self.lanes[path]);
        lane.carried += 1;
        lane.free_at = lane.free_at.max(now) + link.service;
        lane.out.push_back((lane.free_at + link.delay, number));
    }
}
