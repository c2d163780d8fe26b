//! Rules about a tunnel's links: links that fail and return, backups, and caps. Needs Linux and root; otherwise
//! says so and passes.
#![cfg(target_os = "linux")]

use std::net::UdpSocket;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::tunnel::{HOST, HUB, Hosts, carry_much, echo};

impl Hosts {
    /// The uses of the links of a tunnel, sorted.
    fn uses(&self, command: &str) -> Vec<String> {
        let all = self.status(command)["links"].as_array().cloned().unwrap_or_default();
        let words = all.iter().filter_map(|link| link["use"].as_str().map(str::to_owned));
        let mut uses: Vec<String> = words.collect();
        uses.sort();
        uses
    }

    /// Bytes that a device of the client has carried in both directions.
    fn carried(&self, device: &str) -> u64 {
        let words = ["-n", &self.name("c"), "-json", "-stats", "link", "show", "dev", device];
        let shown = Command::new("ip").args(words).output().expect("ip").stdout;
        let shown: Value = serde_json::from_slice(&shown).expect("JSON");
        let bytes = |way: &str| shown[0]["stats64"][way]["bytes"].as_u64().expect("a count");
        bytes("rx") + bytes("tx")
    }

    /// Restores a link of the client with its default route, which was removed with it.
    fn put_back(&self, link: &str, way: &str, metric: &str) {
        self.ip("c", &["link", "set", link, "up"]);
        self.ip("c", &["route", "add", "default", "via", way, "metric", metric]);
    }

    /// Sends some datagrams through the tunnel.
    fn send_to_host(&self, count: usize) {
        self.inside("c", || {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            // Port 9 is closed, so the only answers are ICMP messages.
            (0..count).for_each(|_| drop(socket.send_to(&[0; 1000], (HOST, 9))));
        });
    }

    /// Limits the rate of a device of the client.
    fn shape(&self, device: &str) {
        let limits = "rate 100mbit burst 32k latency 20ms";
        let shape =
            format!("netns exec {} tc qdisc add dev {device} root tbf {limits}", self.name("c"));
        let shaped = Command::new("ip").args(shape.split(' ')).status();
        assert!(shaped.is_ok_and(|status| status.success()), "tc");
    }
}

#[test]
fn a_tunnel_goes_on_over_the_link_that_is_left_and_uses_one_that_comes_back() {
    let Some(hosts) = Hosts::new() else { return };
    let (serve, up) = hosts.bring_up(&[]);
    for (link, way, other, metric) in [("l1", HUB[0], "l2", "300"), ("l2", HUB[1], "l1", "400")] {
        hosts.wait_for("two links", || hosts.links_up("tunnel up").len() == 2);
        hosts.ip("c", &["link", "set", link, "down"]);
        hosts.wait_for_answer(HOST, &[&serve, &up]);
        hosts.wait_for("one link", || hosts.links_up("tunnel up") == [other]);
        hosts.put_back(link, way, metric);
    }
}

#[test]
fn a_backup_carries_data_only_while_the_other_link_is_down() {
    let Some(hosts) = Hosts::new() else { return };
    let (serve, up) = hosts.bring_up(&["--link", "l2 use=backup", "--state-directory", "links"]);
    hosts.wait_for("two links", || hosts.links_up("tunnel up").len() == 2);
    for end in ["tunnel up", "tunnel serve"] {
        hosts.wait_for("the uses of both links", || hosts.uses(end) == ["always", "backup"]);
    }
    carry_much(&hosts);
    let [first, second] = ["l1", "l2"].map(|link| hosts.carried(link));
    assert!(first > 4_000_000 && second < 200_000, "{first} and {second} B");
    hosts.ip("c", &["link", "set", "l1", "down"]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    carry_much(&hosts);
    let second = hosts.carried("l2");
    assert!(second > 4_000_000, "{second} B");
}

/// Checks that a status reports the data carried by a link, and that its cap is used up.
fn assert_cap_is_shown(status: &Value) {
    let cap = &status["tunnel"]["caps"][0];
    let used = cap["used_bytes"].as_u64().expect("a count");
    assert_eq!((cap["link"].as_str(), cap["cap_bytes"].as_u64()), (Some("l1"), Some(10_000_000)));
    assert!((9_900_000..10_300_000).contains(&used), "{used} B");
    let events = status["events"].as_array().expect("events");
    let reached = events.iter().filter(|event| event["event"] == "limit reached");
    let texts: Vec<_> = reached.filter_map(|event| event["text"].as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("the cap of l1 is used up")), "{texts:?}");
}

#[test]
fn a_link_carries_no_more_than_its_cap_also_after_a_restart() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let serve = hosts.serve(&[&client], &[]);
    // The count of a link's data is at most 10 ms old. In that time, an unlimited link would carry
    // megabytes.
    hosts.shape("l1");
    let rules = ["--link", "l1 cap=10MB/month", "--link", "l2 use=backup cost=5"];
    let words = [&rules[..], &["--state-directory", "links"]].concat();
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let up = hosts.connect(&hub, &words);
        hosts.wait_for_answer(HOST, &[&serve, &up]);
        hosts.wait_for("two links", || hosts.links_up("tunnel up").len() == 2);
        (0..5).for_each(|_| carry_much(&hosts));
        hosts.wait_for("the cap is used up", || hosts.uses("tunnel up") == ["backup", "never"]);
        if signal == Signal::SIGKILL {
            assert_cap_is_shown(&hosts.status("tunnel up"));
        }
        up.end(signal);
        let [capped, other] = ["l1", "l2"].map(|link| hosts.carried(link));
        // The counters of the devices include Ethernet headers, and count those of several segments once.
        assert!((9_500_000..10_300_000).contains(&capped), "{capped} B");
        assert!(other > 10_000_000, "{other} B");
    }
}

#[test]
fn a_client_that_starts_without_links_waits_for_them_and_keeps_their_rules() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let serve = hosts.serve(&[&client], &[]);
    for link in ["l1", "l2"] {
        hosts.ip("c", &["link", "set", link, "down"]);
    }
    let up = hosts.connect(&hub, &["--link", "l1 use=never", "--state-directory", "links"]);
    hosts.wait_for("told", || up.said().contains("no link is up"));
    for (link, way, metric) in [("l1", HUB[0], "100"), ("l2", HUB[1], "200")] {
        hosts.put_back(link, way, metric);
    }
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    hosts.wait_for("two links", || {
        let mut links = hosts.links("tunnel up");
        links.sort();
        links.dedup();
        links == ["l1", "l2"]
    });
    hosts.wait_for("their uses", || {
        let mut uses = hosts.uses("tunnel up");
        uses.dedup();
        uses == ["always", "never"]
    });
    carry_much(&hosts);
    let [forbidden, other] = ["l1", "l2"].map(|link| hosts.carried(link));
    assert!(forbidden < 100_000 && other > 4_000_000, "{forbidden} and {other} B");
    assert_eq!(up.said().matches("no link is up").count(), 1, "{}", up.said());
}

#[test]
fn no_hub_is_asked_while_no_link_may_carry_data_and_the_tunnel_goes_on_with_the_first_that_may() {
    let Some(hosts) = Hosts::new() else { return };
    let rules = ["--link", "l1 cap=10MB/month", "--link", "l2 cap=10MB/month"];
    let (serve, up) = hosts.bring_up(&[&rules[..], &["--state-directory", "links"]].concat());
    hosts.wait_for("two links", || hosts.links_up("tunnel up").len() == 2);
    ["l1", "l2"].iter().for_each(|link| hosts.shape(link));
    (0..4).for_each(|_| carry_much(&hosts));
    // TCP would wait long for dropped packets.
    hosts.wait_for("both caps are used up", || {
        hosts.send_to_host(200);
        hosts.uses("tunnel up") == ["never", "never"]
    });
    hosts.wait_for("told", || {
        let _ = hosts.answers("c", HOST);
        up.said().contains("no link can carry data")
    });
    let carried = || ["l1", "l2"].map(|link| hosts.carried(link)).iter().sum::<u64>();
    let before = carried();
    // Each request waits for its answer for a while, eight seconds in total.
    for _ in 0..25 {
        assert!(!hosts.answers("c", HOST), "carried over a link whose cap is used up");
    }
    let after = carried();
    assert!(after - before < 10_000, "{} B", after - before);
    let said = up.said();
    let count = |text: &str| said.matches(text).count();
    assert_eq!([count("no link can carry data"), count("hub silent")], [1, 0], "{said}");
    // A link without a rule.
    hosts.join(["c", "l4", "100.100.4.1/30"], ["h", "l4", "100.100.4.2/30"]);
    hosts.ip("c", &["route", "add", "default", "via", "100.100.4.2", "metric", "50"]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    carry_much(&hosts);
}

#[test]
fn a_named_link_that_is_missing_at_the_start_carries_data_when_it_appears() {
    let Some(hosts) = Hosts::new() else { return };
    let (serve, up) = hosts.bring_up(&["--from", "l1,l4"]);
    let said = up.said();
    assert!(said.contains("--from: l4 is not there now"), "{said}");
    assert!(said.contains("interfaces now: lo, l1, l2"), "{said}");
    hosts.wait_for("one link", || hosts.links_up("tunnel up") == ["l1"]);
    hosts.join(["c", "l4", "100.100.4.1/30"], ["h", "l4", "100.100.4.2/30"]);
    hosts.ip("c", &["route", "add", "default", "via", "100.100.4.2", "metric", "300"]);
    hosts.wait_for("two links", || hosts.links_up("tunnel up") == ["l1", "l4"]);
    hosts.ip("c", &["link", "set", "l1", "down"]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    let before = hosts.carried("l4");
    carry_much(&hosts);
    let carried = hosts.carried("l4") - before;
    assert!(carried > 4_000_000, "{carried} B");
}

#[test]
fn a_client_whose_named_links_are_all_missing_waits_for_the_first_that_appears() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let serve = hosts.serve(&[&client], &[]);
    let mut up = hosts.connect(&hub, &["--from", "l4,100.100.5.1"]);
    hosts.wait_for("told", || up.said().contains("no link is up"));
    assert!(up.said().contains("--from: 100.100.5.1 is not there now"), "{}", up.said());
    for (link, near, far, metric) in [
        ("l5", "100.100.5.1/30", "100.100.5.2/30", "50"),
        ("l4", "100.100.4.1/30", "100.100.4.2/30", "60"),
    ] {
        assert!(up.child.try_wait().is_ok_and(|ended| ended.is_none()), "{}", up.said());
        hosts.join(["c", link, near], ["h", link, far]);
        let way = far.trim_end_matches("/30");
        hosts.ip("c", &["route", "add", "default", "via", way, "metric", metric]);
        hosts.wait_for_answer(HOST, &[&serve, &up]);
        hosts.wait_for("the link", || hosts.links_up("tunnel up").iter().any(|it| it == link));
    }
    assert_eq!(hosts.links_up("tunnel up").len(), 2, "{}", up.said());
}

#[test]
fn a_link_that_no_hub_can_be_reached_over_is_told_once_with_the_reason() {
    let Some(hosts) = Hosts::new() else { return };
    let (_serve, up) = hosts.bring_up(&[]);
    for (device, near, far) in [
        ("l4", "2001:db8:4::1/64", "2001:db8:4::2/64"),
        // Its IPv4 address is added later, as with DHCP.
        ("l5", "2001:db8:5::1/64", "2001:db8:5::2/64"),
    ] {
        hosts.join(["c", device, near], ["h", device, far]);
    }
    hosts.ip("c", &["address", "add", "100.100.5.1/30", "dev", "l5"]);
    let why = "link l4 is not used: it has only IPv6, and the hub is known by IPv4 alone";
    hosts.wait_for(why, || up.said().contains(why));
    hosts.ip("c", &["address", "add", "100.100.4.1/30", "dev", "l4"]);
    hosts.wait_for("used", || hosts.links("tunnel up").iter().any(|link| link == "l4"));
    let said = up.said();
    assert_eq!(said.matches("is not used").count(), 1, "{said}");
}
