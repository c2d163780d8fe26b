//! The SCTP ports that belong to an endpoint over IP alone.
//!
//! Each raw socket of a machine receives the packets of all programs, so an endpoint must know which are its own. An
//! endpoint owns the ports on which it accepts associations, and those of its associations. It answers packets to these
//! ports only: an ABORT for an unknown port could end an association of another program.
//!
//! A port has one owner in a network namespace. The owner holds a socket of the local domain with an abstract name that
//! contains the port. The kernel keeps such names per network namespace, and forgets them with the process.

use std::collections::BTreeMap;
use std::io;

use super::OpenError;
use super::state::EndpointState;

/// A port that is held for this process.
#[derive(Debug)]
struct Reservation {
    #[cfg(target_os = "linux")]
    _name: std::os::unix::net::UnixDatagram,
}

impl Reservation {
    #[cfg(target_os = "linux")]
    fn of(port: u16) -> io::Result<Self> {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::net::{SocketAddr, UnixDatagram};

        let name = format!("ropewalk/sctp-port/{port}");
        let address = SocketAddr::from_abstract_name(name)?;
        Ok(Self { _name: UnixDatagram::bind_addr(&address)? })
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_: u16) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The ports of an endpoint.
#[derive(Debug, Default)]
pub struct OwnedPorts {
    held: BTreeMap<u16, Reservation>,
}

impl OwnedPorts {
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
            self.held.insert(port, Reservation::of(port)?);
        }
        Ok(())
    }

    /// Releases the ports that are not needed any more.
    pub fn keep(&mut self, is_needed: impl Fn(u16) -> bool) {
        self.held.retain(|port, _| is_needed(*port));
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

    /// Takes a port before it is used. Over UDP there is nothing to take.
    ///
    /// # Errors
    /// If another endpoint on this machine owns it.
    pub(super) fn own_port(&mut self, port: u16) -> io::Result<()> {
        let Some(owned) = &mut self.owned_ports else { return Ok(()) };
        self.ports_changed |= !owned.has(port);
        owned.take(port)
    }

    /// Releases the ports that are not used any more, and tells the sockets which packets they receive.
    pub(super) fn update_ports(&mut self) {
        self.ports_changed = false;
        let Some(owned) = &mut self.owned_ports else { return };
        let (options, used) = (&self.options, self.associations.local_ports());
        let listens = |port| options.listen && options.sctp_ports.contains(&port);
        owned.keep(|port| listens(port) || used.contains(&port));
        let ports = owned.all();
        for socket in &mut self.sockets {
            // If the kernel refuses, the socket receives what it did before. The packets of others are dropped here.
            let _ = socket.receive_ports(&ports);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_one_owner_until_it_is_released() {
        // No service uses port 1, and no other test does.
        let (mut one, mut other) = (OwnedPorts::default(), OwnedPorts::default());
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
}
