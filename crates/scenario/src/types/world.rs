//! `[world]` and `[record]`.

use ropewalk_base::Duration;

use super::Congestion;
use crate::keys::{Kind, LONGEST_DELAY, NS_PER_MS, names, time};

table! {
    /// How many transfers run side by side.
    #[derive(Copy, Eq)]
    pub struct World {
        /// Associations with the same settings. Each has its own links for its paths; shared links are
        /// common to all.
        associations: u32 = Kind::Integer { min: 1, max: 1_000_000 }.is("1").example("1000");
        /// Time between the starts of two associations.
        stagger: Duration = time(0, LONGEST_DELAY).is("0 s").example("\"10 ms\"");
        /// Congestion control of all associations but the first: algorithms compete on shared links.
        other_congestion: Option<Congestion> =
            names::<Congestion>().derived("`transfer.congestion`").example("\"cubic\"");
    }
}

table! {
    /// What is recorded of the run.
    #[derive(Copy, Eq)]
    pub struct Record {
        /// Interval of the time series.
        interval: Duration = time(NS_PER_MS, LONGEST_DELAY).is("100 ms").example("\"10 ms\"");
        /// Record every decision of the scheduler, for `ropewalk explain`. Costs memory.
        decisions: bool = Kind::Bool.is("false").example("true");
        /// Record every packet. Costs much memory.
        packets: bool = Kind::Bool.is("false").example("true");
    }
}
