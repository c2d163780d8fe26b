//! A choice of links, scheduler, congestion control, receive buffer and settings of a tunnel.

use ropewalk_scenario::{Congestion, Named, Scenario, SchedulerName, Target};

use super::Goal;
use super::tunnel::TunnelChoice;

/// One choice that the search compares with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Indices of the paths in the scenario, ascending.
    pub paths: Vec<usize>,
    /// Scheduler; `min-rtt` for a single path, where it has no effect.
    pub scheduler: SchedulerName,
    /// Congestion control.
    pub congestion: Congestion,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// Changes of the tunnel.
    pub tunnel: TunnelChoice,
}

impl Candidate {
    /// The scheduler of a single path is fixed, so that equal choices are equal values.
    pub fn new(
        paths: Vec<usize>,
        scheduler: SchedulerName,
        congestion: Congestion,
        receive_buffer: u64,
    ) -> Self {
        let scheduler = if paths.len() > 1 { scheduler } else { SchedulerName::MinRtt };
        Self { paths, scheduler, congestion, receive_buffer, tunnel: TunnelChoice::default() }
    }

    /// The choice that the scenario makes, with another receive buffer.
    pub fn of(scenario: &Scenario, receive_buffer: u64) -> Self {
        let paths = (0..scenario.paths.len()).collect();
        Self::new(paths, scenario.scheduler.name, scenario.transfer.congestion, receive_buffer)
    }

    /// The same choice with another receive buffer.
    pub fn with_buffer(&self, receive_buffer: u64) -> Self {
        Self { receive_buffer, ..self.clone() }
    }

    /// The same choice on other paths.
    pub fn on(&self, paths: Vec<usize>) -> Self {
        let tunnel = self.tunnel.on(&paths);
        let chosen = Self::new(paths, self.scheduler, self.congestion, self.receive_buffer);
        Self { tunnel, ..chosen }
    }

    /// Whether both are equal, except for their receive buffers.
    pub fn resembles(&self, other: &Self) -> bool {
        self.with_buffer(0) == other.with_buffer(0)
    }

    /// Identifies the choice.
    pub fn key(&self) -> String {
        let Self { paths, scheduler, congestion, receive_buffer, tunnel } = self;
        let key = format!("{paths:?} {scheduler} {congestion} {receive_buffer}");
        match tunnel.changes() {
            0 => key,
            _ => format!("{key} {tunnel:?}"),
        }
    }

    /// Effort of the choice: the number of links, then the number of changed settings without the
    /// receive buffer.
    pub fn effort(&self, scenario: &Scenario) -> (usize, usize) {
        let own = Self::of(scenario, self.receive_buffer);
        let scheduler = self.paths.len() > 1 && self.scheduler != own.scheduler;
        let transport = usize::from(scheduler) + usize::from(self.congestion != own.congestion);
        (self.paths.len(), transport + self.tunnel.changes())
    }

    /// The scenario with this choice.
    pub fn applied_to(&self, scenario: &Scenario) -> Scenario {
        let mut chosen = on_paths(scenario, &self.paths);
        self.tunnel.apply(&mut chosen, &self.paths);
        chosen.transfer.receive_buffer = self.receive_buffer;
        chosen.transfer.congestion = self.congestion;
        chosen.scheduler.name = self.scheduler;
        chosen.scheduler.custom = None;
        chosen.record.decisions = false;
        chosen
    }
}

/// The scenario with these paths only, and without cross traffic on the others.
pub fn on_paths(scenario: &Scenario, paths: &[usize]) -> Scenario {
    let mut chosen = scenario.clone();
    chosen.paths = paths.iter().map(|path| scenario.paths[*path].clone()).collect();
    chosen.cross.retain_mut(|cross| match cross.on {
        Target::Link(_) => true,
        Target::Path(path) => match paths.iter().position(|kept| *kept == path) {
            Some(place) => {
                cross.on = Target::Path(place);
                true
            }
            None => false,
        },
    });
    chosen
}

/// The schedulers that the search compares for a goal. `backup` uses one path at a time, which the choice of links
/// covers. `redundant` sends copies, which costs goodput and shortens delays.
pub fn schedulers(goal: Goal) -> Vec<SchedulerName> {
    let sensible = |name: &&SchedulerName| match name {
        SchedulerName::Backup => false,
        SchedulerName::Redundant => goal != Goal::Throughput,
        _ => true,
    };
    SchedulerName::ALL.iter().filter(sensible).copied().collect()
}

/// Congestion controls that the search compares. `fully-coupled` leaves one path, which the choice of links
/// already covers. `prague` needs queues that mark, and whether a link has one is unknown.
pub fn congestions() -> Vec<Congestion> {
    let left_out = [Congestion::FullyCoupled, Congestion::Prague];
    Congestion::ALL.iter().filter(|name| !left_out.contains(name)).copied().collect()
}

/// Sets of paths other than all of them: each subset up to three paths; above, each path alone and all without
/// one.
pub fn subsets(paths: usize) -> Vec<Vec<usize>> {
    let all = 0..paths;
    if paths <= 3 {
        let members = |set: usize| all.clone().filter(|path| set >> path & 1 == 1).collect();
        return (1..(1_usize << paths) - 1).map(members).collect();
    }
    let without = |left: usize| all.clone().filter(|path| *path != left).collect();
    all.clone().map(|path| vec![path]).chain(all.clone().map(without)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk_scenario::Override;

    const TEXT: &str = "[[path]]\nname = 'wifi'\n[[path]]\nname = 'lte'\n[[path]]\nname = 'dsl'\n\
        [[cross]]\nkind = 'poisson'\non = 'wifi'\nrate = '1 Mbit/s'\n\
        [[cross]]\nkind = 'poisson'\non = 'dsl'\nrate = '2 Mbit/s'\n";

    #[test]
    fn a_choice_gives_the_scenario_that_its_keys_give() {
        let scenario = Scenario::parse(TEXT, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        let paths = vec![0, 1, 2];
        let choice = Candidate::new(paths, SchedulerName::Blest, Congestion::Cubic, 90_000);
        let changes = [
            "transfer.scheduler=blest",
            "transfer.congestion=cubic",
            "transfer.receive_buffer=90kB",
        ];
        let sets = changes.map(|change| Override { option: "--set", change });
        let expected = Scenario::parse_overridden(TEXT, "a.toml", &sets);
        assert_eq!(choice.applied_to(&scenario), expected.unwrap_or_else(|e| panic!("{e}")));
        assert_eq!(choice.effort(&scenario), (3, 2));
    }

    #[test]
    fn a_choice_of_links_keeps_the_traffic_that_crosses_them() {
        let scenario = Scenario::parse(TEXT, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        let chosen = Candidate::of(&scenario, 90_000).on(vec![1, 2]).applied_to(&scenario);
        let names: Vec<&str> = chosen.paths.iter().map(|path| path.name.as_str()).collect();
        assert_eq!(names, ["lte", "dsl"]);
        assert_eq!(
            chosen.cross.iter().map(|cross| cross.on).collect::<Vec<_>>(),
            [Target::Path(1)]
        );
    }

    #[test]
    fn the_sets_of_links_are_all_up_to_three_and_singles_and_all_but_one_above() {
        assert_eq!(subsets(1), Vec::<Vec<usize>>::new());
        assert_eq!(subsets(2), [vec![0], vec![1]]);
        assert_eq!(subsets(3).len(), 6);
        let four = subsets(4);
        assert_eq!((four.len(), &four[3], &four[4]), (8, &vec![3], &vec![1, 2, 3]));
    }
}
