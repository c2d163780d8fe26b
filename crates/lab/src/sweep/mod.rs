//! A grid of points, each with several seeds: parallel, resumable, divisible into shards. Single runs are
//! stored and the means computed from them, so that seeds can be added later.
//!
//! ```
//! use ropewalk_lab::sweep::{Axis, Seeds, Source, Sweep, SweepOptions, SweepPlan};
//!
//! let source = Source {
//!     text: "[transfer]\nduration = '2 s'\n[[path]]\nname = 'dsl'\nrate = '1 Mbit/s'\nrtt = '20 ms'\n"
//!         .into(),
//!     name: "example.toml".into(),
//!     sets: vec![],
//!     seed: None,
//!     custom_schedulers: ropewalk_lab::CustomSchedulers::default(),
//! };
//! let axes = vec![Axis::parse("path.dsl.rtt=20ms..80ms/3")?];
//! let plan = SweepPlan::new(source, axes, "1..2".parse::<Seeds>()?)?;
//! let go_on = || std::ops::ControlFlow::Continue(());
//! let tables = Sweep::open(&plan, SweepOptions::default())?.finish(2, &go_on)?;
//! assert_eq!((tables.runs.num_rows(), tables.means.num_rows()), (6, 3));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod axis;
mod cells;
mod columns;
mod error;
mod estimate;
mod file;
mod grid;
mod identity;
mod journal;
mod json;
mod means;
mod merge;
mod plan;
mod range;
mod recorder;
mod row;
mod seeds;
mod shard;
mod table;
mod value;
mod work;

pub use arrow_array::RecordBatch;
pub use axis::{Axis, split_list};
pub use columns::{SweptColumn, flow_column};
pub use error::SweepError;
pub use estimate::{SweepEstimate, estimate};
pub use file::{check_out, check_table, csv, is_csv, read, write};
pub use grid::{Grid, POINTS_MAX, RUNS_MAX, Source, VALUES_MAX};
pub use identity::Identity;
pub use journal::journal_of;
pub use json::{to_json, value, varied};
pub use means::means;
pub use merge::merge;
pub use plan::SweepPlan;
pub use range::RANGE_MAX;
pub use row::{Outcome, RunRow};
pub use seeds::{SEEDS_MAX, Seeds};
pub use shard::Shard;
pub use table::{MEANS_SCHEMA, RUNS_SCHEMA, runs_table};
pub use value::Value;
pub use work::{Sweep, SweepOptions, Tables};

#[cfg(test)]
mod tests;
