//! The systemd units of tunnels: what their confinement permits, and the kill switch while systemd restarts a
//! tunnel.
//!
//! systemd runs as process 1 of separate namespaces, in the network of the client or the hub. Needs Linux, root,
//! cgroups version 2 and systemd; otherwise says so and passes.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::tunnel::{BINARY, HOST, HUB, Hosts, PATIENCE, POLL, echo};
use crate::tunnel_names::name_managers;
use crate::tunnel_switch::{Leak, locks};

const SYSTEMD: &str = "/lib/systemd/systemd";
const UNITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd");
/// Maximum time for systemd to start or to end.
const BOOT: Duration = Duration::from_secs(30);
/// `nameserver` lines of the machine of the client.
const OWN_NAMES: &str = "nameserver 192.0.2.53\n";

/// Runs systemd in a separate cgroup, `$2`, which is removed after it has ended. `$1` is a directory for cgroups.
const IN_CGROUP: &str = "set -e
mount -t cgroup2 cgroup2 \"$1\"
mkdir -p \"$1/$2\"
echo $$ > \"$1/$2/cgroup.procs\"
all=$1 own=$1/$2
shift 2
\"$@\" || true
echo $$ > \"$all/cgroup.procs\"
find \"$own\" -depth -type d -exec rmdir {} \\;";

/// Makes a machine below `$1` with the root of this machine, keeps written files separate, and starts systemd
/// there.
const MACHINE: &str = "set -e
mount -t tmpfs tmpfs \"$1\"
mkdir \"$1/upper\" \"$1/work\" \"$1/root\"
mount -t overlay overlay -o \"lowerdir=/,upperdir=$1/upper,workdir=$1/work\" \"$1/root\"
cd \"$1/root\"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=0700 tmpfs root
mount --rbind /dev dev
mount --make-rslave dev
rm -rf etc/systemd/system etc/resolv.conf etc/ropewalk var/lib/ropewalk
mkdir -p etc/systemd/system etc/ropewalk/tunnel root/.config
for unit in systemd-udevd systemd-udev-trigger systemd-modules-load systemd-journald; do
  ln -s /dev/null \"etc/systemd/system/$unit.service\"
done
echo 0123456789abcdef0123456789abcdef > etc/machine-id
cp \"$2\"/* etc/systemd/system/
cp -a \"$3/config\" root/.config/ropewalk
cp \"$3\"/*.toml etc/ropewalk/tunnel/
cp \"$3/names\" etc/resolv.conf
rm -rf etc/systemd/network etc/network etc/NetworkManager
if [ -d \"$3/etc\" ]; then cp -a \"$3/etc/.\" etc/; fi
if [ -d \"$5\" ]; then
  mkdir \"$1/upper-usr\" \"$1/work-usr\"
  mount -t overlay overlay -o \"lowerdir=$5:usr,upperdir=$1/upper-usr,workdir=$1/work-usr\" usr
fi
touch usr/bin/ropewalk
mount --bind \"$4\" usr/bin/ropewalk
exec chroot . /usr/bin/env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=basic.target --log-target=null --show-status=0";

/// A machine with systemd in the network of a host.
pub struct Machine {
    outer: Child,
    /// The number of its systemd process on this machine.
    systemd: String,
}

impl Machine {
    /// Starts it, with the files of a directory. `None`, with a note, if the system does not permit it.
    pub fn boot(hosts: &Hosts, host: &str, files: &Path) -> Option<Self> {
        if !Path::new(SYSTEMD).exists() {
            eprintln!("skipped: no systemd");
            return None;
        }
        let group = format!("ropewalk-{}", hosts.name(host));
        let place = |name: &str| {
            let place = hosts.dir.file(&format!("{name}-{host}"));
            fs::create_dir_all(&place).expect("a new directory");
            place
        };
        let (cgroups, below) = (place("cgroups"), place("machine"));
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &hosts.name(host), "sh", "-c", IN_CGROUP, "sh"]);
        command.arg(&cgroups).arg(&group);
        command.args(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc"]);
        command.args(["--cgroup", "sh", "-c", MACHINE, "sh"]);
        command.arg(&below).arg(UNITS).arg(files).arg(BINARY);
        command.arg(name_managers().join("usr"));
        let log = fs::File::create(hosts.dir.file(&format!("machine-{host}.log")));
        let log = log.expect("a file");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        let outer = command.spawn().expect("a program");
        let mut machine = Self { outer, systemd: String::new() };
        let begin = Instant::now();
        while begin.elapsed() < BOOT {
            if let Ok(Some(_)) = machine.outer.try_wait() {
                break;
            }
            // The shell, `unshare`, systemd.
            machine.systemd = child_of(&child_of(&machine.outer.id().to_string()));
            if !machine.systemd.is_empty() && machine.systemctl(&["is-active", "basic.target"]) {
                return Some(machine);
            }
            thread::sleep(POLL);
        }
        let log = fs::read_to_string(hosts.dir.file(&format!("machine-{host}.log")));
        eprintln!("skipped: systemd does not start here: {}", log.unwrap_or_default());
        None
    }

    /// Runs a program there.
    pub fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.systemd, "--all", "--root", "--wd"]).args(words);
        command.output().expect("a program")
    }

    pub fn systemctl(&self, words: &[&str]) -> bool {
        self.run(&[&["systemctl", "--quiet"], words].concat()).status.success()
    }

    pub fn shown(&self, words: &[&str]) -> String {
        String::from_utf8_lossy(&self.run(words).stdout).into_owned()
    }

    pub fn state_of(&self, unit: &str) -> String {
        self.shown(&["systemctl", "status", "--no-pager", "--lines=0", unit])
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // All processes of the machine end with its process 1.
        match self.systemd.parse() {
            Ok(systemd) => drop(kill(Pid::from_raw(systemd), Signal::SIGKILL)),
            Err(_) => drop(self.outer.kill()),
        }
        let _ = self.outer.wait();
    }
}

/// The number of a child of a process; empty if there is none.
fn child_of(process: &str) -> String {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    children.unwrap_or_default().trim().to_owned()
}

/// The files of a machine: the key of an end, and the options of its tunnel.
fn files(hosts: &Hosts, name: &str, key: &str, options: &str) -> PathBuf {
    let files = hosts.dir.file(name);
    fs::create_dir_all(files.join("config")).expect("a new directory");
    fs::copy(hosts.dir.file(key), files.join("config/identity.key")).expect("copied");
    fs::write(files.join("home.toml"), options).expect("written");
    fs::write(files.join("names"), OWN_NAMES).expect("written");
    files
}

pub fn client_files(hosts: &Hosts, hub: &str) -> PathBuf {
    let to: Vec<_> = HUB.iter().map(|address| format!("\"{address}\"")).collect();
    let options = format!(
        "to = [{}]\npeer = \"{hub}\"\nkill_switch = true\ndns = [\"10.88.0.1\"]\n",
        to.join(", ")
    );
    files(hosts, "client", "client.key", &options)
}

#[test]
fn a_tunnel_that_systemd_restarts_leaves_its_kill_switch_closed_and_a_stop_opens_it() {
    const UNIT: &str = "ropewalk-tunnel@home";
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    let files = client_files(&hosts, &hub);
    let Some(machine) = Machine::boot(&hosts, "c", &files) else { return };
    let before = locks(&hosts);
    echo(&hosts, "i");
    let serve = hosts.serve(&[&client], &[]);
    let leak = Leak::start(&hosts);
    leak.arrives(&hosts);
    assert!(machine.systemctl(&["start", UNIT]), "{}", machine.state_of(UNIT));
    hosts.wait_for_answer(HOST, &[&serve]);
    let names = || machine.shown(&["cat", "/etc/resolv.conf"]);
    hosts.wait_for("named", || names().contains("nameserver 10.88.0.1"));
    for words in
        [&["restart"][..], &["try-restart"], &["reload-or-restart"], &["kill", "-s", "KILL"]]
    {
        let (is_shut, done) = leak.is_shut_while(|| {
            let done = machine.systemctl(&[words, &[UNIT]].concat());
            hosts.wait_for_answer(HOST, &[&serve]);
            done
        });
        assert!(done && is_shut, "{words:?}: {}", machine.state_of(UNIT));
    }
    assert!(machine.systemctl(&["stop", UNIT]));
    leak.arrives(&hosts);
    assert_eq!((locks(&hosts), names()), (before, OWN_NAMES.to_owned()));
}

#[test]
fn a_kill_switch_stays_closed_while_the_system_shuts_down() {
    const UNIT: &str = "ropewalk-tunnel@home";
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    let files = client_files(&hosts, &hub);
    let Some(mut machine) = Machine::boot(&hosts, "c", &files) else { return };
    echo(&hosts, "i");
    let serve = hosts.serve(&[&client], &[]);
    assert!(machine.systemctl(&["start", UNIT]), "{}", machine.state_of(UNIT));
    hosts.wait_for_answer(HOST, &[&serve]);
    let leak = Leak::start(&hosts);
    let (is_shut, ()) = leak.is_shut_while(|| {
        machine.systemctl(&["poweroff"]);
        let begin = Instant::now();
        while machine.outer.try_wait().expect("a child").is_none() {
            assert!(begin.elapsed() < PATIENCE, "it does not shut down");
            thread::sleep(POLL);
        }
    });
    assert!(is_shut);
}

#[test]
fn the_unit_of_a_hub_may_do_what_a_hub_does() {
    const UNIT: &str = "ropewalk-hub@home";
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    let options = format!("allow = [\"{client}\"]\n");
    let files = files(&hosts, "hub", "hub.key", &options);
    let Some(machine) = Machine::boot(&hosts, "h", &files) else { return };
    echo(&hosts, "i");
    let forwarding = || machine.shown(&["sysctl", "-a", "-r", "forwarding"]);
    let before = forwarding();
    assert!(machine.systemctl(&["start", UNIT]), "{}", machine.state_of(UNIT));
    let up = hosts.connect(&hub, &[]);
    hosts.wait_for_answer(HOST, &[&up]);
    assert_ne!(forwarding(), before);
    assert!(machine.systemctl(&["reload", UNIT]), "{}", machine.state_of(UNIT));
    assert!(machine.systemctl(&["restart", UNIT]), "{}", machine.state_of(UNIT));
    hosts.wait_for_answer(HOST, &[&up]);
    assert!(machine.systemctl(&["stop", UNIT]));
    assert_eq!(forwarding(), before);
}
