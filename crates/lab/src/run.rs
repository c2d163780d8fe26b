//! Executes one run: builds the world, advances time, measures.

use core::fmt;

use ropewalk_base::{Duration, Seed, Time};
use ropewalk_engine::record::DecisionRecord;
use ropewalk_engine::scheduler::Scheduler;
use ropewalk_netsim::{HostId, World};
use ropewalk_scenario::{self as file, Scenario};

use crate::cost::Stopwatch;
use crate::endpoint::{Application, Endpoint, Wire};
use crate::guests;
use crate::machine::{Ended, Plan};
use crate::measure::{Meter, sequence_of};
use crate::network::{PathLinks, add_cross, add_paths, add_routes, add_shared_links};
use crate::result::RunResult;
use crate::series::{Sequence, Series};
use crate::wifi::WifiNetwork;

/// Data to record in addition to the result.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Whether to record time series at the scenario's interval.
    pub series: bool,
    /// Length of the initial part whose arrivals are all recorded, for sequence-time plots.
    pub sequence: Option<Duration>,
    /// A scheduler instead of the scenario's, for custom ones.
    pub scheduler: Option<Scheduler>,
    /// Index of the association whose arrivals are recorded, and its decisions if the scenario requests them;
    /// from 0. Recording all associations would exceed the memory.
    pub association: u32,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The figures.
    pub result: RunResult,
    /// Time series, if requested.
    pub series: Option<Series>,
    /// The first seconds, if requested.
    pub sequence: Option<Sequence>,
    /// Decisions of the chosen association's sender, if the scenario records them.
    pub decisions: Vec<DecisionRecord>,
}

/// Error of a run.
#[derive(Clone, Debug)]
pub enum RunError {
    /// The scheduler is unknown.
    Scheduler(String),
    /// A custom scheduler made an illegal decision or failed.
    Guest {
        /// Name of the scheduler.
        name: String,
        /// Description of the error.
        text: String,
    },
    /// The network cannot be built.
    Network(String),
    /// No event is pending although the transfer is not complete.
    Stuck {
        /// Time of the last event.
        at: Time,
        /// Delivered bytes.
        delivered: u64,
        /// Likely cause.
        diagnosis: String,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduler(text) | Self::Network(text) => f.write_str(text),
            Self::Guest { name, text } => write!(f, "the scheduler {name:?} failed: {text}"),
            Self::Stuck { at, delivered, diagnosis } => {
                write!(f, "the transfer stopped at {at} with {delivered} B delivered: {diagnosis}")
            }
        }
    }
}

impl core::error::Error for RunError {}

/// The endpoints of one association.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Sender.
    pub sender: HostId,
    /// Receiver.
    pub receiver: HostId,
    /// Start time.
    pub start: Time,
}

/// A world that is ready to run, with its transfers.
pub(crate) struct Setup {
    pub world: World<Wire, Endpoint>,
    pub transfers: Vec<Transfer>,
    /// The links of each association's paths.
    pub links: Vec<Vec<PathLinks>>,
    /// Whether the scheduler is a custom one.
    pub guest: bool,
}

impl Setup {
    /// The error of a custom scheduler, if one failed.
    fn guest_fault(&self) -> Option<RunError> {
        if self.guest { guests::fault(self) } else { None }
    }
}

/// Runs a scenario.
///
/// # Errors
/// [`RunError`].
pub fn run(scenario: &Scenario, options: &RunOptions) -> Result<Run, RunError> {
    run_watched(scenario, options, &|_| ())
}

/// As [`run`], with progress reports: `told` is called from time to time with the completed share, 0 to 1,
/// ascending. It does not affect the result.
///
/// # Errors
/// [`RunError`].
pub fn run_watched(
    scenario: &Scenario,
    options: &RunOptions,
    told: &dyn Fn(f64),
) -> Result<Run, RunError> {
    let watch = Stopwatch::start();
    let mut setup = set_up(scenario, options)?;
    let end = Time::ZERO + scenario.transfer.duration;
    let mut meter = Meter::new(scenario, &setup, options.series);
    let mut watcher = Watcher::new(scenario, told);
    let warm = Time::ZERO + scenario.transfer.warmup;
    if !scenario.transfer.warmup.is_zero() {
        advance(&mut setup, &mut meter, &mut watcher, warm);
        meter.reset(&mut setup, warm);
    }
    let ended = advance(&mut setup, &mut meter, &mut watcher, end);
    setup.guest_fault().map_or(Ok(()), Err)?;
    check_progress(&setup, scenario, ended)?;
    let mut run = meter.finish(&mut setup, scenario, ended);
    let chosen =
        setup.transfers.get(options.association as usize).filter(|_| options.sequence.is_some());
    run.sequence =
        chosen.map(|transfer| sequence_of(setup.world.host(transfer.receiver), scenario));
    let engine = &mut run.result.engine;
    engine.cpu_s = watch.seconds();
    engine.packets_per_cpu_s = engine.packets as f64 / engine.cpu_s.max(1e-9);
    Ok(run)
}

pub(crate) fn set_up(scenario: &Scenario, options: &RunOptions) -> Result<Setup, RunError> {
    let seed = Seed::root(scenario.transfer.seed);
    let mut world = World::new(seed.child("network"));
    let shared = add_shared_links(&mut world, scenario)?;
    let air = WifiNetwork::new(&mut world, scenario);
    let mut links = Vec::with_capacity(scenario.world.associations as usize);
    let plan = Plan::of(scenario);
    let scheduler = guests::scheduler(scenario, options)?;
    let chunk = plan.payload();
    let mut transfers = Vec::with_capacity(scenario.world.associations as usize);
    for number in 0..scenario.world.associations {
        let start = Time::ZERO + scenario.world.stagger * number as u64;
        let seed = seed.child("association").child(&number.to_string());
        let chosen = number == options.association;
        let mut plan = plan.clone();
        plan.keep_decisions(chosen);
        let out = plan.caller(&scheduler, seed.child("sender"), start);
        let back = plan.listener(&scheduler, seed.child("receiver"));
        let application = application(scenario, chunk, start);
        let unordered = scenario.transfer.unordered;
        let sender = world.add_host(Endpoint::new(out, &plan, application, number, unordered));
        let sink = Endpoint::new(back, &plan, Application::Sink, number, unordered);
        let receiver = world.add_host(sink);
        let paths = add_paths(&mut world, scenario, &shared, &air, number)?;
        let (there, back) = add_routes(&mut world, &paths, sender, receiver);
        links.push(paths);
        world.host_mut(sender).routes = there;
        let end = world.host_mut(receiver);
        end.routes = back;
        end.wanted = scenario.transfer.bytes;
        if let Some(length) = options.sequence.filter(|_| chosen) {
            end.keep_marks(Time::ZERO + length);
        }
        transfers.push(Transfer { sender, receiver, start });
    }
    air.add_others(&mut world, scenario)?;
    if let Some(first) = links.first() {
        add_cross(&mut world, scenario, first, &shared)?;
    }
    let guest = matches!(scheduler, Scheduler::Custom(_));
    Ok(Setup { world, transfers, links, guest })
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
fn advance(setup: &mut Setup, meter: &mut Meter, watcher: &mut Watcher<'_>, end: Time) -> Time {
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
        if next >= end || setup.guest_fault().is_some() {
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
struct Watcher<'a> {
    told: &'a dyn Fn(f64),
    whole: Duration,
    wanted: Option<u64>,
    step: Duration,
    next: Time,
}

impl<'a> Watcher<'a> {
    fn new(scenario: &Scenario, told: &'a dyn Fn(f64)) -> Self {
        let whole = scenario.transfer.duration;
        // Fine enough for a progress bar. With wanted bytes the duration is only an upper limit.
        let step = Duration::from_nanos(whole.as_nanos() / 1000).min(Duration::from_secs(1));
        let step = step.max(Duration::from_millis(1));
        let wanted = scenario.transfer.bytes;
        Self { told, whole, wanted, step, next: Time::ZERO + step }
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
        (self.told)(time.max(bytes).min(1.0));
    }
}

/// Fails with a diagnosis if nothing arrived, or if the transfer stalled.
fn check_progress(setup: &Setup, scenario: &Scenario, ended: Time) -> Result<(), RunError> {
    let Some(first) = setup.transfers.first() else { return Ok(()) };
    let (sender, receiver) = (setup.world.host(first.sender), setup.world.host(first.receiver));
    let delivered = receiver.read_bytes;
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

const fn why_closed(ended: Ended) -> &'static str {
    match ended {
        Ended::NoAnswer => "the peer never answered; see the loss and outages of the paths",
        Ended::Unreachable => {
            "the peer stopped answering: more timeouts in a row than are allowed \
             (`sctp.association_max_retrans`)"
        }
        Ended::Violation => "an end broke the protocol; this is a defect of the engine",
        Ended::Aborted => "the transfer was aborted",
        Ended::StaleCookie => "every cookie was too old when it came back",
        Ended::Closed => "the transfer was shut down",
    }
}
