//! Ready-made topologies: links and routes between hosts that are in the world already.

mod butterfly;
mod disjoint;
mod dumbbell;

pub use butterfly::{ButterflyPath, butterfly};
pub use disjoint::{DuplexConfig, disjoint};
pub use dumbbell::{Dumbbell, dumbbell};

use crate::route::{LinkId, RouteId};

/// A route there and one back.
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
