//! The SCTP ports that belong to an endpoint over IP alone.
//!
//! Each raw socket of a machine receives the packets of all programs, so an endpoint must know which are its own. An
//! endpoint owns the ports on which it accepts associations, and those of its associations. It answers packets to
//! these ports only: an ABORT for an unknown port could end an association of another program.
//!
//! An IPv4 or IPv6 port has one owner per network namespace. The owner holds a Unix domain socket with an abstract
//! name that contains the port and the family. The kernel keeps such names per network namespace, and removes them
//! with the process.

use std::collections::BTreeMap;
use std::io;

use super::OpenError;
use super::options::Options;
use super::socket::Socket;
use super::state::EndpointState;

/// A port that is held for this process.
#[derive(Debug)]
struct Reservation {
    #[cfg(target_os = "linux")]
    name: std::os::unix::net::UnixDatagram,
}

impl Reservation {
    #[cfg(target_os = "linux")]
    fn of(port: u16, family: &str) -> io::Result<Self> {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::net::{SocketAddr, UnixDatagram};

        let name = format!("ropewalk/sctp-port/{port}/{family}");
        let address = SocketAddr::from_abstract_name(name)?;
        Ok(Self { name: UnixDatagram::bind_addr(&address)? })
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_: u16, _: &str) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The ports of an endpoint.
#[derive(Debug)]
pub struct OwnedPorts {
    /// Whether the endpoint has sockets for IPv4, or may get some.
    ipv4: bool,
    /// The same for IPv6.
    ipv6: bool,
    held: BTreeMap<u16, Vec<Reservation>>,
}

impl OwnedPorts {
    /// Creates an empty set of ports for an endpoint with these sockets. An endpoint that follows
    /// interfaces gets sockets later.
    pub fn of(options: &Options, sockets: &[Socket]) -> Self {
        let grows = options.all_interfaces || options.transport.follow_interfaces;
        let ipv6 = |socket: &Socket| socket.local().is_ipv6();
        Self {
            ipv4: grows || !sockets.iter().all(ipv6),
            ipv6: grows || sockets.iter().any(ipv6),
            held: BTreeMap::new(),
        }
    }

    /// Whether the endpoint owns the port.
    pub fn has(&self, port: u16) -> bool {
        self.held.contains_key(&port)
    }

    /// Takes a port, unless the endpoint owns it already.
    ///
    /// # Errors
    /// If another endpoint on this machine owns it ([`io::ErrorKind::AddrInUse`]), or the system refuses.
    pub fn take(&mut self, port: u16) -> io::Result<()> {
        if !self.has(port) {
            let families = [(self.ipv4, "ipv4"), (self.ipv6, "ipv6")];
            let used = families.into_iter().filter(|(used, _)| *used);
            let names = used.map(|(_, family)| Reservation::of(port, family));
            self.held.insert(port, names.collect::<io::Result<_>>()?);
        }
        Ok(())
    }

    /// Releases the ports that are no longer needed.
    pub fn keep(&mut self, is_needed: impl Fn(u16) -> bool) {
        self.held.retain(|port, _| is_needed(*port));
    }

    /// The descriptors that hold the ports.
    #[cfg(target_os = "linux")]
    pub fn descriptors(&self) -> impl Iterator<Item = std::os::fd::RawFd> {
        use std::os::fd::AsRawFd as _;

        self.held.values().flatten().map(|held| held.name.as_raw_fd())
    }

    /// All ports, in order.
    pub fn all(&self) -> Vec<u16> {
        self.held.keys().copied().collect()
    }
}

impl EndpointState {
    /// Takes the ports on which associations are accepted.
    ///
    /// # Errors
    /// If another endpoint on this machine owns one of them.
    pub(super) fn own_listening_ports(&mut self) -> Result<(), OpenError> {
        if self.options.listen {
            for port in self.options.sctp_ports.clone() {
                self.own_port(port).map_err(|error| OpenError::SctpPortTaken(port, error))?;
            }
        }
        self.update_ports();
        Ok(())
    }

    /// Takes a port before it is used. Does nothing over UDP.
    ///
    /// # Errors
    /// If another endpoint on this machine owns it.
    pub(super) fn own_port(&mut self, port: u16) -> io::Result<()> {
        let Some(owned) = &mut self.owned_ports else { return Ok(()) };
        self.ports_changed |= !owned.has(port);
        owned.take(port)
    }

    /// Releases the ports that are no longer used, and updates the filters of the sockets.
    pub(super) fn update_ports(&mut self) {
        self.ports_changed = false;
        let Some(owned) = &mut self.owned_ports else { return };
        let (options, used) = (&self.options, self.associations.local_ports());
        let listens = |port| options.listen && options.sctp_ports.contains(&port);
        owned.keep(|port| listens(port) || used.contains(&port));
        let ports = owned.all();
        for socket in &mut self.sockets {
            // If the kernel refuses, the socket keeps its previous filter. Packets of other programs are dropped
            // here.
            let _ = socket.receive_ports(&ports);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn none(ipv4: bool, ipv6: bool) -> OwnedPorts {
        OwnedPorts { ipv4, ipv6, held: BTreeMap::new() }
    }

    #[test]
    fn a_port_has_one_owner_until_it_is_released() {
        // No service uses port 1, and no other test does.
        let (mut one, mut other) = (none(true, true), none(true, true));
        one.take(1).expect("a free port");
        one.take(1).expect("its own port");
        assert!(one.has(1) && !one.has(2));
        let refused = other.take(1).expect_err("it is taken");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        assert_eq!((one.all(), other.all()), (vec![1], vec![]));
        one.keep(|port| port != 1);
        other.take(1).expect("a free port");
        assert!(!one.has(1) && other.has(1));
    }

    #[test]
    fn a_port_of_ipv4_is_another_one_than_that_of_ipv6() {
        // As above, with port 2.
        let (mut v4, mut v6, mut both) = (none(true, false), none(false, true), none(true, true));
        v4.take(2).expect("a free port");
        assert_eq!(both.take(2).map_err(|e| e.kind()), Err(io::ErrorKind::AddrInUse));
        v6.take(2).expect("what `both` could not have is free");
        v4.keep(|_| false);
        assert_eq!(both.take(2).map_err(|e| e.kind()), Err(io::ErrorKind::AddrInUse));
        v6.keep(|_| false);
        both.take(2).expect("a free port");
    }
}
