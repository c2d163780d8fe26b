//! Parses and formats addresses for people.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

use listenfd::ListenFd;
use ropewalk_apps::proxy::exit::Resolver;
use ropewalk_apps::whereabouts::Finder;
use ropewalk_runtime::endpoint::{BindAddress, Options, PORT};
use ropewalk_runtime::interfaces;

use crate::failure::Failure;

/// Port of name servers (RFC 1035, 4.2).
const DOMAIN: u16 = 53;

/// Parses an address to listen on: `192.0.2.7`, `192.0.2.7:9000`, `[2001:db8::1]:9000`.
///
/// # Errors
/// The text is not an address; the hint shows the notation.
pub fn listen(text: &str) -> Result<SocketAddr, Failure> {
    numeric(text, PORT).ok_or_else(|| {
        let message = format!("--listen {text}: not an address of this machine");
        Failure::input(
            message,
            "give an address as 192.0.2.7, 192.0.2.7:9000 or [2001:db8::1]:9000",
        )
    })
}

/// Options of an endpoint that listens at the sockets of the service manager, if it passes any (`sd_listen_fds`),
/// otherwise at these addresses, otherwise at all addresses of this machine.
///
/// # Errors
/// A text is not an address, or the service manager passes something other than UDP sockets.
pub fn listening(texts: &[String]) -> Result<Options, Failure> {
    let sockets = inherited()?;
    if sockets.is_empty() {
        let locals = texts.iter().map(|text| listen(text)).collect::<Result<Vec<_>, _>>()?;
        let locals = if locals.is_empty() { everywhere() } else { locals };
        return Ok(Options::listening(&locals));
    }
    let refused = |error| Failure::Run(format!("a socket of the service manager: {error}"));
    Options::inheriting(sockets).map_err(refused)
}

/// All addresses of this machine: IPv4, and IPv6 if the machine supports it.
fn everywhere() -> Vec<SocketAddr> {
    let all = [SocketAddr::from(([0; 4], PORT)), SocketAddr::from(([0_u16; 8], PORT))];
    let has_family = |address: &SocketAddr| {
        address.is_ipv4() || UdpSocket::bind(SocketAddr::new(address.ip(), 0)).is_ok()
    };
    all.into_iter().filter(has_family).collect()
}

fn inherited() -> Result<Vec<UdpSocket>, Failure> {
    let mut passed = ListenFd::from_env();
    let count = passed.len();
    let take = |index| {
        let socket = passed.take_udp_socket(index).map_err(|error| {
            let message = format!("descriptor {index} of the service manager: {error}");
            Failure::input(message, "pass UDP sockets only; systemd: ListenDatagram=9899")
        });
        socket.transpose()
    };
    (0..count).filter_map(take).collect()
}

/// Addresses of the peer, in the same notation or as names.
///
/// # Errors
/// A name that does not resolve.
pub fn remotes(texts: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    // A statically linked C library cannot load the modules that its own lookup needs.
    let lookup = if cfg!(target_feature = "crt-static") { by_name_servers } else { by_system };
    remotes_by(texts, &lookup)
}

/// Looks up the addresses of a name.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Result<Vec<IpAddr>, String>;

/// As [`remotes`], with another lookup of names.
///
/// # Errors
/// A name that does not resolve.
pub fn remotes_by(texts: &[String], lookup: Lookup<'_>) -> Result<Vec<SocketAddr>, Failure> {
    texts.iter().map(|text| remote(text.trim(), lookup)).collect()
}

/// Whether one of these texts is a name.
pub fn has_name(texts: &[String]) -> bool {
    texts.iter().any(|text| numeric(text.trim(), PORT).is_none())
}

/// Returns a function that resolves these addresses of the peer again, if one is a name.
pub fn finder(texts: &[String]) -> Option<Finder> {
    let texts = texts.to_vec();
    has_name(&texts).then(|| Finder(Arc::new(move || remotes(&texts).ok())))
}

fn remote(text: &str, lookup: Lookup<'_>) -> Result<SocketAddr, Failure> {
    if let Some(address) = numeric(text, PORT) {
        return Ok(address);
    }
    let help =
        "give the receiver's address as 192.0.2.7, 192.0.2.7:9000, [2001:db8::1]:9000 or a name";
    let (host, port) = match text.rsplit_once(':') {
        None => (text, Some(PORT)),
        Some((host, port)) => (host, port.parse().ok()),
    };
    let Some(port) = port.filter(|port| *port != 0 && !host.is_empty()) else {
        return Err(Failure::input(format!("--to {text}: not an address"), help));
    };
    match lookup(host).map(|addresses| addresses.first().copied()) {
        Ok(Some(ip)) => Ok(SocketAddr::new(ip, port)),
        Ok(None) => Err(Failure::input(format!("--to {text}: the name has no address"), help)),
        // The name may be right, but the network may not be ready yet.
        Err(error) => Err(Failure::Run(format!("--to {text}: {error}"))),
    }
}

/// The system's own lookup.
fn by_system(host: &str) -> Result<Vec<IpAddr>, String> {
    let found = (host, 0).to_socket_addrs().map_err(|error| error.to_string())?;
    Ok(found.map(|address| address.ip()).collect())
}

/// The hosts file and the name servers of the system, without the C library.
fn by_name_servers(host: &str) -> Result<Vec<IpAddr>, String> {
    by(Resolver::system, host)
}

/// Looks up a name in the hosts file and at these name servers, outside of a tunnel: with sockets of this mark,
/// over each of these interfaces until one answers. Reads the hosts file again.
pub fn outside(
    host: &str,
    servers: &[IpAddr],
    mark: u32,
    interfaces: &[Option<String>],
) -> Result<Vec<IpAddr>, String> {
    let servers: Vec<SocketAddr> =
        servers.iter().map(|server| SocketAddr::new(*server, DOMAIN)).collect();
    // A name in the hosts file has no other addresses.
    let by_hosts = by(|| Ok((Resolver::outside(&[], mark, None)?, None)), host);
    if by_hosts.is_ok() {
        return by_hosts;
    }
    let mut last = Err("no interface is up".to_owned());
    for interface in interfaces {
        let resolver = || Ok((Resolver::outside(&servers, mark, interface.as_deref())?, None));
        last = by(resolver, host);
        if last.is_ok() {
            break;
        }
    }
    last
}

/// Looks a name up by a resolver, and waits for it.
fn by(
    resolver: impl Fn() -> Result<(Resolver, Option<String>), String> + Sync,
    host: &str,
) -> Result<Vec<IpAddr>, String> {
    let lookup = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let (resolver, problem) = resolver()?;
            resolver.lookup(host).await.map_err(|error| match problem {
                Some(problem) => format!("{error}: {problem}"),
                None => error.to_string(),
            })
        })
    };
    // The caller's thread may belong to a runtime, which must not be blocked by another one.
    std::thread::scope(|scope| {
        scope.spawn(lookup).join().unwrap_or_else(|_| Err("the lookup panicked".to_owned()))
    })
}

/// Parses an address in this notation. `port` applies if it has none.
pub fn numeric(text: &str, port: u16) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port))
}

/// Local addresses or interfaces to send from. By default, the system chooses.
pub fn locals(texts: &[String], remotes: &[SocketAddr]) -> Vec<BindAddress> {
    let anywhere = |ipv6: bool| -> SocketAddr {
        let ip =
            if ipv6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { Ipv4Addr::UNSPECIFIED.into() };
        SocketAddr::new(ip, 0)
    };
    let families = [false, true]
        .into_iter()
        .filter(|ipv6| remotes.iter().any(|remote| remote.is_ipv6() == *ipv6));
    if texts.is_empty() {
        return families.map(|ipv6| BindAddress::of(anywhere(ipv6))).collect();
    }
    let of = |text: &String| match numeric(text, 0) {
        Some(address) => vec![BindAddress::of(address)],
        None => {
            let on = |ipv6| BindAddress { address: anywhere(ipv6), interface: Some(text.clone()) };
            families.clone().map(on).collect()
        }
    };
    texts.iter().flat_map(of).collect()
}

/// Addresses at which others may reach these sockets, with their interfaces.
pub fn reachable(bound: &[SocketAddr]) -> Vec<(SocketAddr, Option<String>)> {
    let interfaces = interfaces::list().unwrap_or_default();
    let mut found = Vec::new();
    for socket in bound {
        if !socket.ip().is_unspecified() {
            let own = interfaces.iter().find(|interface| interface.ip == socket.ip());
            found.push((*socket, own.map(|interface| interface.name.clone())));
            continue;
        }
        let like = interfaces.iter().filter(|it| it.ip.is_ipv4() == socket.is_ipv4());
        for interface in like.filter(|it| it.is_routable()) {
            let address = SocketAddr::new(interface.ip, socket.port());
            found.push((address, Some(interface.name.clone())));
        }
    }
    found
}

/// Addresses for a command line, without the default port, and without port 0 (directly over IP). A placeholder if
/// there is none.
pub fn listed(addresses: &[(SocketAddr, Option<String>)]) -> String {
    let one = |(address, _): &(SocketAddr, Option<String>)| match address.port() {
        0 | PORT => address.ip().to_string(),
        _ => address.to_string(),
    };
    match addresses {
        [] => "ADDRESS".to_owned(),
        some => some.iter().map(one).collect::<Vec<_>>().join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_a_port() {
        for (text, expected) in [
            ("192.0.2.7", "192.0.2.7:9899"),
            ("192.0.2.7:80", "192.0.2.7:80"),
            ("2001:db8::1", "[2001:db8::1]:9899"),
            ("[2001:db8::1]", "[2001:db8::1]:9899"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
            ("localhost:7", "127.0.0.1:7"),
        ] {
            let found = remotes(&[text.to_owned()]).expect(text)[0];
            let expected: SocketAddr = expected.parse().expect("an address");
            assert!(
                found == expected || found.ip().is_loopback() && text.contains("host"),
                "{found}"
            );
        }
    }

    #[tokio::test]
    async fn both_lookups_know_the_names_of_the_hosts_file() {
        for lookup in [by_system, by_name_servers] {
            let found = lookup("localhost").expect("in the hosts file");
            assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty(), "{found:?}");
            assert!(lookup("no-such-name.invalid").is_err());
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_examples() {
        for text in ["", ":80", "192.0.2.7:", "192.0.2.7:99999", "a:0"] {
            let error = remotes(&[text.to_owned()]).expect_err(text).to_string();
            assert!(error.contains("192.0.2.7:9000"), "{error}");
        }
        assert!(listen("eth0").expect_err("no address").to_string().contains("--listen eth0"));
    }

    #[test]
    fn without_a_local_address_the_system_chooses_one_of_the_right_family() {
        let [four, six] = ["192.0.2.7:9899", "[2001:db8::1]:9899"].map(|a| a.parse().expect("one"));
        let shown = |texts: &[&str], remotes: &[SocketAddr]| {
            let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
            locals(&texts, remotes).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(shown(&[], &[four]), ["0.0.0.0:0"]);
        assert_eq!(shown(&[], &[four, six]), ["0.0.0.0:0", "[::]:0"]);
        assert_eq!(shown(&["10.0.0.1", "wlan0"], &[four]), ["10.0.0.1:0", "0.0.0.0:0 on wlan0"]);
    }
}
