//! The scenario file: schema, units, defaults, and errors with positions.
//!
//! ```
//! let text = r#"
//! [transfer]
//! duration = "30 s"
//!
//! [[path]]
//! name = "wifi"
//! rate = "10 Mbit/s"
//! rtt  = "20 ms"
//! "#;
//! let scenario = ropewalk_scenario::Scenario::parse(text, "example.toml")?;
//! assert_eq!(scenario.paths[0].up.delay, ropewalk_base::Duration::from_millis(10));
//! # Ok::<(), ropewalk_scenario::ScenarioError>(())
//! ```
//!
//! One table of keys drives the check for unknown keys, the limits, the defaults, the JSON Schema and the
//! reference page ([`reference_markdown`]).

mod check;
mod choice;
mod custom_scheduler;
mod error;
mod keys;
mod overrides;
mod parse;
mod quantity;
pub mod rates;
mod ready;
mod reference;
mod schema;
mod suggest;
mod toml_text;
mod tree;
mod types;
mod write;

pub use choice::{Choice, Named, UnknownName};
pub use custom_scheduler::{SchedulerNameError, check_scheduler_name};
pub use error::{Problem, ProblemKind, ScenarioError};
pub use overrides::Override;
pub use parse::{ScenarioText, parse_duration, parse_rate, parse_size};
pub use quantity::{duration_text, rate_text, size_text};
pub use ready::{
    ACCESS_SCENARIOS, BBR_SCENARIOS, READY_SCENARIOS, ReadyScenario, VALIDATION_SCENARIOS,
};
pub use reference::reference_markdown;
pub use schema::json_schema;
pub use suggest::nearest;
pub use types::{
    Application, Capacity, Congestion, Coupling, Cross, CrossKind, CwndUpdate, Discipline, End,
    Flow, FlowKind, ForwardDelay, InitialSsthresh, InitialWindow, Jitter, JitterShape,
    LATENCY_BUDGETS, LONGEST_PAUSE, Limit, Link, LinkSide, LinuxTurns, Loss, OtiasForm, Outage,
    Pacing, PacingOptions, Path, PathUse, Preamble, Preset, Protocol, Queue, Quota, Radio,
    ReceiveRules, Record, Recovery, Redundancy, Reinjection, Reorder, Reordering, Retransmission,
    RtoFormula, Rules, SackCount, Scenario, ScheduleCapacity, ScheduleWindows, SchedulerName,
    SchedulerOptions, SctpOptions, Side, Source, Station, Steady, Step, StreamScheduler,
    SubflowAck, Target, TcpOptions, Trace, Transfer, Tunnel, Weights, WhenBlocked, Wifi,
    WifiStandard, WindowCheck, WindowManager, WindowRounding, WindowUnit, World,
};
