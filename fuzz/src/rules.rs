//! Rules for destinations, each made together with its text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Input;

/// Where a rule leads.
#[derive(Debug)]
pub struct Rule {
    place: Place,
    first: u16,
    last: u16,
}

#[derive(Debug)]
enum Place {
    /// From the first to the last address of it.
    Network(IpAddr, IpAddr),
    Name(String),
    Below(String),
    Anywhere,
}

impl Rule {
    /// Whether it lets a connection through to this address and port, for which this name was asked.
    pub fn covers(&self, name: Option<&str>, address: IpAddr, port: u16) -> bool {
        let place = match &self.place {
            Place::Network(first, last) => {
                first.is_ipv4() == address.is_ipv4() && (first..=last).contains(&&address)
            }
            Place::Name(own) => name == Some(own),
            Place::Below(end) => name
                .and_then(|name| name.strip_suffix(end.as_str()))
                .is_some_and(|head| head.len() > 1 && head.ends_with('.')),
            Place::Anywhere => true,
        };
        place && self.first <= port && port <= self.last
    }

    /// Destinations at its edges, inside and outside.
    pub fn probes(&self) -> Vec<(Option<String>, IpAddr, u16)> {
        let elsewhere = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));
        let hosts = match &self.place {
            Place::Network(first, last) => {
                [before(*first), *first, *last, after(*last)].map(|ip| (None, ip)).to_vec()
            }
            Place::Name(name) | Place::Below(name) => {
                let up = name.split_once('.').map_or("", |(_, up)| up).to_owned();
                let near = [name.clone(), format!("x.{name}"), format!("x{name}"), up];
                near.map(|name| (Some(name), elsewhere)).to_vec()
            }
            Place::Anywhere => vec![(None, elsewhere), (Some("a.example".to_owned()), elsewhere)],
        };
        let edges = [self.first - 1, self.first, self.last, self.last.wrapping_add(1)];
        let ports: Vec<u16> = edges.into_iter().filter(|port| *port > 0).collect();
        let all = hosts.into_iter().flat_map(|(name, ip)| {
            ports.iter().map(move |port| (name.clone(), ip, *port)).collect::<Vec<_>>()
        });
        all.collect()
    }
}

fn before(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits().wrapping_sub(1)).into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits().wrapping_sub(1)).into(),
    }
}

fn after(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits().wrapping_add(1)).into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits().wrapping_add(1)).into(),
    }
}

/// A rule as a person writes it, and where it leads. None: it is none.
pub fn rule(input: &mut Input<'_>) -> (String, Option<Rule>) {
    let what = input.byte();
    let (text, place) = match what & 7 {
        0 => ("*".to_owned(), Some(Place::Anywhere)),
        1 => name(input, "*."),
        2 | 3 => name(input, ""),
        4 | 5 => v4(input),
        _ => v6(input, what),
    };
    // Behind an IPv6 address without brackets, a port would be a part of the address.
    let may_have_port = !text.contains("::") || text.starts_with('[');
    let (ports, range) = ports(input, if may_have_port { what >> 5 } else { 0 });
    let good = place.zip(range);
    (text + &ports, good.map(|(place, (first, last))| Rule { place, first, last }))
}

/// The text behind a place, with the first and the last port.
fn ports(input: &mut Input<'_>, what: u8) -> (String, Option<(u16, u16)>) {
    let (first, last) = (input.number(), input.number());
    let valid = first > 0 && first <= last;
    match what {
        0 | 1 => (String::new(), Some((1, u16::MAX))),
        2 => (format!(":{first}"), (first > 0).then_some((first, first))),
        3 => (format!(":+{first}"), None),
        4 => (format!(":{}", 65_536 + u32::from(first)), None),
        5 => (format!(":{first}-"), None),
        _ => (format!(":{first}-{last}"), valid.then_some((first, last))),
    }
}

fn name(input: &mut Input<'_>, before: &str) -> (String, Option<Place>) {
    let names =
        ["wiki.example", "x", "my_host.Example", "a-b.c.d", "", "a..b", ".a", "a b", "ä.example"];
    let what = input.byte();
    let place = usize::from(what) % names.len();
    let mut text = names[place].to_owned();
    let mut good = place < 4;
    match what >> 6 {
        1 if good => text.push('.'),
        2 => text = text.to_ascii_uppercase(),
        3 if good => {
            let long = "y".repeat(60 + usize::from(what & 7));
            good = long.len() <= 63;
            text = format!("{long}.{text}");
        }
        _ => {}
    }
    let own = text.strip_suffix('.').unwrap_or(&text).to_ascii_lowercase();
    let kind = if before.is_empty() { Place::Name } else { Place::Below };
    (format!("{before}{text}"), good.then(|| kind(own)))
}

fn v4(input: &mut Input<'_>) -> (String, Option<Place>) {
    let (number, what) = (input.number(), input.byte());
    let ip = Ipv4Addr::from_bits(0x0a00_0000 | u32::from(number) << 8 | u32::from(what));
    let bits = u32::from(what) % 40;
    if what & 128 == 0 {
        return (ip.to_string(), Some(Place::Network(ip.into(), ip.into())));
    }
    let rest = u32::MAX.checked_shr(bits).unwrap_or(0);
    let [first, last] = [ip.to_bits() & !rest, ip.to_bits() | rest].map(Ipv4Addr::from_bits);
    let place = (bits <= 32).then_some(Place::Network(first.into(), last.into()));
    (format!("{ip}/{bits}"), place)
}

/// Of the documentation prefix: an address there contains no other one.
fn v6(input: &mut Input<'_>, style: u8) -> (String, Option<Place>) {
    let (high, low, what) = (input.number(), input.number(), input.byte());
    let ip = Ipv6Addr::new(0x2001, 0xdb8, high, 0, 0, 0, low, 1);
    let host = if style & 8 == 0 { format!("[{ip}]") } else { ip.to_string() };
    let bits = 32 + u32::from(what) % 100;
    if style & 16 == 0 {
        return (host, Some(Place::Network(ip.into(), ip.into())));
    }
    let rest = u128::MAX.checked_shr(bits).unwrap_or(0);
    let [first, last] = [ip.to_bits() & !rest, ip.to_bits() | rest].map(Ipv6Addr::from_bits);
    let place = (bits <= 128).then_some(Place::Network(first.into(), last.into()));
    (format!("{host}/{bits}"), place)
}
