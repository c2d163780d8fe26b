//! Classes of inner packets: which go first, and which may wait.

use std::ops::RangeInclusive;
use std::str::FromStr;

use ipnet::IpNet;
use ropewalk_tunnel::{Class, Order};

use super::packet::{Headers, Transport};

/// The name of a class in rules and metrics.
pub const fn class_name(class: Class) -> &'static str {
    match class {
        Class::Interactive => "interactive",
        Class::Bulk => "bulk",
        Class::Background => "background",
    }
}

/// Code points: expedited forwarding (RFC 3246), voice-admit (RFC 5865), AF41 to AF43 (RFC 2597), class selectors 5
/// to 7 (RFC 4594), and lower effort (RFC 8622; before it, class selector 1).
const INTERACTIVE_DSCP: [u8; 8] = [46, 44, 34, 36, 38, 40, 48, 56];
const BACKGROUND_DSCP: [u8; 2] = [1, 8];
/// Ports of DNS, including DNS over TLS and QUIC (RFC 7858, RFC 9250), and of NTP.
const NAMES_AND_TIME: [u16; 3] = [53, 853, 123];
/// The port of QUIC and the bit of its long headers, which handshakes have (RFC 9000, 17.2).
const QUIC_PORT: u16 = 443;
const QUIC_LONG_HEADER: u8 = 0x80;

/// UDP ports of protocols that, or whose inner connections, treat a late packet as lost: QUIC, and tunnels (L2TP, IKE
/// and ESP in UDP, OpenVPN, VXLAN, WireGuard).
const IN_ORDER: [u16; 8] = [80, QUIC_PORT, 500, 1194, 1701, 4500, 4789, 51_820];

/// A rule of the configuration: assigns a class to packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRule {
    class: Class,
    protocol: Option<u8>,
    ports: Option<RangeInclusive<u16>>,
    dscp: Option<u8>,
    network: Option<IpNet>,
}

impl ClassRule {
    fn matches(&self, packet: &Headers) -> bool {
        let Headers { source, destination, protocol, ports, dscp, .. } = packet;
        let on_port =
            |range: &RangeInclusive<u16>| range.contains(&ports.0) || range.contains(&ports.1);
        let inside = |network: &IpNet| network.contains(source) || network.contains(destination);
        self.protocol.is_none_or(|wanted| wanted == *protocol)
            && self.ports.as_ref().is_none_or(on_port)
            && self.dscp.is_none_or(|wanted| wanted == *dscp)
            && self.network.as_ref().is_none_or(inside)
    }
}

/// A text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}; a rule is conditions and a class, such as `udp 5060-5080 interactive`, `dscp 8 background` or \
     `192.0.2.0/24 tcp 873 bulk`"
)]
pub struct ClassRuleError(String);

impl FromStr for ClassRule {
    type Err = ClassRuleError;

    fn from_str(text: &str) -> Result<Self, ClassRuleError> {
        let wrong = |what: String| Err(ClassRuleError(what));
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let class =
            words.pop().and_then(|word| Class::ALL.into_iter().find(|it| class_name(*it) == word));
        let Some(class) = class else {
            return wrong(format!("`{text}` does not end with interactive, bulk or background"));
        };
        let mut rule = Self { class, protocol: None, ports: None, dscp: None, network: None };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word {
                "tcp" => rule.protocol = Some(etherparse::ip_number::TCP.0),
                "udp" => rule.protocol = Some(etherparse::ip_number::UDP.0),
                "dscp" => match words.next().and_then(|value| value.parse().ok()) {
                    Some(value @ 0..=63) => rule.dscp = Some(value),
                    _ => return wrong("`dscp` needs a number from 0 to 63".to_owned()),
                },
                _ => match (ports(word), word.parse::<IpNet>()) {
                    (Some(range), _) => rule.ports = Some(range),
                    (None, Ok(network)) => rule.network = Some(network),
                    (None, Err(_)) => return wrong(format!("`{word}` is no condition")),
                },
            }
        }
        let empty = Self { class, protocol: None, ports: None, dscp: None, network: None };
        if rule == empty {
            return wrong(format!("`{text}` has no condition"));
        }
        Ok(rule)
    }
}

fn ports(word: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let range = first.parse().ok()?..=last.parse().ok()?;
    (!range.is_empty()).then_some(range)
}

/// The class of a packet: that of the first rule that matches, or by the packet's own marks if none does.
pub fn classify(packet: &Headers, rules: &[ClassRule]) -> Class {
    if let Some(rule) = rules.iter().find(|rule| rule.matches(packet)) {
        return rule.class;
    }
    if BACKGROUND_DSCP.contains(&packet.dscp) {
        return Class::Background;
    }
    let (from, to) = packet.ports;
    let on = |port: u16| from == port || to == port;
    let is_urgent = match packet.transport {
        Transport::Icmp => true,
        Transport::Tcp { is_control, .. } => is_control || NAMES_AND_TIME.into_iter().any(on),
        Transport::Udp { first } => {
            let handshake = first.is_some_and(|byte| byte & QUIC_LONG_HEADER != 0);
            NAMES_AND_TIME.into_iter().any(on) || on(QUIC_PORT) && handshake
        }
        Transport::Other => false,
    };
    if is_urgent || INTERACTIVE_DSCP.contains(&packet.dscp) {
        Class::Interactive
    } else {
        Class::Bulk
    }
}

/// Which order the packets of a flow need.
pub fn order_of(packet: &Headers) -> Order {
    let (from, to) = packet.ports;
    match packet.transport {
        Transport::Tcp { is_control, has_data } if is_control || has_data => Order::Restored,
        // An acknowledgement that waits for a lost one would stall its connection.
        Transport::Tcp { .. } => Order::AsArrived,
        Transport::Udp { .. } if ![from, to].iter().any(|port| IN_ORDER.contains(port)) => {
            Order::Irrelevant
        }
        Transport::Udp { .. } | Transport::Icmp | Transport::Other => Order::AsArrived,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn packet(transport: Transport, ports: (u16, u16), dscp: u8) -> Headers {
        let protocol = match transport {
            Transport::Tcp { .. } => 6,
            Transport::Udp { .. } => 17,
            _ => 1,
        };
        Headers {
            source: IpAddr::from([10, 0, 0, 2]),
            destination: IpAddr::from([192, 0, 2, 1]),
            protocol,
            ports,
            dscp,
            ecn: 0,
            may_fragment: false,
            transport,
        }
    }

    const DATA: Transport = Transport::Tcp { is_control: false, has_data: true };
    const SYN: Transport = Transport::Tcp { is_control: true, has_data: false };
    const UDP: Transport = Transport::Udp { first: Some(0x40) };
    const QUIC_INITIAL: Transport = Transport::Udp { first: Some(0xC3) };

    #[test]
    fn a_packet_is_classified_by_its_marks() {
        for (transport, ports, dscp, class) in [
            (DATA, (40_000, 443), 0, Class::Bulk),
            (SYN, (40_000, 443), 0, Class::Interactive),
            (DATA, (40_000, 443), 46, Class::Interactive),
            (DATA, (40_000, 443), 8, Class::Background),
            (UDP, (40_000, 53), 0, Class::Interactive),
            (UDP, (40_000, 443), 0, Class::Bulk),
            (QUIC_INITIAL, (40_000, 443), 0, Class::Interactive),
            (QUIC_INITIAL, (40_000, 4433), 0, Class::Bulk),
            (Transport::Icmp, (0, 0), 0, Class::Interactive),
            (Transport::Other, (0, 0), 0, Class::Bulk),
        ] {
            assert_eq!(
                classify(&packet(transport, ports, dscp), &[]),
                class,
                "{transport:?} {ports:?}"
            );
        }
    }

    #[test]
    fn the_order_matters_to_tcp_and_to_what_takes_late_packets_for_lost_ones() {
        const ACK: Transport = Transport::Tcp { is_control: false, has_data: false };
        for (transport, ports, order) in [
            (DATA, (40_000, 443), Order::Restored),
            (SYN, (40_000, 443), Order::Restored),
            (ACK, (40_000, 443), Order::AsArrived),
            (UDP, (40_000, 443), Order::AsArrived),
            (UDP, (51_820, 40_000), Order::AsArrived),
            (UDP, (40_000, 40_002), Order::Irrelevant),
            (Transport::Icmp, (0, 0), Order::AsArrived),
            (Transport::Other, (0, 0), Order::AsArrived),
        ] {
            assert_eq!(order_of(&packet(transport, ports, 0)), order, "{transport:?} {ports:?}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = ["udp 5060-5080 interactive", "192.0.2.0/24 tcp 873 background", "dscp 8 bulk"];
        let rules: Vec<ClassRule> = rules.iter().map(|text| text.parse().expect(text)).collect();
        for (transport, ports, dscp, class) in [
            (UDP, (5070, 9), 8, Class::Interactive),
            (DATA, (5070, 9), 8, Class::Bulk),
            (SYN, (40_000, 873), 0, Class::Background),
        ] {
            assert_eq!(classify(&packet(transport, ports, dscp), &rules), class, "{ports:?}");
        }
    }

    #[test]
    fn a_text_that_is_no_rule_is_refused_with_an_example() {
        for text in
            ["", "interactive", "udp 99999 bulk", "udp 9-1 bulk", "dscp 64 bulk", "udp 53 fast"]
        {
            let error = text.parse::<ClassRule>().expect_err(text).to_string();
            assert!(error.contains("udp 5060-5080 interactive"), "{error}");
        }
    }
}
