//! A tunnel on a machine whose links are managed by systemd-networkd, NetworkManager or ifupdown. Whatever these
//! change in links, routes and rules, the tunnel carries packets afterwards, a closed kill switch stays closed, and
//! nothing is left at the end. Needs the requirements of the tests of the units, and the managers (`make
//! name-managers` unpacks them below the target directory); otherwise says so and passes.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::tunnel::{HOST, Hosts, Tunnel, echo};
use crate::tunnel_names::name_managers;
use crate::tunnel_switch::Leak;
use crate::tunnel_units::{Machine, client_files};

const TUNNEL: &str = "ropewalk-tunnel@home";

/// Each link with its address, its gateway and the metric of its default route.
const LINKS: [[&str; 4]; 2] = [
    ["l1", "198.51.100.1/30", "198.51.100.2", "100"],
    ["l2", "203.0.113.1/30", "203.0.113.2", "200"],
];

/// The program that manages the links of a machine.
struct Manager {
    program: &'static str,
    /// A file of a link: its name below /etc, and its text.
    file: fn(&[&str; 4]) -> (String, String),
    start: &'static [&'static str],
    /// Commands by which it sets up its links again.
    changes: &'static [&'static [&'static str]],
}

/// It removes routes and rules of other programs when it is restarted (`ManageForeignRoutes=`,
/// `ManageForeignRoutingPolicyRules=`).
const NETWORKD: Manager = Manager {
    program: "lib/systemd/systemd-networkd",
    file: |[link, address, gateway, metric]| {
        let text = format!(
            "[Match]\nName={link}\n\n[Network]\nAddress={address}\nIPv6AcceptRA=no\n\n\
             [Route]\nGateway={gateway}\nMetric={metric}\n"
        );
        (format!("systemd/network/{link}.network"), text)
    },
    start: &["systemctl", "start", "systemd-networkd"],
    changes: &[
        &["networkctl", "reload"],
        &["networkctl", "reconfigure", "l1", "l2"],
        &["networkctl", "down", "l1"],
        &["networkctl", "up", "l1"],
        &["systemctl", "restart", "systemd-networkd"],
    ],
};

const NETWORK_MANAGER: Manager = Manager {
    program: "sbin/NetworkManager",
    file: |[link, address, gateway, metric]| {
        let text = format!(
            "[connection]\nid={link}\ntype=ethernet\ninterface-name={link}\n\n[ipv4]\nmethod=manual\n\
             addresses={address}\ngateway={gateway}\nroute-metric={metric}\n\n[ipv6]\nmethod=disabled\n"
        );
        (format!("NetworkManager/system-connections/{link}.nmconnection"), text)
    },
    start: &["systemctl", "start", "NetworkManager"],
    changes: &[
        &["nmcli", "general", "reload"],
        &["nmcli", "device", "reapply", "l1"],
        &["nmcli", "connection", "up", "l1"],
        &["nmcli", "connection", "down", "l1"],
        &["nmcli", "connection", "up", "l1"],
        &["systemctl", "restart", "NetworkManager"],
    ],
};

const IFUPDOWN: Manager = Manager {
    program: "sbin/ifup",
    file: |[link, address, gateway, metric]| {
        let text = format!(
            "auto {link}\niface {link} inet static\n  address {address}\n  gateway {gateway}\n  metric {metric}\n"
        );
        (format!("network/interfaces.d/{link}"), text)
    },
    start: &["ifup", "-a"],
    changes: &[
        &["ifdown", "l1"],
        &["ifup", "l1"],
        &["ifup", "--force", "l2"],
        &["sh", "-c", "ifdown -a; ifup -a"],
    ],
};

struct Managed {
    machine: Machine,
    serve: Tunnel,
    hosts: Hosts,
}

impl Managed {
    /// The machine with its links up, and a hub.
    fn new(manager: &Manager, kill_switch: bool) -> Option<Self> {
        let programs = name_managers().join("usr");
        if ![Path::new("/usr"), &programs].iter().any(|place| place.join(manager.program).exists())
        {
            eprintln!("skipped: no {} (`make name-managers`)", manager.program);
            return None;
        }
        let hosts = Hosts::new()?;
        let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
        let files = client_files(&hosts, &hub);
        if !kill_switch {
            let options = fs::read_to_string(files.join("home.toml")).expect("a file");
            let options = options.replace("kill_switch = true", "");
            fs::write(files.join("home.toml"), options).expect("written");
        }
        let network = [
            ("network/interfaces", "source /etc/network/interfaces.d/*\n"),
            ("NetworkManager/conf.d/test.conf", "[main]\nplugins=keyfile\ndns=none\n"),
        ];
        let own = network.map(|(name, text)| (name.to_owned(), text.to_owned()));
        for (name, text) in LINKS.iter().map(manager.file).chain(own) {
            let file = files.join("etc").join(&name);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a new directory");
            fs::write(&file, text).expect("written");
            // NetworkManager reads only files that no other user can read, and systemd-networkd runs as
            // another user.
            let mode = if name.ends_with(".nmconnection") { 0o600 } else { 0o644 };
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("an own file");
        }
        for event in ["pre-up", "up", "down", "post-down"] {
            fs::create_dir_all(files.join(format!("etc/network/if-{event}.d"))).expect("made");
        }
        let machine = Machine::boot(&hosts, "c", &files)?;
        LINKS.iter().for_each(|[link, ..]| hosts.ip("c", &["address", "flush", "dev", link]));
        assert!(machine.systemctl(&["start", "dbus.socket"]));
        let started = machine.run(manager.start);
        assert!(started.status.success(), "{started:?}");
        let is_configured = || hosts.routes().matches("default via").count() == LINKS.len();
        hosts.wait_for("configured", is_configured);
        echo(&hosts, "i");
        let serve = hosts.serve(&[&client], &[]);
        Some(Self { machine, serve, hosts })
    }

    /// Rules and routes, and the packet filter.
    fn state(&self) -> String {
        let words: [&[&str]; 5] = [
            &["ip", "rule"],
            &["ip", "-6", "rule"],
            &["ip", "route", "show", "table", "all"],
            &["ip", "-6", "route"],
            &["nft", "list", "ruleset"],
        ];
        let shown = words.iter().map(|words| self.machine.shown(words)).collect::<String>();
        // The order of equal routes, and link-local routes, depend on the kernel.
        let mut lines: Vec<_> = shown.lines().filter(|line| !line.contains("fe80::")).collect();
        lines.sort_unstable();
        lines.join("\n")
    }

    fn start(&self) {
        assert!(self.machine.systemctl(&["start", TUNNEL]), "{}", self.machine.state_of(TUNNEL));
        self.hosts.wait_for_answer(HOST, &[&self.serve]);
    }

    /// Whether traffic uses the tunnel, and the tunnel's own packets do not.
    fn is_set_up(&self) -> bool {
        let way = |to: &str| self.machine.shown(&["ip", "route", "get", to]);
        way(HOST).contains("dev rw-home") && way("198.51.100.2").contains("dev l1")
    }
}

fn stays_closed(manager: &Manager) {
    let Some(managed) = Managed::new(manager, true) else { return };
    let before = managed.state();
    managed.start();
    let leak = Leak::start(&managed.hosts);
    for change in manager.changes {
        let (is_shut, done) = leak.is_shut_while(|| {
            let done = managed.machine.run(change);
            managed.hosts.wait_for_answer(HOST, &[&managed.serve]);
            done
        });
        assert!(done.status.success(), "{change:?}: {done:?}");
        assert!(is_shut, "{change:?}");
    }
    let rules = || managed.machine.shown(&["ip", "rule"]).contains("29303");
    managed.hosts.wait_for("closed by both locks", rules);
    assert!(managed.machine.systemctl(&["stop", TUNNEL]));
    leak.arrives(&managed.hosts);
    managed.hosts.wait_for("as before", || managed.state() == before);
}

fn survives(manager: &Manager) {
    let Some(managed) = Managed::new(manager, false) else { return };
    let before = managed.state();
    managed.start();
    managed.hosts.wait_for("set up", || managed.is_set_up());
    for change in manager.changes {
        let done = managed.machine.run(change);
        assert!(done.status.success(), "{change:?}: {done:?}");
        managed.hosts.wait_for_answer(HOST, &[&managed.serve]);
        if !change.contains(&"down") && change[0] != "ifdown" {
            managed.hosts.wait_for("set up again", || managed.is_set_up());
        }
    }
    assert!(managed.machine.systemctl(&["stop", TUNNEL]));
    managed.hosts.wait_for("as before", || managed.state() == before);
}

#[test]
fn a_kill_switch_stays_closed_while_networkd_removes_rules_and_routes() {
    stays_closed(&NETWORKD);
}

#[test]
fn a_tunnel_survives_what_networkd_does_with_its_links() {
    survives(&NETWORKD);
}

#[test]
fn a_kill_switch_stays_closed_while_network_manager_changes_its_links() {
    stays_closed(&NETWORK_MANAGER);
}

#[test]
fn a_tunnel_survives_what_network_manager_does_with_its_links() {
    survives(&NETWORK_MANAGER);
}

#[test]
fn a_kill_switch_stays_closed_while_ifupdown_changes_its_links() {
    stays_closed(&IFUPDOWN);
}

#[test]
fn a_tunnel_survives_what_ifupdown_does_with_its_links() {
    survives(&IFUPDOWN);
}
