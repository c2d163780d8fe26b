//! Executes one run: builds the world, advances time, measures.

use ropewalk_base::{Duration, Seed, Time};
use ropewalk_engine::scheduler::Scheduler;
use ropewalk_netsim::{HostId, World};
use ropewalk_scenario::{self as file, Scenario};

use crate::cost::Stopwatch;
use crate::endpoint::{Application, Endpoint};
use crate::error::RunError;
use crate::machine::{EndReason, EngineSettings, Machine};
use crate::measure::{Meter, Run, sequence_of};
use crate::network::{add_cross, add_paths, add_routes, add_shared_links};
use crate::packet_log::{self, PacketLog, Packets, Way};
use crate::packet_trace::{PacketTrace, Vantage};
use crate::setup::{self, RunOptions, Setup, Transfer};
use crate::sources::SourcesEnd;
use crate::tunnel;
use crate::wifi::WifiNetwork;

/// Runs a scenario.
///
/// # Errors
/// [`RunError`].
pub fn run(scenario: &Scenario, options: &RunOptions) -> Result<Run, RunError> {
    run_watched(scenario, options, &|_| ())
}

/// As [`run`], with progress reports: `on_progress` is called from time to time with the completed fraction, from
/// 0 to 1 in ascending order. It does not affect the result.
///
/// # Errors
/// [`RunError`].
pub fn run_watched(
    scenario: &Scenario,
    options: &RunOptions,
    on_progress: &dyn Fn(f64),
) -> Result<Run, RunError> {
    execute(scenario, options, on_progress, None).map(|(run, _)| run)
}

/// As [`run_watched`], and records the packets of one end of the association `options.association`. Returns the
/// trace, which the caller must finish. The recording does not affect the result.
///
/// # Errors
/// [`RunError`].
pub fn run_traced(
    scenario: &Scenario,
    options: &RunOptions,
    on_progress: &dyn Fn(f64),
    trace: PacketTrace,
) -> Result<(Run, PacketTrace), RunError> {
    let (run, trace) = execute(scenario, options, on_progress, Some(trace))?;
    Ok((run, trace.expect("the endpoint keeps its trace")))
}

/// The endpoint that `trace` records.
fn traced_host(setup: &Setup, options: &RunOptions, trace: &PacketTrace) -> HostId {
    let transfer = &setup.transfers[options.association as usize];
    match trace.vantage {
        Vantage::Sender => transfer.sender,
        Vantage::Receiver => transfer.receiver,
    }
}

fn execute(
    scenario: &Scenario,
    options: &RunOptions,
    on_progress: &dyn Fn(f64),
    trace: Option<PacketTrace>,
) -> Result<(Run, Option<PacketTrace>), RunError> {
    let watch = Stopwatch::start();
    let mut setup = set_up(scenario, options)?;
    let traced = trace.as_ref().map(|trace| traced_host(&setup, options, trace));
    if let (Some(host), Some(trace)) = (traced, trace) {
        setup.world.host_mut(host).begin_trace(trace);
    }
    let end = Time::ZERO + scenario.transfer.duration;
    let mut meter = Meter::new(scenario, &mut setup, options.series);
    let mut watcher = ProgressReporter::new(scenario, on_progress);
    let warm = Time::ZERO + scenario.transfer.warmup;
    if !scenario.transfer.warmup.is_zero() {
        advance(&mut setup, &mut meter, &mut watcher, warm);
        meter.reset(&mut setup, warm);
    }
    let ended = advance(&mut setup, &mut meter, &mut watcher, end);
    setup.scheduler_fault().map_or(Ok(()), Err)?;
    check_progress(&setup, scenario, ended)?;
    let mut run = meter.finish(&mut setup, scenario, ended);
    if let Some(chosen) = setup.transfers.get(options.association as usize).copied() {
        let sequence = || sequence_of(setup.world.host(chosen.receiver), scenario);
        run.sequence = options.sequence.map(|_| sequence());
        run.packets = packets_of(&mut setup, chosen, scenario);
        run.bottlenecks = setup.world.host(chosen.sender).machine.shared_bottlenecks().cloned();
    }
    let engine = &mut run.result.engine;
    engine.cpu_s = watch.seconds();
    engine.packets_per_cpu_s = engine.packets as f64 / engine.cpu_s.max(1e-9);
    let trace = traced.and_then(|host| setup.world.host_mut(host).take_trace());
    Ok((run, trace))
}

/// The packets of a transfer, if they were listed.
fn packets_of(setup: &mut Setup, transfer: Transfer, scenario: &Scenario) -> Option<Packets> {
    let sender = setup.world.host_mut(transfer.sender).take_log()?;
    let receiver = setup.world.host_mut(transfer.receiver).take_log()?;
    let numbers = setup.world.packets().map(|packet| packet.payload.log_number());
    Some(packet_log::collect(&sender, &receiver, &numbers.collect(), scenario))
}

pub(crate) fn set_up(scenario: &Scenario, options: &RunOptions) -> Result<Setup, RunError> {
    let seed = Seed::root(scenario.transfer.seed);
    let mut world = World::new(seed.child("network"));
    let shared = add_shared_links(&mut world, scenario)?;
    let air = WifiNetwork::new(&mut world, scenario);
    let mut links = Vec::with_capacity(scenario.world.associations as usize);
    let plan = EngineSettings::of(scenario);
    let others = setup::others(scenario);
    let scheduler = setup::scheduler(scenario, options)?;
    let (chunk, datagram) = (plan.payload(), plan.datagram());
    let mut transfers = Vec::with_capacity(scenario.world.associations as usize);
    for number in 0..scenario.world.associations {
        let start = Time::ZERO + scenario.world.stagger * number as u64;
        let seed = seed.child("association").child(&number.to_string());
        let chosen = number == options.association;
        let mut plan = if number == 0 { plan.clone() } else { others.clone() };
        plan.keep_decisions(chosen);
        let mut out = plan.initiator(&scheduler, seed.child("sender"), start);
        if let Machine::Sctp(association) = &mut out {
            SourcesEnd::set_values(scenario, association);
        }
        let back = plan.listener(&scheduler, seed.child("receiver"));
        let [application, at_receiver] = applications(scenario, [chunk, datagram], start, seed);
        let unordered = scenario.transfer.unordered;
        let sender = world.add_host(Endpoint::new(out, &plan, application, number, unordered));
        let sink = Endpoint::new(back, &plan, at_receiver, number, unordered);
        let receiver = world.add_host(sink);
        let paths = add_paths(&mut world, scenario, &shared, &air, number)?;
        let (there, back) = add_routes(&mut world, &paths, sender, receiver);
        links.push(paths);
        world.host_mut(sender).routes = there;
        let end = world.host_mut(receiver);
        end.routes = back;
        end.wanted = scenario.transfer.bytes;
        if let Some(length) = options.sequence.filter(|_| chosen) {
            end.record_arrivals(Time::ZERO + length);
        }
        if let Some(length) = options.packets.filter(|_| chosen) {
            let until = Time::ZERO.saturating_add(length);
            world.host_mut(sender).begin_log(PacketLog::new(Way::Up, until));
            world.host_mut(receiver).begin_log(PacketLog::new(Way::Down, until));
        }
        transfers.push(Transfer { sender, receiver, start });
    }
    air.add_others(&mut world, scenario)?;
    if let Some(first) = links.first() {
        add_cross(&mut world, scenario, first, &shared)?;
    }
    let custom_scheduler = matches!(scheduler, Scheduler::Custom(_));
    Ok(Setup { world, transfers, links, custom_scheduler })
}

/// The applications at the sender and at the receiver. `chunk` and `datagram`: maximum user data of a packet,
/// bytes.
fn applications(
    scenario: &Scenario,
    [chunk, datagram]: [u32; 2],
    start: Time,
    seed: Seed,
) -> [Application; 2] {
    if !scenario.sources.is_empty() {
        return SourcesEnd::both(scenario, start).map(|end| Application::Sources(Box::new(end)));
    }
    if scenario.flows.is_empty() {
        return [application(scenario, chunk, start), Application::Sink];
    }
    tunnel::tunnel_ends(scenario, datagram, seed).map(|end| Application::Tunnel(Box::new(end)))
}

fn application(scenario: &Scenario, chunk: u32, start: Time) -> Application {
    let left = scenario.transfer.bytes;
    match scenario.transfer.application {
        file::Application::Bulk => {
            let message = scenario.transfer.message.unwrap_or(chunk as u64);
            Application::Bulk { message: message.min(u32::MAX as u64) as u32, left }
        }
        file::Application::Steady(file::Steady { rate, message }) => Application::Steady {
            message: message.min(u32::MAX as u64) as u32,
            every: rate.time_for(message),
            next: start,
            left,
        },
    }
}

/// Advances time to `end`, or until all wanted bytes are delivered; returns the final time.
fn advance(
    setup: &mut Setup,
    meter: &mut Meter,
    watcher: &mut ProgressReporter<'_>,
    end: Time,
) -> Time {
    // Checking all endpoints after each event would cost more than the event itself. The count continues across
    // samples and reports, so that these do not change the end of a run.
    let every = if setup.transfers.len() == 1 { 1 } else { setup.transfers.len() * 64 };
    let mut left = every;
    loop {
        let next = meter.next_sample().map_or(end, |at| at.min(end)).min(watcher.next);
        if watcher.wanted.is_some() {
            while setup.world.step_until(next).is_some() {
                left -= 1;
                if left == 0 {
                    left = every;
                    if let Some(at) = done(setup) {
                        return at;
                    }
                }
            }
        }
        setup.world.run_until(next);
        if meter.next_sample().is_some_and(|at| at <= next) {
            meter.sample(setup, next);
        }
        watcher.tell(setup, next);
        if next >= end || setup.scheduler_fault().is_some() {
            return done(setup).unwrap_or(next);
        }
    }
}

/// Time at which the last endpoint had all wanted bytes, if all have them.
fn done(setup: &Setup) -> Option<Time> {
    let ends = setup.transfers.iter().map(|t| setup.world.host(t.receiver).done_at);
    ends.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max())
}

/// Reports the progress of a run.
struct ProgressReporter<'a> {
    on_progress: &'a dyn Fn(f64),
    whole: Duration,
    wanted: Option<u64>,
    step: Duration,
    next: Time,
}

impl<'a> ProgressReporter<'a> {
    fn new(scenario: &Scenario, on_progress: &'a dyn Fn(f64)) -> Self {
        let whole = scenario.transfer.duration;
        // Fine enough for a progress bar. With wanted bytes the duration is only an upper limit.
        let step = Duration::from_nanos(whole.as_nanos() / 1000).min(Duration::from_secs(1));
        let step = step.max(Duration::from_millis(1));
        let wanted = scenario.transfer.bytes;
        Self { on_progress, whole, wanted, step, next: Time::ZERO + step }
    }

    fn tell(&mut self, setup: &Setup, now: Time) {
        if now < self.next {
            return;
        }
        self.next += self.step;
        let time = now.since(Time::ZERO).as_secs_f64() / self.whole.as_secs_f64();
        // Sums over all endpoints only if needed: with thousands of them, cache misses are expensive.
        let read = || setup.transfers.iter().map(|t| setup.world.host(t.receiver).read_bytes).min();
        let bytes = self.wanted.map_or(0.0, |wanted| read().unwrap_or(0) as f64 / wanted as f64);
        (self.on_progress)(time.max(bytes).min(1.0));
    }
}

/// Fails with a diagnosis if nothing arrived, or if the transfer stalled.
fn check_progress(setup: &Setup, scenario: &Scenario, ended: Time) -> Result<(), RunError> {
    let Some(first) = setup.transfers.first() else { return Ok(()) };
    let (sender, receiver) = (setup.world.host(first.sender), setup.world.host(first.receiver));
    // The sender only reads data that returns through a tunnel.
    let delivered = receiver.read_bytes + sender.read_bytes;
    if let Some((at, reason)) = sender.closed {
        return Err(RunError::Stuck { at, delivered, diagnosis: why_closed(reason).to_owned() });
    }
    let unfinished = scenario.transfer.bytes.is_some() && receiver.done_at.is_none();
    let nothing = delivered == 0 && scenario.transfer.bytes.is_none();
    if !unfinished && !nothing {
        return Ok(());
    }
    let diagnosis = if sender.connected.is_none() {
        "the handshake did not complete; see the loss, outages and delay of the first path"
    } else if nothing {
        "the association came up but no data arrived; see loss, outages and the receive buffer"
    } else {
        "the time given was not enough; raise transfer.duration or lower transfer.bytes"
    };
    Err(RunError::Stuck { at: ended, delivered, diagnosis: diagnosis.to_owned() })
}

const fn why_closed(ended: EndReason) -> &'static str {
    match ended {
        EndReason::NoAnswer => "the peer never answered; see the loss and outages of the paths",
        EndReason::Unreachable => {
            "the peer stopped answering: more timeouts in a row than are allowed \
             (`sctp.association_max_retrans`)"
        }
        EndReason::Violation => "an end broke the protocol; this is a defect of the engine",
        EndReason::Aborted => "the transfer was aborted",
        EndReason::StaleCookie => "every cookie was too old when it came back",
        EndReason::Closed => "the transfer was shut down",
    }
}
