//! Services of an unsealed endpoint, started and stopped while it is open: SCTP ports on which associations are
//! accepted.

use super::Endpoint;
use super::connect::{ConnectError, SctpPorts, Target};
use crate::endpoint::Association;

impl Endpoint {
    /// Accepts associations on an additional SCTP port from now on. Returns false if the port is already open, if it
    /// is 0, or if another endpoint on this machine owns it, over IP alone.
    pub fn listen_on(&self, sctp_port: u16) -> bool {
        let mut is_new = sctp_port != 0;
        for shard in &self.shards {
            let state = &mut *shard.lock();
            is_new &=
                !state.options.sctp_ports.contains(&sctp_port) && state.own_port(sctp_port).is_ok();
            if is_new {
                state.options.sctp_ports.push(sctp_port);
                // Now and not when the driver runs: the peer may send its INIT as soon as this call returns.
                state.update_ports();
                state.wake();
            }
        }
        is_new
    }

    /// Whether associations are accepted on this SCTP port.
    pub fn listens_on(&self, sctp_port: u16) -> bool {
        let state = self.shards[0].lock();
        state.options.listen && state.options.sctp_ports.contains(&sctp_port)
    }

    /// Stops accepting associations on this SCTP port. Existing associations continue.
    pub fn stop_listening_on(&self, sctp_port: u16) {
        for shard in &self.shards {
            let state = &mut *shard.lock();
            state.options.sctp_ports.retain(|port| *port != sctp_port);
            state.forget_room(sctp_port);
            state.ports_changed = true;
            state.wake();
        }
    }

    /// Like [`Endpoint::connect_with_ports`], but returns immediately; [`Association::established`] waits. Messages
    /// may be queued before that.
    ///
    /// # Errors
    /// [`ConnectError`], except for [`ConnectError::Ended`] and [`ConnectError::NoSession`].
    pub fn start_connect(
        &self,
        target: &Target,
        ports: SctpPorts,
    ) -> Result<Association, ConnectError> {
        let shard = self.shard_for(ports);
        let mut state = shard.lock();
        let key = state.initiate(target, ports)?;
        state.wake();
        let peer = state.peer(key).ok_or(ConnectError::Closing)?;
        Ok(Association::new(shard.clone(), key, peer.signals.clone()))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write as _;
    use std::mem::MaybeUninit;
    use std::net::SocketAddr;

    use socket2::{Domain, Protocol, SockRef, Socket, Type};

    use super::*;
    use crate::endpoint::{Carrier, Options, RawError};

    /// The driver task does not run during this test, which never waits.
    #[tokio::test]
    async fn packets_over_ip_are_received_as_soon_as_a_port_listens() {
        if let Err(error) = RawError::check() {
            return writeln!(std::io::stderr(), "skipped: {error}").expect("stderr is open");
        }
        // No service uses it, and no other test does.
        const PORT: u16 = 3;
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let options = Options::listening(&[address]).on_sctp_ports(&[]).over(Carrier::Ip);
        let endpoint = Endpoint::open(options).expect("raw sockets");
        let sender = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(132)));
        let sender = sender.expect("a raw socket");
        let packet = [[0, 9].as_slice(), &PORT.to_be_bytes(), &[0; 12]].concat();
        assert!(endpoint.listen_on(PORT));
        sender.send_to(&packet, &address.into()).expect("sent");
        let state = endpoint.shards[0].lock();
        let mut buffer = [MaybeUninit::uninit(); 100];
        let got = SockRef::from(state.sockets[0].io().expect("open")).recv(&mut buffer);
        assert_eq!(got.ok(), Some(20 + packet.len()));
    }
}
