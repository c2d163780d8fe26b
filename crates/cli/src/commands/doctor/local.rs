//! Checks of this machine: from facts to verdicts.

use std::net::{IpAddr, Ipv4Addr};

use ropewalk_runtime::endpoint::SocketGrants;

use super::facts::{Fact, Facts, KeyFact, Link};
use super::routes::{self, Route};
use super::verdict::Check;
use crate::printer::{size, time};

/// Maximum step of the monotonic clock that is sufficient for pacing, nanoseconds.
const COARSEST_STEP_NS: u64 = 1_000_000;
/// Minimum MTU of an IPv6 link (RFC 8200, 5). Packets of the base size must fit.
const LEAST_MTU: u32 = 1280;
/// An address of no network (RFC 5737): the route to it is the default route.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// All checks of this machine. `remotes` are the peer's addresses, if one is given.
pub fn checks(facts: &Facts, remotes: &[IpAddr]) -> Vec<Check> {
    let own = format!("ropewalk {}", env!("CARGO_PKG_VERSION"));
    let mut checks = vec![Check::ok(
        "version",
        match &facts.kernel {
            Ok(kernel) => format!("{own}, Linux {kernel}"),
            Err(_) => own,
        },
    )];
    checks.push(key(&facts.key));
    checks.extend(
        facts.settings.iter().map(|(path, mode)| settings(&path.display().to_string(), mode)),
    );
    checks.extend(
        facts
            .listen
            .iter()
            .map(|(address, free)| port(&address.to_string(), free, facts.listen_given)),
    );
    checks.extend(links(&facts.links));
    checks.extend(facts.links.iter().flat_map(|link| {
        let bound = bind(&link.bound).on(&link.name);
        [bound, route(link, &facts.routes, remotes).on(&link.name)]
    }));
    checks.push(conflicts(&facts.links, &facts.routes, remotes));
    checks.push(buffers(&facts.socket));
    checks.push(offload(&facts.socket));
    checks.push(clock(facts.clock_step_ns));
    checks.push(date(facts.wrong_date.as_deref(), &facts.synchronised));
    checks.push(tun(&facts.tun));
    checks.extend(facts.killed_tunnels.iter().map(|(name, changes)| killed_tunnel(name, *changes)));
    checks
}

fn key(fact: &KeyFact) -> Check {
    match fact {
        KeyFact::Missing(path) => Check::ok(
            "key",
            format!("none yet; the first command that needs it creates {}", path.display()),
        ),
        KeyFact::Valid { path, public } => {
            Check::ok("key", format!("{}, public key {public}", path.display()))
        }
        KeyFact::Unusable(error, advice) => Check::failure("key", error, advice),
        KeyFact::NoDirectory => Check::warning(
            "key",
            "no directory for your key: HOME is not set",
            "name a key with --key FILE; `ropewalk keygen FILE` creates one",
        ),
    }
}

fn settings(path: &str, mode: &Fact<u32>) -> Check {
    match mode {
        // A user who may write the directory may replace the key. The sticky bit prevents that, as
        // in /tmp.
        Ok(mode) if mode & 0o022 != 0 && mode & 0o1000 == 0 => {
            let found = format!("others may replace the key: the mode of {path} is {mode:04o}");
            let advice = format!("chmod go-w {path}");
            // Some systems give each user a separate group with write permission.
            match mode & 0o002 {
                0 => Check::warning("key directory", found, advice),
                _ => Check::failure("key directory", found, advice),
            }
        }
        Ok(mode) => Check::ok("key directory", format!("{path} has mode {mode:04o}")),
        Err(reason) => Check::not_checked("key directory", reason),
    }
}

fn port(address: &str, free: &Fact<()>, given: bool) -> Check {
    let Err(error) = free else { return Check::ok("UDP port", format!("{address} is free")) };
    let found = format!("{address} cannot be bound: {error}");
    let advice = "if another program has this port, servers of this machine need another one: --listen ADDR:PORT";
    if given {
        Check::failure("UDP port", found, advice)
    } else {
        Check::warning("UDP port", found, advice)
    }
}

fn links(links: &[Link]) -> Vec<Check> {
    if links.is_empty() {
        let advice = "bring an interface up: `ip -brief address` lists all";
        return vec![Check::warning("links", "no link is up and has an address", advice)];
    }
    let one = |link: &Link| {
        let addresses: Vec<_> =
            link.addresses.iter().map(|(ip, bits)| format!("{ip}/{bits}")).collect();
        let addresses = addresses.join(", ");
        match link.mtu {
            Ok(mtu) if mtu < LEAST_MTU => Check::warning(
                "link",
                format!("{addresses}, MTU {mtu} B"),
                format!("sealed packets need {LEAST_MTU} B: `ip link set {} mtu 1500`", link.name),
            ),
            Ok(mtu) => Check::ok("link", format!("{addresses}, MTU {mtu} B")),
            Err(_) => Check::ok("link", addresses),
        }
        .on(&link.name)
    };
    links.iter().map(one).collect()
}

fn bind(bound: &Fact<SocketGrants>) -> Check {
    match bound {
        Ok(_) => Check::ok("bind to link", "permitted"),
        Err(error) if cfg!(target_os = "linux") => Check::warning(
            "bind to link",
            format!("refused: {error}"),
            "Linux 5.7 and later permit it to everybody; before, it needs CAP_NET_RAW. Without it, links are \
             used by their addresses, and routes decide where packets leave",
        ),
        Err(error) => Check::not_checked("bind to link", error),
    }
}

/// The IPv4 addresses that routes must lead to.
fn targets(remotes: &[IpAddr]) -> Vec<Ipv4Addr> {
    let four = |ip: &IpAddr| match ip.to_canonical() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    };
    if remotes.is_empty() { vec![ELSEWHERE] } else { remotes.iter().filter_map(four).collect() }
}

fn route(link: &Link, table: &Fact<Vec<Route>>, remotes: &[IpAddr]) -> Check {
    let table = match table {
        Ok(table) => table,
        Err(reason) => return Check::not_checked("route", reason),
    };
    let targets = targets(remotes);
    if targets.is_empty() || link.addresses.iter().all(|(ip, _)| ip.is_ipv6()) {
        return Check::not_checked("route", "only routes of IPv4 are checked");
    }
    let goal = if remotes.is_empty() { "other networks" } else { "the peer" };
    if targets.iter().any(|ip| routes::leads(table, &link.name, *ip)) {
        return Check::ok("route", format!("leads to {goal}"));
    }
    Check::warning(
        "route",
        format!("no route of the main table leads to {goal}"),
        format!(
            "`ip route add default via GATEWAY dev {} metric 1000`, unless a policy rule has such a route",
            link.name
        ),
    )
}

fn conflicts(links: &[Link], table: &Fact<Vec<Route>>, remotes: &[IpAddr]) -> Check {
    const NAME: &str = "conflicting routes";
    if let Some((one, other)) = sharing(links) {
        return Check::warning(
            NAME,
            format!("{} and {} are in the same network", one.name, other.name),
            "replies may use the other link: give the links different networks, or use one of them",
        );
    }
    let table = match table {
        Ok(table) => table,
        Err(reason) => return Check::not_checked(NAME, reason),
    };
    for ip in targets(remotes) {
        let Some(best) = routes::chosen(table, ip) else { continue };
        let has_ipv4 = |link: &&Link| link.addresses.iter().any(|(ip, _)| ip.is_ipv4());
        for link in links.iter().filter(has_ipv4).filter(|link| link.name != best) {
            let name = &link.name;
            if link.bound.is_err() {
                return Check::warning(
                    NAME,
                    format!("packets from the address of {name} leave by {best}"),
                    format!(
                        "permit binding to a link, or add a policy rule for the address of {name}"
                    ),
                );
            }
            if link.strict_filter == Ok(true) {
                return Check::warning(
                    NAME,
                    format!(
                        "{name} drops what it receives, because the route back is {best} (rp_filter is 1)"
                    ),
                    format!(
                        "`sysctl -w net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.{name}.rp_filter=2`"
                    ),
                );
            }
        }
    }
    Check::ok(NAME, "none")
}

/// Two links with an address of the same network.
fn sharing(links: &[Link]) -> Option<(&Link, &Link)> {
    let network = |(ip, bits): (IpAddr, u8)| match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            (IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask)), bits)
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            (IpAddr::V6((ip.to_bits() & mask).into()), bits)
        }
    };
    let networks = |link: &Link| link.addresses.iter().copied().map(network).collect::<Vec<_>>();
    links.iter().enumerate().find_map(|(i, one)| {
        let own = networks(one);
        let shares = |other: &&Link| networks(other).iter().any(|network| own.contains(network));
        links[i + 1..].iter().find(shares).map(|other| (one, other))
    })
}

fn buffers(socket: &Fact<SocketGrants>) -> Check {
    const NAME: &str = "socket buffers";
    let grants = match socket {
        Ok(grants) => grants,
        Err(error) => {
            let advice = "nothing can be sent without a UDP socket: look for a sandbox or a limit on open files";
            return Check::failure(NAME, format!("no UDP socket: {error}"), advice);
        }
    };
    let shown = |bytes: usize| size(bytes as f64);
    let found =
        format!("receive {}, send {}", shown(grants.receive_buffer), shown(grants.send_buffer));
    let wanted = grants.requested_buffer;
    let short = [("rmem_max", grants.receive_buffer), ("wmem_max", grants.send_buffer)];
    let short: Vec<_> = short.iter().filter(|(_, got)| *got < wanted).collect();
    if short.is_empty() {
        return Check::ok(NAME, found);
    }
    let keys: Vec<_> = short.iter().map(|(key, _)| format!("net.core.{key}={wanted}")).collect();
    let advice = match cfg!(target_os = "linux") {
        true => format!("bursts may be lost; `sysctl -w {}`", keys.join(" ")),
        false => "bursts may be lost; raise the system's limit on socket buffers".to_owned(),
    };
    Check::warning(NAME, format!("{found}; requested {} each", shown(wanted)), advice)
}

fn offload(socket: &Fact<SocketGrants>) -> Check {
    const NAME: &str = "UDP offload";
    let Ok(grants) = socket else { return Check::not_checked(NAME, "no UDP socket") };
    let (send, receive) = (grants.send_segments, grants.receive_segments);
    let found = format!("up to {send} packets per call to send (GSO), {receive} to receive (GRO)");
    if send > 1 && receive > 1 {
        return Check::ok(NAME, found);
    }
    if !cfg!(any(target_os = "linux", windows)) {
        return Check::not_checked(NAME, format!("{found}: this system is used without them"));
    }
    let advice = "each packet costs a system call; Linux has GSO since 4.18 and GRO since 5.0";
    Check::warning(NAME, found, advice)
}

fn clock(step_ns: Option<u64>) -> Check {
    const NAME: &str = "clock";
    let advice = "packets cannot be paced: on a virtual machine, choose another clock source";
    match step_ns {
        None => {
            Check::warning(NAME, "the monotonic clock does not advance between readings", advice)
        }
        Some(step) => {
            let found =
                format!("monotonic, readings differ by {} or more", time(step as f64 * 1e-9));
            if step > COARSEST_STEP_NS {
                Check::warning(NAME, found, advice)
            } else {
                Check::ok(NAME, found)
            }
        }
    }
}

fn date(wrong: Option<&str>, synchronised: &Fact<bool>) -> Check {
    const NAME: &str = "time of day";
    if let Some(wrong) = wrong {
        let advice = "peers refuse a key whose clock was set back: `timedatectl set-ntp true`, or `date --set`";
        return Check::failure(NAME, wrong, advice);
    }
    match synchronised {
        Ok(true) => Check::ok(NAME, "synchronised with a time server"),
        Ok(false) => Check::warning(
            NAME,
            "not synchronised with a time server",
            "peers refuse handshakes that are older than the last one, and entries of peers.toml expire by \
             date: `timedatectl set-ntp true`",
        ),
        Err(reason) => Check::not_checked(NAME, reason),
    }
}

fn tun(fact: &Fact<()>) -> Check {
    const NAME: &str = "TUN device";
    match fact {
        Ok(()) => Check::ok(NAME, "/dev/net/tun can be opened"),
        Err(reason) if !cfg!(target_os = "linux") => Check::not_checked(NAME, reason),
        Err(error) => Check::warning(
            NAME,
            format!("/dev/net/tun cannot be opened: {error}"),
            "`ropewalk tunnel` and `ropewalk emulate` need it: run them as root, after `modprobe tun`",
        ),
    }
}

fn killed_tunnel(name: &str, changes: usize) -> Check {
    Check::warning(
        "killed tunnel",
        format!(
            "{changes} changes of the tunnel {name} are left, such as name servers and packet filter"
        ),
        format!("`ropewalk tunnel undo {name}`, or start the tunnel again"),
    )
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
