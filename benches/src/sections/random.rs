//! Is the bundle ever slower than its best single path? On the drawn scenarios of the extreme family's test set, for each
//! scheduler with and without the guard of the windows.

use std::sync::atomic::{AtomicUsize, Ordering};

use ropewalk_lab::CustomSchedulers;
use ropewalk_lab::draw::{Draw, DrawSet, Family, PATHS};
use ropewalk_lab::tournament::{
    KEPT_SHARE, MatchConfig, Rank, Ranking, Tournament, TournamentOptions, tournament,
};
use ropewalk_scenario::{Override, Protocol, Scenario, ScenarioError};

use crate::args::Args;
use crate::parallel;
use crate::row::{Findings, Row};

/// Share of the scenarios in which these are to keep the best path under the guard.
const WITH_TARGET: [(&str, f64); 7] = [
    ("lay", 0.99),
    ("min-rtt", 0.95),
    ("daps", 0.95),
    ("otias", 0.95),
    ("sttf", 0.95),
    ("blest", 0.95),
    ("ecf", 0.95),
];

/// Runs of each: the best of single runs is better by chance.
const SEEDS: u64 = 5;

/// The scheduler that is told of for each number of paths, too.
const BY_PATHS: &str = "lay";

pub fn measure(args: &Args) -> Result<Findings, String> {
    let draws = Draw::first(Family::Extreme, DrawSet::Test, &PATHS, args.draws);
    let match_configs = draws.iter().map(|draw| match_config(draw, &args.schedulers));
    let match_configs =
        match_configs.collect::<Result<Vec<MatchConfig>, _>>().map_err(|e| e.to_string())?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let told = AtomicUsize::new(0);
    let tell = |share: f64| {
        let done = (share * 100.0) as usize;
        if told.fetch_max(done, Ordering::Relaxed) < done {
            parallel::progress("random, percent", done, 100);
        }
    };
    let played = tournament(
        &match_configs,
        &TournamentOptions {
            seeds: SEEDS,
            threads,
            custom_schedulers: CustomSchedulers::default(),
        },
        &tell,
    );
    Ok(findings(&played, &args.schedulers))
}

fn match_config(draw: &Draw, schedulers: &[&str]) -> Result<MatchConfig, ScenarioError> {
    let entrant = |name: &str, guard: bool| -> Result<(String, Scenario), ScenarioError> {
        let changes = [format!("transfer.scheduler={name}"), format!("transfer.guard={guard}")];
        let changes = changes.each_ref().map(|change| Override { option: "--schedulers", change });
        Ok((label(name, guard), draw.scenario_with(&changes)?))
    };
    let participants =
        schedulers.iter().flat_map(|name| [entrant(name, true), entrant(name, false)]);
    Ok(MatchConfig {
        scenario: draw.to_string(),
        setting: Protocol::CmtSctp.to_string(),
        protocol: Protocol::CmtSctp,
        participants: participants.collect::<Result<_, _>>()?,
    })
}

fn label(name: &str, guard: bool) -> String {
    format!("{name}{}", if guard { "" } else { " without guard" })
}

fn findings(played: &Tournament, schedulers: &[&str]) -> Findings {
    let mut findings = Findings::default();
    for name in schedulers {
        for ranking in &played.rankings {
            if ranking.paths.is_some() && *name != BY_PATHS {
                continue;
            }
            let of = |guard| ranking.ranks.iter().find(|rank| rank.scheduler == label(name, guard));
            if let (Some(guarded), Some(free)) = (of(true), of(false)) {
                findings.rows.push(row(name, ranking, guarded, free));
            }
        }
    }
    findings
}

fn row(name: &str, ranking: &Ranking, guarded: &Rank, free: &Rank) -> Row {
    let told = |rank: &Rank| {
        let worst = rank.worst_gain.as_ref();
        let worst =
            worst.map_or_else(String::new, |w| format!(", worst {:.3} ({})", w.ratio, w.scenario));
        format!("{:.3} times the best path on average{worst}", rank.gain.unwrap_or(0.0))
    };
    let kept = |rank: &Rank| rank.kept.unwrap_or(0);
    let all = ranking.matches;
    let over = ranking.paths.map_or_else(String::new, |paths| format!("{paths} paths, "));
    let row = Row::told(
        format!("{over}{name}: at least {:.0} % of the best path", KEPT_SHARE * 100.0),
        kept(guarded) as f64,
        format!(
            "{} of {all}, {}; without the guard {}, {}",
            kept(guarded),
            told(guarded),
            kept(free),
            told(free)
        ),
    );
    let Some((_, share)) = WITH_TARGET.iter().find(|(known, _)| *known == name) else { return row };
    let wanted = (all as f64 * share).ceil() as usize;
    row.with_target(format!(">= {wanted} of {all} with the guard"), kept(guarded) >= wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheduler_is_told_of_and_one_of_them_for_each_number_of_paths() {
        let schedulers = ["min-rtt", "lay"];
        let short = |paths| {
            let draw = Draw { family: Family::Extreme, set: DrawSet::Training, paths, number: 0 };
            let mut match_config =
                match_config(&draw, &schedulers).unwrap_or_else(|e| panic!("{e}"));
            for (_, scenario) in &mut match_config.participants {
                let transfer = &mut scenario.transfer;
                transfer.duration = ropewalk_base::Duration::from_secs(4);
                transfer.warmup = ropewalk_base::Duration::from_secs(1);
            }
            match_config
        };
        let match_configs = [short(2), short(3)];
        let played = tournament(
            &match_configs,
            &TournamentOptions {
                seeds: 1,
                threads: 2,
                custom_schedulers: CustomSchedulers::default(),
            },
            &|_| (),
        );
        let rows = findings(&played, &schedulers).rows;
        let names: Vec<&str> = rows.iter().map(|row| row.what.as_str()).collect();
        assert_eq!(
            names,
            [
                "min-rtt: at least 98 % of the best path",
                "lay: at least 98 % of the best path",
                "2 paths, lay: at least 98 % of the best path",
                "3 paths, lay: at least 98 % of the best path"
            ]
        );
        assert!(
            rows.iter().all(|row| row.met.is_some() && row.measured.contains("without the guard"))
        );
    }
}
