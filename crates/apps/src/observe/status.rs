//! The state of a running command as one JSON document: what `ropewalk status` prints and the live page draws.

use ropewalk_runtime::endpoint::{PathStatus, PathUse};
use ropewalk_tunnel::LinkUse;
use serde::{Deserialize, Serialize};

use super::event::{EventRecord, link_from};
use super::ledger::{Ledger, OpenAssociation, PathKey, Track};

/// The schema of [`Status`].
pub const SCHEMA: &str = "ropewalk.status/1";

/// The state of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command, such as `recv` or `proxy exit`.
    pub command: String,
    /// Process identifier.
    pub pid: u32,
    /// Version of Ropewalk.
    pub version: String,
    /// Seconds since 1970 (UTC).
    pub time_s: f64,
    /// Seconds since the command started.
    pub uptime_s: f64,
    /// Progress of a file transfer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transfer: Option<Transfer>,
    /// State of a tunnel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tunnel: Option<TunnelFigures>,
    /// Open associations.
    pub associations: Vec<AssociationStatus>,
    /// Paths of the open associations.
    pub links: Vec<LinkStatus>,
    /// The latest events, oldest first.
    pub events: Vec<EventStatus>,
}

/// The state of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelFigures {
    /// Name of the TUN device.
    pub interface: String,
    /// Own addresses in the tunnel.
    pub addresses: Vec<String>,
    /// Connected clients of a hub; of a client, 1 while it is connected to its hub.
    pub clients: u64,
    /// Inner packets that were given to the paths.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Inner packets of the peer that were delivered.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Inner packets that were marked because their queue was long (ECN).
    pub marked_packets: u64,
    /// Inner packets that were sent on two paths.
    pub copied_packets: u64,
    /// Inner packets that had arrived before.
    pub duplicate_packets: u64,
    /// Inner packets that were delivered after later ones of their flow.
    pub late_packets: u64,
    /// Inner packets that were not carried or not delivered, by reason.
    pub refused: Vec<Refused>,
    /// Volumes of a hub's clients: those that have used the largest part of theirs.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub volumes: Vec<ClientVolume>,
    /// Caps of a client's links.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub caps: Vec<LinkCap>,
}

/// What a link with a cap has carried in this month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCap {
    /// Interface, or own address.
    pub link: String,
    /// Bytes of the tunnel's packets, in both directions, headers included.
    pub used_bytes: u64,
    /// The most that it may carry.
    pub cap_bytes: u64,
}

/// What a client of a hub has carried in this month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientVolume {
    /// The client: its public key, or the name that the operator has given it.
    pub client: String,
    /// Bytes of inner packets, in both directions.
    pub used_bytes: u64,
    /// The most that it may carry.
    pub quota_bytes: u64,
}

/// Inner packets that were not carried or not delivered for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The reason, such as `foreign source`.
    pub reason: String,
    /// How many packets.
    pub packets: u64,
}

/// Progress of a file transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Number of files to transfer.
    pub files: u64,
    /// Number of files that are complete.
    pub files_done: u64,
    /// Total size of all files.
    pub bytes: u64,
    /// Bytes that are in their place at the receiver.
    pub placed_bytes: u64,
}

/// An open association.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssociationStatus {
    /// Label of the peer: its name, the beginning of its key, or its address.
    pub peer: String,
    /// The peer's address on the first path.
    pub address: Option<String>,
    /// Whether the peer opened it.
    pub opened_by_peer: bool,
    /// Bytes that wait out of order in the receive buffer.
    pub out_of_order_bytes: u64,
    /// Free bytes of the receive buffer.
    pub receive_free_bytes: u64,
    /// Time in which the receive window alone blocked sending, seconds since the association began.
    pub blocked_s: f64,
}

/// A path of an open association.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Number of the path, unique while the command runs.
    pub number: u64,
    /// Interface, else local address.
    pub link: String,
    /// How views name it: the link; at the end to which the peer has connected, with the address that the peer sends from.
    #[serde(default)]
    pub shown: String,
    /// Label of the peer.
    pub peer: String,
    /// Local address and port.
    pub local: String,
    /// The peer's address and port.
    pub remote: String,
    /// `active`, `unconfirmed`, `doubtful` or `down`.
    pub state: String,
    /// When the path carries data: `always`, `when-needed`, `backup` or `never`.
    #[serde(rename = "use")]
    pub usage: String,
    /// Rate of user data that the peer has acknowledged, bit/s.
    pub up_bps: f64,
    /// Rate of user data that has arrived, bit/s.
    pub down_bps: f64,
    /// Share of the user data of all paths, in both directions.
    pub share: f64,
    /// Smoothed round trip.
    pub rtt_s: Option<f64>,
    /// Part of the delay that is queueing.
    pub queue_s: f64,
    /// Share of the transmissions of the last ten seconds that was lost.
    pub loss: Option<f64>,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Sent and neither acknowledged nor given up.
    pub in_flight_bytes: u64,
    /// User data that the peer has acknowledged since the association began.
    pub data_sent_bytes: u64,
    /// User data that has arrived since the association began.
    pub data_received_bytes: u64,
    /// Chunks that were sent again since the association began.
    pub retransmitted: u64,
}

impl LinkStatus {
    /// How views name it. An earlier release says only what its link is.
    pub fn name(&self) -> &str {
        if self.shown.is_empty() { &self.link } else { &self.shown }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventStatus {
    /// Seconds since 1970 (UTC).
    pub time_s: f64,
    /// Its name, such as `link down`.
    pub event: String,
    /// Label of the peer.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub peer: String,
    /// The link that it concerns.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link: Option<String>,
    /// The event in words.
    pub text: String,
}

impl EventStatus {
    /// The event as part of a document.
    pub fn of(record: &EventRecord) -> Self {
        Self {
            time_s: record.time_s,
            event: record.event.name().to_owned(),
            peer: record.peer.label(),
            link: record.event.link().map(str::to_owned),
            text: record.event.to_string(),
        }
    }
}

/// The state of a path as a word.
pub const fn state_word(status: PathStatus) -> &'static str {
    match status {
        PathStatus::Unconfirmed => "unconfirmed",
        PathStatus::Active => "active",
        PathStatus::PotentiallyFailed => "doubtful",
        PathStatus::Inactive => "down",
    }
}

/// When a path carries data, as a word.
pub fn use_word(usage: PathUse) -> &'static str {
    LinkUse::NAMED[usage as usize].0
}

impl Ledger {
    /// The open associations.
    pub fn association_statuses(&self) -> Vec<AssociationStatus> {
        let status = |open: &OpenAssociation| AssociationStatus {
            peer: open.peer.clone(),
            address: open.snapshot.about.address.map(|address| address.to_string()),
            opened_by_peer: open.snapshot.about.opened_by_peer,
            out_of_order_bytes: open.snapshot.stats.out_of_order_bytes,
            receive_free_bytes: open.snapshot.stats.receive_free_bytes,
            blocked_s: open.snapshot.stats.sender.blocked.as_secs_f64(),
        };
        self.associations.values().map(status).collect()
    }

    /// The paths of the open associations.
    pub fn link_statuses(&self) -> Vec<LinkStatus> {
        let rates: Vec<(f64, f64)> = self.paths.values().map(Track::rates_bps).collect();
        let total: f64 = rates.iter().map(|(up, down)| up + down).sum();
        let with_share = |((key, track), (up, down)): ((&PathKey, &Track), (f64, f64))| {
            let share = if total > 0.0 { (up + down) / total } else { 0.0 };
            let association = self.associations.get(&(key.0, key.1));
            let from_peer = association.is_some_and(|open| open.snapshot.about.opened_by_peer);
            let shown = link_from(&track.link, track.stats.remote.filter(|_| from_peer));
            link_status(track, shown, (up, down), share)
        };
        self.paths.iter().zip(rates).map(with_share).collect()
    }
}

fn link_status(
    track: &Track,
    shown: String,
    (up_bps, down_bps): (f64, f64),
    share: f64,
) -> LinkStatus {
    let stats = &track.stats;
    LinkStatus {
        number: track.number,
        link: track.link.clone(),
        shown,
        peer: track.peer.clone(),
        local: stats.local.as_ref().map(|local| local.address.to_string()).unwrap_or_default(),
        remote: stats.remote.map(|remote| remote.to_string()).unwrap_or_default(),
        state: state_word(stats.status).to_owned(),
        usage: use_word(stats.usage).to_owned(),
        up_bps,
        down_bps,
        share,
        rtt_s: stats.srtt_s,
        queue_s: stats.queueing_s,
        loss: track.loss(),
        cwnd_bytes: stats.cwnd_bytes,
        in_flight_bytes: stats.in_flight_bytes,
        data_sent_bytes: stats.counters.delivered_bytes,
        data_received_bytes: stats.received_bytes,
        retransmitted: stats.counters.retransmitted,
    }
}
