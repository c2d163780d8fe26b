//! The kill switch: nothing leaves the machine outside of the tunnel.
//!
//! It is closed before anything else happens, and opened by an orderly end alone. After an error, a crash or `kill -9` it
//! stays closed until the tunnel runs again and ends, or until `ropewalk tunnel undo`.
//!
//! Two locks close it: a table of the packet filter, and rules of policy routing. Both are watched.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use ropewalk_runtime::system::Changes;
use ropewalk_runtime::system::firewall;

use super::error::TunnelError;
use super::journal::{Journal, JournalError};
use super::machine;
use super::name_servers;
use super::network_watch::NetworkWatch;
use super::routing::SharedJournal;
use super::steering;
use crate::observe::{Event, PeerIdentity, Reporter};

/// Interval of looks at the locks where the system does not tell of changes, or a lock could not be closed.
const LOOK: Duration = Duration::from_millis(500);

/// What a machine is closed for.
#[derive(Clone, Debug)]
pub struct GuardSettings {
    /// Name of the tunnel.
    pub name: String,
    /// Name of the TUN device.
    pub device: String,
    /// Whether nothing may leave this machine outside of the tunnel.
    pub kill_switch: bool,
    /// Networks that are reached outside of the tunnel all the same.
    pub direct: Vec<IpNet>,
    /// Directory of the journal.
    pub journal_directory: PathBuf,
}

/// What a tunnel has changed on its machine, and the kill switch.
#[derive(Debug)]
pub struct Guard {
    settings: GuardSettings,
    journal: SharedJournal,
    is_closed: bool,
    /// How much an earlier run had left.
    undone: usize,
    outside: Mutex<Outside>,
}

/// The addresses that packets may reach outside of the tunnel.
#[derive(Debug, Default)]
struct Outside {
    hubs: Vec<SocketAddr>,
    name_servers: Vec<IpAddr>,
    /// The table that was installed.
    installed: Option<firewall::Table>,
}

impl Guard {
    /// Closes the machine if it should be closed, then undoes what else an earlier run has left.
    ///
    /// # Errors
    /// The tunnel is running, its journal cannot be opened, or the machine cannot be closed. What was closed stays closed.
    pub fn open(settings: GuardSettings) -> Result<Self, TunnelError> {
        let GuardSettings { name, device, kill_switch, direct, journal_directory } = &settings;
        let opened = Journal::open(journal_directory, name, *kill_switch);
        if *kill_switch && matches!(opened, Err(JournalError::Io(..))) {
            // Such as on a full disk. `ropewalk tunnel undo` opens what no journal knows.
            let table = machine::kill_switch(&table_of(name), device, &[], direct);
            firewall::install(&table).map_err(TunnelError::system("closing the machine"))?;
        }
        let (mut journal, undone) = opened?;
        let is_closed = settings.kill_switch || journal.is_held();
        if is_closed {
            journal.stay_closed();
        }
        let guard = Self {
            settings,
            journal: SharedJournal::new(journal),
            is_closed,
            undone,
            outside: Mutex::default(),
        };
        guard.reconcile()?;
        // Without those of an earlier run, also if its journal is lost.
        let _ = name_servers::restore(Path::new(name_servers::RESOLV_CONF), guard.name());
        guard.lock().name_servers = name_servers::of_system();
        guard.reconcile()?;
        Ok(guard)
    }

    /// Whether the machine is closed.
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The name servers that this machine had before the tunnel.
    pub fn name_servers(&self) -> Vec<IpAddr> {
        self.lock().name_servers.clone()
    }

    /// Name of the tunnel.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Name of the TUN device.
    pub fn device(&self) -> &str {
        &self.settings.device
    }

    /// The journal.
    pub(super) fn journal(&self) -> SharedJournal {
        self.journal.clone()
    }

    /// Lets packets reach these hubs outside of the tunnel, and no others.
    ///
    /// # Errors
    /// As the system says.
    pub fn let_out(&self, hubs: &[SocketAddr]) -> Result<(), TunnelError> {
        self.lock().hubs = hubs.to_vec();
        Ok(self.reconcile().map(drop)?)
    }

    /// Keeps the machine closed when tunnels end, until `ropewalk tunnel undo`.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn hold(&self) -> Result<(), TunnelError> {
        Ok(self.journal.lock().hold()?)
    }

    /// Opens the machine with the last clone of the journal, unless it is held closed. For an orderly end.
    pub fn opens_at_end(&self) {
        self.journal.lock().opens_at_end();
    }

    /// Closes the locks that other programs have opened. Returns whether there were any.
    ///
    /// # Errors
    /// As the system says.
    fn reconcile(&self) -> Result<bool, JournalError> {
        if !self.is_closed {
            return Ok(false);
        }
        let GuardSettings { name, device, direct, .. } = &self.settings;
        let mut outside = self.lock();
        let table = machine::kill_switch(&table_of(name), device, &outside.hubs, direct);
        let mut journal = self.journal.lock();
        let is_known = outside.installed.as_ref() == Some(&table);
        let is_gone = is_known && !firewall::is_installed(&table).unwrap_or(true);
        if !is_known || is_gone {
            journal.close_filter(&table)?;
            outside.installed = Some(table);
        }
        let rules = steering::rules(device, direct, &outside.hubs, &outside.name_servers);
        let is_open = journal.close_routing(&rules)?;
        Ok(is_gone || is_open && is_known)
    }

    /// Closes the locks again whenever another program has opened one.
    pub async fn keep(&self, reporter: &Reporter) -> Infallible {
        if self.undone > 0 {
            let event = Event::TunnelUndone { changes: self.undone };
            reporter.report(PeerIdentity::default(), event);
        }
        if !self.is_closed {
            return std::future::pending().await;
        }
        let mut filter = NetworkWatch::open(Changes::Filter, LOOK);
        let mut rules = NetworkWatch::open(Changes::Rules, LOOK);
        let mut last = None;
        loop {
            let result = self.reconcile().map_err(|error| error.to_string());
            let text = match &result {
                Ok(false) => None,
                Ok(true) => Some(
                    "another program has removed rules of the kill switch: they are there again"
                        .to_owned(),
                ),
                Err(error) => Some(format!("the kill switch: {error}; it is tried again")),
            };
            if let Some(text) = text.clone().filter(|_| text != last) {
                reporter.report(PeerIdentity::default(), Event::Problem(text));
            }
            last = if result.is_err() { text } else { None };
            let limit = result.is_err().then_some(LOOK);
            tokio::select! {
                () = filter.changed(limit) => {}
                () = rules.changed(limit) => {}
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Outside> {
        self.outside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a kill switch that is in no journal. Does nothing if there is none.
///
/// # Errors
/// As the system says.
pub fn open_unknown(name: &str) -> Result<(), TunnelError> {
    match firewall::remove(&table_of(name)) {
        // Who may not see the rules has not closed the machine.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other.map_err(TunnelError::system("opening the kill switch")),
    }
}

/// The table of the packet filter that closes the machine.
fn table_of(name: &str) -> String {
    format!("ropewalk-{name}")
}
