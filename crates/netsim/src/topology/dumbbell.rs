//! The dumbbell topology: pairs of hosts that share one bottleneck.

use super::{Duplex, DuplexConfig};
use crate::host::Host;
use crate::ids::LinkId;
use crate::ids::{HostId, Port};
use crate::link::{ConfigError, LinkConfig};
use crate::world::World;

/// A dumbbell in a world.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dumbbell {
    /// The shared link from left to right; cross traffic can be put on it.
    pub forward_link: LinkId,
    /// The shared link from right to left.
    pub backward_link: LinkId,
    /// One per pair.
    pub pairs: Vec<Duplex>,
}

/// Connects each pair of hosts over separate access links, the shared `bottleneck`, and access links again.
/// All `access` links are equal and should be faster than the bottleneck. A host may occur in several pairs;
/// the packets of pair i arrive at port i.
///
/// # Errors
/// If the configuration of a link is invalid.
///
/// # Panics
/// If a host is not in the world or a name is taken.
pub fn dumbbell<P: Clone, H: Host<P>>(
    world: &mut World<P, H>,
    bottleneck: &DuplexConfig,
    access: &LinkConfig,
    pairs: &[(HostId, HostId)],
) -> Result<Dumbbell, ConfigError> {
    let name = &bottleneck.name;
    let forward_link = world.add_link(&format!("{name}/up"), &bottleneck.forward)?;
    let backward_link = world.add_link(&format!("{name}/down"), &bottleneck.backward)?;
    let mut out = Vec::with_capacity(pairs.len());
    for (port, (left, right)) in (0..).map(Port).zip(pairs) {
        let mut add = |place: &str| world.add_link(&format!("{name}/{}/{place}", port.0), access);
        let [left_out, left_in] = [add("left/up")?, add("left/down")?];
        let [right_in, right_out] = [add("right/up")?, add("right/down")?];
        out.push(Duplex {
            forward: world.add_route(&[left_out, forward_link, right_in], *right, port),
            backward: world.add_route(&[right_out, backward_link, left_in], *left, port),
            forward_link,
            backward_link,
        });
    }
    Ok(Dumbbell { forward_link, backward_link, pairs: out })
}
