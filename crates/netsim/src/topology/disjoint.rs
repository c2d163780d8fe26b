//! Disjoint paths: two hosts with any number of separate links between them.

use super::Duplex;
use crate::host::Host;
use crate::ids::{HostId, Port};
use crate::link::{ConfigError, LinkConfig};
use crate::world::World;

/// Name and both directions of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct DuplexConfig {
    /// Name in the seed tree; the directions add `/up` and `/down`.
    pub name: String,
    /// From the first host to the second.
    pub forward: LinkConfig,
    /// From the second host to the first.
    pub backward: LinkConfig,
}

impl DuplexConfig {
    /// A link with equal directions.
    pub fn symmetric(name: impl Into<String>, config: LinkConfig) -> Self {
        Self { name: name.into(), forward: config.clone(), backward: config }
    }
}

/// Connects `left` and `right` by one link pair per entry of `paths`; packets of path i arrive at port i.
///
/// # Errors
/// If the configuration of a link is invalid.
///
/// # Panics
/// If a host is not in the world or a name is taken.
pub fn disjoint<P: Clone, H: Host<P>>(
    world: &mut World<P, H>,
    left: HostId,
    right: HostId,
    paths: &[DuplexConfig],
) -> Result<Vec<Duplex>, ConfigError> {
    let mut out = Vec::with_capacity(paths.len());
    for (port, path) in (0..).map(Port).zip(paths) {
        let forward_link = world.add_link(&format!("{}/up", path.name), &path.forward)?;
        let backward_link = world.add_link(&format!("{}/down", path.name), &path.backward)?;
        out.push(Duplex {
            forward: world.add_route(&[forward_link], right, port),
            backward: world.add_route(&[backward_link], left, port),
            forward_link,
            backward_link,
        });
    }
    Ok(out)
}
