//! The butterfly topology: sender and receiver connected by wings without a shared bottleneck. Each wing is a
//! chain of three links with queues between them.

use super::{Duplex, DuplexConfig};
use crate::host::Host;
use crate::ids::LinkId;
use crate::ids::{HostId, Port};
use crate::link::{ConfigError, LinkConfig};
use crate::world::World;

/// One wing of a butterfly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ButterflyPath {
    /// Routes of the wing; its links are the middle ones.
    pub duplex: Duplex,
    /// From first host to second: access, middle, exit.
    pub forward: [LinkId; 3],
    /// From second host to first: access, middle, exit.
    pub backward: [LinkId; 3],
}

/// Connects `left` and `right` by one wing per entry of `wings`: an `edge` link, the wing's bottleneck, another
/// `edge` link. Cross traffic can enter at the queue before each link. The packets of wing i arrive at port i.
///
/// # Errors
/// If the configuration of a link is invalid.
///
/// # Panics
/// If a host is not in the world or a name is taken.
pub fn butterfly<P: Clone, H: Host<P>>(
    world: &mut World<P, H>,
    left: HostId,
    right: HostId,
    wings: &[DuplexConfig],
    edge: &LinkConfig,
) -> Result<Vec<ButterflyPath>, ConfigError> {
    let mut out = Vec::with_capacity(wings.len());
    for (port, wing) in (0..).map(Port).zip(wings) {
        let forward = chain(world, &wing.name, "up", edge, &wing.forward)?;
        let backward = chain(world, &wing.name, "down", edge, &wing.backward)?;
        let duplex = Duplex {
            forward: world.add_route(&forward, right, port),
            backward: world.add_route(&backward, left, port),
            forward_link: forward[1],
            backward_link: backward[1],
        };
        out.push(ButterflyPath { duplex, forward, backward });
    }
    Ok(out)
}

fn chain<P: Clone, H: Host<P>>(
    world: &mut World<P, H>,
    name: &str,
    direction: &str,
    edge: &LinkConfig,
    middle: &LinkConfig,
) -> Result<[LinkId; 3], ConfigError> {
    Ok([
        world.add_link(&format!("{name}/access/{direction}"), edge)?,
        // The bottleneck has the plain name, which gives it the same randomness as in other topologies.
        world.add_link(&format!("{name}/{direction}"), middle)?,
        world.add_link(&format!("{name}/exit/{direction}"), edge)?,
    ])
}
