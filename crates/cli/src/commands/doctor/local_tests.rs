use super::super::verdict::Verdict;
use super::*;

const GRANTS: SocketGrants = SocketGrants {
    requested_buffer: 4 << 20,
    receive_buffer: 4 << 20,
    send_buffer: 4 << 20,
    send_segments: 64,
    receive_segments: 64,
};

fn link(name: &str, ip: [u8; 4]) -> Link {
    Link {
        name: name.to_owned(),
        addresses: vec![(IpAddr::from(ip), 24)],
        mtu: Ok(1500),
        bound: Ok(GRANTS),
        strict_filter: Ok(false),
    }
}

fn default_route(link: &str, metric: u32) -> Route {
    let any = Ipv4Addr::UNSPECIFIED;
    Route { link: link.to_owned(), destination: any, mask: any, metric }
}

fn refused<T>() -> Fact<T> {
    Err("refused".to_owned())
}

/// Asserts the verdict, and that every result other than ok has advice or a reason.
fn assert_verdict(check: &Check, expected: Verdict) {
    assert_eq!(check.verdict, expected, "{check:?}");
    let needs_advice = matches!(expected, Verdict::Warning | Verdict::Failure);
    assert_eq!(check.advice.is_some(), needs_advice, "{check:?}");
    assert!(!check.found.is_empty(), "{check:?}");
}

#[test]
fn keys_and_their_directories() {
    let path = || "me.key".into();
    for (fact, expected) in [
        (KeyFact::Missing(path()), Verdict::Ok),
        (KeyFact::Valid { path: path(), public: "abc".to_owned() }, Verdict::Ok),
        (KeyFact::Unusable("mode 0644".to_owned(), "chmod".to_owned()), Verdict::Failure),
        (KeyFact::NoDirectory, Verdict::Warning),
    ] {
        assert_verdict(&key(&fact), expected);
    }
    for (mode, expected) in [
        (Ok(0o700), Verdict::Ok),
        (Ok(0o755), Verdict::Ok),
        (Ok(0o775), Verdict::Warning),
        (Ok(0o777), Verdict::Failure),
        (Ok(0o757), Verdict::Failure),
        (Ok(0o1777), Verdict::Ok),
        (refused(), Verdict::NotChecked),
    ] {
        assert_verdict(&settings("d", &mode), expected);
    }
}

#[test]
fn a_port_that_is_taken_fails_only_if_it_was_asked_for() {
    for (free, given, expected) in [
        (Ok(()), true, Verdict::Ok),
        (refused(), false, Verdict::Warning),
        (refused(), true, Verdict::Failure),
    ] {
        assert_verdict(&port("0.0.0.0:9899", &free, given), expected);
    }
}

#[test]
fn links_with_a_small_mtu_and_no_link_at_all_are_warned_of() {
    let small = Link { mtu: Ok(1000), ..link("wwan0", [10, 0, 2, 1]) };
    let unknown = Link { mtu: refused(), ..link("eth0", [10, 0, 3, 1]) };
    let found = links(&[link("wlan0", [10, 0, 1, 1]), small, unknown]);
    for (check, expected) in found.iter().zip([Verdict::Ok, Verdict::Warning, Verdict::Ok]) {
        assert_verdict(check, expected);
    }
    assert_verdict(&links(&[])[0], Verdict::Warning);
}

#[test]
fn a_link_needs_a_route() {
    let wlan = link("wlan0", [10, 0, 1, 1]);
    let other = [IpAddr::from([203, 0, 113, 5])];
    let ipv6 = [IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1])];
    let near = Route {
        link: "wlan0".to_owned(),
        destination: Ipv4Addr::new(203, 0, 113, 0),
        mask: Ipv4Addr::new(255, 255, 255, 0),
        metric: 0,
    };
    for (table, remotes, expected) in [
        (Ok(vec![default_route("wlan0", 0)]), &[][..], Verdict::Ok),
        (Ok(vec![default_route("wwan0", 0)]), &[], Verdict::Warning),
        (Ok(vec![near.clone()]), &other, Verdict::Ok),
        (Ok(vec![near]), &[], Verdict::Warning),
        (Ok(vec![]), &ipv6, Verdict::NotChecked),
        (refused(), &[], Verdict::NotChecked),
    ] {
        assert_verdict(&route(&wlan, &table, remotes), expected);
    }
}

#[test]
fn conflicts_are_shared_networks_other_ways_out_and_strict_filters() {
    let (wlan, wwan) = (link("wlan0", [10, 0, 1, 1]), link("wwan0", [10, 0, 2, 1]));
    let table = || Ok(vec![default_route("wlan0", 600), default_route("wwan0", 700)]);
    let unbound = Link { bound: refused(), ..wwan.clone() };
    let strict = Link { strict_filter: Ok(true), ..wwan.clone() };
    let same = link("eth0", [10, 0, 1, 9]);
    let first_strict = Link { strict_filter: Ok(true), ..wlan.clone() };
    for (links, table, expected, said) in [
        ([wlan.clone(), wwan.clone()], table(), Verdict::Ok, "none"),
        ([wlan.clone(), same], table(), Verdict::Warning, "wlan0 and eth0"),
        ([wlan.clone(), unbound], table(), Verdict::Warning, "address of wwan0 leave by wlan0"),
        ([wlan.clone(), strict], table(), Verdict::Warning, "wwan0 drops"),
        // The best link is not affected by its own filter.
        ([first_strict, wwan.clone()], table(), Verdict::Ok, "none"),
        ([wlan, wwan], refused(), Verdict::NotChecked, "refused"),
    ] {
        let check = conflicts(&links, &table, &[]);
        assert_verdict(&check, expected);
        assert!(check.found.contains(said), "{check:?}");
    }
}

#[test]
fn sockets_with_small_buffers_or_without_offload_are_warned_of() {
    let small = SocketGrants { receive_buffer: 212_992, ..GRANTS };
    for (grants, expected) in
        [(Ok(GRANTS), Verdict::Ok), (Ok(small), Verdict::Warning), (refused(), Verdict::Failure)]
    {
        assert_verdict(&buffers(&grants), expected);
    }
    let single = SocketGrants { send_segments: 1, ..GRANTS };
    let linux = cfg!(any(target_os = "linux", windows));
    let without = if linux { Verdict::Warning } else { Verdict::NotChecked };
    for (grants, expected) in
        [(Ok(GRANTS), Verdict::Ok), (Ok(single), without), (refused(), Verdict::NotChecked)]
    {
        assert_verdict(&offload(&grants), expected);
    }
    #[cfg(target_os = "linux")]
    {
        let advice = buffers(&Ok(small)).advice.unwrap_or_default();
        assert!(
            advice.contains("net.core.rmem_max=4194304") && !advice.contains("wmem"),
            "{advice}"
        );
        assert_verdict(&bind(&refused()), Verdict::Warning);
        assert_verdict(&tun(&refused()), Verdict::Warning);
    }
}

#[test]
fn clocks() {
    for (step, expected) in
        [(Some(40), Verdict::Ok), (Some(10_000_000), Verdict::Warning), (None, Verdict::Warning)]
    {
        assert_verdict(&clock(step), expected);
    }
    for (fact, expected) in
        [(Ok(true), Verdict::Ok), (Ok(false), Verdict::Warning), (refused(), Verdict::NotChecked)]
    {
        assert_verdict(&date(None, &fact), expected);
        assert_verdict(&date(Some("before that of a file"), &fact), Verdict::Failure);
    }
}
