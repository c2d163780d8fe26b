//! Link rules of a client: when each link carries data, its cost, and its monthly cap.
//!
//! The traffic of a link with a cap is kept in a file. The file is ahead of the count by up to one step, and is
//! written when the count has reached it, so that a crash never loses traffic that was carried.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use parking_lot::Mutex;
use ropewalk_runtime::clock::unix_time;
use ropewalk_runtime::endpoint::PathUse;
use ropewalk_tunnel::{LinkRule, LinkUse, PathRule};
use serde::{Deserialize, Serialize};

use super::quota::Month;
use super::store::replace;
use crate::access::parse_monthly;
use crate::observe::{Event, LinkCap, PeerIdentity, Reporter};

/// Minimum number of bytes that the file is ahead of the count, and the share of the cap if that is more: 20
/// MB of 20 GB.
const LEAST_STEP: u64 = 1_000_000;
const STEPS_PER_CAP: u64 = 1000;

/// The settings of one link, as `wwan0 use=backup cap=20GB/month cost=5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Name of the network interface, or an own address.
    pub link: String,
    usage: Option<LinkUse>,
    cost: Option<u32>,
    cap: Option<u64>,
}

impl LinkSpec {
    /// The rule, with defaults for missing settings.
    pub fn rule(&self) -> LinkRule {
        let LinkRule { usage, cost, cap } = LinkRule::default();
        LinkRule {
            usage: self.usage.unwrap_or(usage),
            cost: self.cost.unwrap_or(cost),
            cap: self.cap.or(cap),
        }
    }

    /// Joins the settings of each link.
    ///
    /// # Errors
    /// A setting is given twice for a link.
    pub fn joined(specs: &[Self]) -> Result<Vec<Self>, String> {
        let mut joined: Vec<Self> = Vec::new();
        for spec in specs {
            let Some(same) = joined.iter_mut().find(|other| other.link == spec.link) else {
                joined.push(spec.clone());
                continue;
            };
            let twice = |key| format!("`{key}=` of the link {} is given twice", spec.link);
            join(&mut same.usage, spec.usage).map_err(|()| twice("use"))?;
            join(&mut same.cost, spec.cost).map_err(|()| twice("cost"))?;
            join(&mut same.cap, spec.cap).map_err(|()| twice("cap"))?;
        }
        Ok(joined)
    }
}

fn join<T>(known: &mut Option<T>, new: Option<T>) -> Result<(), ()> {
    if known.is_some() && new.is_some() {
        return Err(());
    }
    *known = known.take().or(new);
    Ok(())
}

impl FromStr for LinkSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let help = "give a link and what applies to it, such as `wwan0 use=backup cap=20GB/month`";
        let link = words.next().filter(|link| !link.contains('=')).ok_or(help)?.to_owned();
        let mut all = Vec::new();
        for word in words {
            let mut spec = Self { link: link.clone(), usage: None, cost: None, cap: None };
            match word.split_once('=') {
                Some(("use", usage)) => spec.usage = Some(usage.parse()?),
                Some(("cost", cost)) => {
                    let wrong = |_| format!("`{cost}` is no cost: give a whole number, such as 5");
                    spec.cost = Some(cost.parse().map_err(wrong)?);
                }
                Some(("cap", cap)) => spec.cap = Some(parse_cap(cap)?),
                _ => {
                    return Err(format!(
                        "`{word}` is unknown: use=, cap= and cost= are not; {help}"
                    ));
                }
            }
            all.push(spec);
        }
        Self::joined(&all)?.pop().ok_or_else(|| format!("`{link}` has no rule: {help}"))
    }
}

fn parse_cap(text: &str) -> Result<u64, String> {
    let bytes = parse_monthly(text).ok();
    bytes.filter(|bytes| *bytes >= LinkRule::LEAST_CAP).ok_or_else(|| {
        format!("`{text}` is no cap: give at least 1 MB for a month, such as 20GB/month")
    })
}

/// Content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    /// The month (UTC).
    month: Month,
    carried_bytes: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Counts {
    now: Stored,
    /// Content of the file: for each link at least the value in `now`.
    written: Stored,
    /// Whether it was reported that the file cannot be written.
    is_told: bool,
}

/// The rules of all links, and this month's traffic of those with caps.
#[derive(Debug)]
pub struct LinkLedger {
    rules: BTreeMap<String, LinkRule>,
    file: PathBuf,
    counts: Mutex<Counts>,
    reporter: Option<Reporter>,
}

impl LinkLedger {
    /// Opens the rules and the file with the counts of the month, which need not exist.
    ///
    /// # Errors
    /// A setting is given twice for a link, or the file cannot be read or written, or is damaged.
    pub fn open(specs: &[LinkSpec], file: &Path) -> io::Result<Self> {
        let specs = LinkSpec::joined(specs).map_err(io::Error::other)?;
        let rules: BTreeMap<_, _> =
            specs.iter().map(|spec| (spec.link.clone(), spec.rule())).collect();
        let mut now = match fs::read_to_string(file) {
            Ok(text) => serde_json::from_str(&text).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Stored::default(),
            Err(error) => return Err(error),
        };
        begin_month(&mut now, this_month());
        let ledger = Self {
            rules,
            file: file.to_owned(),
            counts: Mutex::new(Counts { written: now.clone(), now, is_told: false }),
            reporter: None,
        };
        if ledger.rules.values().any(|rule| rule.cap.is_some()) {
            ledger.write(&mut ledger.counts.lock(), 1)?;
        }
        Ok(ledger)
    }

    /// Reports when a cap changes the use of a link, and when the file cannot be written.
    #[must_use]
    pub fn reporting_to(mut self, reporter: Reporter) -> Self {
        self.reporter = Some(reporter);
        self
    }

    fn report(&self, event: Event) {
        if let Some(reporter) = &self.reporter {
            reporter.report(PeerIdentity::default(), event);
        }
    }

    /// Counts `bytes` that a link has carried in either direction, even if the file cannot be written.
    pub fn count(&self, link: &str, bytes: u64) {
        self.count_in(this_month(), link, bytes);
    }

    fn count_in(&self, month: Month, link: &str, bytes: u64) {
        let Some(rule) = self.rules.get(link).filter(|rule| rule.cap.is_some()) else { return };
        let mut counts = self.counts.lock();
        let is_new = begin_month(&mut counts.now, month);
        let carried = counts.now.carried_bytes.entry(link.to_owned()).or_default();
        let before = rule.usage_at(*carried);
        *carried = carried.saturating_add(bytes);
        let (carried, written) = (*carried, counts.written.carried_bytes.get(link).copied());
        let now = rule.usage_at(carried);
        if now != before {
            self.report(Event::LimitReached { limit: reached(link, now) });
        }
        if is_new || written.is_none_or(|written| carried > written) {
            self.keep(&mut counts);
        }
    }

    /// Writes the file. Reports it once if that fails.
    fn keep(&self, counts: &mut Counts) {
        let failed = self.write(counts, 1).err();
        if let Some(error) = failed.as_ref().filter(|_| !counts.is_told) {
            self.report(Event::Problem(format!(
                "what links have carried cannot be stored in {}: {error}",
                self.file.display()
            )));
        }
        counts.is_told = failed.is_some();
    }

    /// Writes the file, ahead of the counts by this number of steps.
    fn write(&self, counts: &mut Counts, steps: u64) -> io::Result<()> {
        let mut ahead = counts.now.clone();
        for (link, rule) in &self.rules {
            if let Some(cap) = rule.cap {
                let carried = ahead.carried_bytes.entry(link.clone()).or_default();
                *carried += steps * LEAST_STEP.max(cap / STEPS_PER_CAP);
            }
        }
        let text = serde_json::to_string_pretty(&ahead).map_err(io::Error::other)?;
        replace(&self.file, &(text + "\n"))?;
        counts.written = ahead;
        Ok(())
    }

    /// Use and cost of a link now.
    pub fn rule(&self, link: &str) -> PathRule {
        let rule = self.rules.get(link).copied().unwrap_or_default();
        let carried = self.counts.lock().now.carried_bytes.get(link).copied().unwrap_or_default();
        PathRule { usage: rule.usage_at(carried), cost: rule.cost }
    }

    /// The links that carry nothing now.
    pub fn forbidden(&self) -> Vec<String> {
        let is_forbidden = |link: &&String| self.rule(link).usage == LinkUse::Never;
        self.rules.keys().filter(is_forbidden).cloned().collect()
    }

    /// Why a link carries nothing now. `None` if it may carry data.
    pub fn why_forbidden(&self, link: &str) -> Option<String> {
        let rule = self.rules.get(link).filter(|_| self.rule(link).usage == LinkUse::Never)?;
        Some(match rule.usage {
            LinkUse::Never => format!("{link} has use=never"),
            _ => format!("the cap of {link} is used up"),
        })
    }

    /// The links with caps, and their traffic this month.
    pub fn caps(&self) -> Vec<LinkCap> {
        let counts = self.counts.lock();
        let is_past = this_month() > counts.now.month;
        let cap = |(link, rule): (&String, &LinkRule)| {
            let carried = counts.now.carried_bytes.get(link).filter(|_| !is_past);
            let used_bytes = carried.copied().unwrap_or_default();
            Some(LinkCap { link: link.clone(), used_bytes, cap_bytes: rule.cap? })
        };
        self.rules.iter().filter_map(cap).collect()
    }
}

impl Drop for LinkLedger {
    fn drop(&mut self) {
        if self.rules.values().any(|rule| rule.cap.is_some()) {
            // If it fails, the file stays ahead of the counts.
            let _ = self.write(&mut self.counts.lock(), 0);
        }
    }
}

/// Describes the effect of a cap on the use of a link.
fn reached(link: &str, usage: LinkUse) -> String {
    match usage {
        LinkUse::Never => {
            format!("the cap of {link} is used up: it carries nothing until the month ends")
        }
        _ => format!(
            "nine tenths of the cap of {link} are used: it is a backup until the month ends"
        ),
    }
}

/// Converts a use to that of the engine.
pub(super) const fn path_use(usage: LinkUse) -> PathUse {
    match usage {
        LinkUse::Always => PathUse::Always,
        LinkUse::WhenNeeded => PathUse::WhenNeeded,
        LinkUse::Backup => PathUse::Backup,
        LinkUse::Never => PathUse::Never,
    }
}

/// Restarts the counts at zero in a later month. Returns whether it did. An earlier month changes nothing: a clock
/// that was set back, or that starts without a battery, grants no new volume.
fn begin_month(stored: &mut Stored, month: Month) -> bool {
    let is_new = month > stored.month;
    if is_new {
        *stored = Stored { month, carried_bytes: BTreeMap::new() };
    }
    is_new
}

/// The month now (UTC).
fn this_month() -> Month {
    Month::of_unix(unix_time().as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> LinkSpec {
        text.parse().expect("a rule")
    }

    /// A path that does not exist yet.
    fn file(name: &str) -> PathBuf {
        let name = format!("ropewalk-links-{}-{name}", std::process::id());
        std::env::temp_dir().join(name).join("home.links")
    }

    fn stored(file: &Path) -> Stored {
        let text = fs::read_to_string(file).expect("it was written");
        serde_json::from_str(&text).expect("it is whole")
    }

    #[test]
    fn a_rule_names_a_link_and_what_applies_to_it() {
        let full = spec("wwan0 use=when-needed cap=20GB/month cost=5");
        let rule = LinkRule { usage: LinkUse::WhenNeeded, cost: 5, cap: Some(20_000_000_000) };
        assert_eq!((full.link.as_str(), full.rule()), ("wwan0", rule));
        assert_eq!(spec("wlan0 use=always").rule(), LinkRule::default());
        for (text, part) in [
            ("", "give a link"),
            ("use=backup", "give a link"),
            ("wwan0", "`wwan0` has no rule"),
            ("wwan0 use=sometimes", "when-needed"),
            ("wwan0 cap=20GB", "20GB/month"),
            ("wwan0 cap=1kB/month", "at least 1 MB"),
            ("wwan0 cost=much", "whole number"),
            ("wwan0 speed=3", "`speed=3` is unknown"),
            ("wwan0 cost=3 cost=4", "`cost=` of the link wwan0 is given twice"),
        ] {
            let error = text.parse::<LinkSpec>().expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn all_that_is_given_for_a_link_applies_to_it_and_nothing_may_be_given_twice() {
        let parts =
            ["wwan0 use=when-needed", "wlan0 cost=2", "wwan0 cap=20GB/month", "wwan0 cost=5"];
        let joined = LinkSpec::joined(&parts.map(spec)).expect("nothing is given twice");
        assert_eq!(
            joined,
            [spec("wwan0 use=when-needed cap=20GB/month cost=5"), spec("wlan0 cost=2")]
        );
        for again in ["wwan0 use=backup", "wwan0 cap=20GB/month", "wwan0 cost=5"] {
            let twice = LinkSpec::joined(&[&parts.map(spec)[..], &[spec(again)]].concat());
            assert!(twice.is_err_and(|error| error.contains("wwan0 is given twice")), "{again}");
        }
    }

    #[test]
    fn counts_survive_a_restart_and_a_crash_loses_none_of_them() {
        let file = file("restart");
        let specs = [spec("wwan0 cap=100MB/month"), spec("wlan0 cost=1")];
        let ledger = LinkLedger::open(&specs, &file).expect("it can be created");
        for _ in 0..500 {
            ledger.count("wwan0", 10_000);
            ledger.count("wlan0", 10_000);
        }
        let crashed = stored(&file).carried_bytes["wwan0"];
        assert!((5_000_000..=6_000_000).contains(&crashed), "{crashed}");
        assert!(!stored(&file).carried_bytes.contains_key("wlan0"));
        drop(ledger);
        assert_eq!(stored(&file).carried_bytes["wwan0"], 5_000_000);
        let ledger = LinkLedger::open(&specs, &file).expect("it can be read");
        assert_eq!(ledger.rule("wwan0").usage, LinkUse::Always);
        ledger.count("wwan0", 85_000_000);
        assert_eq!(ledger.rule("wwan0").usage, LinkUse::Backup);
        assert_eq!((ledger.forbidden(), ledger.why_forbidden("wwan0")), (vec![], None));
        ledger.count("wwan0", 9_000_000);
        assert_eq!(ledger.rule("wwan0").usage, LinkUse::Never);
        assert_eq!(ledger.forbidden(), ["wwan0"]);
        assert_eq!(ledger.why_forbidden("wwan0").as_deref(), Some("the cap of wwan0 is used up"));
        assert_eq!(ledger.why_forbidden("eth0"), None);
        assert_eq!(ledger.rule("eth0"), PathRule { usage: LinkUse::Always, cost: 1 });
    }

    #[test]
    fn only_a_later_month_begins_at_zero() {
        let file = file("month");
        let specs = [spec("wwan0 cap=10MB/month")];
        let month = |text: &str| text.parse::<Month>().expect("a month");
        let ledger = LinkLedger::open(&specs, &file).expect("created");
        ledger.count_in(month("9999-01"), "wwan0", 10_000_000);
        for (now, expected) in
            [("9998-12", LinkUse::Never), ("1970-01", LinkUse::Never), ("9999-02", LinkUse::Always)]
        {
            ledger.count_in(month(now), "wwan0", 1);
            assert_eq!(ledger.rule("wwan0").usage, expected, "{now}");
        }
        assert_eq!(stored(&file).month, month("9999-02"));
        ledger.count_in(month("9999-02"), "wwan0", 10_000_000);
        drop(ledger);
        // The clock of this machine is earlier.
        let ledger = LinkLedger::open(&specs, &file).expect("it can be read");
        assert_eq!(ledger.rule("wwan0").usage, LinkUse::Never);
    }

    #[test]
    fn a_damaged_file_is_an_error_and_not_a_count_of_zero() {
        let file = file("damaged");
        replace(&file, "{ \"month\": ").expect("it can be created");
        LinkLedger::open(&[spec("wwan0 cap=10MB/month")], &file).expect_err("it is damaged");
    }
}
