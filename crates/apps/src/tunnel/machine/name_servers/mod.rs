//! The name servers of a machine while a tunnel is up.
//!
//! Some programs resolve names by systemd-resolved, others read the name servers from `/etc/resolv.conf`. Both get
//! the tunnel's servers:
//!
//! ```text
//!   programs --- systemd-resolved, if it runs --- servers of the tunnel's link (D-Bus)
//!      |                |
//!      |         127.0.0.53 is in
//!      |                |
//!      '--------- /etc/resolv.conf -------------- written by openresolv, or by the tunnel
//! ```

mod file;
mod resolvconf;
mod resolved;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

pub use self::file::{of_system, restore, tunnel_of};
use self::resolvconf::Resolvconf;
pub(super) use self::resolvconf::remove as remove_record;
use self::resolved::Resolved;
pub use self::resolved::ResolvedError;
pub(super) use self::resolved::keep as keep_in_resolved;
pub(super) use self::resolved::set as set_in_resolved;
use super::journal::{Journal, JournalError};
use crate::observe::{Event, PeerIdentity, Reporter};
use crate::tunnel::TunnelError;

/// The file from which programs read the name servers (resolv.conf(5)).
pub const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The program that sets the name servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manager {
    /// The manager of this machine, found automatically.
    Auto,
    /// systemd-resolved.
    Resolved,
    /// The program `resolvconf` of openresolv.
    Resolvconf,
    /// The tunnel, only in this file.
    File(PathBuf),
}

/// Why the requested manager cannot set name servers.
#[derive(Debug, thiserror::Error)]
pub enum NameServersError {
    /// systemd-resolved cannot be used.
    #[error("name servers by systemd-resolved: {0}")]
    Resolved(ResolvedError),
    /// There is no openresolv.
    #[error("name servers by resolvconf: neither {} is that of openresolv", resolvconf::PROGRAMS.join(" nor "))]
    NoOpenresolv,
}

/// How programs that read the file get the tunnel's servers.
#[derive(Debug)]
enum Listed {
    /// The file leads to systemd-resolved, or is left to the user.
    Elsewhere,
    /// By resolvconf.
    Resolvconf(Resolvconf),
    /// The tunnel writes this file.
    File(PathBuf),
}

/// Sets the name servers.
#[derive(Debug)]
pub(super) struct NameServers {
    /// Name of the tunnel.
    tunnel: String,
    reporter: Reporter,
    /// Whether systemd-resolved gets the servers.
    by_resolved: bool,
    listed: Listed,
    /// Whether the manager was not named by the user, so that another one may be used.
    is_auto: bool,
    /// The index of the tunnel's interface, and the servers that were set, if any.
    current: (u32, Vec<IpAddr>),
}

impl NameServers {
    /// Finds the manager, and changes nothing.
    ///
    /// # Errors
    /// The manager that the user has named cannot be used.
    pub async fn find(
        tunnel: &str,
        manager: Option<&Manager>,
        reporter: &Reporter,
    ) -> Result<Self, NameServersError> {
        let mut found = Self {
            tunnel: tunnel.to_owned(),
            reporter: reporter.clone(),
            by_resolved: false,
            listed: Listed::Elsewhere,
            is_auto: false,
            current: Default::default(),
        };
        match manager {
            None => {}
            Some(Manager::File(file)) => found.listed = Listed::File(file.clone()),
            Some(Manager::Resolvconf) => {
                let program = Resolvconf::find().ok_or(NameServersError::NoOpenresolv)?;
                found.listed = Listed::Resolvconf(program);
            }
            Some(Manager::Resolved) => {
                Resolved::connect().await.map_err(NameServersError::Resolved)?;
                found.by_resolved = true;
            }
            Some(Manager::Auto) => {
                found.is_auto = true;
                match Resolved::connect().await {
                    Ok(_) => found.by_resolved = true,
                    Err(error) if error.is_unexpected() => {
                        found.report_unused(NameServersError::Resolved(error));
                    }
                    Err(_) => {}
                }
            }
        }
        Ok(found)
    }

    /// Finds which program writes the file. Must be called after the changes of an earlier run are undone.
    pub fn look_at_file(&mut self) {
        let file =
            if let Listed::File(file) = &self.listed { file } else { Path::new(RESOLV_CONF) };
        // The journal of an earlier run may be lost.
        if let Ok(true) = restore(file, &self.tunnel) {
            self.report(format!("an earlier run has left its name servers in {}", file.display()));
        }
        if self.is_auto {
            self.listed = if self.by_resolved && file::leads_to_resolved(Path::new(RESOLV_CONF)) {
                Listed::Elsewhere
            } else {
                by_file()
            };
        }
    }

    /// Whether systemd-resolved is used.
    pub const fn by_resolved(&self) -> bool {
        self.by_resolved
    }

    /// Sets the servers of a tunnel's interface. If the manager fails and another one may be used, reports it and
    /// uses that one from now on. `by_resolved` is the answer of systemd-resolved, if it was used.
    ///
    /// # Errors
    /// The servers could not be set.
    pub fn set(
        &mut self,
        journal: &mut Journal,
        device: (u32, &str),
        servers: Vec<IpAddr>,
        by_resolved: Result<(), ResolvedError>,
    ) -> Result<(), TunnelError> {
        if let Err(error) = by_resolved {
            if !self.is_auto {
                return Err(NameServersError::Resolved(error).into());
            }
            self.report_unused(NameServersError::Resolved(error));
            self.by_resolved = false;
            if matches!(self.listed, Listed::Elsewhere) {
                self.listed = by_file();
            }
        }
        let (interface, device) = device;
        let is_new = self.current.1 != servers;
        if let Listed::Resolvconf(program) = &self.listed
            && is_new
            && let Err(error) = program.add(journal, device, &servers)
        {
            if !self.is_auto {
                return Err(error.into());
            }
            self.report_unused(error);
            self.listed = Listed::File(RESOLV_CONF.into());
        }
        self.current = (interface, servers);
        if let Err(error) = self.keep_listed(journal) {
            if !self.is_auto {
                return Err(error.into());
            }
            // The file may be read-only.
            self.report(format!("the name servers are not set: {error}"));
            self.listed = Listed::Elsewhere;
        }
        if is_new {
            self.report_set();
        }
        Ok(())
    }

    /// Sets the servers in the file again if another program has changed it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn keep_listed(&self, journal: &mut Journal) -> Result<(), JournalError> {
        let (_, servers) = &self.current;
        match &self.listed {
            Listed::File(file) if !servers.is_empty() => {
                file::set(journal, file, &self.tunnel, servers)
            }
            Listed::Resolvconf(program) if !servers.is_empty() => program.keep(),
            _ => Ok(()),
        }
    }

    /// The file that other programs may change, for [`Self::keep_listed`].
    pub fn watched_file(&self) -> Option<&Path> {
        let (_, servers) = &self.current;
        match &self.listed {
            Listed::File(file) if !servers.is_empty() => Some(file),
            Listed::Resolvconf(_) if !servers.is_empty() => Some(Path::new(RESOLV_CONF)),
            _ => None,
        }
    }

    /// The interface whose servers systemd-resolved should keep, and the servers.
    pub fn in_resolved(&self) -> Option<(u32, Vec<IpAddr>)> {
        (self.by_resolved && !self.current.1.is_empty()).then(|| self.current.clone())
    }

    /// Reports why systemd-resolved does not keep the servers.
    pub fn report_resolved(reporter: &Reporter, error: ResolvedError) {
        let problem = Event::Problem(NameServersError::Resolved(error).to_string());
        reporter.report(PeerIdentity::default(), problem);
    }

    fn report_set(&self) {
        let resolved = self.by_resolved.then(|| "systemd-resolved".to_owned());
        let listed = match &self.listed {
            Listed::Elsewhere => None,
            Listed::Resolvconf(_) => Some("resolvconf".to_owned()),
            Listed::File(file) => Some(file.display().to_string()),
        };
        let managers: Vec<String> = resolved.into_iter().chain(listed).collect();
        let servers: Vec<String> = self.current.1.iter().map(ToString::to_string).collect();
        let event =
            Event::NameServers { servers: servers.join(", "), manager: managers.join(" and ") };
        self.reporter.report(PeerIdentity::default(), event);
    }

    /// Reports that a manager is not used although it should be.
    fn report_unused(&self, error: impl fmt::Display) {
        // Some of systemd-resolved's messages are sentences.
        let error = error.to_string();
        let error = error.trim_end_matches('.');
        self.report(format!("{error}; they are set in {RESOLV_CONF} instead"));
    }

    fn report(&self, problem: String) {
        self.reporter.report(PeerIdentity::default(), Event::Problem(problem));
    }
}

/// Which program writes [`RESOLV_CONF`], if it does not lead to systemd-resolved.
fn by_file() -> Listed {
    let file = Path::new(RESOLV_CONF);
    let program = resolvconf::has_written(file).then(Resolvconf::find).flatten();
    program.map_or_else(|| Listed::File(file.to_owned()), Listed::Resolvconf)
}
