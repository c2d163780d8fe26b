//! Changes that a tunnel makes to its machine. Nothing else in Ropewalk changes a machine.
//!
//! A [`Machine`] holds the desired state, compares it with the actual state, and changes the difference. Start, a new
//! answer of a hub and a change by another program cause the same comparison. Every change is in the journal before
//! it is made, and is undone with the last clone of the machine.
//!
//! ```text
//!   hub, client --- declares ---> Machine --- compares ---> locks, steering    kill switch
//!                                    ^                      routing            device, addresses, routes
//!   kernel, inotify --- watch -------'                      forwarding         sysctls, packet filter
//!                                                           name_servers       resolv.conf, systemd-resolved
//!                                                               '--- journal ---> previous state
//! ```

mod forwarding;
mod journal;
mod locks;
mod name_servers;
mod networks;
mod routing;
mod steering;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ipnet::IpNet;
use parking_lot::{Mutex, MutexGuard};
use ropewalk_runtime::system::routes;
use tokio::sync::watch::{Receiver, Sender};

use self::forwarding::Forwarding;
pub use self::forwarding::Role;
use self::journal::Journal;
pub use self::journal::JournalError;
pub(super) use self::journal::{Change, EXTENSION};
use self::locks::Locks;
use self::name_servers::NameServers;
pub use self::name_servers::{Manager, NameServersError, RESOLV_CONF};
pub use self::networks::{Overlap, everything, overlap, single};
pub use self::routing::DeviceState;
use self::routing::Routing;
pub use self::steering::{OUTSIDE_MARK, has_ipv6, permits_ipv6};
use self::watch::{Look, Watch};
use super::error::TunnelError;
use crate::observe::{Event, PeerIdentity, Reporter};

/// Settings of the changes that a tunnel may make to its machine.
#[derive(Clone, Debug)]
pub struct MachineSettings {
    /// Name of the tunnel.
    pub name: String,
    /// Name of the TUN device.
    pub device: String,
    /// Whether nothing may leave this machine outside of the tunnel.
    pub kill_switch: bool,
    /// Networks that are reached outside of the tunnel nevertheless.
    pub direct: Vec<IpNet>,
    /// Directory of the journal.
    pub journal_directory: PathBuf,
}

/// A machine on which a tunnel runs.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: MachineSettings,
    is_closed: bool,
    /// The name servers that this machine had before the tunnel.
    name_servers: Vec<IpAddr>,
    /// Number of changes that an earlier run had left.
    undone: usize,
    state: Mutex<State>,
    /// Notified when the desired state changes.
    declared: Sender<()>,
}

/// The desired state.
#[derive(Debug)]
struct State {
    journal: Journal,
    /// The kill switch, if the machine is closed.
    locks: Option<Locks>,
    routing: Routing,
    forwarding: Option<Forwarding>,
    name_servers: Option<NameServers>,
}

/// Result of a comparison.
#[derive(Debug, Default)]
struct Found {
    /// Whether another program had opened the machine.
    was_opened: bool,
    problems: BTreeSet<String>,
}

impl Found {
    /// Keeps a problem.
    fn note<T>(&mut self, what: &str, result: Result<T, impl Display>) -> Option<T> {
        result.map_err(|error| self.problems.insert(format!("{what}: {error}"))).ok()
    }
}

impl State {
    /// Compares a part of the machine with the desired state, and changes the difference.
    fn compare(&mut self, look: Look) -> Found {
        let mut found = Found::default();
        let Self { journal, locks, routing, forwarding, name_servers } = self;
        if look == Look::NameServers {
            let kept = name_servers.as_ref().map_or(Ok(()), |names| names.keep_listed(journal));
            found.note("the name servers", kept);
            return found;
        }
        if let Some(locks) = locks {
            let opened = found.note("the kill switch", locks.compare(journal));
            found.was_opened = opened.unwrap_or_default();
        }
        if look == Look::Network {
            found.note("the tunnel's device", routing.compare_device());
            let exceptions = routing.compare_exceptions(journal);
            let exceptions = found.note("the routes outside of the tunnel", exceptions);
            found.problems.extend(exceptions.unwrap_or_default());
        }
        if let Some(forwarding) = forwarding {
            found.note("forwarding", forwarding.compare(journal));
        }
        found
    }
}

impl Machine {
    /// Closes the machine if it should be closed, then undoes the other changes that an earlier run has left.
    ///
    /// # Errors
    /// The tunnel is running, its journal cannot be opened, or the machine cannot be closed. What was closed stays
    /// closed.
    pub fn open(settings: MachineSettings) -> Result<Self, TunnelError> {
        let MachineSettings { name, device, kill_switch, direct, journal_directory } = &settings;
        let mut locks = Locks::new(name, device, direct);
        let opened = Journal::open(journal_directory, name, *kill_switch);
        if *kill_switch && matches!(opened, Err(JournalError::Io(..))) {
            // For example on a full disk. `ropewalk tunnel undo` opens a machine that no journal knows.
            let closed = locks.close_without_journal();
            closed.map_err(TunnelError::system("closing the machine"))?;
        }
        let (mut journal, undone) = opened?;
        let is_closed = *kill_switch || journal.is_held();
        if is_closed {
            journal.stay_closed();
            locks.compare(&mut journal)?;
        }
        // Without those of an earlier run, even if its journal is lost.
        let _ = name_servers::restore(Path::new(RESOLV_CONF), name);
        let name_servers = name_servers::of_system();
        locks.name_servers.clone_from(&name_servers);
        if is_closed {
            locks.compare(&mut journal)?;
        }
        let state = State {
            journal,
            locks: is_closed.then_some(locks),
            routing: Routing::new(is_closed),
            forwarding: None,
            name_servers: None,
        };
        let (state, declared) = (Mutex::new(state), Sender::default());
        let shared = Shared { settings, is_closed, name_servers, undone, state, declared };
        Ok(Self(Arc::new(shared)))
    }

    /// Whether the machine is closed.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed
    }

    /// Name of the tunnel.
    pub fn name(&self) -> &str {
        &self.0.settings.name
    }

    /// Name of the TUN device.
    pub fn device(&self) -> &str {
        &self.0.settings.device
    }

    /// Keeps the machine closed when tunnels end, until [`undo`].
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn hold(&self) -> Result<(), TunnelError> {
        Ok(self.0.state.lock().journal.hold()?)
    }

    /// Opens the machine with its last clone, unless it is held closed. For an orderly end.
    pub fn opens_at_end(&self) {
        self.0.state.lock().journal.opens_at_end();
    }

    /// Lets packets reach these hubs outside of the tunnel, and no others.
    ///
    /// # Errors
    /// The error of the system. It is tried again.
    pub fn set_hubs(&self, hubs: &[SocketAddr]) -> Result<(), TunnelError> {
        let mut state = self.declare();
        let State { journal, locks, routing, .. } = &mut *state;
        routing.set_peers(hubs);
        if let Some(locks) = locks {
            locks.hubs = hubs.to_vec();
            locks.compare(journal)?;
        }
        Ok(())
    }

    /// Keeps the routes to the hubs out of a tunnel to `networks`. TUN devices are not routes to a hub unless `links`
    /// names them.
    pub(super) fn set_networks(&self, networks: &[IpNet], links: &[String]) {
        self.declare().routing.set_networks(networks, links);
    }

    /// Sets up the device, and makes the networks in `blocked` unreachable, and only these.
    ///
    /// # Errors
    /// The device could not be set up. It is tried again.
    pub(super) fn set_device(&self, device: DeviceState, blocked: Vec<IpNet>) -> io::Result<()> {
        let mut state = self.declare();
        state.routing.declare(device, blocked);
        state.routing.compare_device()?;
        let State { journal, routing, .. } = &mut *state;
        // A failure is reported when it is tried again.
        let _ = routing.compare_exceptions(journal);
        Ok(())
    }

    /// Changes the MTU of the device, bytes.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn set_mtu(&self, mtu: u32) -> io::Result<()> {
        self.0.state.lock().routing.set_mtu(mtu)
    }

    /// Lets the machine forward packets of the families of these networks.
    ///
    /// # Errors
    /// The error of the system. It is tried again.
    pub(super) fn set_forwarding(
        &self,
        role: &Role,
        networks: &[IpNet],
    ) -> Result<(), JournalError> {
        let mut state = self.declare();
        let State { journal, forwarding, .. } = &mut *state;
        let (name, device) = (self.name(), self.device());
        forwarding.insert(Forwarding::new(name, device, role.clone(), networks)).compare(journal)
    }

    /// Finds the manager of the name servers. Changes nothing except what an earlier run has left.
    ///
    /// # Errors
    /// The manager that the user has named cannot be used.
    pub(super) async fn find_name_servers(
        &self,
        manager: Option<&Manager>,
        reporter: &Reporter,
    ) -> Result<(), NameServersError> {
        let mut found = NameServers::find(self.name(), manager, reporter).await?;
        found.look_at_file();
        self.declare().name_servers = Some(found);
        Ok(())
    }

    /// Sets the name servers of the tunnel's interface. Without any, they stay as they are.
    ///
    /// # Errors
    /// The name servers could not be set.
    pub(super) async fn set_name_servers(
        &self,
        interface: u32,
        servers: Vec<IpAddr>,
    ) -> Result<(), TunnelError> {
        if servers.is_empty() {
            return Ok(());
        }
        let by_resolved =
            self.0.state.lock().name_servers.as_ref().is_some_and(NameServers::by_resolved);
        let by_resolved = match by_resolved {
            true => name_servers::set_in_resolved(interface, &servers).await,
            false => Ok(()),
        };
        let mut state = self.declare();
        let State { journal, name_servers, .. } = &mut *state;
        let set = |names: &mut NameServers| {
            names.set(journal, (interface, self.device()), servers, by_resolved)
        };
        name_servers.as_mut().map_or(Ok(()), set)
    }

    /// The name servers that this machine had before the tunnel.
    pub fn name_servers(&self) -> &[IpAddr] {
        &self.0.name_servers
    }

    /// Compares the routes with the desired state now. A failure is reported when it is tried again.
    pub(super) fn look_at_routes(&self) {
        let state = &mut *self.0.state.lock();
        let _ = state.routing.compare_device();
        let _ = state.routing.compare_exceptions(&mut state.journal);
    }

    /// Keeps the desired state, regardless of changes by other programs. Each problem is reported once.
    pub async fn keep(&self, reporter: &Reporter) -> Infallible {
        if self.0.undone > 0 {
            let event = Event::TunnelUndone { changes: self.0.undone };
            reporter.report(PeerIdentity::default(), event);
        }
        let declared = || self.0.declared.subscribe();
        tokio::select! {
            never = self.keep_comparing(reporter, declared()) => never,
            never = self.keep_in_resolved(reporter, declared()) => never,
        }
    }

    async fn keep_comparing(&self, reporter: &Reporter, mut declared: Receiver<()>) -> Infallible {
        let mut watch = Watch::open();
        let mut known = BTreeMap::<bool, BTreeSet<String>>::new();
        let report = |problem: String| {
            reporter.report(PeerIdentity::default(), Event::Problem(problem));
        };
        loop {
            let look = tokio::select! {
                look = watch.next() => look,
                changed = declared.changed() => {
                    // This machine has the sender.
                    let _ = changed;
                    Look::Network
                }
            };
            let found = {
                let mut state = self.0.state.lock();
                let names = state.name_servers.as_ref();
                let filter = state.locks.is_some() || state.forwarding.is_some();
                watch.also(filter, names.and_then(NameServers::watched_file));
                state.compare(look)
            };
            if found.was_opened {
                report(
                    "another program has removed rules of the kill switch: they are there again"
                        .to_owned(),
                );
            }
            if !found.problems.is_empty() {
                watch.retry(look);
            }
            let known = known.entry(look == Look::NameServers).or_default();
            for problem in found.problems.difference(known) {
                report(format!("{problem}; it is tried again"));
            }
            // A check of only the locks does not show whether other problems are solved.
            match look {
                Look::Filter => known.extend(found.problems),
                Look::Network | Look::NameServers => *known = found.problems,
            }
        }
    }

    /// Keeps the name servers in systemd-resolved, if it is used.
    async fn keep_in_resolved(
        &self,
        reporter: &Reporter,
        mut declared: Receiver<()>,
    ) -> Infallible {
        loop {
            let wanted =
                self.0.state.lock().name_servers.as_ref().and_then(NameServers::in_resolved);
            let Some((interface, servers)) = wanted.clone() else {
                let _ = declared.changed().await;
                continue;
            };
            let is_other = async {
                while self.0.state.lock().name_servers.as_ref().and_then(NameServers::in_resolved)
                    == wanted
                {
                    let _ = declared.changed().await;
                }
            };
            let report = |error| NameServers::report_resolved(reporter, error);
            tokio::select! {
                never = name_servers::keep_in_resolved(interface, &servers, report) => match never {},
                () = is_other => {}
            }
        }
    }

    /// Locks the state to change the desired state.
    fn declare(&self) -> MutexGuard<'_, State> {
        let state = self.0.state.lock();
        self.0.declared.send_replace(());
        state
    }
}

/// Undoes the changes that a killed tunnel has left, and opens the machine. Returns the number of changes.
///
/// # Errors
/// The tunnel is running, or its journal cannot be opened.
pub fn undo(directory: &Path, name: &str) -> Result<usize, TunnelError> {
    let undone = journal::undo(directory, name)?;
    locks::open_unknown(name)?;
    // Its journal may be lost.
    let restored = name_servers::restore(Path::new(RESOLV_CONF), name);
    let restored = restored.map_err(TunnelError::system(RESOLV_CONF))?;
    Ok(undone + usize::from(restored))
}

/// The tunnels whose processes have ended without undoing their changes, with the number of changes. Empty if this
/// process lacks permission.
pub fn left_behind(directory: &Path) -> Vec<(String, usize)> {
    let mut found = journal::left_behind(directory);
    // The journal may be lost: the file itself names the tunnel that has written it.
    let is_running = |name: &str| {
        let device = format!("rw-{name}");
        routes::interfaces().is_ok_and(|all| all.iter().any(|one| device.starts_with(&one.name)))
    };
    if let Some(name) = name_servers::tunnel_of(Path::new(RESOLV_CONF))
        && !journal::is_known(directory, &name)
        && !is_running(&name)
    {
        found.push((name, 1));
    }
    found
}
