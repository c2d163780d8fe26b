//! Builds a world of links and routes from a scenario's paths, links and cross traffic.

use ropewalk_base::{Rate, Time};
use ropewalk_netsim::cross::{Feedback, Greedy, Pattern};
use ropewalk_netsim::{CrossConfig, CrossPayload, Host, HostId, LinkId, Port, RouteId, World};
use ropewalk_scenario as file;

use crate::error::RunError;
use crate::link_config::link_config;
use crate::wifi::{self, WifiNetwork};

/// The links of one path in each direction, shared links included.
#[derive(Clone, Debug)]
pub struct PathLinks {
    /// Towards the receiver, in order.
    pub up: Vec<LinkId>,
    /// Towards the sender, in order.
    pub down: Vec<LinkId>,
    /// The path's own wire, towards the receiver and towards the sender.
    pub wire: (LinkId, LinkId),
    /// The wireless hop, towards the receiver and towards the sender, and its capacity.
    pub air: Option<((LinkId, LinkId), Rate)>,
}

/// A link that several paths cross, one for each direction.
pub type SharedLink = (LinkId, LinkId);

fn add_link<P: Clone, H: Host<P>>(
    world: &mut World<P, H>,
    scenario: &file::Scenario,
    name: &str,
    side: &file::LinkSide,
    outages: &[file::Outage],
) -> Result<LinkId, RunError> {
    let packet = scenario.transfer.packet;
    let config = link_config(side, outages, packet).map_err(|e| RunError::network(name, e))?;
    world.add_link(name, &config).map_err(|e| RunError::network(name, e))
}

/// Adds the links that several paths and all associations share.
pub fn add_shared_links<P: Clone, H: Host<P>>(
    world: &mut World<P, H>,
    scenario: &file::Scenario,
) -> Result<Vec<SharedLink>, RunError> {
    let mut shared = Vec::with_capacity(scenario.links.len());
    for link in &scenario.links {
        let up = add_link(world, scenario, &format!("{}/up", link.name), &link.up, &link.outages)?;
        let down = format!("{}/down", link.name);
        let down = add_link(world, scenario, &down, &link.down, &link.outages)?;
        shared.push((up, down));
    }
    Ok(shared)
}

/// Adds the links of one association; returns those of each path.
pub fn add_paths<P: Clone, H: Host<P>>(
    world: &mut World<P, H>,
    scenario: &file::Scenario,
    shared: &[SharedLink],
    air: &WifiNetwork,
    association: u32,
) -> Result<Vec<PathLinks>, RunError> {
    let mut paths = Vec::with_capacity(scenario.paths.len());
    for path in &scenario.paths {
        let name = match association {
            0 => path.name.clone(),
            n => format!("{}/association {n}", path.name),
        };
        let up = format!("{name}/up");
        let own_up = add_link(world, scenario, &up, &path.up, &path.outages)?;
        let down = format!("{name}/down");
        let own_down = add_link(world, scenario, &down, &path.down, &path.outages)?;
        let mut up = vec![own_up];
        up.extend(path.via.iter().map(|i| shared[*i].0));
        let mut down: Vec<_> = path.via.iter().rev().map(|i| shared[*i].1).collect();
        down.push(own_down);
        let mut links = PathLinks { up, down, wire: (own_up, own_down), air: None };
        if let Some(hop) = path.wifi {
            let ends = air.add_hop(world, &name, &hop.radio)?;
            let hops = match hop.end {
                file::End::Sender => {
                    links.up.insert(0, ends.to_point);
                    links.down.push(ends.to_station);
                    (ends.to_point, ends.to_station)
                }
                file::End::Receiver => {
                    links.up.push(ends.to_station);
                    links.down.insert(0, ends.to_point);
                    (ends.to_station, ends.to_point)
                }
            };
            let packet = path.mtu.min(scenario.transfer.packet);
            links.air = wifi::alone(path, packet).map(|rate| (hops, rate));
        }
        paths.push(links);
    }
    Ok(paths)
}

/// Adds the routes of one association over all paths: towards the receiver, towards the sender.
pub fn add_routes<P: Clone, H: Host<P>>(
    world: &mut World<P, H>,
    paths: &[PathLinks],
    sender: HostId,
    receiver: HostId,
) -> (Vec<RouteId>, Vec<RouteId>) {
    let port = |i: usize| Port(i as u32);
    let there = paths.iter().enumerate().map(|(i, p)| world.add_route(&p.up, receiver, port(i)));
    let there = there.collect();
    let back = paths.iter().enumerate().map(|(i, p)| world.add_route(&p.down, sender, port(i)));
    (there, back.collect())
}

/// Adds the cross traffic. Traffic on a path uses that path of the first association.
pub fn add_cross<P: Clone + CrossPayload, H: Host<P>>(
    world: &mut World<P, H>,
    scenario: &file::Scenario,
    paths: &[PathLinks],
    shared: &[SharedLink],
) -> Result<(), RunError> {
    // Flows of associations are numbered from 0; those of cross traffic start far above.
    const FIRST_FLOW: u32 = 1 << 24;
    let mut flow = FIRST_FLOW;
    for (number, cross) in scenario.cross.iter().enumerate() {
        let (up, down) = match cross.on {
            file::Target::Path(i) => paths[i].wire,
            file::Target::Link(i) => shared[i],
        };
        let link = if cross.direction == file::Side::Up { up } else { down };
        for copy in 0..cross.flows {
            let config = CrossConfig {
                pattern: pattern(&cross.kind),
                packet: cross.packet,
                start: cross.start,
                stop: cross.stop.unwrap_or(Time::FAR_FUTURE),
            };
            let name = format!("{number}/{copy}");
            world
                .add_cross(&name, &config, flow, &[link])
                .map_err(|e| RunError::network(&format!("cross traffic {name}"), e))?;
            flow += 1;
        }
    }
    Ok(())
}

fn pattern(kind: &file::CrossKind) -> Pattern {
    match *kind {
        file::CrossKind::Cbr { rate } => Pattern::Cbr(rate),
        file::CrossKind::OnOff { rate, on_time, off_time } => {
            Pattern::OnOff { rate, on: on_time, off: off_time }
        }
        file::CrossKind::Poisson { rate } => Pattern::Poisson(rate),
        file::CrossKind::Greedy { rtt } => Pattern::Greedy(Greedy::new(Feedback::Delay(rtt))),
    }
}
