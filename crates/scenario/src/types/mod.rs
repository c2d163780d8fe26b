//! The contents of a scenario file as types, with defaults applied and quantities in base units.

mod choices;
mod cross;
mod link;
mod scheduler;
mod sctp;
mod tcp;
mod trace;
mod wifi;

pub use choices::{
    Choice, Congestion, CwndUpdate, End, ForwardDelay, Named, OtiasForm, Preamble, Preset,
    Protocol, Quota, Recovery, Reinjection, Reordering, Retransmission, RtoFormula, SackCount,
    ScheduleCapacity, ScheduleWindows, SchedulerName, Side, SubflowAck, Weights, WhenBlocked,
    WindowCheck, WindowManager, WindowRounding, WindowUnit,
};
pub use cross::{Cross, CrossKind, Target};
pub use link::{
    Capacity, Discipline, Jitter, JitterShape, Limit, Link, LinkSide, Loss, Outage, Path, Queue,
    Reorder, Step,
};
pub use scheduler::SchedulerOptions;
pub use sctp::{InitialSsthresh, InitialWindow, SctpOptions};
pub use tcp::TcpOptions;
pub use trace::Trace;
pub(crate) use trace::numbered_lines;
pub use wifi::{Radio, Station, Wifi, WifiStandard};

use ropewalk_base::{Duration, Rate};

/// The contents of a scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// `[transfer]`: what is sent, how, and for how long.
    pub transfer: Transfer,
    /// `[scheduler]`: which path gets which data.
    pub scheduler: SchedulerOptions,
    /// `[sctp]`: deviations from the preset.
    pub sctp: SctpOptions,
    /// `[tcp]`: deviations from the preset.
    pub tcp: TcpOptions,
    /// `[[path]]`, at least one; the position is the path's number.
    pub paths: Vec<Path>,
    /// `[[link]]`: links that several paths share.
    pub links: Vec<Link>,
    /// `[[cross]]`: cross traffic.
    pub cross: Vec<Cross>,
    /// `[[station]]`: background 802.11 stations.
    pub stations: Vec<Station>,
    /// `[world]`: number and start times of parallel transfers.
    pub world: World,
    /// `[record]`: data recorded during the run.
    pub record: Record,
}

/// `[transfer]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// The protocol.
    pub protocol: Protocol,
    /// Length of the run; with `bytes`, the maximum length.
    pub duration: Duration,
    /// The run ends when this many bytes of user data have been delivered in order.
    pub bytes: Option<u64>,
    /// Initial part that all figures leave out; shorter than `duration`.
    pub warmup: Duration,
    /// Root of the seed tree.
    pub seed: u64,
    /// Receive buffer in bytes, shared by all paths; at least one packet.
    pub receive_buffer: u64,
    /// A full packet in bytes on the wire, headers included.
    pub packet: u32,
    /// Preset, which supplies every value in `[sctp]` or `[tcp]` that is `None`.
    pub preset: Preset,
    /// The receive-window guard, which keeps a bundle from falling below its best path.
    pub guard: bool,
    /// How congestion windows grow and shrink.
    pub congestion: Congestion,
    /// `cubic`: whether a flow with a smaller window at a loss than at the previous one releases bandwidth to others.
    pub fast_convergence: bool,
    /// How the receive buffer is shared between congestion windows.
    pub window_manager: WindowManager,
    /// Source of the data.
    pub application: Application,
    /// Number of streams.
    pub streams: u16,
    /// Size of a user message in bytes; `None` for one full chunk.
    pub message: Option<u64>,
    /// Whether messages are delivered as they come instead of in order.
    pub unordered: bool,
}

/// Source of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// An unlimited supply of data.
    Bulk,
    /// Messages at a constant rate.
    Steady {
        /// User data per second.
        rate: Rate,
        /// Bytes per message.
        message: u64,
    },
}

/// `[world]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    /// Associations with the same settings, each over all paths.
    pub associations: u32,
    /// Interval between the starts of two associations.
    pub stagger: Duration,
}

/// `[record]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Interval between the points of the time series.
    pub interval: Duration,
    /// Whether to keep every decision of the scheduler, for `explain`.
    pub decisions: bool,
    /// Whether to keep every packet.
    pub packets: bool,
}
