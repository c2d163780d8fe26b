//! `[[path]]` and `[[link]]`: names, delays, shared links.

use ropewalk_base::Duration;

use super::Builder;
use super::side::{Direction, Surroundings};
use crate::check::{Checked, Value};
use crate::error::ProblemKind;
use crate::suggest;
use crate::types::{Link, Outage, Path, WindowManager};

/// The paths and links of a scenario.
pub(super) struct Network {
    pub(super) paths: Vec<Path>,
    pub(super) links: Vec<Link>,
}

impl Builder<'_> {
    pub(super) fn network(&mut self, root: &Checked) -> Network {
        let (path_tables, link_tables) = (tables(root, "path"), tables(root, "link"));
        let names = self.names(&path_tables, &link_tables);
        let (path_names, link_names) = names.split_at(path_tables.len());
        let path_delays: Vec<_> = path_tables.iter().map(|t| self.delays(t)).collect();
        let link_delays: Vec<_> = link_tables.iter().map(|t| self.delays(t)).collect();
        let via: Vec<_> = path_tables.iter().map(|t| self.via(t, link_names)).collect();
        let both = |(up, down): (Duration, Duration)| up.saturating_add(down);
        let round_trips: Vec<_> = (path_delays.iter().zip(&via))
            .map(|(delays, via)| {
                via.iter().fold(both(*delays), |sum, i| sum.saturating_add(both(link_delays[*i])))
            })
            .collect();
        let scheduler_error = root.table("scheduler").get("delay_error");
        let mut paths = Vec::with_capacity(path_tables.len());
        for (i, table) in path_tables.iter().enumerate() {
            let around = Surroundings { delays: path_delays[i], longest: Some(round_trips[i]) };
            let mtu = table.opt("mtu").unwrap_or(self.packet);
            paths.push(Path {
                name: path_names[i].clone(),
                up: self.side(table, Direction::Up, &around),
                down: self.side(table, Direction::Down, &around),
                outages: self.outages(table),
                cost: table.get("cost"),
                weight: table.get("weight"),
                window_limit: table.opt("window_limit"),
                delay_error: table.opt("delay_error").unwrap_or(scheduler_error),
                via: via[i].clone(),
                mtu,
                wifi: self.wifi(table, mtu.min(self.packet)),
            });
        }
        let mut links = Vec::with_capacity(link_tables.len());
        for (i, table) in link_tables.iter().enumerate() {
            let users = (0..via.len()).filter(|p| via[*p].contains(&i));
            let longest = users.map(|p| round_trips[p]).max();
            let around = Surroundings { delays: link_delays[i], longest };
            links.push(Link {
                name: link_names[i].clone(),
                up: self.side(table, Direction::Up, &around),
                down: self.side(table, Direction::Down, &around),
                outages: self.outages(table),
            });
        }
        Network { paths, links }
    }

    /// Checks the limits: static management requires one on every path.
    pub(super) fn window_limits(&mut self, root: &Checked, manager: WindowManager) {
        if manager != WindowManager::Static {
            return;
        }
        for table in tables(root, "path").iter().filter(|t| t.place("window_limit").is_none()) {
            let message = format!(
                "`{}`: `transfer.window_manager` = \"static\" needs a `window_limit` here",
                table.path
            );
            let help =
                "add one, such as `window_limit = \"50 packets\"`; `ropewalk tune` finds the best";
            self.wrong(table, "window_limit", ProblemKind::Missing, message, help);
        }
    }

    /// Checks that names are unique; returns those of all paths, then those of all links.
    fn names(&mut self, paths: &[&Checked], links: &[&Checked]) -> Vec<String> {
        let mut names: Vec<String> = Vec::with_capacity(paths.len() + links.len());
        let numbered = |tables: &[&Checked], kind: &'static str| {
            let named = tables.iter().enumerate().map(move |(i, table)| {
                (table.opt("name").unwrap_or_else(|| format!("{kind}{}", i + 1)), kind)
            });
            named.collect::<Vec<_>>()
        };
        let all = numbered(paths, "path").into_iter().chain(numbered(links, "link"));
        for ((name, kind), table) in all.zip(paths.iter().chain(links)) {
            if names.contains(&name) {
                let message = format!("`{}`: the name \"{name}\" is taken already", table.path);
                let help =
                    format!("every path and link has a name of its own; give this {kind} another");
                self.wrong(table, "name", ProblemKind::Duplicate, message, help);
            }
            names.push(name);
        }
        names
    }

    /// One-way delays, up and down.
    fn delays(&mut self, table: &Checked) -> (Duration, Duration) {
        let (up, down) = (table.opt("delay_up"), table.opt("delay_down"));
        match (up, down) {
            (Some(up), Some(down)) => return (up, down),
            (None, None) => {}
            (given, _) => {
                let (given, missing) = match given {
                    Some(_) => ("delay_up", "delay_down"),
                    None => ("delay_down", "delay_up"),
                };
                let message = format!("`{}` has `{given}` but no `{missing}`", table.path);
                let help = "give both, or `delay` for the same in both directions";
                self.wrong(table, given, ProblemKind::Missing, message, help);
            }
        }
        match table.opt("delay") {
            Some(delay) => (delay, delay),
            None => {
                // An odd nanosecond is added to the downward delay, so that the sum equals the RTT.
                let rtt: Duration = table.get("rtt");
                (rtt / 2, rtt - rtt / 2)
            }
        }
    }

    /// Positions of the links that a path names.
    fn via(&mut self, table: &Checked, link_names: &[String]) -> Vec<usize> {
        let mut found = Vec::new();
        for item in table.list("via") {
            let Value::Text(name) = &item.value else { unreachable!("`via` is a list of names") };
            let key = format!("{}.via", table.path);
            match link_names.iter().position(|n| n == name) {
                Some(at) if found.contains(&at) => {
                    let message = format!("`{key}` names the link \"{name}\" twice");
                    let help = "a path crosses a link once";
                    self.wrong_at(&item.span, &key, ProblemKind::Duplicate, message, help);
                }
                Some(at) => found.push(at),
                None => {
                    let message = format!("`{key}`: there is no [[link]] called \"{name}\"");
                    let help = name_help(name, link_names);
                    self.wrong_at(&item.span, &key, ProblemKind::UnknownName, message, help);
                }
            }
        }
        found
    }

    fn outages(&mut self, table: &Checked) -> Vec<Outage> {
        let mut outages: Vec<Outage> = Vec::new();
        for item in table.list("outages") {
            let Value::Table(entry) = &item.value else { unreachable!("outages are tables") };
            let outage = Outage { from: entry.get("from"), to: entry.get("to") };
            if outage.to <= outage.from {
                let message = format!(
                    "`{}.to` = {} is not later than `from` = {}",
                    entry.path,
                    self.excerpt(entry, "to"),
                    self.excerpt(entry, "from")
                );
                let help = "an outage ends after it begins";
                self.wrong(entry, "to", ProblemKind::Conflict, message, help);
            }
            if outages.last().is_some_and(|before| outage.from < before.to) {
                let message = format!(
                    "`{}.from` = {} lies before the end of the outage before it",
                    entry.path,
                    self.excerpt(entry, "from")
                );
                let help = "list outages in ascending order; join those that overlap";
                self.wrong(entry, "from", ProblemKind::Conflict, message, help);
            }
            outages.push(outage);
        }
        outages
    }
}

/// A hint with the closest of `names`, or with all of them.
pub(super) fn name_help(name: &str, names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let valid = match names.is_empty() {
        true => "the file has none".into(),
        false => format!("valid: {}", suggest::quoted_or_list(&names)),
    };
    match suggest::nearest(name, &names) {
        Some(near) => format!("did you mean `{near}`? {valid}"),
        None => valid,
    }
}

/// The tables of a list.
fn tables<'a>(root: &'a Checked, key: &str) -> Vec<&'a Checked> {
    let table = |item: &'a crate::check::Item| match &item.value {
        Value::Table(table) => table,
        other => unreachable!("{other:?} in a list of tables"),
    };
    root.list(key).iter().map(table).collect()
}
