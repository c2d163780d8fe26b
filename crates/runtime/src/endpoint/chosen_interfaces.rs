//! Endpoints whose sockets are those of the machine's interfaces.

use std::net::SocketAddr;

use super::local_interfaces;
use super::options::Options;
use super::socket::BindAddress;
use crate::interfaces;

impl Options {
    /// Never uses these interfaces automatically.
    #[must_use]
    pub fn avoiding(mut self, interfaces: &[String]) -> Self {
        self.avoided_interfaces = interfaces.to_vec();
        self
    }

    /// Uses one socket for each interface that may reach these addresses, and adds paths for interfaces that appear
    /// later. Does nothing if a peer is on this machine.
    #[must_use]
    pub fn automatic(mut self, remotes: &[SocketAddr]) -> Self {
        let mut all = interfaces::list().unwrap_or_default();
        all.retain(|seen| !self.avoided_interfaces.contains(&seen.name));
        if self.sealing.is_some() && local_interfaces::leave_this_machine(remotes, &all) {
            self.locals = local_interfaces::automatic(remotes, &all);
            self.automatic = true;
        }
        self
    }

    /// Without sealing, uses one socket for each interface that may reach these addresses now. Does nothing if a peer is
    /// on this machine, or if no interface may reach them. Where interfaces are avoided, addresses of a family that no other
    /// one may reach are left out.
    #[must_use]
    pub fn on_all_interfaces(mut self, remotes: &[SocketAddr]) -> Self {
        let mut all = interfaces::list().unwrap_or_default();
        all.retain(|seen| !self.avoided_interfaces.contains(&seen.name));
        let mut locals = local_interfaces::automatic(remotes, &all);
        let is_named = |local: &BindAddress| local.interface.is_some();
        if !self.avoided_interfaces.is_empty() && locals.iter().any(is_named) {
            locals.retain(is_named);
        }
        let named = locals.iter().all(is_named);
        if self.sealing.is_none() && named && local_interfaces::leave_this_machine(remotes, &all) {
            self.locals = locals;
            self.all_interfaces = true;
        }
        self
    }
}
