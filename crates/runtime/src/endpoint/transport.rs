//! How associations behave, and the engine's configuration for it.

use std::net::IpAddr;

use ropewalk_engine::congestion::{CongestionFlavour, UnknownCongestion};
use ropewalk_engine::path::MtuRange;
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions, UnknownScheduler};
use ropewalk_engine::sctp::{
    AcceptedRequests, ChunkTypes, Config, Extensions, HmacList, Negotiation, PacketForm,
    PathConfig, Preset, SharedKeys, StreamScheduler,
};

use super::dscp::Dscp;
use super::raw::Carrier;
use crate::seal::OVERHEAD;

/// The MTU of most links, IP packets in bytes.
const DEFAULT_MTU: u32 = 1500;
/// Smallest MTU of an IPv6 link (RFC 8200, 5), and the smallest IPv4 packet that every host accepts (RFC 1122,
/// 3.3.2), bytes.
const MIN_MTU_IPV6: u32 = 1280;
const MIN_MTU_IPV4: u32 = 576;

/// Headers of IP, bytes.
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;
/// Header of UDP, bytes.
const UDP_HEADER: u32 = 8;

/// The rules that associations follow where RFC 9260 leaves a choice, or where this project departs from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// Concurrent multipath transfer to every peer, loss detection by time (RFC 8985), pacing, and the timers and
    /// windows of current TCP. `docs/reference/rfc9260.md` lists the departures from RFC 9260 and the reasons.
    #[default]
    Live,
    /// Every MUST and the recommended parameters of RFC 9260: Max.Burst 4, RTO.Min 1 s, the initial window of 7.2.1,
    /// loss detection by three miss indications, and data on the primary path only, unless the peer announces CMT. It
    /// starts, recovers and detects recovered paths more slowly.
    Rfc9260,
}

impl Profile {
    /// The names of all profiles.
    pub const NAMES: [&'static str; 2] = ["live", "rfc9260"];

    /// The profile of that name.
    ///
    /// # Errors
    /// If no profile has that name.
    pub fn from_name(name: &str) -> Result<Self, UnknownProfile> {
        match name {
            "live" => Ok(Self::Live),
            "rfc9260" => Ok(Self::Rfc9260),
            _ => Err(UnknownProfile(name.to_owned())),
        }
    }

    const fn preset(self) -> Preset {
        match self {
            Self::Live => Preset::Live,
            Self::Rfc9260 => Preset::LiveRfc9260,
        }
    }
}

/// No profile has this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{}` is no profile: {} are", .0.escape_debug(), Profile::NAMES.join(", "))]
pub struct UnknownProfile(pub String);

impl std::str::FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::from_name(name)
    }
}

/// How associations behave. The two ends may be configured differently.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    /// Rules and their parameters (`live`).
    pub profile: Profile,
    /// Receive buffer, bytes. A small buffer causes blocking when paths are unequal; a large one costs memory per
    /// association (16 MiB: enough for 1 Gbit/s over 100 ms).
    pub receive_buffer: u64,
    /// Maximum amount of data that waits unsent or unacknowledged, bytes. `None` selects four receive buffers.
    pub send_buffer: Option<u64>,
    /// Maximum amount of unsent data, bytes, or the sum of all congestion windows if that is larger. `None` sets no
    /// separate limit. For applications that send several kinds of data, some of them urgent.
    pub unsent_limit: Option<u64>,
    /// Reserve beyond a full send buffer, bytes (64 KiB, at most the send buffer). Only streams whose unsent data is
    /// at most a quarter of the reserve may use it. Short messages then do not wait for space behind long ones of
    /// other streams.
    pub stream_reserve: u32,
    /// Whether abandoned messages are kept for [`Association::next_abandoned`](super::Association::next_abandoned),
    /// which the application must then call (off).
    pub reports_abandoned: bool,
    /// Maximum number of bytes of the peer's receive buffer that this end uses. `None` uses all of it. A limit shows
    /// the effect of a smaller buffer without changing the peer.
    pub peer_buffer_limit: Option<u64>,
    /// Scheduler by name (`lay`).
    pub scheduler: String,
    /// Congestion control of each path by name. `None` selects that of the profile (`bbr` with
    /// `live`).
    pub congestion: Option<String>,
    /// Number of streams in each direction (1024).
    pub streams: u16,
    /// Number of inbound streams. `None` selects the number of outbound ones.
    pub inbound_streams: Option<u16>,
    /// Whether unsealed peers are offered extensions: partial reliability (RFC 3758), those of Ropewalk, and those
    /// that other options enable (on). If not, an INIT lists none, like that of an implementation of RFC 9260 only.
    pub extensions: bool,
    /// Whether messages of different streams are interleaved (I-DATA, RFC 8260), if the peer offers it as well (off).
    /// A short message then does not wait for a long one whose transmission has started. Costs 4 bytes per chunk.
    pub interleaving: bool,
    /// In which order messages of different streams are sent (`first-come`).
    pub stream_scheduler: StreamScheduler,
    /// Whether data that will not be dropped is reported as non-renegable (NR-SACK, draft-natarajan-tsvwg-sctp-nrsack), if
    /// the peer offers it as well (off). Its sender then frees the data sooner. Costs 4 bytes per SACK.
    pub nr_sack: bool,
    /// Whether streams can be reset and added while an association is used (RE-CONFIG, RFC 6525), if the peer offers it as
    /// well (off). Costs 1 byte in the handshake.
    pub reconfiguration: bool,
    /// Whether chunks are authenticated (AUTH, RFC 4895) towards unsealed peers that offer it as well (off). Costs 45 bytes in the
    /// handshake.
    pub authentication: bool,
    /// Whether unsealed associations follow addresses that appear and disappear (ASCONF, RFC 5061), if the peer
    /// offers it as well (off). Chunks about addresses are authenticated. Costs 55 bytes in the handshake. Sealed
    /// associations always follow addresses.
    pub address_reconfiguration: bool,
    /// Whether unsealed associations announce addresses of interfaces that appear, and remove those that disappear,
    /// if both ends have `address_reconfiguration` (off). Applies to sockets that are bound to the unspecified
    /// address, and to endpoints that use all interfaces.
    pub follow_interfaces: bool,
    /// Whether a translator (NAT) hides all addresses of this end from unsealed peers (off). Requests to add or
    /// remove addresses then name the source of the packet (RFC 5061, 4.2.1). For private addresses and peers without
    /// private addresses, this is always the case.
    pub translated: bool,
    /// Types of chunks that unsealed peers must authenticate (none).
    pub authenticated_chunks: ChunkTypes,
    /// Algorithms that are offered for authenticated chunks (SHA-256, then SHA-1).
    pub hmacs: HmacList,
    /// Adaptation layer indication that is sent to unsealed peers (RFC 5061, 4.2.6). `None` sends nothing.
    pub adaptation: Option<u32>,
    /// Secrets for authenticated chunks, shared with the peer (the empty key 0). With the empty key, anyone who has
    /// seen the handshake can forge chunks.
    pub shared_keys: SharedKeys,
    /// Which requests of the peer to reset or add streams are accepted (none).
    pub accepted_requests: AcceptedRequests,
    /// Maximum number of streams in each direction that requests of the peer may reach (1024).
    pub stream_limit: u16,
    /// Largest IP packet that is probed, bytes (9000). The path MTU is found by probes (RFC 8899). Sizes above 1500 B
    /// are probed only if the peer's receive buffer holds many such packets.
    pub mtu: u32,
    /// Whether the path MTU is probed. If not, every path is assumed to carry 1500 B, or `mtu` if that is
    /// smaller.
    pub discover_mtu: bool,
    /// Whether congestion marks of the network (ECN) are used, if the peer supports them (on; always off with the
    /// profile `rfc9260`).
    pub ecn: bool,
    /// DSCP of all packets, including those of the handshake (0, best effort). [`super::Association::set_dscp`]
    /// changes it.
    pub dscp: Dscp,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            profile: Profile::Live,
            receive_buffer: 16 << 20,
            send_buffer: None,
            unsent_limit: None,
            stream_reserve: 64 << 10,
            reports_abandoned: false,
            peer_buffer_limit: None,
            scheduler: "lay".to_owned(),
            congestion: None,
            streams: 1024,
            inbound_streams: None,
            extensions: true,
            interleaving: false,
            stream_scheduler: StreamScheduler::FirstCome,
            nr_sack: false,
            reconfiguration: false,
            authentication: false,
            address_reconfiguration: false,
            follow_interfaces: false,
            translated: false,
            authenticated_chunks: ChunkTypes::NONE,
            hmacs: HmacList::default(),
            adaptation: None,
            shared_keys: SharedKeys::default(),
            accepted_requests: AcceptedRequests::default(),
            stream_limit: 1024,
            mtu: 9000,
            discover_mtu: true,
            ecn: true,
            dscp: Dscp::DEFAULT,
        }
    }
}

/// A name that the engine does not know. The message lists the valid ones.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnknownName {
    /// The name of a scheduler.
    #[error("{0}")]
    Scheduler(UnknownScheduler),
    /// The name of a congestion control.
    #[error("{0}")]
    Congestion(UnknownCongestion),
}

/// What carries the packets of an association.
#[derive(Clone, Debug)]
pub(super) enum Encryption {
    /// UDP or IP alone.
    Plain {
        carrier: Carrier,
        /// Whether over IPv6.
        ipv6: bool,
        /// Own addresses to list to the peer.
        addresses: Vec<IpAddr>,
    },
    /// UDP and sealing.
    Sealed {
        /// Whether over IPv6.
        ipv6: bool,
    },
}

impl Encryption {
    const fn ip_header(&self) -> u32 {
        match self {
            Self::Plain { ipv6: true, .. } | Self::Sealed { ipv6: true } => IPV6_HEADER,
            Self::Plain { .. } | Self::Sealed { .. } => IPV4_HEADER,
        }
    }

    /// Headers below SCTP, bytes.
    const fn header(&self) -> u32 {
        let above_ip = match self {
            Self::Plain { carrier: Carrier::Ip, .. } => 0,
            Self::Plain { carrier: Carrier::Udp, .. } => UDP_HEADER,
            Self::Sealed { .. } => UDP_HEADER + OVERHEAD as u32,
        };
        self.ip_header() + above_ip
    }

    /// How packets are laid out: a session authenticates its packets and belongs to one association.
    const fn packet_form(&self) -> PacketForm {
        match self {
            Self::Plain { .. } => PacketForm::Standard,
            Self::Sealed { .. } => PacketForm::Compact,
        }
    }

    /// Range of packet sizes for path MTU discovery. An association over IPv4 may get paths over IPv6, which has a
    /// longer header: packets of the base size fit on these as well.
    fn mtus(&self, most: u32) -> MtuRange {
        let longer = IPV6_HEADER - self.ip_header();
        let least = if longer == 0 { MIN_MTU_IPV6 } else { MIN_MTU_IPV4 };
        MtuRange { least: most.min(least), base: most.min(MIN_MTU_IPV6 - longer), most }
    }
}

impl Transport {
    /// Configuration of a new path to `remote`.
    pub(super) fn path(&self, remote: IpAddr) -> PathConfig {
        let ipv6 = remote.to_canonical().is_ipv6();
        PathConfig { mtu: self.mtu.min(DEFAULT_MTU), ipv6, ..PathConfig::default() }
    }

    /// The engine's configuration for paths to these addresses.
    ///
    /// # Errors
    /// If the engine does not know the congestion control.
    pub(super) fn config(
        &self,
        remotes: &[IpAddr],
        encryption: &Encryption,
    ) -> Result<Config, UnknownName> {
        let paths = remotes.iter().map(|remote| self.path(*remote)).collect();
        let mut config = Config::preset(self.profile.preset(), paths, self.receive_buffer);
        config.lower_header = encryption.header();
        config.packet_form = encryption.packet_form();
        // The extensions of the peer are not known before the handshake.
        let extends = self.extensions || matches!(encryption, Encryption::Sealed { .. });
        // RFC 9260 reserves the chunks for ECN but does not define their use.
        config.ecn = self.ecn && self.profile == Profile::Live && extends;
        config.mtu_discovery = self.discover_mtu.then(|| encryption.mtus(self.mtu));
        if let Encryption::Plain { addresses, .. } = encryption {
            config.addresses = Some(addresses.clone());
            let offered = if extends { Extensions::OFFERED } else { Extensions::NONE };
            config.negotiation = Negotiation::Listed(offered);
            // A seal authenticates whole packets.
            config.authentication = self.authentication && extends;
            config.address_reconfiguration = self.address_reconfiguration && extends;
            config.authenticated_chunks = self.authenticated_chunks;
            config.hmacs = self.hmacs;
            config.adaptation = self.adaptation;
            config.shared_keys.clone_from(&self.shared_keys);
        } else {
            // Paths are identified by their numbers, not by their addresses.
            config.addresses = Some(Vec::new());
        }
        // Another path may be added at any time.
        config.cmt.concurrent = true;
        config.streams = self.streams;
        config.inbound_streams = self.inbound_streams;
        config.interleaving = self.interleaving && extends;
        config.stream_scheduler = self.stream_scheduler;
        config.nr_sack = self.nr_sack && extends;
        config.reconfiguration = self.reconfiguration && extends;
        config.accepted_requests = self.accepted_requests;
        config.stream_limit = self.stream_limit;
        config.unsent_limit = self.unsent_limit;
        config.reports_abandoned = self.reports_abandoned;
        config.peer_buffer_limit = self.peer_buffer_limit;
        if let Some(bytes) = self.send_buffer {
            config.send_buffer = bytes;
        }
        let most = u32::try_from(config.send_buffer).unwrap_or(u32::MAX);
        config.stream_reserve = self.stream_reserve.min(most);
        if let Some(name) = &self.congestion {
            let used = config.use_congestion(name, CongestionFlavour::Published);
            used.map_err(UnknownName::Congestion)?;
        }
        Ok(config)
    }

    /// Creates the scheduler.
    ///
    /// # Errors
    /// If the engine does not know the scheduler.
    pub fn scheduler(&self) -> Result<Scheduler, UnknownName> {
        let options = SchedulerOptions::default();
        Scheduler::from_name(&self.scheduler, &options).map_err(UnknownName::Scheduler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_s_preset_counts_the_headers_that_are_sent() {
        assert_eq!(Encryption::Sealed { ipv6: false }.header(), Preset::LIVE_LOWER_HEADER);
        let plain = |carrier, ipv6| Encryption::Plain { carrier, ipv6, addresses: Vec::new() };
        for (carrier, ipv6, header) in [
            (Carrier::Udp, false, 28),
            (Carrier::Udp, true, 48),
            (Carrier::Ip, false, 20),
            (Carrier::Ip, true, 40),
        ] {
            assert_eq!(plain(carrier, ipv6).header(), header, "{carrier:?} {ipv6}");
        }
    }

    #[test]
    fn without_extensions_an_unsealed_peer_is_offered_none_whatever_other_options_enable() {
        for extensions in [true, false] {
            let transport = Transport {
                extensions,
                ecn: true,
                interleaving: true,
                nr_sack: true,
                reconfiguration: true,
                authentication: true,
                ..Transport::default()
            };
            let (carrier, ipv6, addresses) = (Carrier::Udp, false, Vec::new());
            let plain = Encryption::Plain { carrier, ipv6, addresses };
            for (encryption, offered) in [(plain, extensions), (Encryption::Sealed { ipv6 }, true)]
            {
                let config = transport.config(&[[192, 0, 2, 1].into()], &encryption).unwrap();
                let enabled =
                    [config.ecn, config.interleaving, config.nr_sack, config.reconfiguration];
                assert_eq!(enabled, [offered; 4], "{encryption:?}");
                // A seal authenticates whole packets.
                let plain = matches!(encryption, Encryption::Plain { .. });
                assert_eq!(config.authentication, offered && plain, "{encryption:?}");
                let listed = Negotiation::Listed(Extensions::NONE);
                assert_eq!(config.negotiation == listed, !offered, "{encryption:?}");
            }
        }
    }

    #[test]
    fn a_profile_is_found_by_its_name_and_sets_the_knobs_of_its_preset() {
        let (carrier, ipv6) = (Carrier::Udp, false);
        let encryption = Encryption::Plain { carrier, ipv6, addresses: Vec::new() };
        let found = |name: &str| {
            let profile = Profile::from_name(name).expect("a name of the list");
            let transport = Transport { profile, ..Transport::default() };
            let remotes = [[192, 0, 2, 1], [192, 0, 2, 2]].map(IpAddr::from);
            let config =
                transport.config(&remotes, &encryption).expect("a known congestion control");
            (config.max_burst, config.cmt.if_agreed, config.ecn, config.initial_window.is_some())
        };
        assert_eq!(Profile::NAMES.map(found), [(0, false, true, true), (4, true, false, false)]);
        let unknown = "rfc4960".parse::<Profile>().expect_err("no such profile");
        assert_eq!(unknown.to_string(), "`rfc4960` is no profile: live, rfc9260 are");
    }
}
