//! Addresses in the notation that people use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use ropewalk_runtime::endpoint::{BindAddress, PORT};
use ropewalk_runtime::interfaces;

use crate::failure::Failure;

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

/// Addresses of the peer: in the same notation, or names.
///
/// # Errors
/// A name that does not resolve.
pub fn remotes(texts: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    texts.iter().map(|text| remote(text.trim())).collect()
}

fn remote(text: &str) -> Result<SocketAddr, Failure> {
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
    match (host, port).to_socket_addrs().map(|mut found| found.next()) {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(Failure::input(format!("--to {text}: the name has no address"), help)),
        Err(error) => Err(Failure::input(format!("--to {text}: {error}"), help)),
    }
}

fn numeric(text: &str, port: u16) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port))
}

/// Where to send from: addresses or interfaces; by default, whatever the system chooses.
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

/// Addresses for a command line, without the default port; a placeholder if there is none.
pub fn listed(addresses: &[(SocketAddr, Option<String>)]) -> String {
    let one = |(address, _): &(SocketAddr, Option<String>)| match address.port() {
        PORT => address.ip().to_string(),
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
