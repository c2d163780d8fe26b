//! Builds an emulation from the scenario and the arguments, and runs it.

use ropewalk_lab::live::{LiveNetwork, live_network};
use ropewalk_runtime::emulate::{
    self, EmulateError, End, Frame, Links, Outcome, PathRoutes, Programs,
};
use ropewalk_scenario::Scenario;

use super::EmulateArgs;
use crate::console::Console;
use crate::failure::Failure;

/// Runs the emulation.
pub fn run(args: &EmulateArgs, scenario: &Scenario, console: Console) -> Result<Outcome, Failure> {
    let links = links(scenario)?;
    let shell = args.command.is_empty();
    let command = if shell {
        vec![std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())]
    } else {
        args.command.clone()
    };
    let programs = Programs {
        command,
        far: args.far.clone(),
        far_ready: args.far_ready,
        environment: vec![("ROPEWALK_SEED".to_owned(), scenario.transfer.seed.to_string())],
        realtime: !args.no_realtime,
    };
    let outcome = emulate::run(links, &programs, &mut |text| {
        // An interactive shell needs an overview of its addresses.
        if shell {
            console.note(text);
        }
    });
    outcome.map_err(failure)
}

fn links(scenario: &Scenario) -> Result<Links, Failure> {
    let LiveNetwork { world, sender, receiver, paths } =
        live_network::<Frame, End>(scenario, End::default(), End::default())?;
    let paths = scenario.paths.iter().zip(paths).map(|(path, live)| PathRoutes {
        name: path.name.clone(),
        mtu: path.mtu,
        routes: (live.up, live.down),
        links: (live.link_up, live.link_down),
    });
    Ok(Links::new(world, sender, receiver, paths.collect()))
}

fn failure(error: EmulateError) -> Failure {
    match (error.hint(), error.is_input()) {
        (Some(hint), true) => Failure::input(error, hint),
        (None, true) => Failure::Input(error.to_string()),
        (Some(hint), false) => Failure::Run(format!("{error}\n = help: {hint}")),
        (None, false) => Failure::Run(error.to_string()),
    }
}
