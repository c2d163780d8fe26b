//! Plays a case to its end.

use std::fmt::Write as _;

use ropewalk_base::{Duration, PathId, Rate, Seed, Time};
use ropewalk_engine::scheduler::{DapsOptions, Scheduler, SchedulerOptions, WhenBlocked};
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{Association, Config, Packet, PathConfig};
use ropewalk_netsim::link::{GilbertElliott, Jitter, Limit, Outage, Outages, Span};
use ropewalk_netsim::topology::{Duplex, DuplexConfig, disjoint};
use ropewalk_netsim::{HostId, LinkConfig, LinkStats, LossModel, QueueModel, Schedule, World};

use super::case::{Case, Loss, PathCase};
use super::end::{End, Inbox, Plan};

type Net = World<Packet, End>;

fn loss_model(loss: Loss) -> LossModel {
    match loss {
        Loss::None => LossModel::None,
        Loss::Single(p) => LossModel::bernoulli(p).expect("a probability"),
        Loss::Bursts(p, r) => {
            LossModel::GilbertElliott(GilbertElliott::new(p, r, 0.0, 1.0).expect("probabilities"))
        }
    }
}

fn link(path: &PathCase, loss: Loss, more_delay: u64, heals: Time) -> LinkConfig {
    let delay = Duration::from_millis(path.delay + more_delay);
    let mut config = LinkConfig::new(Rate::from_bps(path.kbit_s * 1000), delay)
        .queue(QueueModel::DropTail(Limit::Packets(path.queue)));
    config.loss = Schedule::steps(loss_model(loss), vec![(heals, LossModel::None)])
        .expect("one step is in order");
    config.jitter = (path.jitter > 0).then(|| Jitter::Uniform(Duration::from_millis(path.jitter)));
    config.allow_reorder = path.reorders;
    config.duplication = path.duplication;
    config.corruption = path.corruption;
    let span = path.outage.map(|(from, length)| {
        let from = Time::from_millis(from);
        Span { from, until: (from + Duration::from_millis(length)).min(heals) }
    });
    let spans = span.filter(|s| s.from < s.until).into_iter().collect();
    config.outages = Outages { spans, effect: Outage::Drop };
    config
}

fn config(case: &Case) -> Config {
    let path = |p: &PathCase| PathConfig {
        mtu: p.mtu,
        oracle_delay: Some(Duration::from_millis(p.delay)),
        ..PathConfig::default()
    };
    let knobs = &case.knobs;
    let paths = case.paths.iter().map(path).collect();
    let chunk = u64::from(case.paths.iter().map(|p| p.mtu).min().unwrap_or(1500));
    let buffer = knobs.buffer.max(2 * chunk);
    let mut config = Config::preset(knobs.preset, paths, buffer);
    config.cmt.concurrent = knobs.concurrent && case.paths.len() > 1;
    config.cmt.split_fast_retransmit = knobs.split;
    config.cmt.delayed_ack = knobs.delayed_ack;
    config.cmt.hold_data_until_confirmed = knobs.hold;
    config.retransmission = knobs.retransmission;
    config.delay_source = knobs.delay_source;
    config.packet_form = knobs.packet_form;
    config.sack.every_packets = knobs.sack_every;
    config.sack.delay = Duration::from_millis(knobs.sack_delay);
    config.sack.count_per_path = knobs.sacks_per_path;
    config.sack.on_request = knobs.sacks_on_request;
    config.max_burst = knobs.max_burst;
    config.failure.potentially_failed = knobs.potentially_failed;
    config.failure.path_max_retrans = knobs.path_max_retrans;
    config.streams = knobs.streams;
    config.interleaving = knobs.interleaving;
    config.stream_scheduler = knobs.stream_scheduler;
    config.send_buffer = knobs.send_buffer.unwrap_or(config.send_buffer);
    // Neither end gives up: the network heals.
    config.association_max_retrans = 10_000;
    config.max_init_retransmits = 10_000;
    config
}

fn scheduler(case: &Case) -> Scheduler {
    let knobs = &case.knobs;
    let when_blocked = if knobs.resends { WhenBlocked::ResendOldest } else { WhenBlocked::Nothing };
    let options = SchedulerOptions {
        copies: knobs.copies,
        daps: DapsOptions { when_blocked, ..DapsOptions::default() },
        ..SchedulerOptions::default()
    };
    Scheduler::from_name(knobs.scheduler, &options).expect("a built-in name")
}

struct Stage {
    world: Net,
    ends: [HostId; 2],
    links: Vec<Duplex>,
}

fn set_stage(case: &Case) -> Stage {
    let seed = Seed::root(case.seed);
    let (config, heals) = (config(case), Time::from_millis(case.heals));
    let plan = |bytes, name| Plan::draw(&case.load, bytes, config.streams, seed.child(name));
    let (there, back) = (plan(case.load.bytes.0, "there"), plan(case.load.bytes.1, "back"));
    let start = |name: &str, opens: bool| {
        let (mut config, seed) = (config.clone(), seed.child(name));
        config.nr_sack = if opens { case.knobs.nr_sack.0 } else { case.knobs.nr_sack.1 };
        if opens {
            Association::connect(config, scheduler(case), seed, Time::ZERO)
        } else {
            Association::listen(config, scheduler(case), seed)
        }
    };
    let mut world = World::new(seed.child("network"));
    let end = |name, opens, out: &Plan, into: &Plan| {
        let inbox = Inbox::new(into.clone(), config.streams);
        End::new(start(name, opens), &case.load, out.clone(), inbox)
    };
    let left = world.add_host(end("left", true, &there, &back));
    let right = world.add_host(end("right", case.load.collide, &back, &there));
    let duplex = |(i, path): (usize, &PathCase)| DuplexConfig {
        name: format!("path{i}"),
        forward: link(path, path.loss, 0, heals),
        backward: link(path, path.loss_back, path.delay_back, heals),
    };
    let paths: Vec<_> = case.paths.iter().enumerate().map(duplex).collect();
    let links = disjoint(&mut world, left, right, &paths).expect("links that can be");
    world.host_mut(left).routes = links.iter().map(|l| l.forward).collect();
    world.host_mut(right).routes = links.iter().map(|l| l.backward).collect();
    world.wake_host_at_once(left);
    world.wake_host_at_once(right);
    Stage { world, ends: [left, right], links }
}

fn conserved(stats: &LinkStats) -> bool {
    let out = stats.queued + stats.in_flight + stats.delivered + stats.dropped.total();
    stats.offered + stats.duplicated == out
}

impl Stage {
    fn wrong(&self) -> Option<String> {
        let side = |(name, at): (&str, usize)| {
            let [end, peer] = [at, 1 - at].map(|at| self.world.host(self.ends[at]));
            let reneged = peer.association.receive_stats().reneged > 0;
            let beyond = end.beyond.clone().filter(|_| !reneged);
            let what = end.wrong.clone().or(beyond);
            let closed = end.closed.map(|reason| format!("ended: {reason:?}"));
            what.or(closed).map(|what| format!("{name} {what}"))
        };
        ["left", "right"].into_iter().zip(0..).find_map(side)
    }

    fn is_done(&self) -> bool {
        self.ends.iter().all(|id| {
            let end = self.world.host(*id);
            end.inbox.is_complete() && end.association.is_flushed()
        })
    }

    fn check_links(&self) -> Result<(), String> {
        for link in self.links.iter().flat_map(|l| [l.forward_link, l.backward_link]) {
            let stats = self.world.link_stats(link);
            if !conserved(&stats) {
                return Err(format!("{link:?} loses count: {stats:?}"));
            }
        }
        Ok(())
    }

    /// Checks that nothing is in flight once all data is acknowledged, and that each byte was counted
    /// once on one path, unless the receiver dropped it to make room.
    fn check_books(&self) -> Result<(), String> {
        let now = self.world.now();
        for (id, peer) in self.ends.into_iter().zip(self.ends.into_iter().rev()) {
            let sent = self.world.host(peer).outbox.bytes();
            let paths = (0..self.links.len()).map(PathId::from_index);
            let end = &self.world.host(id).association;
            let counted: u64 = paths.map(|path| end.received_bytes(path)).sum();
            let reneged = end.receive_stats().reneged;
            if counted < sent || counted > sent && reneged == 0 {
                return Err(format!("the paths count {counted} B of {sent} received"));
            }
        }
        for id in self.ends {
            let flying = self.world.host(id).in_flight(now);
            if flying != 0 {
                return Err(format!("{flying} B in flight though all was acknowledged"));
            }
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let now = self.world.now();
        let mut text = String::new();
        for id in self.ends {
            let end = self.world.host(id);
            let (missing, sent) = (end.inbox.missing(), end.sent);
            let occupancy = end.association.receive_occupancy();
            let next = end.association.next_deadline();
            let _ = write!(
                text,
                "\n  {:?}, sent {sent} of {}, {missing} to come, holds {occupancy:?}, due {next:?}",
                end.association.state(),
                end.outbox.messages.len(),
            );
            for path in 0..self.links.len() {
                let view = end.association.path_view(now, PathId::from_index(path));
                let _ = write!(
                    text,
                    "\n    {:?} usable {} window {} of {} in flight {}",
                    view.id, view.usable, view.window, view.cwnd, view.in_flight,
                );
            }
        }
        text
    }
}

/// Time by which a healthy network has carried all data: backed-off timers, then twenty times what the
/// slowest path takes, and a round trip for each message, since a strict schedule may send small ones
/// individually.
fn patience(case: &Case) -> Time {
    let bits = (case.load.bytes.0 + case.load.bytes.1) * 8 * 20;
    let slowest = case.paths.iter().map(|p| p.kbit_s).min().unwrap_or(1);
    let messages = (case.load.bytes.0 + case.load.bytes.1) / u64::from(case.load.message.0) + 1;
    let longest = case.paths.iter().map(|p| 2 * p.delay + p.delay_back + p.jitter).max();
    let pace = case.load.every / 1000 + case.load.reads_every + longest.unwrap_or(0) + 200;
    Time::from_millis(case.heals)
        + Duration::from_secs(2000)
        + Duration::from_millis(bits / slowest + messages * pace)
}

/// Plays a case.
///
/// # Errors
/// If something went wrong, with a description.
pub fn play(case: &Case) -> Result<(), String> {
    let mut stage = set_stage(case);
    let end = patience(case);
    let mut events = 0u64;
    while !stage.is_done() {
        if stage.world.step_until(end).is_none() {
            let state = stage.describe();
            return Err(format!("not done at {end}, {events} events{state}"));
        }
        events += 1;
        if let Some(wrong) = stage.wrong() {
            return Err(wrong + &stage.describe());
        }
        if events.is_multiple_of(256) {
            stage.check_links()?;
        }
    }
    stage.check_books()?;
    stage.check_links()?;
    shut_down(&mut stage)
}

/// Both users have all data. One shuts down, and both ends must notice.
fn shut_down(stage: &mut Stage) -> Result<(), String> {
    let now = stage.world.now();
    stage.world.host_mut(stage.ends[0]).association.shutdown(now);
    stage.world.wake_host_at_once(stage.ends[0]);
    let end = now + Duration::from_secs(1000);
    loop {
        let closed = stage.ends.map(|id| stage.world.host(id).closed);
        if closed == [Some(CloseReason::Shutdown); 2] {
            return Ok(());
        }
        let orderly = |reason: Option<CloseReason>| {
            reason.is_none_or(|reason| reason == CloseReason::Shutdown)
        };
        if !closed.into_iter().all(orderly) || stage.world.step_until(end).is_none() {
            return Err(format!("shutdown ends in {closed:?}{}", stage.describe()));
        }
    }
}
