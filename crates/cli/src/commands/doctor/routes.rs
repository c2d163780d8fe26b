//! The kernel's IPv4 routes, as listed in `/proc/net/route`.

use std::net::Ipv4Addr;

/// A route of the main table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub link: String,
    pub destination: Ipv4Addr,
    pub mask: Ipv4Addr,
    pub metric: u32,
}

impl Route {
    fn covers(&self, ip: Ipv4Addr) -> bool {
        ip.to_bits() & self.mask.to_bits() == self.destination.to_bits()
    }
}

/// Reads the table.
///
/// # Errors
/// The reason if it cannot be read.
pub fn read() -> Result<Vec<Route>, String> {
    if !cfg!(target_os = "linux") {
        return Err("needs Linux".to_owned());
    }
    let text = std::fs::read_to_string("/proc/net/route");
    text.map(|text| parse(&text)).map_err(|error| format!("/proc/net/route: {error}"))
}

/// Parses the table. Lines without a usable route are skipped.
pub fn parse(text: &str) -> Vec<Route> {
    /// Flags of a route that is up, and of a rejecting route.
    const UP: u32 = 1;
    const REJECT: u32 = 0x200;
    let route = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let flags = u32::from_str_radix(words.get(3)?, 16).ok()?;
        // The addresses are printed as numbers in the machine's byte order.
        let address = |at: usize| {
            let bits = u32::from_str_radix(words.get(at)?, 16).ok()?;
            Some(Ipv4Addr::from(bits.to_ne_bytes()))
        };
        let route = Route {
            link: (*words.first()?).to_owned(),
            destination: address(1)?,
            mask: address(7)?,
            metric: words.get(6)?.parse().ok()?,
        };
        (flags & UP != 0 && flags & REJECT == 0).then_some(route)
    };
    text.lines().skip(1).filter_map(route).collect()
}

/// The link that the system chooses for `ip`: longest prefix, then lowest metric.
pub fn chosen(routes: &[Route], ip: Ipv4Addr) -> Option<&str> {
    let covering = routes.iter().filter(|route| route.covers(ip));
    let best = covering.min_by_key(|r| (std::cmp::Reverse(r.mask.to_bits()), r.metric));
    best.map(|route| route.link.as_str())
}

/// Whether a route over this link leads to `ip`.
pub fn leads(routes: &[Route], link: &str, ip: Ipv4Addr) -> bool {
    routes.iter().any(|route| route.link == link && route.covers(ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_and_then_the_least_metric_wins() {
        let hex = |ip: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(ip));
        let line = |link: &str, to: [u8; 4], flags: &str, metric: u32, mask: [u8; 4]| {
            format!(
                "{link}\t{}\t00000000\t{flags}\t0\t0\t{metric}\t{}\t0\t0\t0\n",
                hex(to),
                hex(mask)
            )
        };
        let text = "Iface\tDestination\n".to_owned()
            + &line("wwan0", [0; 4], "0003", 700, [0; 4])
            + &line("wlan0", [0; 4], "0003", 600, [0; 4])
            + &line("wwan0", [10, 1, 0, 0], "0001", 0, [255, 255, 0, 0])
            + &line("gone0", [10, 1, 2, 0], "0000", 0, [255, 255, 255, 0])
            + "nonsense\n";
        let routes = parse(&text);
        assert_eq!(routes.len(), 3, "{routes:?}");
        for (ip, link) in [([10, 1, 2, 3], "wwan0"), ([192, 0, 2, 7], "wlan0")] {
            assert_eq!(chosen(&routes, ip.into()), Some(link));
        }
        assert!(leads(&routes, "wwan0", [192, 0, 2, 7].into()));
        assert!(!leads(&routes[..2], "eth0", [192, 0, 2, 7].into()));
        assert_eq!(chosen(&[], [10, 1, 2, 3].into()), None);
    }
}
