//! A checked sweep: every point can run.

use super::axis::Axis;
use super::error::SweepError;
use super::grid::{Grid, Source};
use super::identity::Identity;
use super::seeds::Seeds;

/// A grid of which every point is a sound scenario, and no two points are the same.
#[derive(Clone, Debug)]
pub struct Plan {
    grid: Grid,
    identity: Identity,
}

impl Plan {
    /// Checks everything before anything runs.
    ///
    /// # Errors
    /// As [`Grid::new`]; also the first point that is no sound scenario, or the same as another.
    pub fn new(source: Source, axes: Vec<Axis>, seeds: Seeds) -> Result<Self, SweepError> {
        let grid = Grid::new(source, axes, seeds)?;
        let identity = Identity::of(&grid)?;
        Ok(Self { grid, identity })
    }

    /// Its points.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// What it computes.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }
}
