//! Changes that close a machine: afterwards nothing leaves it outside of the tunnel. They stay until an orderly end,
//! or `ropewalk tunnel undo`.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use ropewalk_runtime::system::firewall;
use ropewalk_runtime::system::routes::{self, Route};
use ropewalk_runtime::system::rules::{self, RoutingRule};

use super::{Change, Journal, JournalError};

/// The routing table that closed machines use. Other programs are unlikely to use this number.
pub const CLOSED_TABLE: u32 = 0x7277;

impl Journal {
    /// Whether the machine stays closed after a tunnel ends.
    pub fn is_held(&self) -> bool {
        self.changes.contains(&Change::Held)
    }

    /// Keeps the machine closed when tunnels end, until [`undo`](super::undo).
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn hold(&mut self) -> Result<(), JournalError> {
        if self.is_held() { Ok(()) } else { self.write(&Change::Held) }
    }

    /// Leaves the machine closed when the journal is dropped.
    pub const fn stay_closed(&mut self) {
        self.stays_closed = true;
    }

    /// Opens the machine when the journal is dropped, unless it is held closed.
    pub const fn opens_at_end(&mut self) {
        self.stays_closed = false;
    }

    /// Installs a table of the packet filter that closes the machine. One of the same name is replaced in the same transaction.
    ///
    /// # Errors
    /// The error of the system.
    pub fn close_filter(&mut self, table: &firewall::Table) -> Result<(), JournalError> {
        self.install_by(Change::Closed { table: table.name.clone() }, table)
    }

    /// Replaces the rules of policy routing by these. Destinations without a route in [`CLOSED_TABLE`] are
    /// unreachable. Returns whether anything was missing.
    ///
    /// # Errors
    /// The error of the system.
    pub fn close_routing(&mut self, wanted: &[RoutingRule]) -> Result<bool, JournalError> {
        let change = Change::ClosedRouting;
        let is_new = !self.changes.contains(&change);
        self.record(&change)?;
        let failed = |error| JournalError::Change(Box::new(Change::ClosedRouting), error);
        let mut is_changed = false;
        let present = rules::list().map_err(failed)?;
        for ipv6 in [false, true] {
            // A machine without IPv6 has no rules for it.
            let mut of_family = wanted.iter().filter(|rule| rule.ipv6 == ipv6).peekable();
            if of_family.peek().is_none() {
                continue;
            }
            is_changed |= routes::add_route_in(CLOSED_TABLE, &nowhere(ipv6)).map_err(failed)?;
            for rule in of_family.filter(|rule| !present.contains(rule)) {
                is_changed |= rules::add(rule).map_err(failed)?;
                self.record(&Change::Rule(rule.clone()))?;
            }
        }
        let own: Vec<RoutingRule> = self.changes.iter().filter_map(rule_of).cloned().collect();
        for stale in own.iter().filter(|rule| !wanted.contains(rule)) {
            let _ = rules::remove(stale);
            self.forget(&Change::Rule(stale.clone()))?;
        }
        Ok(is_changed && !is_new)
    }

    fn record(&mut self, change: &Change) -> Result<(), JournalError> {
        if self.changes.contains(change) { Ok(()) } else { self.write(change) }
    }
}

fn rule_of(change: &Change) -> Option<&RoutingRule> {
    match change {
        Change::Rule(rule) => Some(rule),
        _ => None,
    }
}

/// The route that makes everything unreachable. Any other route is preferred.
fn nowhere(ipv6: bool) -> Route {
    let to = if ipv6 { IpAddr::from([0_u16; 8]) } else { IpAddr::from([0_u8; 4]) };
    let to = IpNet::new(to, 0).expect("a network");
    Route { to, hops: Vec::new(), metric: Some(u32::MAX), source: None }
}

/// Removes the routes that [`Journal::close_routing`] has added.
pub(super) fn open_routing() {
    for ipv6 in [false, true] {
        let _: io::Result<()> = routes::remove_route_in(CLOSED_TABLE, &nowhere(ipv6));
    }
}
