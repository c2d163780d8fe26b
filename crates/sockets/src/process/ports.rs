//! The SCTP ports to which sockets of this process are bound, and the rules by which sockets may share one. The
//! rules are those of Linux (`net/sctp/socket.c`: `sctp_get_port_local`; `net/sctp/input.c`:
//! `__sctp_hash_endpoint`).
//!
//! Two sockets conflict at a port if they have an address in common, or if one of them is bound to the unspecified
//! address. IPv4 and IPv6 addresses do not conflict if the IPv6 socket has `IPV6_V6ONLY`. Sockets that are bound to
//! different interfaces (`SO_BINDTODEVICE`) do not conflict. There are two exceptions:
//!
//! - Both have `SO_REUSEADDR` or `SCTP_REUSE_PORT`, and neither listens (RFC 6458, 8.1.27: one socket at a time listens).
//! - Both have `SO_REUSEPORT`. Such sockets listen at the same addresses and share the associations.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{current, lock};
use crate::errno::{Errno, Result};

/// Client ports: the dynamic range of RFC 6335, 6.
const DYNAMIC_FROM: u16 = 49_152;

/// Options that decide whether a socket may share its port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sharing {
    /// Whether it is an IPv6 socket.
    pub ipv6: bool,
    /// `IPV6_V6ONLY`.
    pub v6_only: bool,
    /// `SO_REUSEADDR` or `SCTP_REUSE_PORT`.
    pub reuse_address: bool,
    /// `SO_REUSEPORT`.
    pub reuse_port: bool,
    /// Number of the interface that it is bound to. 0 for none.
    pub interface: u32,
}

impl Sharing {
    /// Whether the sockets have an interface in common.
    const fn meets(self, other: Self) -> bool {
        self.interface == 0 || other.interface == 0 || self.interface == other.interface
    }
}

/// A socket that is bound to a port.
#[derive(Debug)]
struct Owner {
    sharing: Sharing,
    listens: bool,
    /// In the order of binding. The unspecified address stands for all addresses of its family, or of both.
    addresses: Vec<IpAddr>,
}

impl Owner {
    /// Whether an address of this socket conflicts with `address`, which `other` binds or has bound.
    fn conflicts(&self, address: IpAddr, other: Sharing) -> bool {
        // If an IPv6 socket is involved, its setting decides, as in the kernel.
        let decides = if self.sharing.ipv6 || !other.ipv6 { self.sharing } else { other };
        self.sharing.meets(other)
            && self.addresses.iter().any(|own| overlap(decides, *own, address))
    }

    /// Whether a socket with `SO_REUSEPORT` that starts to listen joins the group of this one. It does not if their
    /// addresses differ.
    ///
    /// # Errors
    /// `EEXIST` if only some addresses are the same. As in the kernel, the order of the addresses matters.
    fn is_joined_by(&self, other: &Self) -> Result<bool> {
        let same = |own: &&IpAddr| other.addresses.contains(own);
        let equal = self.addresses.iter().take_while(same).count();
        if equal == self.addresses.len() && equal == other.addresses.len() {
            return Ok(true);
        }
        if equal > 0 { Err(Errno(libc::EEXIST)) } else { Ok(false) }
    }
}

fn overlap(decides: Sharing, one: IpAddr, other: IpAddr) -> bool {
    let same_family = one.is_ipv4() == other.is_ipv4();
    if !same_family && (!decides.ipv6 || decides.v6_only) {
        return false;
    }
    one.is_unspecified() || other.is_unspecified() || one == other
}

/// A port in use.
#[derive(Debug, Default)]
struct Port {
    owners: BTreeMap<u64, Owner>,
    /// Whether all sockets had [`Sharing::reuse_address`] and did not listen when they were bound. In that case the
    /// kernel does not compare addresses.
    all_reuse_address: bool,
    /// The same for [`Sharing::reuse_port`].
    all_reuse_port: bool,
}

impl Port {
    /// Whether a socket may bind `address`.
    fn admits(&self, id: u64, sharing: Sharing, listens: bool, address: IpAddr) -> bool {
        if self.all_reuse_address && sharing.reuse_address && !listens
            || self.all_reuse_port && sharing.reuse_port
        {
            return true;
        }
        let may_share = |other: &Owner| {
            sharing.reuse_address && other.sharing.reuse_address && !other.listens
                || sharing.reuse_port && other.sharing.reuse_port
        };
        let mut others = self.owners.iter().filter(|(other, _)| **other != id);
        others.all(|(_, other)| may_share(other) || !other.conflicts(address, sharing))
    }

    /// Records an admitted socket.
    fn note(&mut self, sharing: Sharing, listens: bool) {
        let first = self.owners.is_empty();
        let reuses = sharing.reuse_address && !listens;
        self.all_reuse_address = reuses && (first || self.all_reuse_address);
        self.all_reuse_port = sharing.reuse_port && (first || self.all_reuse_port);
    }
}

/// All ports in use, with their sockets by number.
#[derive(Debug, Default)]
pub struct Ports(BTreeMap<u16, Port>);

impl Ports {
    /// Binds a socket to an address at a port. It may already have other addresses there.
    ///
    /// # Errors
    /// `EINVAL` if it already has the address, `EADDRINUSE` if another socket has it.
    fn bind(&mut self, id: u64, port: u16, sharing: Sharing, address: IpAddr) -> Result<()> {
        let found = self.0.entry(port).or_default();
        let own = found.owners.get(&id);
        let listens = own.is_some_and(|own| own.listens);
        let refused = if own.is_some_and(|own| own.conflicts(address, own.sharing)) {
            Some(Errno(libc::EINVAL))
        } else {
            (!found.admits(id, sharing, listens, address)).then_some(Errno(libc::EADDRINUSE))
        };
        if let Some(errno) = refused {
            if found.owners.is_empty() {
                self.0.remove(&port);
            }
            return Err(errno);
        }
        found.note(sharing, listens);
        let fresh = || Owner { sharing, listens: false, addresses: Vec::new() };
        found.owners.entry(id).or_insert_with(fresh).addresses.push(address);
        Ok(())
    }

    /// Called when a socket starts to listen. The kernel compares the address that was bound last.
    ///
    /// # Errors
    /// `EADDRINUSE` if another socket has the address, `EEXIST` if sockets with `SO_REUSEPORT` share only some
    /// addresses.
    fn listen(&mut self, id: u64, port: u16) -> Result<()> {
        let found = self.0.get_mut(&port).ok_or(Errno(libc::EINVAL))?;
        let own = found.owners.get(&id).ok_or(Errno(libc::EINVAL))?;
        let last = *own.addresses.last().ok_or(Errno(libc::EINVAL))?;
        let sharing = own.sharing;
        if !found.admits(id, sharing, true, last) {
            return Err(Errno(libc::EADDRINUSE));
        }
        if sharing.reuse_port {
            let listening = found.owners.iter().filter(|(other, owner)| {
                **other != id && owner.listens && owner.sharing.reuse_port
            });
            // The kernel visits the newest first, and stops at a group that the socket joins.
            for (_, other) in listening.rev() {
                if other.is_joined_by(own)? {
                    break;
                }
            }
        }
        found.note(sharing, true);
        if let Some(own) = found.owners.get_mut(&id) {
            own.listens = true;
        }
        Ok(())
    }

    fn stop_listening(&mut self, id: u64, port: u16) {
        let Some(found) = self.0.get_mut(&port) else { return };
        let Some(own) = found.owners.get_mut(&id) else { return };
        own.listens = false;
        // At this point the kernel forgets that other sockets do not share, and later lets the socket bind their
        // addresses. This implementation does not.
        let shares = |owner: &Owner| owner.sharing.reuse_address && !owner.listens;
        found.all_reuse_address |= found.owners.values().all(shares);
    }

    /// Copies the addresses of a socket to another socket, which takes over one of its
    /// associations.
    fn inherit(&mut self, from: u64, to: u64, port: u16) {
        let Some(found) = self.0.get_mut(&port) else { return };
        let Some(Owner { sharing, addresses, .. }) = found.owners.get(&from) else { return };
        let heir = Owner { sharing: *sharing, listens: false, addresses: addresses.clone() };
        found.owners.insert(to, heir);
    }

    fn unbind(&mut self, id: u64, port: u16, addresses: &[IpAddr]) {
        let own = self.0.get_mut(&port).and_then(|found| found.owners.get_mut(&id));
        if let Some(own) = own {
            own.addresses.retain(|ip| !addresses.contains(ip));
        }
    }

    fn release(&mut self, id: u64, port: u16) {
        let Some(found) = self.0.get_mut(&port) else { return };
        found.owners.remove(&id);
        if found.owners.is_empty() {
            self.0.remove(&port);
        }
    }

    /// A random port that no socket of this process uses (RFC 6056, 3.3.1).
    ///
    /// # Errors
    /// `EIO` if the system provides no random numbers, `EADDRINUSE` if all ports are in use.
    fn draw(&self) -> Result<u16> {
        let count = u32::from(u16::MAX - DYNAMIC_FROM) + 1;
        let drawn = getrandom::u32().map_err(|_| Errno(libc::EIO))? % count;
        let nth = |offset: u32| DYNAMIC_FROM + ((drawn + offset) % count) as u16;
        let free = (0..count).map(nth).find(|port| !self.0.contains_key(port));
        free.ok_or(Errno(libc::EADDRINUSE))
    }
}

/// A socket's claim to its SCTP port. Dropping it releases the port.
#[derive(Debug)]
pub struct Claim {
    id: u64,
    port: u16,
}

/// Number of the next claim. A child process continues the sequence. It starts without its parent's ports once the
/// parent has used them.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Claim {
    /// Binds a socket to addresses at a port. Port 0 selects any free port. Without addresses, binds the
    /// unspecified address of the socket's family.
    ///
    /// # Errors
    /// `EADDRINUSE` if another socket has one of the addresses, `EINVAL` if an address is repeated, and `EIO` if
    /// the system provides no random numbers.
    pub fn bind(port: u16, sharing: Sharing, addresses: &[IpAddr]) -> Result<Self> {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let ports = &mut *lock(current().ports());
        let port = if port == 0 { ports.draw()? } else { port };
        for address in addresses {
            if let Err(errno) = ports.bind(id, port, sharing, *address) {
                ports.release(id, port);
                return Err(errno);
            }
        }
        Ok(Self { id, port })
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Binds the socket to all of these addresses, or to none of them if one fails.
    ///
    /// # Errors
    /// As [`Claim::bind`].
    pub fn add(&self, sharing: Sharing, addresses: &[IpAddr]) -> Result<()> {
        let ports = &mut *lock(current().ports());
        for (index, address) in addresses.iter().enumerate() {
            if let Err(errno) = ports.bind(self.id, self.port, sharing, *address) {
                ports.unbind(self.id, self.port, &addresses[..index]);
                return Err(errno);
            }
        }
        Ok(())
    }

    /// Releases addresses.
    pub fn remove(&self, addresses: &[IpAddr]) {
        lock(current().ports()).unbind(self.id, self.port, addresses);
    }

    /// Called when the socket starts to listen.
    ///
    /// # Errors
    /// `EADDRINUSE` if another listening socket has its address, `EEXIST` if sockets with `SO_REUSEPORT` share only
    /// some addresses.
    pub fn listen(&self) -> Result<()> {
        lock(current().ports()).listen(self.id, self.port)
    }

    /// Called when the socket stops listening.
    pub fn stop_listening(&self) {
        lock(current().ports()).stop_listening(self.id, self.port);
    }

    /// Applies options that the program has changed.
    pub fn set_sharing(&self, sharing: Sharing) {
        let ports = &mut *lock(current().ports());
        let own = ports.0.get_mut(&self.port).and_then(|found| found.owners.get_mut(&self.id));
        if let Some(own) = own {
            own.sharing = sharing;
        }
    }

    /// The claim of a socket that takes over an association of this one.
    pub fn inherited(&self) -> Self {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        lock(current().ports()).inherit(self.id, id, self.port);
        Self { id, port: self.port }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(current().ports()).release(self.id, self.port);
    }
}

#[cfg(test)]
#[path = "ports_tests.rs"]
mod tests;
