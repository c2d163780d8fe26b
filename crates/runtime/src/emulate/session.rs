//! Runs an emulation from start to end.

#![allow(
    clippy::disallowed_methods,
    reason = "waits for programs to begin to listen and to end, in real time"
)]

use std::thread::sleep;

use nix::sys::signal::Signal;
use ropewalk_base::{Duration, Time};

use super::addresses::{Addresses, device_names};
use super::cpu::{CpuMonitor, ProgramsCpu};
use super::device::make_devices;
use super::error::EmulateError;
use super::forwarder::{Forwarder, Report};
use super::links::{Links, LiveTraffic, Side};
use super::namespace::Namespace;
use super::namespace_init::{NamespaceInit, RECEIVER_FILE, SENDER_FILE};
use super::process::{Program, listening_sockets, status_of};
use super::signals::{SignalEvent, Signals};
use crate::clock::Clock;

/// Poll interval for listening sockets of the far side.
const LISTEN_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(5);
/// How long programs of the far side may take to exit on their own. When the command ends, their last packets may
/// still be in flight.
const EXIT_GRACE: Duration = Duration::from_millis(400);
/// How long they may take after a termination signal.
const TERMINATION_GRACE: Duration = Duration::from_secs(2);
/// Maximum number of paths, as in an association.
const PATHS_LIMIT: usize = 64;

/// The programs to run.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The command at the sender, in words. Placeholders such as `{remote1}` are filled in.
    pub command: Vec<String>,
    /// Shell command lines at the receiver, started first and ended last.
    pub far: Vec<String>,
    /// How long the command waits for the far side to listen.
    pub far_ready: Duration,
    /// Additional environment variables of the programs.
    pub environment: Vec<(String, String)>,
    /// Whether to request real-time priority.
    pub realtime: bool,
    /// Where the traffic is published while the links are up, if anywhere.
    pub traffic: Option<LiveTraffic>,
}

/// Result of the run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The command's exit status as a shell reports it.
    pub status: u8,
    /// Report of the emulation.
    pub report: Report,
    /// CPU time of the programs while the links were up.
    pub programs: ProgramsCpu,
}

/// The two sides and their first process. Fields are dropped in this order: programs first.
struct Environment {
    namespace_init: NamespaceInit,
    sender: Namespace,
    receiver: Namespace,
    devices: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Environment {
    fn addresses(&self, side: Side) -> Addresses<'_> {
        Addresses { side, devices: &self.devices }
    }

    /// Environment variables of programs on one side, in addition to the addresses.
    fn environment(&self, side: Side) -> Vec<(String, String)> {
        let far = if side == Side::Sender { RECEIVER_FILE } else { SENDER_FILE };
        let mut all = self.environment.clone();
        all.push(("ROPEWALK_SIDE".to_owned(), side.name().to_owned()));
        all.push(("ROPEWALK_FAR_NETNS".to_owned(), far.to_owned()));
        all
    }
}

/// Runs programs over the links until the command ends. Before the command starts, `on_ready` receives a text that
/// explains how to enter the far side. Threads that `on_ready` starts receive no signals.
///
/// The calling thread blocks signals meanwhile. The process should have no other thread that would receive them.
///
/// # Errors
/// [`EmulateError`]. A command that ends with a status other than 0 is not an error.
///
/// # Panics
/// If the command is empty.
pub fn run(
    links: Links,
    programs: &Programs,
    on_ready: &mut dyn FnMut(String),
) -> Result<Outcome, EmulateError> {
    assert!(!programs.command.is_empty(), "a command has at least one word");
    let count = links.paths().len();
    if !(1..=PATHS_LIMIT).contains(&count) {
        return Err(EmulateError::Paths(count));
    }
    let signals = Signals::block()?;
    let (sender, receiver) = (Namespace::new()?, Namespace::new()?);
    let names = device_names(links.paths().iter().map(|path| path.name.as_str()));
    let mtus = links.paths().iter().map(|path| path.mtu);
    let wanted: Vec<(String, u32)> = names.iter().cloned().zip(mtus).collect();
    let near = sender.inside(|| make_devices(Side::Sender, &wanted))?;
    let far = receiver.inside(|| make_devices(Side::Receiver, &wanted))?;
    let namespace_init = NamespaceInit::new(&sender, &receiver)?;
    let environment = programs.environment.clone();
    let emulation = Environment { namespace_init, sender, receiver, devices: names, environment };
    on_ready(format!(
        "the receiver's side: `nsenter --net=$ROPEWALK_FAR_NETNS` from the command, \
         `nsenter --net=/proc/{}/fd/4` from elsewhere",
        emulation.namespace_init.id()
    ));
    let mut far_programs = start_far(&emulation, programs)?;
    let forwarder =
        Forwarder::start(links, near, far, programs.realtime, programs.traffic.clone())?;
    let monitor =
        CpuMonitor::start(&emulation.namespace_init, &emulation.sender, &emulation.receiver)?;
    let near = emulation.addresses(Side::Sender);
    let environment = emulation.environment(Side::Sender);
    let command = Program::command(
        &emulation.namespace_init,
        &emulation.sender,
        &programs.command,
        near,
        &environment,
    );
    let status = command.and_then(|mut command| wait_for_command(&signals, &mut command));
    let cpu = monitor.stop();
    // The links stay up while the programs of the far side end.
    end_all(&mut far_programs)?;
    let report = forwarder.stop();
    Ok(Outcome { status: status?, report, programs: cpu })
}

/// Starts the far side's programs, and waits until the number of listening sockets there reaches the
/// number of programs.
fn start_far(emulation: &Environment, programs: &Programs) -> Result<Vec<Program>, EmulateError> {
    let side = Side::Receiver;
    let environment = emulation.environment(side);
    let start = |line: &String| {
        Program::line(
            &emulation.namespace_init,
            &emulation.receiver,
            line,
            emulation.addresses(side),
            &environment,
        )
    };
    let mut started = programs.far.iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let clock = Clock::start();
    let until = Time::ZERO + programs.far_ready;
    while clock.now() < until && !started.is_empty() {
        for program in &mut started {
            if let Some(status) = program.ended()?.filter(|status| !status.success()) {
                let (program, status) = (program.name.clone(), status.to_string());
                return Err(EmulateError::FarEnded { program, status });
            }
        }
        let mut waiting = 0;
        for program in &mut started {
            waiting += usize::from(program.ended()?.is_none());
        }
        let listening = started.iter().map(|program| listening_sockets(program.id())).max();
        if listening.unwrap_or(0) >= waiting {
            break;
        }
        sleep(LISTEN_POLL_INTERVAL);
    }
    Ok(started)
}

/// Waits for the command, and forwards signals to it.
fn wait_for_command(signals: &Signals, command: &mut Program) -> Result<u8, EmulateError> {
    loop {
        if let Some(status) = command.ended()? {
            return Ok(status_of(status));
        }
        match signals.wait()? {
            SignalEvent::Forward(signal) => command.signal(signal),
            // The command has received this signal itself.
            SignalEvent::AlreadyDelivered(_) | SignalEvent::Child => {}
        }
    }
}

/// Waits for the programs to end, then sends them a termination signal. Programs that still run are killed together
/// with their namespace.
fn end_all(programs: &mut [Program]) -> Result<(), EmulateError> {
    await_all(programs, EXIT_GRACE)?;
    programs.iter_mut().for_each(|program| program.signal(Signal::SIGTERM));
    await_all(programs, TERMINATION_GRACE)
}

/// Waits until all programs have ended, but no longer than `patience`.
fn await_all(programs: &mut [Program], patience: Duration) -> Result<(), EmulateError> {
    let clock = Clock::start();
    let until = Time::ZERO + patience;
    for program in programs {
        while program.ended()?.is_none() && clock.now() < until {
            sleep(LISTEN_POLL_INTERVAL);
        }
    }
    Ok(())
}
