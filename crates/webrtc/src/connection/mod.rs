//! One end of a WebRTC data connection: an association and its channels.

mod closing;
mod events;
mod inbound;
mod opening;
mod sending;
mod stats;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use ropewalk_base::{PathId, Time};
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions};
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::wire::{self, Checksum};
use ropewalk_engine::sctp::{Association, Packet, Randomness};

use self::closing::Resets;
use self::stats::Counters;
pub use self::stats::Stats;
use crate::assembly::Assemblies;
use crate::channel::{Channel, ChannelId, ChannelOptions, ChannelState};
use crate::config::Config;
use crate::event::{Event, Violation};

/// The only path. RFC 8261, 6.1: associations over DTLS are single-homed.
const PATH: PathId = PathId(0);

/// One end of a WebRTC data connection.
///
/// ```text
///   packet --> Association --> Assemblies --> establishment protocol, user messages --> Event
///   send() --> Association (streams share the capacity by priority)                  --> packet
///   close() --> Resets --> RE-CONFIG of the association
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    config: Config,
    association: Association,
    channels: BTreeMap<u16, Channel>,
    /// Bytes of the labels and protocols of all channels.
    text_bytes: usize,
    assemblies: Assemblies,
    resets: Resets,
    /// Channels with an OPEN or ACK that waits for room in the send buffer.
    unsent_dcep: BTreeSet<u16>,
    /// Channels whose buffered amount exceeds their threshold.
    above_threshold: BTreeSet<u16>,
    events: VecDeque<Event>,
    /// Why the association ended, until that was reported.
    ended: Option<CloseReason>,
    counters: Counters,
    /// Reused for each packet.
    spare: Packet,
}

impl Connection {
    /// Creates a connection that sends an INIT immediately. Both ends do (RFC 8831, 6.2), regardless of their DTLS
    /// roles; the DTLS handshake should be complete.
    ///
    /// # Panics
    /// If [`Config::congestion`] is not the name of a congestion control.
    pub fn new(config: Config, randomness: impl Into<Randomness>, now: Time) -> Self {
        let scheduler = Scheduler::from_name("min-rtt", &SchedulerOptions::default());
        let scheduler = scheduler.unwrap_or_else(|_| unreachable!("a built-in scheduler"));
        let association = Association::connect(config.sctp(), scheduler, randomness, now);
        Self {
            assemblies: Assemblies::new(config.max_message_size),
            config,
            association,
            channels: BTreeMap::new(),
            text_bytes: 0,
            resets: Resets::default(),
            unsent_dcep: BTreeSet::new(),
            above_threshold: BTreeSet::new(),
            events: VecDeque::new(),
            ended: None,
            counters: Counters::default(),
            spare: Packet::default(),
        }
    }

    /// Configuration of the connection.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the association is established.
    pub const fn is_connected(&self) -> bool {
        matches!(self.association.state(), State::Established)
    }

    /// Whether messages of different channels are interleaved (RFC 8260). False before the association is established.
    pub const fn interleaves(&self) -> bool {
        self.association.interleaves()
    }

    /// Handles the application data of one DTLS record, which is one SCTP packet (RFC 8261, 4). Other data is dropped and
    /// counted.
    pub fn handle_packet(&mut self, now: Time, packet: Bytes) {
        let mut decoded = std::mem::take(&mut self.spare);
        match wire::decode(&packet, Checksum::Crc32c, &mut decoded) {
            Ok(ports) if ports == self.config.ports().swapped() => {
                self.counters.packets_received += 1;
                self.association.handle_in_place(now, PATH, &mut decoded);
            }
            _ => self.counters.packets_refused += 1,
        }
        self.spare = decoded;
    }

    /// Handles a deadline that has passed. Does nothing if none has.
    pub fn handle_timeout(&mut self, now: Time) {
        self.association.handle_timeout(now);
    }

    /// Writes the next packet, to be sent as the application data of one DTLS record, into `out`, whose content is
    /// replaced. Returns false if there is none.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        out.clear();
        self.flush_dcep(now);
        let mut packet = std::mem::take(&mut self.spare);
        let next = self.association.poll_transmit_into(now, &mut packet);
        if next.is_some() {
            wire::encode(&packet, self.config.ports(), Checksum::Crc32c, out);
            self.counters.packets_sent += 1;
        }
        self.spare = packet;
        next.is_some()
    }

    /// When [`Self::handle_timeout`] must be called. `None` if not before the next input.
    pub fn next_deadline(&self) -> Option<Time> {
        self.association.next_deadline()
    }

    /// The properties of a channel, and its state. `None` if there is no such channel.
    pub fn channel(&self, channel: ChannelId) -> Option<(&ChannelOptions, ChannelState)> {
        self.channels.get(&channel.0).map(|known| (&known.options, known.state))
    }

    /// All channels.
    pub fn channels(&self) -> impl Iterator<Item = ChannelId> {
        self.channels.keys().copied().map(ChannelId)
    }

    /// Ends the association once all queued messages are acknowledged (RFC 9260, 9.2).
    pub fn shutdown(&mut self, now: Time) {
        self.association.shutdown(now);
    }

    /// Ends the association immediately; queued data is lost (RFC 9260, 9.1). [`Self::poll_transmit`] returns an
    /// ABORT for the peer.
    pub fn abort(&mut self) {
        self.association.abort();
    }

    fn remove(&mut self, id: u16) -> Option<Channel> {
        let known = self.channels.remove(&id)?;
        self.text_bytes -= known.options.text_bytes();
        self.unsent_dcep.remove(&id);
        self.above_threshold.remove(&id);
        self.assemblies.forget_stream(id);
        Some(known)
    }

    fn count(&mut self, violation: Violation) {
        let at = Violation::ALL.iter().position(|one| *one == violation);
        self.counters.violations[at.unwrap_or_default()] += 1;
    }
}
