//! A lane: the packets of one association in both directions, the same at the client and at the hub.
//!
//! The lane drives a [`ropewalk_tunnel::Tunnel`]: it passes packets, messages and the time to it, and passes its
//! output to the association as messages, or to the device. Packets wait in the tunnel, which has a queue per flow,
//! until the association needs them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use ropewalk_base::{Duration, Rate, Time};
use ropewalk_runtime::clock::Clock;
use ropewalk_runtime::endpoint::{
    Association, Copies, Delivery, Part, PathEstimate, Received, SendError, Urgency,
};
use ropewalk_tunnel::{
    Class, Config, Ecn, Header, Inner, LinkUse, Order, Outgoing, PathRule, PathState, REPAIRS,
    Tunnel, Waiting, decode_uses, encode_uses, packet_cost,
};
use tokio::sync::{Notify, mpsc};

use super::class::{ClassRule, classify, order_of};
use super::control::{CONTROL_STREAM, PACKET_PPID, PACKET_STREAM, USES_PPID};
use super::counters::{Counters, LaneTotals, Refusal};
use super::links::{LinkLedger, path_use};
use super::moderation::ThreadModeration;
use super::packet::{Headers, mark_congestion};
use super::packet_memory::{PacketMemory, QueueShare};
use super::path_mtu::LEAST_MTU;

/// Packets that wait between the device and the tunnel's own queues.
const INLET: usize = 1024;
/// Maximum MTU of a tunnel, bytes.
const MOST_MTU: u32 = 9000;
/// Maximum size of an IP packet, bytes. A message may be longer than the MTU that was just found.
const LARGEST_PACKET: usize = 65_535;
/// Interval at which the tunnel learns the state of the paths.
const PATHS_INTERVAL: Duration = Duration::from_millis(10);
/// Pause after the send buffer was full because the peer's receive window was closed for longer than the
/// queues last.
const FULL_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);
/// Number of invalid messages after which the association is ended. Each costs its sender as much as a packet.
const MISPLACED_MAX: u32 = 64;
/// How long the peer may take to acknowledge that no link carries data from now on.
const LAST_RULES: Duration = Duration::from_secs(1);
/// Flows that carry nothing for this time are forgotten.
const IDLE_FLOW: Duration = Duration::from_secs(30);

/// Settings of how packets are carried.
#[derive(Clone, Debug, Default)]
pub struct LaneSettings {
    /// Options of the queues.
    pub config: Config,
    /// Rules that assign classes.
    pub rules: Arc<[ClassRule]>,
    /// Makes the numbers of flows unpredictable.
    pub seed: u64,
    /// Link rules of this end. `None` allows every link, unless the other end has rules.
    pub links: Option<Arc<LinkLedger>>,
    /// Reduces how often the threads that carry packets are woken.
    pub moderation: Arc<ThreadModeration>,
    /// Memory limit of waiting packets. All lanes of a hub share it.
    pub memory: Arc<PacketMemory>,
}

/// Receives packets that have arrived. They are not checked yet.
pub trait PacketSink: Send {
    /// Receives the packets.
    fn deliver(&mut self, packets: Vec<Bytes>) -> impl Future<Output = ()> + Send;
}

/// Packets with their headers.
pub type PacketBatch = Vec<(Headers, Bytes)>;

/// Passes packets to a lane.
#[derive(Clone, Debug)]
pub struct LaneInlet {
    packets: mpsc::Sender<PacketBatch>,
    /// Number of packets in the channel.
    waiting: Arc<AtomicUsize>,
    mtu: Arc<AtomicU32>,
    counters: Arc<Counters>,
    memory: Arc<PacketMemory>,
}

impl PartialEq for LaneInlet {
    fn eq(&self, other: &Self) -> bool {
        self.packets.same_channel(&other.packets)
    }
}

impl LaneInlet {
    /// Queues packets with their headers. They are dropped if the lane does not keep up.
    pub fn push(&self, packets: PacketBatch) {
        let count = packets.len();
        if count == 0 {
            return;
        }
        let refuse = |why| (0..count).for_each(|_| self.counters.on_refused(why));
        let cost = cost_of(&packets);
        if !self.memory.take(cost) {
            return refuse(Refusal::Memory);
        }
        let before = self.waiting.fetch_add(count, Ordering::Relaxed);
        if before + count > INLET || self.packets.try_send(packets).is_err() {
            self.waiting.fetch_sub(count, Ordering::Relaxed);
            self.memory.give_back(cost);
            refuse(Refusal::QueueFull);
        }
    }

    /// Largest inner packet that fits into one packet of every path, bytes; at least the smallest MTU of IPv6.
    pub fn mtu(&self) -> u32 {
        self.mtu.load(Ordering::Relaxed)
    }
}

/// The packets of one association.
#[derive(Debug)]
pub struct Lane {
    association: Arc<Association>,
    clock: Clock,
    settings: LaneSettings,
    tunnel: Tunnel<Bytes>,
    packets: mpsc::Receiver<PacketBatch>,
    waiting: Arc<AtomicUsize>,
    share: QueueShare,
    mtu: Arc<AtomicU32>,
    counters: Arc<Counters>,
    /// The counts when they were last added to the counters.
    counted: LaneTotals,
    /// When the tunnel last learned the state of the paths.
    paths_at: Option<Time>,
    /// Packets from the device or the peer since then.
    passed: u64,
    /// Number of invalid messages of the peer.
    misplaced: u32,
    /// Notified whenever packets were passed to the association.
    sent: Arc<Notify>,
    /// Bytes that each path had carried at that time.
    carried: Vec<u64>,
    /// The path rules that were last sent to the peer.
    told: Vec<PathRule>,
    /// Until when the peer may acknowledge that no link carries data from now on. Nothing else is sent until
    /// then.
    last_until: Option<Time>,
}

impl Lane {
    /// A lane over an association, and its inlet.
    pub fn new(
        association: Association,
        settings: LaneSettings,
        counters: Arc<Counters>,
    ) -> (Self, LaneInlet) {
        let (sender, packets) = mpsc::channel(INLET);
        let mtu = Arc::new(AtomicU32::new(mtu_of(&association)));
        let inlet = LaneInlet {
            packets: sender,
            waiting: Arc::default(),
            mtu: mtu.clone(),
            counters: counters.clone(),
            memory: settings.memory.clone(),
        };
        let share = QueueShare::of(settings.memory.clone());
        let tunnel = Tunnel::new(settings.config);
        let (counted, paths_at) = (LaneTotals::default(), None);
        let (clock, association) = (association.clock(), Arc::new(association));
        let lane = Self {
            association,
            clock,
            settings,
            tunnel,
            packets,
            waiting: inlet.waiting.clone(),
            share,
            mtu,
            counters,
            counted,
            paths_at,
            passed: 0,
            misplaced: 0,
            sent: Arc::default(),
            carried: Vec::new(),
            told: Vec::new(),
            last_until: None,
        };
        (lane, inlet)
    }

    /// Notified whenever packets were passed to the association.
    pub fn sent(&self) -> Arc<Notify> {
        self.sent.clone()
    }

    /// The association.
    pub fn association(&self) -> Arc<Association> {
        self.association.clone()
    }

    /// Carries packets until the association ends.
    pub async fn run(&mut self, sink: &mut impl PacketSink) {
        let mut arrived = Vec::new();
        loop {
            self.learn_paths();
            let Ok(full) = self.send() else { break };
            self.deliver(sink).await;
            let room = self.share.set(self.tunnel.cost());
            self.tunnel.limit_cost(room);
            let last_until = self.last_until.map(|until| self.clock.instant(until));
            let waits = self.tunnel.queued_bytes() > 0 && last_until.is_none();
            let room = async {
                if full {
                    tokio::time::sleep(FULL_PAUSE).await;
                } else {
                    self.association.waits_below(self.tunnel.refill_below()).await;
                }
            };
            let due = self.due();
            let told = async {
                if let Some(until) = last_until {
                    let flushed = self.association.flushed();
                    let _ = tokio::time::timeout_at(until.into(), flushed).await;
                }
            };
            let timer = async {
                match due {
                    Some(at) => tokio::time::sleep_until(self.clock.instant(at).into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                queued = self.packets.recv() => {
                    let Some(queued) = queued else { break };
                    self.waiting.fetch_sub(queued.len(), Ordering::Relaxed);
                    self.share.memory().give_back(cost_of(&queued));
                    self.passed += queued.len() as u64;
                    self.enqueue(queued);
                }
                () = self.association.receive_all(&mut arrived) => {
                    if arrived.is_empty() {
                        break;
                    }
                    self.passed += arrived.len() as u64;
                    self.take(&mut arrived);
                    if self.misplaced > MISPLACED_MAX {
                        self.association.abort_because("messages that a tunnel does not have");
                        break;
                    }
                }
                () = told, if last_until.is_some() => {
                    self.last_until = None;
                    obey(&self.association, &self.told);
                }
                () = room, if waits => {}
                () = timer => self.forget_idle_flows(),
            }
        }
        self.pass_counters_on();
    }

    /// Passes the state of the paths to the tunnel, if that is due.
    fn learn_paths(&mut self) {
        let now = self.clock.now();
        if self.paths_at.is_some_and(|at| now.since(at) < PATHS_INTERVAL) {
            return;
        }
        self.paths_at = Some(now);
        self.apply_link_rules();
        let estimates = self.association.path_estimates();
        let paths: Vec<PathState> = estimates.iter().map(path_state).collect();
        self.tunnel.set_paths(&paths);
        self.moderate();
        self.mtu.store(mtu_of(&self.association), Ordering::Relaxed);
        self.pass_counters_on();
    }

    /// Reports the packet count to the moderation, and the longest pause that this lane tolerates.
    fn moderate(&mut self) {
        let moderation = &self.settings.moderation;
        let tolerable = self.tunnel.tolerable_pause(self.clock.now());
        moderation.observe(std::mem::take(&mut self.passed), tolerable);
        self.tunnel.set_pause(moderation.pause());
    }

    /// Counts the bytes that the links have carried, and notifies both ends when a different rule applies.
    fn apply_link_rules(&mut self) {
        let Some(ledger) = &self.settings.links else { return };
        let links = self.association.path_links();
        self.carried.resize(links.len(), 0);
        for (link, carried) in links.iter().zip(&mut self.carried) {
            let bytes = link.carried_bytes.saturating_sub(*carried);
            *carried = link.carried_bytes;
            ledger.count(&link.link, bytes);
        }
        let rules: Vec<PathRule> = links.iter().map(|link| ledger.rule(&link.link)).collect();
        if rules == self.told {
            return;
        }
        let mut message = Some(Bytes::from(encode_uses(&rules)));
        let sent = self.association.send_datagrams(CONTROL_STREAM, USES_PPID, &mut |_, _| {
            Some((message.take()?, Delivery::RELIABLE))
        });
        if matches!(sent, Ok(false)) {
            // If no link may carry data, the message itself needs a link that carries nothing after it.
            let is_last = rules.iter().all(|rule| rule.usage == LinkUse::Never);
            self.last_until = is_last.then(|| self.clock.now() + LAST_RULES);
            if !is_last {
                obey(&self.association, &rules);
            }
            self.told = rules;
        }
    }

    /// When the next action is due without a packet. An idle lane has no timer.
    fn due(&self) -> Option<Time> {
        let idle = || match self.tunnel.flow_counts() {
            (0, 0) => None,
            _ => Some(self.clock.now() + IDLE_FLOW),
        };
        self.tunnel.deadline().or_else(idle)
    }

    /// Releases the memory of flows that have ended.
    fn forget_idle_flows(&mut self) {
        if self.tunnel.deadline().is_none() {
            let now = self.clock.now();
            self.tunnel.release_idle(now, IDLE_FLOW);
        }
    }

    fn enqueue(&mut self, queued: PacketBatch) {
        let now = self.clock.now();
        let LaneSettings { rules, seed, .. } = &self.settings;
        for (headers, packet) in queued {
            self.tunnel.enqueue(
                now,
                Inner {
                    flow: headers.flow(*seed),
                    class: classify(&headers, rules),
                    order: order_of(&headers),
                    ecn: ecn_of(headers.ecn),
                    bytes: packet.len() as u32,
                    payload: packet,
                },
            );
        }
    }

    /// Passes queued packets to the association while it has less to send than the tunnel wants. Returns whether its
    /// send buffer was full.
    fn send(&mut self) -> Result<bool, SendError> {
        let Self { association, tunnel, counters, sent, last_until, .. } = self;
        if tunnel.queued_bytes() == 0 || last_until.is_some() {
            return Ok(false);
        }
        sent.notify_one();
        association.send_datagrams(PACKET_STREAM, PACKET_PPID, &mut |now, waiting| {
            let waiting = Waiting { all: waiting.bytes, interactive: waiting.interactive_bytes };
            let outgoing = tunnel.next(now, waiting)?;
            counters.on_sent(outgoing.payload.len());
            Some(message(outgoing))
        })
    }

    fn take(&mut self, arrived: &mut Vec<Received>) {
        let now = self.clock.now();
        for mut message in arrived.drain(..) {
            if message.stream == CONTROL_STREAM && message.ppid == USES_PPID {
                // An end with its own rules follows those.
                if let Some(rules) =
                    decode_uses(&message.bytes).filter(|_| self.settings.links.is_none())
                {
                    obey(&self.association, &rules);
                }
                continue;
            }
            let is_packet = message.stream == PACKET_STREAM
                && message.ppid == PACKET_PPID
                && message.part == Part::Whole
                && message.bytes.len() <= Header::LEN + LARGEST_PACKET;
            let Some(header) = message.bytes.first_chunk().copied().filter(|_| is_packet) else {
                self.misplaced += 1;
                self.counters.on_refused(Refusal::Message);
                continue;
            };
            let packet = message.bytes.split_off(Header::LEN);
            self.tunnel.on_message(now, Header::decode(header), packet.len() as u32, packet);
        }
    }

    async fn deliver(&mut self, sink: &mut impl PacketSink) {
        let now = self.clock.now();
        let packets: Vec<Bytes> = std::iter::from_fn(|| self.tunnel.deliver(now)).collect();
        if !packets.is_empty() {
            sink.deliver(packets).await;
        }
    }

    /// Adds the counts since the last call to the counters of the tunnel.
    fn pass_counters_on(&mut self) {
        let total = LaneTotals::of(self.tunnel.counters());
        self.counters.add_lane(&self.counted, &total);
        self.counted = total;
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // No more packets arrive after this.
        self.packets.close();
        while let Ok(queued) = self.packets.try_recv() {
            self.share.memory().give_back(cost_of(&queued));
        }
    }
}

/// Memory cost of packets that wait for the tunnel.
fn cost_of(packets: &PacketBatch) -> u64 {
    packets.iter().map(|(_, packet)| packet_cost(packet.len() as u32)).sum()
}

/// Applies these rules to the paths.
fn obey(association: &Association, rules: &[PathRule]) {
    for (path, rule) in rules.iter().enumerate() {
        association.set_path_use(path, path_use(rule.usage), rule.cost);
    }
}

/// The message of a packet, and how it is delivered.
fn message(outgoing: Outgoing<Bytes>) -> (Bytes, Delivery) {
    let mut bytes = BytesMut::with_capacity(Header::LEN + outgoing.payload.len());
    bytes.extend_from_slice(&outgoing.header.encode());
    bytes.extend_from_slice(&outgoing.payload);
    if outgoing.ecn == Ecn::Ce {
        mark_congestion(&mut bytes[Header::LEN..]);
    }
    let urgency = match (outgoing.class, outgoing.order) {
        (Class::Interactive, _) => Urgency::Interactive,
        (Class::Bulk, Order::Irrelevant) => Urgency::FirstOpen,
        (Class::Bulk, _) => Urgency::Bulk,
        (Class::Background, _) => Urgency::Background,
    };
    let copies = if outgoing.twice { Copies::Two } else { Copies::One };
    let retransmissions = Some(REPAIRS);
    let delivery =
        Delivery { urgency, copies, retransmissions, ..Delivery::datagram(outgoing.lifetime) };
    (bytes.freeze(), delivery)
}

const fn ecn_of(field: u8) -> Ecn {
    match field & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

fn path_state(estimate: &PathEstimate) -> PathState {
    PathState {
        usable: estimate.usable,
        forward: Duration::from_secs_f64(estimate.forward_s),
        deviation: Duration::from_secs_f64(estimate.deviation_s),
        round_trip: Duration::from_secs_f64(estimate.round_trip_s),
        rate: Rate::from_bps(estimate.rate_bps as u64),
        loss: estimate.loss,
        overdue: Duration::from_secs_f64(estimate.overdue_s),
    }
}

/// The MTU of a tunnel over this association.
fn mtu_of(association: &Association) -> u32 {
    let size = u32::try_from(association.datagram_size()).unwrap_or(u32::MAX);
    size.saturating_sub(Header::LEN as u32).clamp(LEAST_MTU, MOST_MTU)
}
