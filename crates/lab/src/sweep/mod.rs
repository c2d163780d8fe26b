//! A grid of points, each with several seeds: on all cores, resumable, in shards.
//!
//! ```
//! use ropewalk_lab::sweep::{Axis, Plan, Source, Sweep, SweepOptions};
//!
//! let source = Source {
//!     text: "[transfer]\nduration = '2 s'\n[[path]]\nname = 'dsl'\nrate = '1 Mbit/s'\nrtt = '20 ms'\n"
//!         .into(),
//!     name: "example.toml".into(),
//!     sets: vec![],
//!     seed: None,
//! };
//! let axes = vec![Axis::parse("path.dsl.rtt=20ms..80ms/3")?];
//! let plan = Plan::new(source, axes, 2)?;
//! let go_on = || std::ops::ControlFlow::Continue(());
//! let table = Sweep::open(&plan, SweepOptions::default())?.finish(2, &go_on)?;
//! assert_eq!(table.num_rows(), 3);
//! # Ok::<(), ropewalk_lab::sweep::SweepError>(())
//! ```

mod axis;
mod error;
mod file;
mod grid;
mod identity;
mod journal;
mod json;
mod ledger;
mod merge;
mod outlook;
mod plan;
mod range;
mod row;
mod shard;
mod table;
mod value;
mod work;

pub use arrow_array::RecordBatch;
pub use axis::{Axis, split_list};
pub use error::SweepError;
pub use file::{check_out, read, write};
pub use grid::{Grid, POINTS_MAX, RUNS_MAX, SEEDS_MAX, Source};
pub use identity::Identity;
pub use journal::journal_of;
pub use json::{to_json, value, varied};
pub use merge::merge;
pub use outlook::{Outlook, outlook};
pub use plan::Plan;
pub use range::RANGE_MAX;
pub use row::{FIGURES, Figure, Outcome, PointRow};
pub use shard::Shard;
pub use table::{SCHEMA, to_record_batch};
pub use value::Value;
pub use work::{Sweep, SweepOptions};

#[cfg(test)]
mod tests;
