//! Name servers of a tunnel, with different managers on the client: systemd-resolved, openresolv, or the file.
//! Needs Linux, root, and these programs (`make name-managers` unpacks them below the target directory); otherwise
//! says so and passes.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use nix::sys::signal::Signal;

use crate::tunnel::{BINARY, HOST, HUB, Hosts, Tunnel, echo};

/// The answer of the name server behind the hub.
const ANSWER: [u8; 4] = [203, 0, 113, 99];
/// The unprivileged user that runs systemd-resolved here.
const NOBODY: u32 = 65534;
/// A file that names systemd-resolved as the name server (its stub).
const STUB: &str = "nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch .\n";

/// Sets up the machine of the client, with private copies of the written parts of /run and /etc, and runs the
/// remaining words.
const MACHINE: &str = "set -e
mount --bind \"$1/run\" /run
mount -t overlay -o lowerdir=/etc,upperdir=\"$1/etc\",workdir=\"$1/work\" overlay /etc
[ -z \"$2\" ] || mount -t overlay -o \"lowerdir=$2/usr:/usr\" overlay /usr
shift 2
exec \"$@\"";

/// Starts systemd-resolved with its user and without its own name servers.
const RESOLVED: &str = "set -e
mount --bind \"$1/run\" /run
mount --bind \"$1/passwd\" /etc/passwd
mount --bind \"$1/empty\" /etc/resolv.conf
shift
exec \"$@\"";

/// The client's machine, which has its own name servers.
struct Machine {
    hosts: Hosts,
    client: String,
    hub: String,
    /// Files added to /usr.
    programs: Option<PathBuf>,
}

impl Machine {
    fn new() -> Option<Self> {
        let hosts = Hosts::new()?;
        let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
        for name in ["run/systemd/resolve", "etc", "work"] {
            fs::create_dir_all(hosts.dir.file(name)).expect("a new directory");
        }
        chown(hosts.dir.file("run/systemd/resolve"), Some(NOBODY), Some(NOBODY)).expect("root may");
        fs::write(hosts.dir.file("empty"), "").expect("written");
        let users = fs::read_to_string("/etc/passwd").expect("a file");
        let user = format!("systemd-resolve:x:{NOBODY}:{NOBODY}:::/usr/sbin/nologin\n");
        fs::write(hosts.dir.file("passwd"), users + &user).expect("written");
        echo(&hosts, "i");
        answer_names(&hosts);
        Some(Self { hosts, client, hub, programs: None })
    }

    /// Makes its /etc/resolv.conf a link to the stub of systemd-resolved.
    fn with_stub(self) -> Self {
        fs::write(self.hosts.dir.file("run/systemd/resolve/stub-resolv.conf"), STUB)
            .expect("written");
        symlink("../run/systemd/resolve/stub-resolv.conf", self.file()).expect("a new link");
        self
    }

    fn file(&self) -> PathBuf {
        self.hosts.dir.file("etc/resolv.conf")
    }

    /// The text of /etc/resolv.conf. `None` if it is a link.
    fn text(&self) -> Option<String> {
        let is_link = self.file().is_symlink();
        (!is_link).then(|| fs::read_to_string(self.file()).unwrap_or_default())
    }

    /// A command on this machine.
    fn command(&self) -> Command {
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            &self.hosts.name("c"),
            "unshare",
            "--mount",
            "sh",
            "-c",
            MACHINE,
            "sh",
        ]);
        command.arg(self.hosts.dir.file("."));
        command.arg(self.programs.as_deref().unwrap_or(Path::new("")));
        command.env("DBUS_SYSTEM_BUS_ADDRESS", self.bus());
        command
    }

    fn up(&self, more: &[&str]) -> Tunnel {
        let mut command = self.command();
        command.args([BINARY, "tunnel", "up", "--key", "client.key", "--peer", &self.hub]);
        command.args(["--to", &HUB.join(","), "--run-directory", "run-c", "--dns", HOST]);
        self.hosts.spawn("c.log", command.args(more))
    }

    fn serve(&self) -> Tunnel {
        self.hosts.serve(&[&self.client], &[])
    }

    fn bus(&self) -> String {
        format!("unix:path={}", self.hosts.dir.file("bus").display())
    }

    /// Starts a bus; `None`, with a note, if there is no program for it.
    fn start_bus(&self) -> Option<Tunnel> {
        let config = format!(
            "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
             \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n\
             <busconfig><type>system</type><listen>{}</listen><auth>EXTERNAL</auth>\n\
             <policy context=\"default\"><allow user=\"*\"/><allow own=\"*\"/><allow send_destination=\"*\"/>\n\
             <allow receive_sender=\"*\"/></policy></busconfig>\n",
            self.bus()
        );
        let file = self.hosts.dir.file("bus.conf");
        fs::write(&file, config).expect("written");
        let mut daemon = Command::new("dbus-daemon");
        daemon.arg("--nofork").arg("--config-file").arg(file);
        if Command::new("dbus-daemon").arg("--version").output().is_err() {
            eprintln!("skipped: no dbus-daemon");
            return None;
        }
        let daemon = self.hosts.spawn("bus.log", &mut daemon);
        self.hosts.wait_for("a bus", || self.hosts.dir.file("bus").exists());
        Some(daemon)
    }

    /// Starts systemd-resolved in the namespace of a host; `None`, with a note, if there is none.
    fn start_resolved(&self, host: &str) -> Option<Tunnel> {
        let unpacked = name_managers().join("usr/lib/systemd/systemd-resolved");
        let installed = ["/lib/systemd/systemd-resolved", "/usr/lib/systemd/systemd-resolved"];
        let all = [unpacked].into_iter().chain(installed.map(PathBuf::from));
        let Some(program) = all.into_iter().find(|program| program.exists()) else {
            eprintln!("skipped: no systemd-resolved (`make name-managers`)");
            return None;
        };
        let mut command = Command::new("ip");
        let name = self.hosts.name(host);
        command.args(["netns", "exec", &name, "unshare", "--mount", "sh", "-c", RESOLVED, "sh"]);
        command.arg(self.hosts.dir.file(".")).arg(program);
        command.env("DBUS_SYSTEM_BUS_ADDRESS", self.bus()).env("SYSTEMD_LOG_TARGET", "console");
        command.env("LD_LIBRARY_PATH", libraries());
        let mut resolved = self.hosts.spawn("resolved.log", &mut command);
        let mut ended = false;
        self.hosts.wait_for("systemd-resolved", || {
            ended = resolved.child.try_wait().is_ok_and(|status| status.is_some());
            ended || self.resolved("org.freedesktop.DBus.Peer.Ping", &[]).is_some()
        });
        if ended {
            eprintln!("skipped: systemd-resolved does not run here: {}", resolved.said());
            return None;
        }
        Some(resolved)
    }

    /// Calls systemd-resolved. Returns its answer.
    fn resolved(&self, method: &str, words: &[&str]) -> Option<String> {
        let mut send = Command::new("dbus-send");
        send.arg(format!("--bus={}", self.bus())).args(["--print-reply", "--reply-timeout=5000"]);
        send.args(["--dest=org.freedesktop.resolve1", "/org/freedesktop/resolve1", method]);
        let output = send.args(words).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Indexes of links with settings in systemd-resolved, one for each server and each domain.
    fn of_links(&self, property: &str) -> Vec<String> {
        let words = ["string:org.freedesktop.resolve1.Manager", &format!("string:{property}")];
        let answer = self.resolved("org.freedesktop.DBus.Properties.Get", &words);
        let answer = answer.expect("systemd-resolved runs");
        let structs = answer.split("struct {").skip(1).filter_map(|one| one.split('}').next());
        structs.map(|one| one.split_whitespace().collect()).collect()
    }

    fn index(&self) -> String {
        let file = "/sys/class/net/rw-tunnel/ifindex";
        let read = Command::new("ip")
            .args(["netns", "exec", &self.hosts.name("c"), "cat", file])
            .output()
            .expect("ip");
        String::from_utf8_lossy(&read.stdout).trim().to_owned()
    }

    /// Whether a program that uses this server gets the address that the name server behind the hub returns.
    fn is_known_by(&self, server: &str) -> bool {
        let server = SocketAddr::new(server.parse().expect("an address"), 53);
        self.hosts.inside("c", || {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a free port");
            socket.set_read_timeout(Some(std::time::Duration::from_secs(2))).expect("an option");
            let question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03any\x07example\x00\x00\x01\x00\x01";
            let mut answer = [0; 512];
            let sent = socket.send_to(question, server);
            let Ok(size) = sent.and_then(|_| socket.recv(&mut answer)) else { return false };
            answer[..size].ends_with(&ANSWER)
        })
    }
}

/// Directory to which `make name-managers` unpacks the programs.
pub fn name_managers() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    target.join("tools/name-managers")
}

/// Directory of the libraries of systemd-resolved, which depends on the processor.
fn libraries() -> PathBuf {
    let all = fs::read_dir(name_managers().join("usr/lib")).into_iter().flatten().flatten();
    let mut all = all.map(|entry| entry.path().join("systemd"));
    all.find(|place| place.exists()).unwrap_or_default()
}

/// Answers queries for the address of any name, at the host behind the hub, until the test ends.
fn answer_names(hosts: &Hosts) {
    let socket = hosts.inside("i", || UdpSocket::bind((HOST, 53)).expect("a free port"));
    thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((size, from)) = socket.recv_from(&mut question) {
            // The name ends with an empty label; the type and the class follow.
            let name = question[12..size].iter().position(|byte| *byte == 0).unwrap_or_default();
            let end = 12 + name + 5;
            let is_address = question[end - 4..end] == [0, 1, 0, 1];
            let mut answer = question[..2].to_vec();
            answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_address), 0, 0, 0, 0]);
            answer.extend(&question[12..end]);
            if is_address {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
                answer.extend(ANSWER);
            }
            let _ = socket.send_to(&answer, from);
        }
    });
}

/// A machine whose programs use systemd-resolved, and a hub.
fn with_resolved() -> Option<(Machine, [Tunnel; 3])> {
    let machine = Machine::new()?.with_stub();
    let bus = machine.start_bus()?;
    let resolved = machine.start_resolved("c")?;
    let serve = machine.serve();
    Some((machine, [serve, resolved, bus]))
}

#[test]
fn systemd_resolved_sends_all_names_to_the_tunnels_servers_until_the_tunnel_ends() {
    let Some((machine, [serve, _resolved, _bus])) = with_resolved() else { return };
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let up = machine.up(&[]);
        machine.hosts.wait_for_answer(HOST, &[&serve, &up]);
        machine.hosts.wait_for("asked", || machine.is_known_by("127.0.0.53"));
        let link = machine.index();
        assert_eq!(machine.of_links("DNS"), [format!("int32{link}int322arrayofbytes[c0000202]")]);
        assert_eq!(machine.of_links("Domains"), [format!("int32{link}string\".\"booleantrue")]);
        assert_eq!(machine.text(), None, "the link stays");
        assert!(!up.said().contains("problem"), "{}", up.said());
        up.end(signal);
        machine.hosts.wait_for("without a link", || {
            machine.of_links("DNS").is_empty() && machine.of_links("Domains").is_empty()
        });
    }
}

#[test]
fn systemd_resolved_is_told_again_when_it_has_forgotten_the_servers() {
    let Some((machine, [serve, resolved, _bus])) = with_resolved() else { return };
    let up = machine.up(&["--dns-manager", "resolved"]);
    machine.hosts.wait_for_answer(HOST, &[&serve, &up]);
    let is_set = || machine.of_links("DNS").len() == 1 && machine.of_links("Domains").len() == 1;
    machine.hosts.wait_for("set", is_set);
    let link = format!("int32:{}", machine.index());
    machine.resolved("org.freedesktop.resolve1.Manager.RevertLink", &[&link]).expect("reverted");
    machine.hosts.wait_for("set again", is_set);
    resolved.end(Signal::SIGKILL);
    // The directory in which it keeps the servers across restarts.
    fs::remove_dir_all(machine.hosts.dir.file("run/systemd/resolve/netif")).expect("its state");
    let _resolved = machine.start_resolved("c").expect("it has run before");
    machine.hosts.wait_for("set after a restart", is_set);
    machine.hosts.wait_for("asked", || machine.is_known_by("127.0.0.53"));
    assert!(!up.said().contains("problem"), "{}", up.said());
}

#[test]
fn programs_that_read_the_file_are_told_as_well_if_it_does_not_lead_to_systemd_resolved() {
    let Some((machine, [serve, _resolved, _bus])) = with_resolved() else { return };
    fs::remove_file(machine.file()).expect("a link");
    let text = "nameserver 192.0.2.53\nnameserver 127.0.0.53\n";
    fs::write(machine.file(), text).expect("written");
    let up = machine.up(&[]);
    machine.hosts.wait_for_answer(HOST, &[&serve, &up]);
    machine.hosts.wait_for("asked", || machine.is_known_by("127.0.0.53"));
    let now = machine.text().expect("a file");
    assert!(now.contains(&format!("nameserver {HOST}\n")) && !now.contains("127.0.0.53"), "{now}");
    up.end(Signal::SIGTERM);
    assert_eq!(machine.text().as_deref(), Some(text));
}

#[test]
fn a_systemd_resolved_that_does_not_answer_does_not_hold_the_tunnel_up() {
    let Some((machine, [serve, resolved, _bus])) = with_resolved() else { return };
    resolved.signal(Signal::SIGSTOP);
    let up = machine.up(&[]);
    machine.hosts.wait_for_answer(HOST, &[&serve, &up]);
    let written = || machine.text().is_some_and(|text| text.contains(HOST));
    machine.hosts.wait_for("written", written);
    machine.hosts.wait_for("told", || {
        up.said().contains("no answer within 2 s; they are set in /etc/resolv.conf instead")
    });
    up.end(Signal::SIGTERM);
    assert_eq!(machine.text(), None, "the link is back");
    resolved.signal(Signal::SIGCONT);
}

#[test]
fn a_systemd_resolved_that_refuses_is_replaced_by_the_file_unless_it_was_named() {
    let Some((machine, [serve, _resolved, _bus])) = with_resolved() else { return };
    // Pretends that systemd-networkd manages the links. Only systemd-networkd may then set their
    // name servers.
    let managed = machine.hosts.dir.file("run/systemd/netif/links");
    fs::create_dir_all(&managed).expect("a new directory");
    for index in 1..40 {
        fs::write(managed.join(index.to_string()), "ADMIN_STATE=configured\n").expect("written");
    }
    let up = machine.up(&[]);
    machine.hosts.wait_for_answer(HOST, &[&serve, &up]);
    let written = || machine.text().is_some_and(|text| text.contains(HOST));
    machine.hosts.wait_for("written", written);
    let said = "rw-tunnel is managed; they are set in /etc/resolv.conf instead";
    assert!(up.said().contains(said), "{}", up.said());
    up.end(Signal::SIGTERM);
    let mut up = machine.up(&["--dns-manager", "resolved"]);
    assert_eq!(up.child.wait().expect("a child").code(), Some(2), "{}", up.said());
    assert_eq!(machine.text(), None, "the link stays");
}

#[test]
fn a_bus_that_does_not_answer_does_not_hold_the_tunnel_up() {
    let Some(machine) = Machine::new() else { return };
    fs::write(machine.file(), STUB).expect("written");
    let _silent = UnixListener::bind(machine.hosts.dir.file("bus")).expect("a new socket");
    let serve = machine.serve();
    let up = machine.up(&[]);
    machine.hosts.wait_for_answer(HOST, &[&serve, &up]);
    machine.hosts.wait_for("written", || machine.text().is_some_and(|text| text.contains(HOST)));
    assert!(up.said().contains("no answer within 2 s"), "{}", up.said());
    up.end(Signal::SIGTERM);
    assert_eq!(machine.text().as_deref(), Some(STUB));
}

#[test]
fn systemd_resolved_of_another_network_namespace_is_not_used() {
    let Some(machine) = Machine::new() else { return };
    let machine = machine.with_stub();
    let Some(_bus) = machine.start_bus() else { return };
    let Some(_resolved) = machine.start_resolved("d") else { return };
    let serve = machine.serve();
    let mut up = machine.up(&["--dns-manager", "resolved"]);
    assert_eq!(up.child.wait().expect("a child").code(), Some(2), "{}", up.said());
    assert!(up.said().contains("does not run in this network namespace"), "{}", up.said());
    let up = machine.up(&[]);
    machine.hosts.wait_for_answer(HOST, &[&serve, &up]);
    machine.hosts.wait_for("written", || machine.text().is_some_and(|text| text.contains(HOST)));
    assert!(machine.of_links("DNS").is_empty());
}

#[test]
fn a_manager_that_the_machine_does_not_have_is_refused_before_anything_changes() {
    let Some(machine) = Machine::new() else { return };
    for (words, expected) in [
        (&["--dns-manager", "resolved"][..], "name servers by systemd-resolved: it is not running"),
        (&["--dns-manager", "resolvconf"], "name servers by resolvconf: neither /sbin/resolvconf"),
        (&["--dns-manager", "resolved", "--dns-file", "names"], "contradict"),
        (&["--dns-manager", "resolvectl"], "possible values: auto, resolved, resolvconf, file"),
    ] {
        let mut up = machine.up(words);
        assert_eq!(up.child.wait().expect("a child").code(), Some(2), "{words:?} {}", up.said());
        let said = up.said();
        assert!(said.contains(expected) && said.matches("error").count() == 1, "{words:?}: {said}");
        let journal = machine.hosts.dir.file("run-c/tunnel.journal");
        let changes = fs::read_to_string(journal).map_or(0, |text| text.lines().count());
        assert!(changes <= 1, "{words:?}: nothing but where the journal was begun");
    }
}

#[test]
fn openresolv_lists_the_tunnels_servers_alone_until_the_tunnel_ends() {
    let Some(mut machine) = Machine::new() else { return };
    let programs = name_managers();
    if !programs.join("usr/sbin/resolvconf").exists() {
        return eprintln!("skipped: no openresolv (`make name-managers`)");
    }
    machine.programs = Some(programs);
    fs::write(machine.file(), "# Generated by resolvconf\n").expect("written");
    let resolvconf = |words: &str| {
        let words = format!("echo nameserver 192.0.2.53 | /sbin/resolvconf {words}");
        let status = machine.command().args(["sh", "-c", &words]).status();
        assert!(status.is_ok_and(|status| status.success()), "{words}");
    };
    resolvconf("-a l1");
    let before = "# Generated by resolvconf\nnameserver 192.0.2.53\n";
    let with_tunnel = format!("# Generated by resolvconf\nnameserver {HOST}\n");
    assert_eq!(machine.text().as_deref(), Some(before));
    let serve = machine.serve();
    for more in [&[][..], &["--dns-manager", "resolvconf"]] {
        let up = machine.up(more);
        machine.hosts.wait_for_answer(HOST, &[&serve, &up]);
        assert_eq!(machine.text(), Some(with_tunnel.clone()), "{}", up.said());
        assert!(machine.is_known_by(HOST));
        // A program that does not support openresolv.
        fs::write(machine.file(), "nameserver 192.0.2.54\n").expect("written");
        machine.hosts.wait_for("written again", || machine.text() == Some(with_tunnel.clone()));
        up.end(Signal::SIGTERM);
        assert_eq!(machine.text().as_deref(), Some(before));
    }
    machine.hosts.wait_for_answer(HOST, &[&serve, &machine.up(&[])]);
    assert_eq!(machine.text(), Some(with_tunnel), "it was killed");
    let up = machine.up(&["--dns-file", "other.conf"]);
    machine.hosts.wait_for("undone", || machine.text().as_deref() == Some(before));
    machine.hosts.wait_for_answer(HOST, &[&serve, &up]);
    up.end(Signal::SIGTERM);
    assert_eq!(machine.text().as_deref(), Some(before));
}

#[test]
fn an_openresolv_that_fails_or_hangs_is_replaced_by_the_file_unless_it_was_named() {
    let Some(mut machine) = Machine::new() else { return };
    let programs = machine.hosts.dir.file("programs");
    let program = programs.join("usr/sbin/resolvconf");
    fs::create_dir_all(programs.join("usr/sbin")).expect("a new directory");
    machine.programs = Some(programs);
    let text = "# Generated by resolvconf\nnameserver 192.0.2.53\n";
    fs::write(machine.file(), text).expect("written");
    let serve = machine.serve();
    let script = |failure: &str| {
        format!("#!/bin/sh\n[ \"$1\" != --version ] || exec echo openresolv 3.12.0\n{failure}\n")
    };
    for (failure, said) in [("exit 3", "exit status: 3"), ("sleep 120", "has not ended within 5 s")]
    {
        fs::write(&program, script(failure)).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("an own file");
        let up = machine.up(&[]);
        machine.hosts.wait_for_answer(HOST, &[&serve, &up]);
        let written = || machine.text().is_some_and(|text| text.contains(HOST));
        machine.hosts.wait_for("written", written);
        assert!(up.said().contains(said), "{}", up.said());
        up.end(Signal::SIGTERM);
        assert_eq!(machine.text().as_deref(), Some(text), "{failure}");
    }
    fs::write(&program, script("exit 3")).expect("written");
    let mut up = machine.up(&["--dns-manager", "resolvconf"]);
    let status = up.child.wait().expect("a child");
    assert!(!status.success() && up.said().contains("exit status: 3"), "{status}: {}", up.said());
    assert_eq!(machine.text().as_deref(), Some(text));
}
