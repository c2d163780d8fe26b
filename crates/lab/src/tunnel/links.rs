//! Caps of the links of a simulated tunnel: the sender's end counts the bytes of each link and informs the other
//! end.

use ropewalk_base::{PathId, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::path::PathUse;
use ropewalk_engine::sctp::{Association, Delivery};
use ropewalk_scenario::{self as file, Scenario};
use ropewalk_tunnel::{LinkRule, LinkUse, PathRule, decode_uses, encode_uses};

/// Distinguishes the message with the uses of paths from inner packets, whose identifier is 0.
pub(super) const USES_PPID: u32 = 1;

/// Bytes carried by each link, and its rule.
#[derive(Clone, Debug)]
pub(super) struct LinkCaps {
    links: Vec<(LinkRule, u64)>,
    told: Vec<PathRule>,
}

impl LinkCaps {
    /// Link caps of a scenario. `None` if no path has a cap.
    pub fn of(scenario: &Scenario) -> Option<Self> {
        scenario.paths.iter().any(|path| path.cap.is_some()).then(|| {
            let links: Vec<_> = scenario.paths.iter().map(|path| (rule(path), 0)).collect();
            Self { told: rules(&links), links }
        })
    }

    /// Counts a packet of `bytes` that was sent or received on the link of a path.
    pub fn count(&mut self, path: PathId, bytes: u32) {
        if let Some((_, carried)) = self.links.get_mut(path.index()) {
            *carried += u64::from(bytes);
        }
    }

    /// Bytes that the link of each path has carried.
    pub fn carried(&self) -> impl Iterator<Item = u64> {
        self.links.iter().map(|(_, carried)| *carried)
    }

    /// Applies caps that are near or reached, at both ends.
    pub fn act(&mut self, now: Time, association: &mut Association) {
        let rules = rules(&self.links);
        if rules == self.told {
            return;
        }
        let message = Payload::from(bytes::Bytes::from(encode_uses(&rules)));
        let sent =
            association.send_message(now, StreamId(0), USES_PPID, message, Delivery::RELIABLE);
        if sent.is_ok() {
            apply(association, &rules);
            self.told = rules;
        }
    }
}

/// Applies a message of the other end.
pub(super) fn obey(association: &mut Association, message: &[u8]) {
    if let Some(rules) = decode_uses(message) {
        apply(association, &rules);
    }
}

fn apply(association: &mut Association, rules: &[PathRule]) {
    let count = association.path_count();
    for (path, rule) in rules.iter().enumerate().take(count) {
        let usage = match rule.usage {
            LinkUse::Always => PathUse::Always,
            LinkUse::WhenNeeded => PathUse::WhenNeeded,
            LinkUse::Backup => PathUse::Backup,
            LinkUse::Never => PathUse::Never,
        };
        association.set_path_use(PathId::from_index(path), usage, rule.cost);
    }
}

fn rule(path: &file::Path) -> LinkRule {
    let usage = match path.r#use {
        file::PathUse::Always => LinkUse::Always,
        file::PathUse::WhenNeeded => LinkUse::WhenNeeded,
        file::PathUse::Backup => LinkUse::Backup,
        file::PathUse::Never => LinkUse::Never,
    };
    LinkRule { usage, cost: path.cost, cap: path.cap }
}

fn rules(links: &[(LinkRule, u64)]) -> Vec<PathRule> {
    let rule = |(rule, carried): &(LinkRule, u64)| PathRule {
        usage: rule.usage_at(*carried),
        cost: rule.cost,
    };
    links.iter().map(rule).collect()
}
