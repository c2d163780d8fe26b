//! Limits what a client accepts from its hub. The hub is not trusted: its answer changes only what the user has put
//! into the tunnel.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use super::super::control::Welcome;
use super::super::machine::single;

/// Networks from which a client accepts its address by default: private use, shared, benchmarks, and unique local
/// addresses (RFC 6890).
const OWN: [&str; 6] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15", "fc00::/7"];

/// The settings that a hub's answer may change.
#[derive(Clone, Debug)]
pub struct Acceptance {
    /// Networks from which the client accepts its address. If empty, the default ones.
    pub networks: Vec<IpNet>,
    /// Whether addresses of IPv6 can be used on this machine.
    pub ipv6: bool,
    /// The networks of this machine, in which no name server of a hub can be.
    pub local: Vec<IpNet>,
}

impl Acceptance {
    /// The usable part of an answer: one address of each family, without a network around it, and name servers that
    /// lead into the tunnel.
    ///
    /// # Errors
    /// Why the answer cannot be used.
    pub fn take(&self, welcome: &Welcome) -> Result<Welcome, String> {
        let mut taken = Welcome { addresses: Vec::new(), hub: Vec::new(), dns: Vec::new() };
        for ipv6 in [false, true].into_iter().filter(|ipv6| !ipv6 || self.ipv6) {
            let of_family = |ip: &IpAddr| ip.is_ipv6() == ipv6;
            let mut offered = welcome.addresses.iter().map(IpNet::addr).filter(of_family);
            let Some(address) = offered.next() else { continue };
            if !self.permits(address) {
                return Err(format!(
                    "it gives this machine the address {address}, which is not in a private network; help: if that is \
                     meant, start the client with --accept {address}"
                ));
            }
            taken.addresses.push(single(address));
            let hub = welcome.hub.iter().copied().filter(of_family);
            taken.hub.extend(hub.filter(|hub| self.permits(*hub)).take(1));
        }
        if taken.addresses.is_empty() {
            let families =
                if self.ipv6 { "IPv4 or IPv6" } else { "IPv4, and this machine has no IPv6" };
            return Err(format!("it has no address of {families} for this machine"));
        }
        let inside = |server: &IpAddr| !self.is_refused(*server);
        taken.dns = welcome.dns.iter().copied().filter(inside).collect();
        Ok(taken)
    }

    fn permits(&self, address: IpAddr) -> bool {
        if self.networks.is_empty() {
            let usual = |text: &&str| text.parse::<IpNet>().is_ok_and(|it| it.contains(&address));
            return OWN.iter().any(usual);
        }
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// Whether packets to a name server would not enter the tunnel.
    fn is_refused(&self, server: IpAddr) -> bool {
        let never = match server {
            IpAddr::V4(ip) => ip.is_link_local() || ip == Ipv4Addr::BROADCAST,
            IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.to_ipv4_mapped().is_some(),
        };
        let anywhere = server.is_loopback() || server.is_unspecified() || server.is_multicast();
        never || anywhere || self.local.iter().any(|network| network.contains(&server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn welcome(addresses: &[&str], dns: &[&str]) -> Welcome {
        let ips = |texts: &[&str]| texts.iter().map(|it| it.parse().expect("an address")).collect();
        Welcome {
            addresses: addresses.iter().map(|it| it.parse().expect("a network")).collect(),
            hub: ips(&["10.88.0.1", "8.8.8.8"]),
            dns: ips(dns),
        }
    }

    fn usual() -> Acceptance {
        let local = vec!["192.168.1.0/24".parse().expect("a network")];
        Acceptance { networks: Vec::new(), ipv6: true, local }
    }

    #[test]
    fn a_hub_sets_one_address_of_a_family_and_no_network() {
        let all = ["10.88.0.2/24", "10.0.0.2/1", "fd88::2/8", "fd99::2/64"];
        let taken = usual().take(&welcome(&all, &[])).expect("accepted");
        let expected = ["10.88.0.2/32", "fd88::2/128"].map(|it| it.parse().expect("a network"));
        assert_eq!(taken.addresses, expected);
        assert_eq!(taken.hub, ["10.88.0.1".parse::<IpAddr>().expect("an address")]);
    }

    #[test]
    fn an_address_outside_of_what_the_user_accepts_is_refused() {
        for address in
            ["8.8.8.8/32", "169.254.169.254/16", "1.2.3.4/1", "2001:db8::1/64", "fe80::1/64"]
        {
            assert!(usual().take(&welcome(&[address], &[])).is_err(), "{address}");
        }
        let wide =
            Acceptance { networks: vec!["203.0.113.0/24".parse().expect("a network")], ..usual() };
        assert!(wide.take(&welcome(&["203.0.113.7/24"], &[])).is_ok());
        assert!(wide.take(&welcome(&["10.88.0.2/24"], &[])).is_err());
    }

    #[test]
    fn without_ipv6_only_ipv4_is_taken() {
        let without = Acceptance { ipv6: false, ..usual() };
        let taken = without.take(&welcome(&["10.88.0.2/24", "fd88::2/64"], &[])).expect("accepted");
        assert_eq!(taken.addresses.len(), 1);
        assert!(without.take(&welcome(&["fd88::2/64"], &[])).is_err());
    }

    #[test]
    fn name_servers_outside_of_the_tunnel_are_left_out() {
        let servers =
            ["9.9.9.9", "192.168.1.1", "fe80::1", "255.255.255.255", "127.0.0.53", "2620:fe::fe"];
        let taken = usual().take(&welcome(&["10.88.0.2/24"], &servers)).expect("accepted");
        let expected =
            ["9.9.9.9", "2620:fe::fe"].map(|it| it.parse::<IpAddr>().expect("an address"));
        assert_eq!(taken.dns, expected);
    }
}
