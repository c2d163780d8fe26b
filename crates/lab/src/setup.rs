//! Options of a run, and the world that is prepared for it.

use ropewalk_base::{Duration, Time};
use ropewalk_engine::scheduler::Scheduler;
use ropewalk_netsim::{HostId, World};

use crate::custom_schedulers::CustomSchedulers;
use crate::endpoint::{Endpoint, SimPayload};
use crate::network::PathLinks;

/// Data to record in addition to the result.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Whether to record time series at the scenario's interval.
    pub series: bool,
    /// Length of the initial part whose arrivals are all recorded, for sequence-time plots.
    pub sequence: Option<Duration>,
    /// A scheduler instead of the scenario's.
    pub scheduler: Option<Scheduler>,
    /// The custom schedulers that the scenario may select by name.
    pub custom_schedulers: CustomSchedulers,
    /// Index of the association whose arrivals are recorded, and its decisions if the scenario requests them;
    /// from 0. Recording all associations would exceed the memory.
    pub association: u32,
}

/// The endpoints of one association.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Sender.
    pub sender: HostId,
    /// Receiver.
    pub receiver: HostId,
    /// Start time.
    pub start: Time,
}

/// A world that is ready to run, with its transfers.
pub(crate) struct Setup {
    pub world: World<SimPayload, Endpoint>,
    pub transfers: Vec<Transfer>,
    /// The links of each association's paths.
    pub links: Vec<Vec<PathLinks>>,
    /// Whether the scheduler is a custom one.
    pub custom_scheduler: bool,
}
