//! Simulations of the engine in emulated networks: runs, comparisons, series, results.
//!
//! ```
//! let scenario = ropewalk_scenario::Scenario::parse(
//!     "[transfer]\nduration = '10 s'\n[[path]]\nname = 'dsl'\nrate = '10 Mbit/s'\nrtt = '20 ms'\n",
//!     "example.toml",
//! )?;
//! let run = ropewalk_lab::run(&scenario, &ropewalk_lab::RunOptions::default())?;
//! assert!(run.result.goodput_bps > 9e6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod advise;
mod advisor;
mod bound;
pub mod compare;
mod cost;
#[cfg(test)]
mod coupling_tests;
pub mod custom_schedulers;
mod direction;
pub mod draw;
mod endpoint;
mod engine_config;
pub mod episode;
mod error;
pub mod explain;
mod hint;
mod link_config;
pub mod live;
mod loss;
mod lossy;
mod machine;
mod measure;
mod network;
mod notes;
mod other_links;
pub mod output;
pub mod packet_log;
pub mod packet_trace;
pub mod predict;
pub mod publish;
pub mod report;
pub mod reproduce;
pub mod result;
mod run;
mod series;
mod setup;
mod slot;
mod sources;
#[cfg(test)]
mod sources_tests;
pub mod sweep;
mod tcp_config;
pub mod tournament;
pub mod tune;
mod tunnel;
pub mod validate;
mod wifi;

/// The guide, included so that its examples are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/write-a-scheduler.md")]
struct Guide;

pub use custom_schedulers::CustomSchedulers;
pub use error::RunError;
pub use hint::{BufferHint, buffer_hint};
pub use loss::LossKind;
pub use measure::Run;
pub use notes::result_notes;
pub use result::{
    AppDelay, BlockingTime, DirectionResult, EngineFigures, FlowResult, OutOfOrder, PathResult,
    ReceiveBufferResult, RunResult,
};
pub use run::{run, run_traced, run_watched};
pub use series::{
    DelayHistogram, DelayHistograms, Distribution, Distributions, PathSeries, Sequence,
    SequencePath, Series, SeriesColumn, Values,
};
pub use setup::{RunOptions, Transfer};
