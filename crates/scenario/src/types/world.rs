//! `[world]` and `[record]`.

use ropewalk_base::Duration;

use super::builder::Builder;
use super::{Congestion, Preset, Transfer};
use crate::check::Checked;
use crate::error::ProblemKind;
use crate::keys::{Kind, LONGEST_DELAY, NS_PER_MS, names, time};

table! {
    /// How many transfers run side by side.
    #[derive(Copy, Eq)]
    pub struct World {
        /// Associations with the same settings, apart from `other_congestion`. Each has its own links for its paths; shared
        /// links are common to all.
        associations: u32 = Kind::Integer { min: 1, max: 1_000_000 }.is("1").example("1000");
        /// Time between the starts of two associations.
        stagger: Duration = time(0, LONGEST_DELAY).is("0 s").example("\"10 ms\"");
        /// Congestion control of all associations but the first: algorithms compete on shared links.
        other_congestion: Option<Congestion> =
            names::<Congestion>().derived("`transfer.congestion`").example("\"cubic\"");
    }
}

impl Builder<'_> {
    /// Reads `[world]`, and checks it against the rest of the file.
    pub(super) fn world(&mut self, table: &Checked, transfer: &Transfer) -> World {
        let world = World::read(self, table);
        let problem = world.other_congestion.and_then(|name| unusable(name, transfer));
        if let Some((why, help)) = problem {
            let shown = self.excerpt(table, "other_congestion");
            let message = format!("`world.other_congestion` = {shown} {why}");
            self.wrong(table, "other_congestion", ProblemKind::Conflict, message, help);
        }
        world
    }
}

/// Why this transfer cannot use a congestion control, and what to do.
pub(super) fn unusable(name: Congestion, transfer: &Transfer) -> Option<(String, &'static str)> {
    let known = [Congestion::NewReno, Congestion::Lia, Congestion::FullyCoupled];
    if transfer.preset == Preset::Chihani2011 && !known.contains(&name) {
        let why = format!("is not in the model `{}`", transfer.preset);
        return Some((why, "it knows \"newreno\", \"lia\" and \"fully-coupled\""));
    }
    if transfer.protocol.is_tcp() && name == Congestion::Prague {
        let why = format!("needs accurate ECN, which \"{}\" does not have here", transfer.protocol);
        return Some((why, "set `transfer.protocol` to \"sctp\" or \"cmt-sctp\""));
    }
    None
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
