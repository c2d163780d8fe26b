//! The state of an endpoint behind its lock: sockets, associations and their deadlines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use ropewalk_base::{Seed, Time};
use ropewalk_engine::sctp::{Listener, Packet};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::address_following::FollowedAddresses;
use super::association_counts::{Admissions, AssociationCounts};
use super::association_table::{AssociationTable, PortPair};
use super::backlog::Backlog;
use super::batch::Batch;
use super::dscp::PathDscps;
use super::interface_watch::InterfaceWatch;
use super::limits::LimitCounters;
use super::local_interfaces::BoundInterface;
use super::observer::{Observer, Publisher};
use super::options::Options;
use super::own_addresses::OwnAddresses;
use super::owned_ports::OwnedPorts;
use super::packet_capture::PacketCapture;
use super::peer::Peer;
use super::raw::Carrier;
use super::responder::HandshakeResponder;
use super::shards::Shard;
use super::socket::Socket;
use crate::clock::Clock;

/// Identifies an association of an endpoint. Slots are reused; `generation` distinguishes successive associations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AssociationKey {
    pub(super) slot_index: u32,
    pub(super) generation: u32,
}

/// A slot for an association.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    peer: Option<Box<Peer>>,
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Received datagrams.
    pub received: u64,
    /// Received datagrams that were not SCTP, had a wrong checksum, or belonged to no association.
    pub unknown: u64,
    /// Received datagrams that belonged to another shard and were forwarded to it.
    pub passed_on: u64,
    /// Sent datagrams.
    pub sent: u64,
    /// Received packets with chunks that were discarded because they lacked a valid authentication code (RFC
    /// 4895).
    pub unauthenticated: u64,
    /// How often each limit was reached.
    pub limits: LimitCounters,
}

impl Counters {
    /// The counters that an idle endpoint does not change.
    pub(super) fn notable(&self) -> Self {
        Self { received: 0, sent: 0, passed_on: 0, ..*self }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.unknown += other.unknown;
        self.passed_on += other.passed_on;
        self.sent += other.sent;
        self.unauthenticated += other.unauthenticated;
        self.limits.add_all(&other.limits);
    }
}

/// Everything behind the lock of an endpoint, or of one of its shards.
#[derive(Debug)]
pub struct EndpointState {
    pub(super) clock: Clock,
    /// The runtime of the sockets, for sockets that are opened by a call from outside of it.
    pub(super) runtime: Option<Handle>,
    pub(super) options: Options,
    pub(super) sockets: Vec<Socket>,
    /// The interface or address of each socket.
    pub(super) links: Vec<BoundInterface>,
    /// When the interfaces are polled.
    pub(super) interface_watch: InterfaceWatch,
    /// The interfaces must be polled soon: the system permanently refused to send a packet, or an association started
    /// to follow addresses.
    pub(super) interface_poll_due: bool,
    /// An association has more to send, on a path that is not blocked.
    pub(super) has_more_to_send: bool,
    /// Number of sockets that were taken from those of all shards.
    pub(super) joint_sockets: usize,
    /// Which datagrams belong to this shard. `None` means all.
    pub(super) shard: Option<Shard>,
    pub(super) seed: Seed,
    pub(super) counters: Counters,
    slots: Vec<Slot>,
    free_slots: Vec<u32>,
    /// Finds the associations of unsealed packets.
    pub(super) associations: AssociationTable,
    /// Associations by the session number that received sealed datagrams carry.
    pub(super) by_session: BTreeMap<u32, AssociationKey>,
    /// Answers sealed handshakes. `None` without sealing.
    pub(super) responder: Option<HandshakeResponder>,
    /// Counts of what peers make this endpoint hold.
    pub(super) counts: AssociationCounts,
    /// Answers unsealed packets that belong to no association. `None` with sealing.
    pub(super) listener: Option<Listener>,
    /// The addresses of this machine.
    pub(super) own_addresses: OwnAddresses,
    /// Addresses of this machine that appear and disappear, for associations that follow them.
    pub(super) followed: FollowedAddresses,
    /// Unsealed associations that this end opens and that are not established.
    pub(super) setting_up: BTreeSet<AssociationKey>,
    /// Over IP alone, the SCTP ports that belong to this endpoint. `None` over UDP, whose ports distinguish
    /// endpoints.
    pub(super) owned_ports: Option<OwnedPorts>,
    /// These ports may have changed since the sockets were last updated.
    pub(super) ports_changed: bool,
    deadlines: BTreeSet<(Time, AssociationKey)>,
    pub(super) ready: Vec<AssociationKey>,
    pub(super) accepted: VecDeque<AssociationKey>,
    /// SCTP ports on which a limited number of associations waits to be accepted.
    pub(super) backlogs: Vec<Backlog>,
    generation: u32,
    /// Wakes the driver while it sleeps.
    pub(super) driver: Option<Waker>,
    /// No new associations are accepted; the driver ends with the last one.
    pub(super) closing: bool,
    /// Publishes figures and events, if set.
    pub(super) publisher: Option<Publisher>,
    /// The notable counters of the last snapshot.
    pub(super) published_counters: Counters,
    /// Captures packets, if set.
    pub(super) capture: Option<PacketCapture>,
    /// Reused for each packet.
    pub(super) packet: Packet,
    pub(super) tx_batches: Vec<Batch>,
}

/// Shared by the driver and all handles.
#[derive(Debug)]
pub struct Shared {
    core: Mutex<EndpointState>,
    pub signals: Arc<EndpointSignals>,
}

/// Notifications for tasks that wait for an endpoint.
#[derive(Debug, Default)]
pub struct EndpointSignals {
    /// An association can be accepted.
    pub accept: Notify,
    /// An association has been removed.
    pub gone: Notify,
    /// An initiator was refused, or a shard has ended.
    pub refused: Notify,
}

impl Shared {
    pub(super) fn new(core: EndpointState, signals: Arc<EndpointSignals>) -> Arc<Self> {
        Arc::new(Self { core: Mutex::new(core), signals })
    }

    /// Takes the lock. A poisoned lock is used anyway: the state that a panic may leave half changed matters less
    /// than the other associations.
    pub(super) fn lock(&self) -> MutexGuard<'_, EndpointState> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.signals.refused.notify_one();
    }
}

impl EndpointState {
    pub(super) fn new(
        clock: Clock,
        options: Options,
        sockets: Vec<Socket>,
        links: Vec<BoundInterface>,
        responder: Option<HandshakeResponder>,
        (shard, admissions): (Option<Shard>, Admissions),
        seed: Seed,
    ) -> Self {
        let capture = options.capture.clone().map(PacketCapture::new);
        let owned_ports =
            (options.carrier == Carrier::Ip).then(|| OwnedPorts::of(&options, &sockets));
        let publisher = options.observer.as_ref().map(Observer::publisher);
        let follows = options.transport.follow_interfaces && options.sealing.is_none();
        let followed = FollowedAddresses::new(follows);
        Self {
            clock,
            runtime: Handle::try_current().ok(),
            options,
            sockets,
            links,
            interface_watch: InterfaceWatch::default(),
            interface_poll_due: false,
            has_more_to_send: false,
            joint_sockets: 0,
            shard,
            seed,
            counters: Counters::default(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            associations: AssociationTable::default(),
            by_session: BTreeMap::new(),
            responder,
            counts: AssociationCounts::new(admissions),
            listener: None,
            own_addresses: OwnAddresses::default(),
            followed,
            setting_up: BTreeSet::new(),
            owned_ports,
            ports_changed: false,
            deadlines: BTreeSet::new(),
            ready: Vec::new(),
            accepted: VecDeque::new(),
            backlogs: Vec::new(),
            generation: 0,
            driver: None,
            closing: false,
            publisher,
            published_counters: Counters::default(),
            capture,
            packet: Packet::default(),
            tx_batches: Vec::new(),
        }
    }

    /// Number of associations.
    pub(super) fn count(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// A seed that no other association of this endpoint has.
    pub(super) fn next_seed(&mut self) -> Seed {
        self.generation = self.generation.wrapping_add(1);
        self.seed.child(&format!("association/{}", self.generation))
    }

    /// A session number of this shard that is not in use at this endpoint.
    pub(super) fn free_session(&mut self) -> u32 {
        loop {
            let number = self.next_seed().rng().next_u64() as u32;
            let elsewhere = |shard: &Shard| shard.steering.shard_of_session(number) != shard.index;
            if self.shard.as_ref().is_some_and(elsewhere) {
                continue;
            }
            let half_open = self.responder.as_ref().is_some_and(|all| all.contains(number));
            if !half_open && !self.by_session.contains_key(&number) {
                return number;
            }
        }
    }

    /// Adds an association.
    pub(super) fn insert(&mut self, mut peer: Peer) -> AssociationKey {
        peer.follows_interfaces = self.options.transport.follow_interfaces;
        peer.dscps = PathDscps::all(self.options.transport.dscp);
        let slot_index = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[slot_index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        let key = AssociationKey { slot_index, generation: slot.generation };
        match peer.session {
            Some(session) => {
                self.by_session.insert(session, key);
            }
            None => {
                let ports = PortPair::of_departure(peer.encapsulation.ports());
                self.associations.set(key, ports, peer.machine.tags().0, peer.addresses());
            }
        }
        slot.peer = Some(Box::new(peer));
        self.mark_ready(key);
        key
    }

    pub(super) fn peer(&mut self, key: AssociationKey) -> Option<&mut Peer> {
        let slot = self.slots.get_mut(key.slot_index as usize)?;
        (slot.generation == key.generation).then_some(slot.peer.as_deref_mut()?)
    }

    pub(super) fn known(&self, key: AssociationKey) -> Option<&Peer> {
        let slot = self
            .slots
            .get(key.slot_index as usize)
            .filter(|slot| slot.generation == key.generation)?;
        slot.peer.as_deref()
    }

    /// The keys of all associations.
    pub(super) fn keys(&self) -> Vec<AssociationKey> {
        let taken = self.slots.iter().enumerate().filter(|(_, slot)| slot.peer.is_some());
        taken
            .map(|(index, slot)| AssociationKey {
                slot_index: index as u32,
                generation: slot.generation,
            })
            .collect()
    }

    /// Takes an association out temporarily, so that the rest of the state can be used at the same time.
    pub(super) fn take_out(&mut self, key: AssociationKey) -> Option<Box<Peer>> {
        let slot = self.slots.get_mut(key.slot_index as usize)?;
        if slot.generation == key.generation { slot.peer.take() } else { None }
    }

    /// Puts an association back.
    pub(super) fn put_back(&mut self, key: AssociationKey, peer: Box<Peer>) {
        self.slots[key.slot_index as usize].peer = Some(peer);
    }

    /// Removes an association that was taken out.
    pub(super) fn remove(&mut self, key: AssociationKey, peer: &Peer) {
        if let Some(deadline) = peer.deadline {
            self.deadlines.remove(&(deadline, key));
        }
        if let Some(session) = peer.session {
            self.by_session.remove(&session);
        } else {
            match peer.ended {
                Some(reason) => self.associations.remove_ended(key, reason),
                None => self.associations.remove(key),
            }
        }
        if let Some(publisher) = &mut self.publisher {
            publisher.note_news();
        }
        self.ports_changed = true;
        self.setting_up.remove(&key);
        self.accepted.retain(|known| *known != key);
        self.release(peer);
        self.free_slots.push(key.slot_index);
    }

    /// Aborts the associations that still wait to be accepted.
    pub(super) fn abort_unaccepted(&mut self) {
        let waiting = std::mem::take(&mut self.accepted);
        for key in self.keys() {
            let Some(peer) = self.peer(key) else { continue };
            if peer.incoming || waiting.contains(&key) {
                peer.abandoned = true;
                peer.machine.abort();
                self.mark_ready(key);
            }
        }
    }

    /// Puts an association into the ready list.
    pub(super) fn mark_ready(&mut self, key: AssociationKey) {
        if let Some(peer) = self.peer(key)
            && !peer.ready
        {
            peer.ready = true;
            self.ready.push(key);
        }
    }

    /// Wakes waiting readers if a SACK sent before they read would report too small a window. Returns whether any are
    /// waiting.
    pub(super) fn wake_readers(&self) -> bool {
        let mut any = false;
        for peer in self.ready.iter().filter_map(|key| self.known(*key)) {
            any |= peer.machine.sack_is_early() && peer.signals.wake_reader();
        }
        any
    }

    /// Updates the deadline of an association that was taken out.
    pub(super) fn schedule(&mut self, key: AssociationKey, peer: &mut Peer) {
        let below =
            peer.encapsulation.next_deadline().into_iter().chain(peer.validation.next_deadline());
        // An association that has ended needs no further checks.
        let check = peer.ended.is_none().then(|| peer.liveness.next_check());
        let next = peer.machine.next_deadline().into_iter().chain(below).chain(check).min();
        if next == peer.deadline {
            return;
        }
        if let Some(old) = peer.deadline {
            self.deadlines.remove(&(old, key));
        }
        if let Some(new) = next {
            self.deadlines.insert((new, key));
        }
        peer.deadline = next;
    }

    /// Handles the timers of all associations that are due.
    pub(super) fn expire(&mut self, now: Time) {
        while let Some((_, key)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.pop_first();
            if let Some(peer) = self.peer(key) {
                peer.deadline = None;
                peer.handle_timeout(now);
            }
            self.check_liveness(now, key);
            self.mark_ready(key);
        }
    }

    /// The next deadline.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Wakes the driver.
    pub(super) fn wake(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }
}
