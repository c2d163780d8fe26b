//! Options of a socket. A new association inherits those of its socket.

use std::collections::BTreeMap;

use ropewalk_base::Duration;
use ropewalk_runtime::endpoint::{
    AcceptedRequests, Association, ChunkTypes, Dscp, HmacList, Parameters, SharedKeys,
    StreamScheduler, Transport,
};

use crate::abi::control::SendInfo;
use crate::abi::number::notification;
use crate::process::current;

/// Outbound streams that Linux requests by default.
const DEFAULT_STREAMS: u16 = 10;

/// Maximum number of outbound streams, as in Linux (`SCTP_MAX_STREAM`).
pub const STREAMS_LIMIT: u16 = u16::MAX;

/// Inbound streams that are offered by default.
const DEFAULT_INBOUND_STREAMS: u16 = 1024;

/// Minimum size of a buffer in use, bytes: one message of 64 kB. Programs can set less, as in Linux, which counts
/// differently.
const LEAST_BUFFER: u64 = 1 << 16;

/// Headers of IPv4, UDP and SCTP with one DATA chunk, bytes.
const HEADERS: u32 = 20 + 8 + 12 + 16;

/// Minimum packet size that a program can set with SCTP_MAXSEG, bytes.
pub const LEAST_MTU: u32 = 576;

/// Declares [`Overrides`]: each parameter with its type and its place in [`Parameters`].
macro_rules! overrides {
    ($($(#[$about:meta])* $name:ident: $type:ty => $($place:ident).+,)+) => {
        /// Protocol parameters that the program has set. `None` selects the value of the profile.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Overrides {
            $($(#[$about])* pub $name: Option<$type>,)+
        }

        impl Overrides {
            /// Applies these changes to parameters.
            pub fn apply(&self, mut to: Parameters) -> Parameters {
                $(to.$($place).+ = self.$name.unwrap_or(to.$($place).+);)+
                to
            }

            /// Adds the changes of `newer`.
            pub fn merge(&mut self, newer: &Self) {
                $(self.$name = newer.$name.or(self.$name);)+
            }
        }
    };
}

overrides! {
    /// RTO.Initial.
    rto_initial: Duration => rto.initial,
    /// RTO.Min.
    rto_min: Duration => rto.min,
    /// RTO.Max.
    rto_max: Duration => rto.max,
    /// Association.Max.Retrans.
    association_max_retrans: u32 => association_max_retrans,
    /// Path.Max.Retrans.
    path_max_retrans: u32 => failure.path_max_retrans,
    /// Errors after which a path is potentially failed.
    potentially_failed: u32 => failure.potentially_failed,
    /// Max.Init.Retransmits.
    max_init_retransmits: u32 => max_init_retransmits,
    /// Valid.Cookie.Life.
    cookie_life: Duration => cookie_life,
    /// HB.interval.
    heartbeat_interval: Duration => heartbeat_interval,
    /// SACK.Delay.
    sack_delay: Duration => sack_delay,
    /// Packets per SACK.
    sack_every_packets: u32 => sack_every_packets,
    /// Max.Burst.
    max_burst: u32 => max_burst,
}

/// Options about messages that each association has separately. It inherits those of its socket when it begins (RFC
/// 6458, 7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MessageSettings {
    /// SCTP_DEFAULT_SEND_PARAM, SCTP_DEFAULT_SNDINFO and SCTP_DEFAULT_PRINFO. They name no association.
    pub send: SendInfo,
    /// SCTP_MAXSEG, bytes. 0 for no limit.
    pub maxseg: u32,
    /// SCTP_CONTEXT.
    pub context: u32,
    /// Types of notifications that the program has subscribed to. The first one stands for `sctp_data_io_event`.
    pub events: [bool; notification::COUNT as usize],
}

impl MessageSettings {
    /// Whether the program has subscribed to this type of notification.
    pub fn wants(&self, kind: u16) -> bool {
        self.events.get(usize::from(kind)) == Some(&true)
    }
}

/// Options of a socket.
#[derive(Clone, PartialEq, Debug)]
pub struct SocketSettings {
    /// SCTP_INITMSG: outbound streams, inbound streams, attempts, maximum timeout (ms).
    pub init: [u16; 4],
    /// SCTP_NODELAY. It has no effect because the engine never delays.
    pub nodelay: i32,
    /// SCTP_DISABLE_FRAGMENTS.
    pub disable_fragments: bool,
    /// SCTP_I_WANT_MAPPED_V4_ADDR.
    pub mapped: bool,
    /// Options that associations inherit.
    pub messages: MessageSettings,
    /// SCTP_PEER_ADDR_PARAMS without path MTU discovery: the path MTU, bytes.
    pub path_mtu: Option<u32>,
    /// SCTP_FRAGMENT_INTERLEAVE.
    pub fragment_interleave: i32,
    /// SCTP_PARTIAL_DELIVERY_POINT, bytes.
    pub partial_delivery_point: u32,
    /// SCTP_RECVRCVINFO.
    pub receive_info: bool,
    /// SCTP_RECVNXTINFO.
    pub next_info: bool,
    /// SO_LINGER, seconds. `None` if off.
    pub linger: Option<u64>,
    /// SO_SNDBUF, bytes, as the program sees it. `None` for the default.
    pub send_buffer: Option<u64>,
    /// SO_RCVBUF, bytes, as the program sees it. `None` for the default.
    pub receive_buffer: Option<u64>,
    /// SCTP_REMOTE_UDP_ENCAPS_PORT. `None` for the port of the environment.
    pub peer_udp_port: Option<u16>,
    /// IPV6_V6ONLY.
    pub v6_only: bool,
    /// SO_REUSEADDR, SO_REUSEPORT and SCTP_REUSE_PORT.
    pub reuse: [i32; 3],
    /// SO_KEEPALIVE, only stored for the program: HEARTBEATs are always sent.
    pub keepalive: i32,
    /// Whether HEARTBEATs are sent.
    pub heartbeats: bool,
    /// SCTP_ECN_SUPPORTED.
    pub ecn: bool,
    /// IP_TOS, IPV6_TCLASS, and SCTP_PEER_ADDR_PARAMS with a DSCP.
    pub dscp: Dscp,
    /// SCTP_INTERLEAVING_SUPPORTED.
    pub interleaving: bool,
    /// SCTP_AUTH_SUPPORTED.
    pub authentication: bool,
    /// SCTP_AUTH_CHUNK: types of chunks that peers must authenticate.
    pub authenticated_chunks: ChunkTypes,
    /// SCTP_HMAC_IDENT.
    pub hmacs: HmacList,
    /// SCTP_ADAPTATION_LAYER. `None` sends no indication to peers.
    pub adaptation: Option<u32>,
    /// SCTP_AUTOCLOSE, seconds. 0 disables the shutdown of idle associations.
    pub autoclose_s: u32,
    /// SCTP_AUTH_KEY, SCTP_AUTH_ACTIVE_KEY and SCTP_AUTH_DELETE_KEY.
    pub shared_keys: SharedKeys,
    /// SCTP_ASCONF_SUPPORTED.
    pub address_reconfiguration: bool,
    /// SCTP_AUTO_ASCONF. `None` leaves it to the environment.
    pub follow_interfaces: Option<bool>,
    /// SCTP_NRSACK_SUPPORTED.
    pub nr_sack: bool,
    /// SCTP_RECONFIG_SUPPORTED.
    pub reconfiguration: bool,
    /// SCTP_ENABLE_STREAM_RESET.
    pub accepted_requests: AcceptedRequests,
    /// SCTP_STREAM_SCHEDULER.
    pub stream_scheduler: StreamScheduler,
    /// SCTP_STREAM_SCHEDULER_VALUE: the priority or weight of each stream.
    pub stream_values: BTreeMap<u16, u16>,
    /// Protocol parameters.
    pub overrides: Overrides,
}

impl Default for SocketSettings {
    fn default() -> Self {
        Self {
            init: [DEFAULT_STREAMS, DEFAULT_INBOUND_STREAMS, 0, 0],
            nodelay: 0,
            disable_fragments: false,
            mapped: true,
            messages: MessageSettings::default(),
            path_mtu: None,
            fragment_interleave: 0,
            partial_delivery_point: 0,
            receive_info: false,
            next_info: false,
            linger: None,
            send_buffer: None,
            receive_buffer: None,
            peer_udp_port: None,
            v6_only: false,
            reuse: [0; 3],
            keepalive: 0,
            heartbeats: true,
            ecn: true,
            dscp: Dscp::DEFAULT,
            interleaving: false,
            authentication: false,
            authenticated_chunks: ChunkTypes::NONE,
            hmacs: HmacList::default(),
            adaptation: None,
            autoclose_s: 0,
            shared_keys: SharedKeys::default(),
            address_reconfiguration: false,
            follow_interfaces: None,
            nr_sack: false,
            reconfiguration: true,
            accepted_requests: AcceptedRequests::default(),
            stream_scheduler: StreamScheduler::FirstCome,
            stream_values: BTreeMap::new(),
            overrides: Overrides::default(),
        }
    }
}

impl SocketSettings {
    /// Transport options of the socket's associations.
    pub fn transport(&self) -> Transport {
        let mut transport = current().settings().transport.clone();
        transport.streams = self.init[0].max(1);
        transport.reports_abandoned = true;
        transport.inbound_streams = Some(self.init[1]);
        if let Some(bytes) = self.receive_buffer {
            transport.receive_buffer = bytes.max(LEAST_BUFFER);
        }
        if let Some(bytes) = self.send_buffer {
            transport.send_buffer = Some(bytes.max(LEAST_BUFFER));
        }
        if let Some(bytes) = self.path_mtu {
            (transport.mtu, transport.discover_mtu) = (bytes, false);
        }
        if self.messages.maxseg > 0 {
            transport.mtu = transport.mtu.min((self.messages.maxseg + HEADERS).max(LEAST_MTU));
        }
        transport.ecn &= self.ecn;
        transport.dscp = self.dscp;
        transport.interleaving = self.interleaving;
        transport.nr_sack = self.nr_sack;
        transport.reconfiguration = self.reconfiguration;
        transport.address_reconfiguration = self.reconfigures_addresses();
        transport.follow_interfaces = self.follows_interfaces();
        transport.authentication |= self.authentication;
        transport.authenticated_chunks = self.authenticated_chunks;
        transport.hmacs = self.hmacs;
        transport.adaptation = self.adaptation;
        transport.shared_keys.clone_from(&self.shared_keys);
        transport.accepted_requests = self.accepted_requests;
        transport.stream_limit = u16::MAX;
        transport.stream_scheduler = self.stream_scheduler;
        transport
    }

    /// Whether associations follow the addresses of interfaces.
    pub fn follows_interfaces(&self) -> bool {
        let known = self.follow_interfaces;
        known.unwrap_or_else(|| current().settings().transport.follow_interfaces)
    }

    /// Whether associations offer to add and remove addresses, which is required for following interfaces.
    pub fn reconfigures_addresses(&self) -> bool {
        let everywhere = || current().settings().transport.address_reconfiguration;
        self.address_reconfiguration || self.follows_interfaces() || everywhere()
    }

    /// Applies the socket's protocol parameters and stream values to an association. The engine may refuse values
    /// that contradict the profile; the profile's values then remain. Other invalid values were refused when the
    /// program set them.
    pub fn configure(&self, association: &Association) {
        if self.overrides != Overrides::default()
            && let Some(parameters) = association.parameters()
        {
            let _ = association.set_parameters(self.overrides.apply(parameters));
        }
        association.set_follow_interfaces(self.follows_interfaces());
        association.set_accepted_requests(self.accepted_requests);
        association.set_stream_scheduler(self.stream_scheduler);
        for (stream, value) in &self.stream_values {
            association.set_stream_value(*stream, *value);
        }
    }

    /// Whether the program has subscribed to this type of notification.
    pub fn wants(&self, kind: u16) -> bool {
        self.messages.wants(kind)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::options::default_parameters;

    fn overrides() -> impl Strategy<Value = Overrides> {
        let span = || proptest::option::of((1_u64..100).prop_map(Duration::from_millis));
        let number = || proptest::option::of(1_u32..100);
        let spans = (span(), span(), span(), span(), span(), span());
        let numbers = (number(), number(), number(), number(), number(), number());
        (spans, numbers).prop_map(|(spans, numbers)| Overrides {
            rto_initial: spans.0,
            rto_min: spans.1,
            rto_max: spans.2,
            cookie_life: spans.3,
            heartbeat_interval: spans.4,
            sack_delay: spans.5,
            association_max_retrans: numbers.0,
            path_max_retrans: numbers.1,
            potentially_failed: numbers.2,
            max_init_retransmits: numbers.3,
            sack_every_packets: numbers.4,
            max_burst: numbers.5,
        })
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "makes system calls that Miri does not know")]
        fn merged_changes_are_changes_one_after_the_other(
            older in overrides(),
            newer in overrides(),
        ) {
            let parameters = default_parameters();
            let mut merged = older;
            merged.merge(&newer);
            prop_assert_eq!(merged.apply(parameters), newer.apply(older.apply(parameters)));
            prop_assert_eq!(Overrides::default().apply(parameters), parameters);
        }
    }
}
