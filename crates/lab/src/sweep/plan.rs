//! A checked sweep: every point can run.

use super::axis::Axis;
use super::error::SweepError;
use super::grid::{Grid, Source};
use super::identity::Identity;
use super::seeds::Seeds;

/// A grid whose points are all valid and different.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    grid: Grid,
    identity: Identity,
}

impl SweepPlan {
    /// Checks everything before anything runs.
    ///
    /// # Errors
    /// As [`Grid::new`]; also the first point that is not a valid scenario, or that equals another.
    pub fn new(source: Source, axes: Vec<Axis>, seeds: Seeds) -> Result<Self, SweepError> {
        let grid = Grid::new(source, axes, seeds)?;
        let identity = Identity::of(&grid)?;
        Ok(Self { grid, identity })
    }

    /// The points.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The identity of the sweep.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }
}
