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
