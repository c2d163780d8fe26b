//! Tests of the rules by which sockets share an SCTP port.

use proptest::prelude::*;

use super::*;

const PORT: u16 = 5000;

/// Parses the notation of the tables: `4`, `6`, or `6o` with `IPV6_V6ONLY`, then `a` for `SO_REUSEADDR` or
/// `SCTP_REUSE_PORT` and `p` for `SO_REUSEPORT`, then the interface after `@`.
fn sharing(text: &str) -> Sharing {
    Sharing {
        ipv6: text.starts_with('6'),
        v6_only: text.contains('o'),
        reuse_address: text.contains('a'),
        reuse_port: text.contains('p'),
        interface: text.split_once('@').map_or(0, |(_, index)| index.parse().expect("a number")),
    }
}

/// Performs steps such as `A listen`, `A close`, or `A accepts B`. A step with an address, such as `A 127.0.0.1`,
/// binds it. Returns the errors with the index of their step.
fn errors(sockets: &[(&str, &str)], steps: &[&str]) -> Vec<(usize, i32)> {
    let mut ports = Ports::default();
    let id = |name: &str| u64::from(name.as_bytes()[0]);
    let mut errors = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let (name, what) = step.split_once(' ').expect("a socket and a step");
        let done = match what {
            "listen" => ports.listen(id(name), PORT),
            "stop" => {
                ports.stop_listening(id(name), PORT);
                Ok(())
            }
            "close" => {
                ports.release(id(name), PORT);
                Ok(())
            }
            _ if what.starts_with("accepts ") => {
                ports.inherit(id(name), id(&what[8..]), PORT);
                Ok(())
            }
            address => {
                let (_, kind) = sockets.iter().find(|(other, _)| *other == name).expect("known");
                let address = address.parse().expect("an address");
                ports.bind(id(name), PORT, sharing(kind), address)
            }
        };
        errors.extend(done.err().map(|errno| (index, errno.0)));
    }
    errors
}

const IN_USE: i32 = libc::EADDRINUSE;

/// A table of two sockets with one address each, and whether the second one may bind its address. The lines follow
/// from the kernel functions that [the module](super) names.
#[test]
fn two_sockets_share_a_port_where_linux_lets_them() {
    let one = "127.0.0.1";
    let bind = |name: &str, address: &str| format!("{name} {address}");
    let pairs = [
        ("4", one, "4", one, false),
        ("4", one, "4", "127.0.0.2", true),
        ("4", one, "4", "0.0.0.0", false),
        ("4", "0.0.0.0", "4", one, false),
        ("4", "0.0.0.0", "4", "0.0.0.0", false),
        ("6", "::1", "6", "::1", false),
        ("6", "::1", "6", "2001:db8::1", true),
        ("6", "::1", "6", "::", false),
        ("6", "::", "6", "::", false),
        // As ncat does: an IPv6 socket that leaves IPv4 to another one.
        ("6o", "::", "4", "0.0.0.0", true),
        ("4", "0.0.0.0", "6o", "::", true),
        ("6o", "::", "4", one, true),
        ("6o", "::1", "4", "0.0.0.0", true),
        ("6o", "::", "6o", "::", false),
        ("6o", "::", "6", "::", false),
        ("6", "::", "6o", "::", false),
        // An IPv6 socket also uses the IPv4 addresses.
        ("6", "::", "4", "0.0.0.0", false),
        ("4", "0.0.0.0", "6", "::", false),
        ("6", "::", "4", one, false),
        ("4", one, "6", "::", false),
        // An unspecified address conflicts with any address of either family.
        ("4", "0.0.0.0", "6", "::1", false),
        ("6", "::1", "4", "0.0.0.0", false),
        ("6", "::1", "4", one, true),
        ("4", one, "6", "::1", true),
        // An IPv4 address of an IPv6 socket.
        ("6", one, "4", one, false),
        ("4", one, "6", one, false),
        ("6", one, "4", "127.0.0.2", true),
        // Of two IPv6 sockets, the one that was bound first decides.
        ("6", one, "6o", "::", false),
        ("6o", "::", "6", one, true),
        // Both have to share.
        ("4a", one, "4a", one, true),
        ("4a", one, "4", one, false),
        ("4", one, "4a", one, false),
        ("4a", one, "4a", "0.0.0.0", true),
        ("4a", "0.0.0.0", "6a", "::", true),
        ("4p", one, "4p", one, true),
        ("4p", one, "4", one, false),
        ("4a", one, "4p", one, false),
        ("4p", "0.0.0.0", "4p", one, true),
        ("6p", "::", "4p", "0.0.0.0", true),
        // SO_BINDTODEVICE.
        ("4@1", "0.0.0.0", "4@2", "0.0.0.0", true),
        ("4@1", one, "4@2", one, true),
        ("6@1", "::", "4@2", one, true),
        ("4@1", one, "4@1", one, false),
        ("4@1", one, "4", one, false),
        ("4", one, "4@1", one, false),
    ];
    for (first, at, second, there, may) in pairs {
        let sockets = [("A", first), ("B", second)];
        let steps = [bind("A", at), bind("B", there)];
        let steps = [steps[0].as_str(), steps[1].as_str()];
        let expected = if may { vec![] } else { vec![(1, IN_USE)] };
        assert_eq!(errors(&sockets, &steps), expected, "{first} {at} {second} {there}");
        // Without a first socket there is nothing to share.
        assert_eq!(errors(&sockets, &[steps[0], "A close", steps[1], "B listen"]), []);
    }
}

/// Sockets, their steps, and the steps that fail.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a [(usize, i32)]);

#[test]
fn sockets_listen_at_a_shared_port_where_linux_lets_them() {
    const INVALID: i32 = libc::EINVAL;
    let both = |kind| [("A", kind), ("B", kind)];
    let (a, b) = ("A 127.0.0.1", "B 127.0.0.1");
    let cases: &[Case<'_>] = &[
        // RFC 6458, 8.1.27: one socket at a time listens.
        (&both("4a"), &[a, b, "A listen", "B listen"], &[(3, IN_USE)]),
        (&both("4a"), &[a, "A listen", b], &[(2, IN_USE)]),
        (&both("4a"), &[a, b, "A listen", "A stop", "B listen"], &[]),
        (&both("4a"), &[a, b, "A listen", "A close", "B listen"], &[]),
        (&both("4a"), &[a, "A listen", "A stop", b], &[]),
        (&both("4a"), &[a, "B 0.0.0.0", "A listen", "B listen"], &[(3, IN_USE)]),
        // SO_REUSEPORT: all of them listen.
        (&both("4p"), &[a, b, "A listen", "B listen"], &[]),
        (&both("4p"), &[a, "A listen", b, "B listen"], &[]),
        (&[("A", "4p"), ("B", "4ap")], &[a, "A listen", b, "B listen"], &[]),
        // Sockets with only some addresses in common cannot share their peers.
        (
            &both("4p"),
            &[a, "A 127.0.0.2", "A listen", b, "B 127.0.0.3", "B listen"],
            &[(5, libc::EEXIST)],
        ),
        (&both("4p"), &[a, "A listen", "B 127.0.0.2", "B listen"], &[]),
        // The socket already has the address.
        (&[("A", "4")], &[a, a], &[(1, INVALID)]),
        (&[("A", "4a")], &[a, a], &[(1, INVALID)]),
        (&[("A", "4")], &["A 0.0.0.0", a], &[(1, INVALID)]),
        (&[("A", "4")], &[a, "A 0.0.0.0"], &[(1, INVALID)]),
        (&[("A", "6")], &["A ::1", a, "A listen"], &[]),
        // Further addresses are compared in the same way as the first one.
        (&both("4"), &[a, "B 127.0.0.2", "B 127.0.0.1", "B listen"], &[(2, IN_USE)]),
        // The socket of an association has the addresses of the listening socket.
        (&both("4"), &[a, "A listen", "A accepts C", "A close", b], &[(4, IN_USE)]),
        (&both("4"), &[a, "A listen", "A accepts C", "A close", "C close", b], &[]),
        (&both("4a"), &[a, "A listen", "A accepts C", "A close", b, "B listen"], &[]),
    ];
    for (sockets, steps, expected) in cases {
        assert_eq!(errors(sockets, steps), *expected, "{sockets:?} {steps:?}");
    }
}

#[test]
fn a_drawn_port_is_one_that_no_socket_has() {
    let mut ports = Ports::default();
    let free = 60_000;
    for port in (DYNAMIC_FROM..=u16::MAX).filter(|port| *port != free) {
        ports.bind(1, port, Sharing::default(), [127, 0, 0, 1].into()).expect("a free port");
    }
    assert_eq!(ports.draw(), Ok(free));
    ports.bind(1, free, Sharing::default(), [127, 0, 0, 1].into()).expect("a free port");
    assert_eq!(ports.draw(), Err(Errno(libc::EADDRINUSE)));
}

fn any_sharing() -> impl Strategy<Value = Sharing> {
    let kinds = ["4", "4a", "4p", "4ap", "6", "6a", "6p", "6o", "6oa", "6op"];
    (0..kinds.len()).prop_map(move |kind| sharing(kinds[kind]))
}

fn any_address() -> impl Strategy<Value = IpAddr> {
    let all = ["0.0.0.0", "::", "127.0.0.1", "127.0.0.2", "::1", "2001:db8::1"];
    (0..all.len()).prop_map(move |index| all[index].parse().expect("an address"))
}

proptest! {
    /// For any sequence of requests, two sockets have an address in common only if both share it.
    #[test]
    fn no_two_sockets_have_an_address_that_they_do_not_share(
        sockets in proptest::collection::vec(any_sharing(), 4),
        steps in proptest::collection::vec((0..4_usize, 0..6, any_address()), 0..40),
    ) {
        let mut ports = Ports::default();
        for (socket, what, address) in steps {
            let (id, sharing) = (socket as u64, sockets[socket]);
            let fits = if address.is_ipv6() { sharing.ipv6 } else { !sharing.v6_only };
            match what {
                0 => drop(ports.listen(id, PORT)),
                1 => ports.stop_listening(id, PORT),
                2 => ports.release(id, PORT),
                _ if fits => drop(ports.bind(id, PORT, sharing, address)),
                _ => {}
            }
            let Some(found) = ports.0.get(&PORT) else { continue };
            for (one, a) in &found.owners {
                for (_, b) in found.owners.range(one + 1..) {
                    // Checked in both orders of binding.
                    let common = b.addresses.iter().any(|ip| a.conflicts(*ip, b.sharing))
                        && a.addresses.iter().any(|ip| b.conflicts(*ip, a.sharing));
                    let both = |has: fn(&Sharing) -> bool| has(&a.sharing) && has(&b.sharing);
                    let port = both(|sharing| sharing.reuse_port);
                    prop_assert!(!common || port || both(|sharing| sharing.reuse_address));
                }
            }
        }
        for id in 0..4 {
            ports.release(id, PORT);
        }
        prop_assert!(ports.0.is_empty());
    }
}
