//! Builds an emulation from the scenario and the arguments, and runs it.

use parking_lot::Mutex;
use ropewalk_apps::observe::{BindError, EmulationFigures, LinkFigures, MetricsServer};
use ropewalk_base::Time;
use ropewalk_lab::live::{LiveNetwork, live_network};
use ropewalk_runtime::emulate::{
    self, DROP_CAUSES, EmulateError, End, Frame, Links, LiveTraffic, Outcome, PathRoutes, Programs,
    Traffic,
};
use ropewalk_scenario::Scenario;

use super::EmulateArgs;
use crate::console::Console;
use crate::failure::Failure;
use crate::files::VERSION;

/// Runs the emulation.
pub fn run(args: &EmulateArgs, scenario: &Scenario, console: Console) -> Result<Outcome, Failure> {
    let links = links(scenario)?;
    let shell = args.command.is_empty();
    let command = if shell {
        vec![std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())]
    } else {
        args.command.clone()
    };
    let mut metrics = args.metrics.map(MetricsServer::bind).transpose().map_err(refused)?;
    if let Some(address) = metrics.as_ref().and_then(MetricsServer::address) {
        console.note(format_args!("metrics at http://{address}/metrics"));
    }
    let traffic = metrics.is_some().then(LiveTraffic::default);
    let programs = Programs {
        command,
        far: args.far.clone(),
        far_ready: args.far_ready,
        environment: vec![("ROPEWALK_SEED".to_owned(), scenario.transfer.seed.to_string())],
        realtime: !args.no_realtime,
        traffic: traffic.clone(),
    };
    let outcome = emulate::run(links, &programs, &mut |text| {
        if let (Some(server), Some(traffic)) = (metrics.take(), &traffic)
            && let Err(error) = serve(server, traffic.clone())
        {
            console.note(format_args!("no metrics: {error}"));
        }
        // An interactive shell needs an overview of its addresses.
        if shell {
            console.note(text);
        }
    });
    outcome.map_err(failure)
}

/// Serves the metrics of each link.
fn serve(server: MetricsServer, traffic: LiveTraffic) -> std::io::Result<()> {
    let rates = Mutex::new(Rates::default());
    server.start(Box::new(move |accept| {
        let latest = traffic.latest();
        let mut rates = rates.lock();
        let both = latest.paths.iter().flat_map(|path| {
            [("up", &path.up), ("down", &path.down)].map(|(way, traffic)| (path, way, traffic))
        });
        let links: Vec<LinkFigures> =
            both.map(|(path, way, traffic)| figures(&path.name, way, traffic)).collect();
        let links = rates.complete(latest.at, links);
        let refused = latest.refused;
        EmulationFigures { links, refused, version: VERSION }.encode(accept)
    }))
}

fn figures(link: &str, direction: &'static str, traffic: &Traffic) -> LinkFigures {
    let wire = &traffic.wire;
    LinkFigures {
        link: link.to_owned(),
        direction,
        sent: (traffic.packets, traffic.bytes),
        delivered: (traffic.delivered_packets, traffic.delivered_bytes),
        dropped: DROP_CAUSES.map(|cause| (cause.name(), wire.dropped.by(cause))).into(),
        duplicated: wire.duplicated,
        queue_bytes: wire.queued_bytes,
        capacity_bytes: wire.capacity_bytes,
        rate_bps: None,
    }
}

/// The rate of each link, from its capacity between two scrapes.
#[derive(Default)]
struct Rates {
    /// Time and capacity of each link at the scrape before the latest.
    before: (Time, Vec<Option<u64>>),
    /// The same at the latest scrape.
    latest: (Time, Vec<Option<u64>>),
}

impl Rates {
    fn complete(&mut self, at: Time, mut links: Vec<LinkFigures>) -> Vec<LinkFigures> {
        if at > self.latest.0 {
            let capacities = links.iter().map(|link| link.capacity_bytes).collect();
            self.before = std::mem::replace(&mut self.latest, (at, capacities));
        }
        // Before the first scrape everything is zero, so the rate is the mean since the start of the
        // emulation.
        let seconds = self.latest.0.since(self.before.0).as_secs_f64();
        for (number, link) in links.iter_mut().enumerate() {
            let before = self.before.1.get(number).copied().flatten().unwrap_or_default();
            let grown = link.capacity_bytes.map(|bytes| bytes.saturating_sub(before) as f64);
            link.rate_bps = grown.filter(|_| seconds > 0.0).map(|bytes| bytes * 8.0 / seconds);
        }
        links
    }
}

fn refused(error: BindError) -> Failure {
    Failure::input(error, "choose another port, or stop the program that uses it")
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
