//! Ready-made topologies: links and routes between existing hosts.

mod butterfly;
mod disjoint;
mod dumbbell;

pub use butterfly::{ButterflyPath, butterfly};
pub use disjoint::{DuplexConfig, disjoint};
pub use dumbbell::{Dumbbell, dumbbell};

use crate::ids::{LinkId, RouteId};

/// A route in each direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Duplex {
    /// From the first host to the second.
    pub forward: RouteId,
    /// From the second host to the first.
    pub backward: RouteId,
    /// The link that limits the forward direction.
    pub forward_link: LinkId,
    /// The link that limits the backward direction.
    pub backward_link: LinkId,
}
