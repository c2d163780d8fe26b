//! Sockets that all shards of an endpoint open at run time because one of their associations gets an address.
//!
//! The kernel numbers the sockets of an address in the order in which they are bound, and a shard refers to a socket
//! by its index when it forwards a datagram. The shard that needs an address therefore binds the sockets of all
//! shards there, in shard order, and every shard takes its own in the order of this list. No shard takes another
//! shard's lock.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::local_interfaces::BoundInterface;
use super::shards::Shard;
use super::socket::{BindAddress, Socket};
use super::state::EndpointState;
use crate::interfaces;

/// The sockets of one address.
#[derive(Debug)]
struct Joint {
    local: BindAddress,
    /// The socket of each shard, until the shard takes it.
    sockets: Vec<Option<Socket>>,
}

/// The sockets that were opened after the endpoint.
#[derive(Debug, Default)]
pub struct JointSockets {
    all: Mutex<Vec<Joint>>,
    count: AtomicUsize,
}

impl JointSockets {
    /// Number of addresses.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Binds a socket like `pattern` to an address for each shard, unless that has been done.
    ///
    /// # Errors
    /// The error of the system; in that case nothing stays bound.
    fn open(&self, pattern: &Socket, local: &BindAddress, shard: &Shard) -> std::io::Result<()> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.iter().any(|joint| joint.local == *local) {
            return Ok(());
        }
        let bind = |_| pattern.bind_sharing(local, shard.steering).map(Some);
        let sockets = (0..shard.count()).map(bind).collect::<std::io::Result<_>>()?;
        all.push(Joint { local: local.clone(), sockets });
        self.count.store(all.len(), Ordering::Release);
        Ok(())
    }

    /// Takes the socket of a shard at the address with this number.
    fn take(&self, number: usize, shard: usize) -> Option<(BindAddress, Socket)> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let joint = all.get_mut(number)?;
        Some((joint.local.clone(), joint.sockets.get_mut(shard)?.take()?))
    }
}

impl EndpointState {
    /// Opens sockets of all shards at an address. Returns the index of this shard's socket.
    pub(super) fn open_joint_sockets(&mut self, address: SocketAddr) -> Option<usize> {
        let (shard, local) = (self.shard.as_ref()?, BindAddress::of(address));
        shard.joint.open(self.sockets.first()?, &local, shard).ok()?;
        shard.wake_others();
        self.take_joint_sockets();
        self.links.iter().position(|link| link.local == local)
    }

    /// Takes this shard's sockets of addresses that any shard has opened.
    pub(super) fn take_joint_sockets(&mut self) {
        while let Some(shard) = &self.shard
            && self.joint_sockets < shard.joint.count()
            && let Some((local, mut socket)) = shard.joint.take(self.joint_sockets, shard.index)
        {
            self.joint_sockets += 1;
            if !self.options.offload {
                socket.without_offload();
            }
            let all = interfaces::list().unwrap_or_default();
            self.sockets.push(socket);
            self.links.push(BoundInterface::new(local, &all));
            self.ports_changed = true;
        }
    }
}
