//! A tunnel over an association, and the flows through it.
//!
//! Each endpoint of the association has one [`TunnelEnd`]: the tunnel's core ([`ropewalk_tunnel`]), and one end of each
//! flow. The association carries one unordered message for each inner packet.

mod flow;
mod inner_packet;
mod links;
mod meter;
mod pauses;
mod quality;
mod results;
mod stream;

use ropewalk_base::{Duration, PathId, Rate, Seed, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::{Association, Config, Copies, Delivery, Urgency};
use ropewalk_scenario::{self as file, Scenario};
use ropewalk_tunnel::{
    Class, Config as CoreConfig, Ecn, Header, Inner, Order, Outgoing, PathState, REPAIRS,
    Redundancy, Tunnel, Waiting,
};

use flow::{FlowEnd, Sized};
use inner_packet::InnerPacket;
use links::{LinkCaps, USES_PPID};
use pauses::Pauses;
pub(crate) use results::flow_results;

/// Minimum send buffer. The tunnel's core limits the data that the association queues.
const SEND_BUFFER: u64 = 8 << 20;
/// Maximum time between two updates of the state of the paths.
const PATHS_EVERY: Duration = Duration::from_millis(5);

/// Changes the configuration of an association to that of a tunnel.
pub(crate) fn apply_to_carrier(config: &mut Config) {
    config.send_buffer = config.send_buffer.max(SEND_BUFFER);
}

/// The tunnel at one end of an association.
#[derive(Clone, Debug)]
pub struct TunnelEnd {
    core: Tunnel<Sized>,
    flows: Vec<FlowEnd>,
    paths_at: Option<Time>,
    /// Inner packets that have not yet entered the tunnel.
    entering: Vec<Sized>,
    states: Vec<PathState>,
    /// The caps of the links, at the end that has them.
    caps: Option<LinkCaps>,
    pauses: Pauses,
}

/// The tunnel's ends at the sender and at the receiver of a scenario. `payload`: maximum message
/// size.
pub(crate) fn tunnel_ends(scenario: &Scenario, payload: u32, seed: Seed) -> [TunnelEnd; 2] {
    let config = CoreConfig {
        redundancy: match scenario.tunnel.redundancy {
            file::Redundancy::Off => Redundancy::Off,
            file::Redundancy::Auto => Redundancy::Auto,
            file::Redundancy::Always => Redundancy::Always,
        },
        latency_budget: scenario.tunnel.latency_budget,
        longest_pause: scenario.tunnel.longest_pause,
        ..CoreConfig::default()
    };
    let mtu = payload - Header::LEN as u32;
    let end = Time::ZERO + scenario.transfer.duration;
    let new = || TunnelEnd {
        core: Tunnel::new(config),
        flows: Vec::new(),
        paths_at: None,
        entering: Vec::new(),
        states: Vec::new(),
        caps: None,
        pauses: Pauses::default(),
    };
    let mut both = [TunnelEnd { caps: LinkCaps::of(scenario), ..new() }, new()];
    for (index, flow) in scenario.flows.iter().enumerate() {
        let seed = seed.child("flow").child(&flow.name);
        let ends = flow::ends(index, flow, (mtu, end), seed);
        for (side, end) in both.iter_mut().zip(ends) {
            side.flows.push(end);
        }
    }
    both
}

impl TunnelEnd {
    /// Moves all data that can move: messages out of the association, inner packets to their flows, the flows'
    /// packets into the tunnel, and from there into the association. Returns the inner bytes that have left the
    /// tunnel.
    pub(crate) fn exchange(
        &mut self,
        now: Time,
        association: &mut Association,
        connected: bool,
    ) -> u64 {
        while let Some(message) = association.read(now) {
            match message.ppid {
                USES_PPID => links::obey(association, &message.payload.into_bytes()),
                _ => self.on_message(now, message.payload),
            }
        }
        // If there is a pause, the hosts' responses to the packets delivered now are read after it.
        let is_read_later = !self.pauses.next(now).is_zero();
        if is_read_later {
            self.enter(now);
        }
        let delivered = self.deliver(now);
        if !is_read_later {
            self.enter(now);
        }
        if connected {
            if let Some(caps) = &mut self.caps {
                caps.act(now, association);
            }
            self.look_at_paths(now, association);
            self.send(now, association);
        }
        self.pauses.begin(now);
        delivered
    }

    /// Lets due flows act. Their packets enter the tunnel in the next [`Self::exchange`].
    fn act_flows(&mut self, now: Time) {
        for flow in &mut self.flows {
            if flow.deadline().is_some_and(|at| at <= now) {
                flow.act(now, &mut self.entering);
            }
        }
    }

    /// Whether the end pauses now. Its flows are programs on other hosts and act nevertheless.
    pub(crate) fn pauses(&mut self, now: Time) -> bool {
        let is_paused = self.pauses.is_paused(now);
        if is_paused {
            self.act_flows(now);
        }
        is_paused
    }

    fn on_message(&mut self, now: Time, payload: Payload) {
        let message = payload.into_bytes();
        let Some(header) = message.first_chunk::<{ Header::LEN }>() else { return };
        let header = Header::decode(*header);
        let over = message.get(Header::LEN).and_then(|flow| self.flows.get(usize::from(*flow)));
        let over = over.map_or(0, FlowEnd::over);
        let Some(packet) = InnerPacket::decode(&message, over) else { return };
        let bytes = (message.len() - Header::LEN) as u32;
        self.pauses.count();
        self.core.on_message(now, header, bytes, Sized { packet, bytes });
    }

    fn deliver(&mut self, now: Time) -> u64 {
        let mut delivered = 0;
        while let Some(sized) = self.core.deliver(now) {
            delivered += u64::from(sized.bytes);
            if let Some(flow) = self.flows.get_mut(usize::from(sized.packet.flow)) {
                flow.receive(now, sized, &mut self.entering);
            }
        }
        delivered
    }

    /// Moves packets that flows have sent, or that are due now, into the tunnel.
    fn enter(&mut self, now: Time) {
        self.act_flows(now);
        for sized in self.entering.drain(..) {
            let flow = &self.flows[usize::from(sized.packet.flow)];
            self.pauses.count();
            self.core.enqueue(
                now,
                Inner {
                    flow: u64::from(sized.packet.flow),
                    class: flow.class,
                    order: sized.packet.order(flow.order),
                    ecn: Ecn::NotEct,
                    bytes: sized.bytes,
                    payload: sized,
                },
            );
        }
    }

    fn look_at_paths(&mut self, now: Time, association: &Association) {
        if self.paths_at.is_some_and(|at| now.since(at) < PATHS_EVERY) {
            return;
        }
        self.paths_at = Some(now);
        self.states.clear();
        let count = association.path_counters().len();
        self.states.extend((0..count).filter_map(|path| path_state(now, association, path)));
        self.core.set_paths(&self.states);
        let pause = self.pauses.moderate(now, self.core.tolerable_pause(now));
        self.core.set_pause(pause);
    }

    fn send(&mut self, now: Time, association: &mut Association) {
        while let Some(out) = self.core.next(now, waiting(association)) {
            let delivery = delivery(&out);
            let mut bytes = out.payload.packet.encode(out.bytes);
            bytes[..Header::LEN].copy_from_slice(&out.header.encode());
            let payload = Payload::from(bytes::Bytes::from(bytes));
            // A message that the association refuses is lost, as in any full queue.
            if association.send_message(now, StreamId(0), 0, payload, delivery).is_err() {
                return;
            }
        }
    }

    /// Counts a packet of `bytes` that was sent or received on a path.
    pub(crate) fn count(&mut self, path: PathId, bytes: u32) {
        if let Some(caps) = &mut self.caps {
            caps.count(path, bytes);
        }
    }

    /// Bytes that the link of each path has carried in both directions; empty without caps.
    pub fn carried(&self) -> Vec<u64> {
        self.caps.iter().flat_map(LinkCaps::carried).collect()
    }

    /// Time of the end's next action. `engine`: that of the association; `held`: whether packets have arrived
    /// during a pause.
    pub(crate) fn due(&self, engine: Option<Time>, held: bool) -> Option<Time> {
        let own = engine.into_iter().chain(self.core.deadline()).min();
        let waiting = (held || !self.entering.is_empty()).then_some(Time::ZERO);
        let own = self.pauses.end_for(own.into_iter().chain(waiting).min());
        self.flows.iter().filter_map(FlowEnd::deadline).chain(own).min()
    }

    /// Restarts all measurements.
    pub(crate) fn reset_measurements(&mut self, now: Time) {
        self.flows.iter_mut().for_each(|flow| flow.meter.reset(now));
    }
}

/// Delivery parameters of a message.
fn delivery<P>(out: &Outgoing<P>) -> Delivery {
    Delivery {
        urgency: match (out.class, out.order) {
            (Class::Interactive, _) => Urgency::Interactive,
            (Class::Bulk, Order::Irrelevant) => Urgency::FirstOpen,
            (Class::Bulk, _) => Urgency::Bulk,
            (Class::Background, _) => Urgency::Background,
        },
        copies: if out.twice { Copies::Two } else { Copies::One },
        retransmissions: Some(REPAIRS),
        ..Delivery::datagram(out.lifetime)
    }
}

/// The data that the association has not yet assigned to a path.
fn waiting(association: &Association) -> Waiting {
    let backlog = association.backlog();
    Waiting { all: backlog.bytes, interactive: backlog.interactive_bytes }
}

/// The association's measurements of a path. `None` before it was measured.
fn path_state(now: Time, association: &Association, path: usize) -> Option<PathState> {
    let view = association.path_view(now, PathId::from_index(path));
    let round_trip = view.srtt?;
    Some(PathState {
        usable: view.usable,
        forward: view.forward_delay.unwrap_or(round_trip / 2),
        deviation: view.rttvar,
        round_trip,
        rate: Rate::from_bps((view.potential_rate() * 8e9) as u64),
        loss: view.loss,
        overdue: view.overdue,
    })
}
