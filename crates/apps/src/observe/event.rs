//! The events of a running command. The log, notes at a terminal, `status`, metrics, the live page and the JSON
//! stream all use these events.

use std::fmt;
use std::net::SocketAddr;

use ropewalk_base::PeerText;
use ropewalk_runtime::endpoint::{
    AssociationInfo, CloseReason, PathCause, TransportEvent, TransportEventKind,
};
use ropewalk_runtime::seal::PublicKey;

use crate::proxy::exit::short_key;

/// How important an event is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Events of single connections, files and links.
    Debug,
    /// Peers that connect and disconnect, files, refusals.
    Info,
    /// Events that need the operator's attention.
    Warning,
}

/// An event. Texts of peers are [`PeerText`], which escapes them.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The command accepts associations.
    Listening {
        /// Where.
        addresses: String,
        /// Its public key.
        key: Option<PublicKey>,
    },
    /// A measure of confinement was taken, or is missing.
    Confined(String),
    /// A problem that the operator should know about.
    Problem(String),
    /// The list of peers was reloaded.
    PeersChanged(String),
    /// Options were reloaded and apply from now on.
    OptionsChanged(String),
    /// An association is established.
    AssociationOpened,
    /// A peer's association was refused.
    AssociationRefused {
        /// Why.
        reason: String,
    },
    /// An association has ended.
    AssociationClosed {
        /// Why.
        reason: PeerText,
    },
    /// The peer has restarted, and has lost the state of the association.
    PeerRestarted,
    /// A link carries data from now on.
    LinkUp {
        /// Interface, or local address if there is none.
        link: String,
        /// The peer's address.
        remote: Option<SocketAddr>,
        /// Whether the peer opened the association. Its address then distinguishes its links.
        from_peer: bool,
    },
    /// A link carries no new data until it answers again.
    LinkDown {
        /// Interface, or local address if there is none.
        link: String,
        /// The peer's address.
        remote: Option<SocketAddr>,
        /// Whether the peer opened the association.
        from_peer: bool,
        /// Why.
        cause: PathCause,
    },
    /// The transfer of a file has started.
    FileStarted {
        /// Its name.
        name: PeerText,
        /// Its size, bytes.
        bytes: u64,
    },
    /// A file is complete at the receiver.
    FileFinished {
        /// Its name.
        name: PeerText,
        /// Its size, bytes.
        bytes: u64,
    },
    /// A file is not sent, or not accepted.
    FileRefused {
        /// Its name.
        name: PeerText,
        /// Why.
        reason: PeerText,
    },
    /// A file transfer has ended before everything arrived. The sender may resume it.
    TransferInterrupted {
        /// Why.
        reason: PeerText,
    },
    /// A sender has sent everything.
    FilesReceived {
        /// Files that exist here now.
        files: u64,
        /// Entries that failed or were not sent.
        failed: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// A measurement has ended.
    Measured {
        /// Its duration.
        seconds: f64,
    },
    /// The exit has connected to a target.
    TargetConnected {
        /// Host and port.
        target: String,
    },
    /// The exit did not connect to a target.
    TargetRefused {
        /// Host and port.
        target: String,
        /// Why.
        reason: String,
    },
    /// A limit was reached.
    LimitReached {
        /// Which one.
        limit: String,
    },
    /// A tunnel has its addresses and carries packets.
    TunnelUp {
        /// Name of its TUN device.
        device: String,
        /// Its addresses.
        addresses: String,
    },
    /// Changes to the machine that an earlier run of the tunnel had left were undone.
    TunnelUndone {
        /// Number of changes.
        changes: usize,
    },
    /// A hub does not carry an address family that should lead into the tunnel.
    NotInTunnel {
        /// Its name.
        family: &'static str,
        /// Whether it leaves outside of the tunnel. Otherwise it is unreachable.
        outside: bool,
    },
    /// A tunnel has set the name servers of this machine.
    NameServers {
        /// Their addresses.
        servers: String,
        /// The program that set them.
        manager: String,
    },
    /// A hub should have answered, and has sent nothing for too long.
    HubSilent,
    /// A hub that was silent has sent something.
    HubAnswers,
}

impl Event {
    /// Names of all events, in the order of their numbers.
    pub const NAMES: [&'static str; 26] = [
        "listening",
        "confinement",
        "problem",
        "peers changed",
        "association opened",
        "association refused",
        "association closed",
        "peer restarted",
        "link up",
        "link down",
        "file started",
        "file finished",
        "file refused",
        "files received",
        "transfer interrupted",
        "measured",
        "target connected",
        "target refused",
        "limit reached",
        "options changed",
        "tunnel up",
        "tunnel changes undone",
        "not in the tunnel",
        "hub silent",
        "hub answers again",
        "name servers",
    ];

    const fn index(&self) -> usize {
        match self {
            Self::Listening { .. } => 0,
            Self::Confined(_) => 1,
            Self::Problem(_) => 2,
            Self::PeersChanged(_) => 3,
            Self::AssociationOpened => 4,
            Self::AssociationRefused { .. } => 5,
            Self::AssociationClosed { .. } => 6,
            Self::PeerRestarted => 7,
            Self::LinkUp { .. } => 8,
            Self::LinkDown { .. } => 9,
            Self::FileStarted { .. } => 10,
            Self::FileFinished { .. } => 11,
            Self::FileRefused { .. } => 12,
            Self::FilesReceived { .. } => 13,
            Self::TransferInterrupted { .. } => 14,
            Self::Measured { .. } => 15,
            Self::TargetConnected { .. } => 16,
            Self::TargetRefused { .. } => 17,
            Self::LimitReached { .. } => 18,
            Self::OptionsChanged(_) => 19,
            Self::TunnelUp { .. } => 20,
            Self::TunnelUndone { .. } => 21,
            Self::NotInTunnel { .. } => 22,
            Self::HubSilent => 23,
            Self::HubAnswers => 24,
            Self::NameServers { .. } => 25,
        }
    }

    /// The constant name of the event.
    pub const fn name(&self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Its severity.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Problem(_)
            | Self::LimitReached { .. }
            | Self::NotInTunnel { .. }
            | Self::HubSilent => Severity::Warning,
            Self::Confined(text) if text.contains(" not ") => Severity::Warning,
            Self::TargetConnected { .. }
            | Self::FileStarted { .. }
            | Self::FileFinished { .. }
            | Self::LinkUp { .. }
            | Self::LinkDown { .. } => Severity::Debug,
            _ => Severity::Info,
        }
    }

    /// Whether it shows what a peer does with its connection. Only the log at its lowest level contains such
    /// events.
    pub const fn is_private(&self) -> bool {
        matches!(self, Self::TargetConnected { .. })
    }

    /// Whether only the latest of several consecutive events of this kind matters: a folder has many files.
    pub const fn is_frequent(&self) -> bool {
        matches!(self, Self::FileStarted { .. } | Self::FileFinished { .. })
    }

    /// The link that it concerns.
    pub fn link(&self) -> Option<&str> {
        match self {
            Self::LinkUp { link, .. } | Self::LinkDown { link, .. } => Some(link),
            _ => None,
        }
    }

    /// The object that it concerns in addition to the peer: addresses, a file, a target, a link.
    pub fn object(&self) -> Option<String> {
        Some(match self {
            Self::Listening { addresses: text, .. }
            | Self::Confined(text)
            | Self::Problem(text)
            | Self::PeersChanged(text)
            | Self::OptionsChanged(text)
            | Self::TargetConnected { target: text }
            | Self::TargetRefused { target: text, .. }
            | Self::LimitReached { limit: text }
            | Self::LinkUp { link: text, .. }
            | Self::LinkDown { link: text, .. } => text.clone(),
            Self::TunnelUp { device, addresses } => format!("{device} has {addresses}"),
            Self::TunnelUndone { changes } => changes.to_string(),
            Self::NotInTunnel { family, .. } => (*family).to_owned(),
            Self::NameServers { servers, manager } => format!("{servers} by {manager}"),
            Self::FileStarted { name, .. }
            | Self::FileFinished { name, .. }
            | Self::FileRefused { name, .. } => name.to_string(),
            _ => return None,
        })
    }

    /// Why it happened.
    pub fn reason(&self) -> Option<String> {
        Some(match self {
            Self::AssociationRefused { reason } | Self::TargetRefused { reason, .. } => {
                reason.clone()
            }
            Self::AssociationClosed { reason }
            | Self::FileRefused { reason, .. }
            | Self::TransferInterrupted { reason } => reason.to_string(),
            Self::LinkDown { cause, .. } => cause.to_string(),
            Self::NotInTunnel { family, outside } => {
                let option = family.to_lowercase();
                let why = format!("the hub has no {family} network");
                if *outside {
                    format!("{why}, so {family} leaves outside of the tunnel (--leave-{option})")
                } else {
                    format!(
                        "{why}, so {family} is unreachable; --leave-{option} lets it leave outside of the tunnel"
                    )
                }
            }
            _ => return None,
        })
    }

    /// Converts an event of the transport.
    pub fn of_transport(event: &TransportEvent) -> Self {
        let from_peer = event.about.opened_by_peer;
        match &event.kind {
            TransportEventKind::Established => Self::AssociationOpened,
            TransportEventKind::Restarted => Self::PeerRestarted,
            TransportEventKind::PathUp { link, remote, .. } => {
                Self::LinkUp { link: link.clone(), remote: *remote, from_peer }
            }
            TransportEventKind::PathDown { link, remote, cause, .. } => {
                Self::LinkDown { link: link.clone(), remote: *remote, from_peer, cause: *cause }
            }
            TransportEventKind::Closed { reason, said, .. } => {
                let reason = match (reason, said) {
                    (CloseReason::Aborted(_), Some(said)) => format!("this end aborted it: {said}"),
                    (CloseReason::AbortedByPeer(_), Some(said)) => {
                        format!("the peer aborted it: {said}")
                    }
                    _ => reason.to_string(),
                };
                Self::AssociationClosed { reason: reason.into() }
            }
        }
    }
}

/// The event in one line, without the peer: `link lte down: no reply for 0.4 s`.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkUp { link, remote, from_peer } => {
                write!(f, "link {} up", link_from(link, remote.filter(|_| *from_peer)))
            }
            Self::LinkDown { link, remote, from_peer, cause } => {
                let link = link_from(link, remote.filter(|_| *from_peer));
                write!(f, "link {link} down: {cause}")
            }
            Self::Measured { seconds } => write!(f, "measured for {seconds} s"),
            Self::FilesReceived { files, failed, bytes } => {
                write!(f, "files received: {files}, {bytes} B")?;
                if *failed > 0 { write!(f, "; not received: {failed}") } else { Ok(()) }
            }
            _ => {
                f.write_str(self.name())?;
                let mut texts = self.object().into_iter().chain(self.reason());
                texts.try_for_each(|text| write!(f, ": {text}"))
            }
        }
    }
}

/// A link with the peer's source address, if given: `eth0 from 198.51.100.1`. All links of a peer may end at one
/// interface.
pub(super) fn link_from(link: &str, remote: Option<SocketAddr>) -> String {
    let from = remote.map(|remote| remote.ip().to_canonical());
    from.map_or_else(|| link.to_owned(), |from| format!("{link} from {from}"))
}

/// The peer that an event or an association concerns.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PeerIdentity {
    /// The operator's name for the peer.
    pub name: Option<String>,
    /// The public key that the peer has proved to own.
    pub key: Option<PublicKey>,
    /// The address from which it connected, or to which this end connected.
    pub address: Option<SocketAddr>,
}

impl PeerIdentity {
    /// The peer of an association; `name` finds the operator's names.
    pub fn of(about: &AssociationInfo, name: impl Fn(&PublicKey) -> Option<String>) -> Self {
        let key = about.peer;
        Self { name: key.as_ref().and_then(name), key, address: about.address }
    }

    /// A short label: the name, or the beginning of the key, or the address without its port.
    pub fn label(&self) -> String {
        let key = || self.key.as_ref().map(short_key);
        let address = || self.address.map(|address| address.ip().to_string());
        self.name.clone().or_else(key).or_else(address).unwrap_or_default()
    }
}

/// An event with its peer and time.
#[derive(Clone, Debug)]
pub struct EventRecord {
    /// Seconds since 1970 (UTC).
    pub time_s: f64,
    /// The peer.
    pub peer: PeerIdentity,
    /// What happened.
    pub event: Event,
}

impl EventRecord {
    /// The time of day in UTC: `14:03:07Z`.
    pub fn clock(&self) -> String {
        clock(self.time_s)
    }

    /// The event as a line for a person: time, event, and the peer if this end has several.
    pub fn line(&self, names_peer: bool) -> String {
        let label = self.peer.label();
        let whom =
            if names_peer && !label.is_empty() { format!("{label}: ") } else { String::new() };
        format!("{} {whom}{}", self.clock(), self.event)
    }
}

/// The time of day of a time since 1970, in UTC.
pub fn clock(time_s: f64) -> String {
    let second = time_s.max(0.0) as u64 % 86_400;
    format!("{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Duration;

    use super::*;

    #[test]
    fn each_event_has_its_own_name() {
        let mut names = Event::NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Event::NAMES.len());
    }

    #[test]
    fn an_event_is_one_line_with_time_and_cause() {
        let cause = PathCause::NoReply(Duration::from_millis(412));
        let remote = Some("198.51.100.1:9".parse().expect("an address"));
        let down = |from_peer| {
            let (link, cause) = ("lte".to_owned(), cause);
            Event::LinkDown { link, remote, from_peer, cause }
        };
        let name = "shed/a\nb".into();
        let refused = Event::FileRefused { name, reason: "the disk is full".into() };
        for (event, line) in [
            (down(false), "14:03:07Z anna: link lte down: no reply for 0.4 s"),
            (down(true), "14:03:07Z anna: link lte from 198.51.100.1 down: no reply for 0.4 s"),
            (Event::AssociationOpened, "14:03:07Z anna: association opened"),
            (refused, r"14:03:07Z anna: file refused: shed/a\u{a}b: the disk is full"),
            (Event::Measured { seconds: 10.0 }, "14:03:07Z anna: measured for 10 s"),
            (
                Event::FilesReceived { files: 2, failed: 1, bytes: 30 },
                "14:03:07Z anna: files received: 2, 30 B; not received: 1",
            ),
        ] {
            let name = Some("anna".to_owned());
            let peer = PeerIdentity { name, ..PeerIdentity::default() };
            let record = EventRecord { time_s: 86_400.0 * 3.0 + 50_587.9, peer, event };
            assert_eq!(record.line(true), line);
        }
    }

    #[test]
    fn a_peer_without_a_key_is_known_by_its_address() {
        let address = Some(([192, 0, 2, 7], 9899).into());
        assert_eq!(PeerIdentity { address, ..PeerIdentity::default() }.label(), "192.0.2.7");
    }
}
