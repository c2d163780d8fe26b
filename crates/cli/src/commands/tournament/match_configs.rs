//! Builds the matches of a tournament: each scenario with each protocol and scheduler.

use std::path::{Path, PathBuf};

use ropewalk_lab::draw::{Draw, DrawSet};
use ropewalk_lab::output::write_atomically;
use ropewalk_lab::tournament::MatchConfig;
use ropewalk_scenario::{
    Capacity, Named, Override, Preset, Protocol, Scenario, ScenarioError, SchedulerName,
};

use super::setting::Setting;
use super::{Families, TournamentArgs};
use crate::failure::Failure;
use crate::files::failed;

/// The ready scenarios that distinguish schedulers. The others measure the speed of the simulator.
const READY: [&str; 9] = [
    "two-dsl",
    "wifi-lte",
    "lte-satellite",
    "lossy-wifi",
    "handover-outage",
    "trace-driven",
    "kuhn-2-200-45",
    "sarwar",
    "two-wifi",
];

/// Every scenario under every setting, for every scheduler.
///
/// # Errors
/// All problems of a scenario.
pub fn match_configs(args: &TournamentArgs) -> Result<Vec<MatchConfig>, Failure> {
    let single = args.protocols.iter().find(|protocol| protocol.is_single_path());
    if let Some(single) = single {
        let message = format!("--protocols {single}: it uses one path at a time");
        return Err(Failure::input(message, "schedulers compete under cmt-sctp and mptcp"));
    }
    let schedulers = if args.schedulers.is_empty() { available() } else { args.schedulers.clone() };
    let (sources, settings) = (sources(args)?, settings(args));
    let mut match_configs = Vec::with_capacity(sources.len() * settings.len());
    for source in &sources {
        for setting in &settings {
            match_configs.push(match_config(args, source, *setting, &schedulers)?);
        }
    }
    Ok(match_configs)
}

/// The specified settings, or the default ones.
fn settings(args: &TournamentArgs) -> Vec<Setting> {
    let protocols = |list: &[Protocol]| list.iter().copied().map(Setting::Protocol).collect();
    match (&*args.settings, &*args.protocols, args.draws, args.family) {
        ([], [], Some(_), Families::Access) => Setting::OF_ACCESS.to_vec(),
        ([], [], ..) => protocols(&[Protocol::CmtSctp, Protocol::Mptcp]),
        ([], named, ..) => protocols(named),
        (named, ..) => named.to_vec(),
    }
}

/// Origin of a scenario.
enum Source {
    File(PathBuf),
    Drawn(Draw),
}

impl Source {
    fn name(&self) -> String {
        match self {
            Self::File(file) => {
                file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
            }
            Self::Drawn(draw) => draw.to_string(),
        }
    }

    fn load(&self, changes: &[Override<'_>]) -> Result<Scenario, ScenarioError> {
        match self {
            Self::File(file) => Scenario::load_overridden(file, changes),
            Self::Drawn(draw) => draw.scenario_with(changes),
        }
    }
}

fn sources(args: &TournamentArgs) -> Result<Vec<Source>, Failure> {
    if let Some(draws) = args.draws {
        let set = if args.training { DrawSet::Training } else { DrawSet::Test };
        let paths: Vec<usize> = args.paths.iter().copied().map(usize::from).collect();
        return Ok(Draw::first(args.family.family(), set, &paths, draws)
            .into_iter()
            .map(Source::Drawn)
            .collect());
    }
    let files = if args.scenarios.is_empty() {
        READY.map(PathBuf::from).into()
    } else {
        args.scenarios.clone()
    };
    Ok(files.into_iter().map(Source::File).collect())
}

/// Draws the scenarios that `args` describes and writes them into `directory`, which is created if necessary.
///
/// # Errors
/// A file that cannot be written.
pub fn save(args: &TournamentArgs, directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).map_err(|error| failed("--save", directory, error))?;
    let write = |name: &str, text: String| {
        let path = directory.join(name);
        write_atomically(&path, text.as_bytes()).map_err(|error| failed("--save", &path, error))
    };
    for source in sources(args)? {
        let scenario = load(args, &source, std::iter::empty())?;
        for path in &scenario.paths {
            if let Capacity::Trace(trace) = &path.up.capacity {
                write(&trace.file, trace.to_text())?;
            }
        }
        write(&format!("{}.toml", source.name()), scenario.to_toml())?;
    }
    Ok(())
}

/// The available schedulers: a reserved name does not parse.
fn available() -> Vec<SchedulerName> {
    let parses = |name: &SchedulerName| name.as_str().parse::<SchedulerName>().is_ok();
    SchedulerName::ALL.iter().copied().filter(parses).collect()
}

fn match_config(
    args: &TournamentArgs,
    source: &Source,
    setting: Setting,
    schedulers: &[SchedulerName],
) -> Result<MatchConfig, Failure> {
    let base = changes_of(args, source, setting)?;
    let mut participants = Vec::with_capacity(schedulers.len());
    for name in schedulers {
        let own = ("--schedulers", format!("transfer.scheduler={name}"));
        let scenario = load(args, source, base.iter().chain([&own]))?;
        participants.push((name.to_string(), scenario));
    }
    let (scenario, protocol) = (source.name(), setting.protocol());
    Ok(MatchConfig { scenario, setting: setting.to_string(), protocol, participants })
}

/// The overrides of a setting for a scenario.
fn changes_of(
    args: &TournamentArgs,
    source: &Source,
    setting: Setting,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let protocol = format!("transfer.protocol={}", setting.protocol());
    Ok(match setting {
        Setting::Protocol(own) => {
            let preset = foreign_preset(args, source, own)?;
            let preset = preset.map(|preset| ("--protocols", format!("transfer.preset={preset}")));
            [("--protocols", protocol)].into_iter().chain(preset).collect()
        }
        Setting::Preset { preset, unordered } => {
            let preset = ("--settings", format!("transfer.preset={preset}"));
            let order = unordered.then(|| ("--settings", "transfer.unordered=true".to_owned()));
            [("--settings", protocol), preset].into_iter().chain(order).collect()
        }
    })
}

/// The preset for a scenario whose own preset belongs to the other kind of protocol: it does not apply, so the
/// default preset of this protocol replaces it.
fn foreign_preset(
    args: &TournamentArgs,
    source: &Source,
    protocol: Protocol,
) -> Result<Option<Preset>, Failure> {
    let preset = load(args, source, std::iter::empty())?.transfer.preset;
    let own = if protocol.is_tcp() { Preset::Rfc8684 } else { Preset::Rfc9260 };
    Ok((preset.is_tcp() != protocol.is_tcp()).then_some(own))
}

fn load<'a>(
    args: &'a TournamentArgs,
    source: &Source,
    more: impl Iterator<Item = &'a (&'static str, String)>,
) -> Result<Scenario, Failure> {
    let sets = args.sets.iter().map(|change| Override { option: "--set", change });
    let more = more.map(|(option, change)| Override { option, change });
    Ok(source.load(&sets.chain(more).collect::<Vec<_>>())?)
}
