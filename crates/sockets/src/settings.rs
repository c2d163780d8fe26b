//! Settings of the library, from environment variables. `ropewalk preload` sets them from its options.

use std::env;
use std::str::FromStr;

use ropewalk_runtime::endpoint::{Carrier, PORT, Profile, Transport};

/// What packets are encapsulated in: udp, or none (packets over IP alone).
pub const ENCAPSULATION: &str = "ROPEWALK_ENCAPSULATION";
/// UDP port at which listening sockets receive (RFC 6951).
pub const UDP_PORT: &str = "ROPEWALK_UDP_PORT";
/// UDP port of sockets that only connect; 0: any.
pub const CLIENT_UDP_PORT: &str = "ROPEWALK_CLIENT_UDP_PORT";
/// Whether peers are offered extensions of SCTP: true or false.
pub const EXTENSIONS: &str = "ROPEWALK_EXTENSIONS";
/// Whether associations follow addresses of interfaces that appear and disappear: true or false.
pub const FOLLOW_ADDRESSES: &str = "ROPEWALK_FOLLOW_ADDRESSES";
/// Whether the path MTU is probed: true or false.
pub const DISCOVER_MTU: &str = "ROPEWALK_DISCOVER_MTU";
/// UDP port of peers that this end connects to.
pub const PEER_UDP_PORT: &str = "ROPEWALK_PEER_UDP_PORT";
/// Scheduler of all associations.
pub const SCHEDULER: &str = "ROPEWALK_SCHEDULER";
/// Congestion control of all associations.
pub const CONGESTION: &str = "ROPEWALK_CONGESTION";
/// Profile of all associations.
pub const PROFILE: &str = "ROPEWALK_PROFILE";
/// Receive buffer of each association, bytes.
pub const RECEIVE_BUFFER: &str = "ROPEWALK_RECEIVE_BUFFER";
/// Names of interfaces that are not used, separated by commas.
pub const AVOID: &str = "ROPEWALK_AVOID";
/// Longest time that a program that exits waits for its associations to deliver what they hold, seconds.
pub const LINGER: &str = "ROPEWALK_LINGER_S";

/// Maximum unsent data, bytes. More data would only increase the delay.
const UNSENT_LIMIT: u64 = 1 << 20;

/// Maximum wait of a program that exits, seconds: slow links need long to empty the send buffer.
const DEFAULT_LINGER_S: u64 = 60;

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The carrier of packets. Directly over IP there are no UDP ports.
    pub carrier: Carrier,
    /// UDP port of listening sockets.
    pub udp_port: u16,
    /// UDP port of sockets that only connect; 0: any.
    pub client_udp_port: u16,
    /// UDP port of peers.
    pub peer_udp_port: u16,
    /// Interfaces that are not used.
    pub avoid: Vec<String>,
    /// Longest wait at exit, seconds.
    pub linger_s: u64,
    /// Transport options of associations.
    pub transport: Transport,
}

impl Settings {
    /// Reads the environment. Invalid values are reported on standard error, and the default applies.
    pub fn from_environment() -> Self {
        let follows = number(FOLLOW_ADDRESSES, false);
        let mut transport = Transport {
            address_reconfiguration: follows,
            follow_interfaces: follows,
            unsent_limit: Some(UNSENT_LIMIT),
            profile: number(PROFILE, Profile::Live),
            extensions: number(EXTENSIONS, true),
            discover_mtu: number(DISCOVER_MTU, true),
            receive_buffer: number(RECEIVE_BUFFER, Transport::default().receive_buffer),
            congestion: env::var(CONGESTION).ok().filter(|name| !name.is_empty()),
            ..Transport::default()
        };
        if let Ok(name) = env::var(SCHEDULER)
            && !name.is_empty()
        {
            transport.scheduler = name;
        }
        let names = env::var(AVOID).unwrap_or_default();
        Self {
            carrier: number(ENCAPSULATION, Carrier::Udp),
            udp_port: number(UDP_PORT, PORT),
            client_udp_port: number(CLIENT_UDP_PORT, 0),
            peer_udp_port: number(PEER_UDP_PORT, PORT),
            avoid: names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            linger_s: number(LINGER, DEFAULT_LINGER_S),
            transport,
        }
    }
}

fn number<T: FromStr>(name: &str, default: T) -> T {
    let Ok(text) = env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| {
        eprintln!("libropewalk: {name}={} is not usable; the default applies", text.escape_debug());
        default
    })
}
