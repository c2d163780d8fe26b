//! Settings of a tunnel: copies, the latency budget, and the use of each link.

use ropewalk_base::Duration;
use ropewalk_scenario::{Named, PathUse, Redundancy, Scenario, Tunnel};

use super::candidate::Candidate;

/// Latency budgets to try in addition to that of the scenario: two round trips of a usual link, and half of the
/// default.
const BUDGETS: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(250)];
/// Uses to try for a link that the scenario always uses.
const USES: [PathUse; 2] = [PathUse::WhenNeeded, PathUse::Backup];

/// Changes of the settings of a scenario's tunnel; by default none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelChoice {
    /// When packets are sent on two paths.
    pub redundancy: Option<Redundancy>,
    /// Longest time that a packet waits for an earlier one.
    pub latency_budget: Option<Duration>,
    /// Uses of links, by their index in the scenario, ascending.
    pub uses: Vec<(usize, PathUse)>,
}

impl TunnelChoice {
    /// Number of changes.
    pub fn changes(&self) -> usize {
        usize::from(self.redundancy.is_some())
            + usize::from(self.latency_budget.is_some())
            + self.uses.len()
    }

    /// The changes that still have an effect with only these links. A single link never waits for another
    /// one.
    pub fn on(&self, paths: &[usize]) -> Self {
        if paths.len() < 2 {
            let latency_budget = self.latency_budget;
            return Self { latency_budget, ..Self::default() };
        }
        let uses = self.uses.iter().filter(|(path, _)| paths.contains(path)).copied().collect();
        Self { uses, ..self.clone() }
    }

    /// Applies the changes to a scenario that has only these links.
    pub fn apply(&self, scenario: &mut Scenario, paths: &[usize]) {
        scenario.tunnel.redundancy = self.redundancy.unwrap_or(scenario.tunnel.redundancy);
        scenario.tunnel.latency_budget =
            self.latency_budget.unwrap_or(scenario.tunnel.latency_budget);
        for (path, usage) in &self.uses {
            if let Some(place) = paths.iter().position(|kept| kept == path) {
                scenario.paths[place].r#use = *usage;
            }
        }
    }

    /// The changes in the syntax of a scenario. Empty if there are none.
    pub fn texts(&self, scenario: &Scenario) -> Vec<String> {
        let redundancy = self.redundancy.map(|own| format!("redundancy {own}"));
        let budget = self
            .latency_budget
            .map(|own| format!("latency budget {}", ropewalk_scenario::duration_text(own)));
        let uses = self
            .uses
            .iter()
            .map(|(path, usage)| format!("use of {} {usage}", scenario.paths[*path].name));
        redundancy.into_iter().chain(budget).chain(uses).collect()
    }
}

/// Variants of the choice with one further change of the tunnel. Only settings that the scenario leaves at their
/// defaults are changed, because its author has chosen the others. At least one link always stays in use.
pub fn variants(scenario: &Scenario, choice: &Candidate) -> Vec<Candidate> {
    let with = |tunnel| Candidate { tunnel, ..choice.clone() };
    let own = &choice.tunnel;
    let mut all = Vec::new();
    let several = choice.paths.len() > 1;
    if several && scenario.tunnel.redundancy == Tunnel::default().redundancy {
        let others = Redundancy::ALL.iter().filter(|one| **one != scenario.tunnel.redundancy);
        all.extend(others.map(|one| with(TunnelChoice { redundancy: Some(*one), ..own.clone() })));
    }
    if scenario.tunnel.latency_budget == Tunnel::default().latency_budget {
        let budgets = BUDGETS.iter();
        all.extend(
            budgets.map(|one| with(TunnelChoice { latency_budget: Some(*one), ..own.clone() })),
        );
    }
    let uses_of = |path: usize| {
        own.uses
            .iter()
            .find(|(other, _)| *other == path)
            .map_or(scenario.paths[path].r#use, |u| u.1)
    };
    let always = choice.paths.iter().filter(|path| uses_of(**path) == PathUse::Always);
    let always = always.count();
    for path in &choice.paths {
        let is_always = uses_of(*path) == PathUse::Always;
        let open =
            scenario.paths[*path].r#use == PathUse::Always && scenario.paths[*path].cap.is_none();
        if !open || (is_always && always < 2) {
            continue;
        }
        for usage in USES {
            let mut uses: Vec<_> =
                own.uses.iter().filter(|(other, _)| other != path).copied().collect();
            uses.push((*path, usage));
            uses.sort_by_key(|(path, _)| *path);
            all.push(with(TunnelChoice { uses, ..own.clone() }));
        }
    }
    all.retain(|one| one != choice);
    all
}
