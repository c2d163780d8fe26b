//! Two hosts: unnamed network namespaces, joined by links with a subnet each.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};
use serde_json::Value;

use crate::Missing;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The host of Ropewalk.
    Ours,
    /// The host of the other stack.
    Theirs,
}

impl Side {
    /// Last byte of its addresses.
    const fn number(self) -> u8 {
        match self {
            Self::Ours => 1,
            Self::Theirs => 2,
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Ours => Self::Theirs,
            Self::Theirs => Self::Ours,
        }
    }
}

/// Two hosts and the links between them. They disappear when this is dropped and the processes
/// inside have ended.
#[derive(Debug)]
pub struct Hosts {
    ours: File,
    theirs: File,
    links: u8,
}

impl Hosts {
    /// Two hosts with `links` links.
    ///
    /// # Errors
    /// If the system does not provide namespaces.
    ///
    /// # Panics
    /// If links cannot be created.
    pub fn new(links: u8) -> Result<Self, Missing> {
        let hosts = Self { ours: namespace()?, theirs: namespace()?, links };
        for side in [Side::Ours, Side::Theirs] {
            hosts.ip(side, "link set lo up")?;
        }
        let theirs = path_of(&hosts.theirs);
        for link in 1..=links {
            let theirs = theirs.display();
            hosts.ip(
                Side::Ours,
                &format!("link add v{link} type veth peer name v{link} netns {theirs}"),
            )?;
            for side in [Side::Ours, Side::Theirs] {
                let n = side.number();
                hosts.ip(side, &format!("address add 10.77.{link}.{n}/24 dev v{link}"))?;
                hosts.ip(side, &format!("address add fd77:{link}::{n}/64 dev v{link} nodad"))?;
                hosts.ip(side, &format!("link set v{link} up"))?;
            }
        }
        (1..=links).for_each(|link| hosts.await_link(link));
        Ok(hosts)
    }

    /// Waits until a new link works. The system activates new links once a second, and earlier
    /// packets are lost.
    fn await_link(&self, link: u8) {
        let is_up = |side| {
            let mut command = Command::new("ip");
            command.args(["-brief", "link", "show", "up", "dev", &format!("v{link}")]);
            let shown = self.inside(side, || command.output()).expect("ip link");
            String::from_utf8_lossy(&shown.stdout).contains(" UP ")
        };
        while !(is_up(Side::Ours) && is_up(Side::Theirs)) {
            thread::yield_now();
        }
    }

    /// The addresses of a side, one per link.
    pub fn addresses(&self, side: Side) -> Vec<IpAddr> {
        let of = |link| IpAddr::V4(Ipv4Addr::new(10, 77, link, side.number()));
        (1..=self.links).map(of).collect()
    }

    /// The IPv6 addresses of a side, one per link.
    pub fn addresses_v6(&self, side: Side) -> Vec<IpAddr> {
        let n = u16::from(side.number());
        let of = |link| IpAddr::V6(Ipv6Addr::new(0xfd77, u16::from(link), 0, 0, 0, 0, 0, n));
        (1..=self.links).map(of).collect()
    }

    /// The addresses of a side with a UDP port.
    pub fn sockets(&self, side: Side, port: u16) -> Vec<SocketAddr> {
        self.addresses(side).into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
    }

    /// Runs `what` on a host, in a new thread there.
    ///
    /// # Panics
    /// If the host cannot be entered, or `what` panics.
    pub fn inside<T: Send>(&self, side: Side, what: impl FnOnce() -> T + Send) -> T {
        inside(self.host(side), what)
    }

    /// Starts a program on a host.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn spawn(&self, side: Side, command: &mut Command) -> io::Result<Child> {
        self.inside(side, || command.spawn())
    }

    /// Silently drops all packets of a link in both directions: frames go to an unused hardware
    /// address.
    ///
    /// # Panics
    /// If that fails.
    pub fn cut(&self, link: u8) {
        for side in [Side::Ours, Side::Theirs] {
            let to = side.other().number();
            let line =
                format!("neigh replace 10.77.{link}.{to} lladdr 02:00:00:00:00:99 dev v{link}");
            self.ip(side, &line).expect("ip neigh");
        }
    }

    /// Restores a link after [`Hosts::cut`].
    ///
    /// # Panics
    /// If that fails.
    pub fn mend(&self, link: u8) {
        for side in [Side::Ours, Side::Theirs] {
            let to = side.other().number();
            self.ip(side, &format!("neigh del 10.77.{link}.{to} dev v{link}")).expect("ip neigh");
        }
    }

    /// Takes a link down on both sides: its interfaces are down, and their IPv6 addresses are removed.
    ///
    /// # Panics
    /// If that fails.
    pub fn unplug(&self, link: u8) {
        for side in [Side::Ours, Side::Theirs] {
            self.ip(side, &format!("link set v{link} down")).expect("ip link");
        }
    }

    /// Brings a link up again.
    ///
    /// # Panics
    /// If that fails.
    pub fn plug_in(&self, link: u8) {
        for side in [Side::Ours, Side::Theirs] {
            self.ip(side, &format!("link set v{link} up")).expect("ip link");
        }
        self.await_link(link);
    }

    /// Removes the IPv4 address of a link from one side.
    ///
    /// # Panics
    /// If that fails.
    pub fn remove_address(&self, side: Side, link: u8) {
        self.change_address("del", side, link);
    }

    /// Restores the address.
    ///
    /// # Panics
    /// If that fails.
    pub fn add_address(&self, side: Side, link: u8) {
        self.change_address("add", side, link);
    }

    fn change_address(&self, verb: &str, side: Side, link: u8) {
        let n = side.number();
        let line = format!("address {verb} 10.77.{link}.{n}/24 dev v{link}");
        self.ip(side, &line).expect("ip address");
    }

    /// Total bytes that a link has carried in both directions.
    ///
    /// # Panics
    /// If the system does not report them.
    pub fn carried(&self, link: u8) -> u64 {
        let mut command = Command::new("ip");
        command.args(["-json", "-statistics", "link", "show", "dev", &format!("v{link}")]);
        let shown = self.inside(Side::Ours, || command.output()).expect("ip link").stdout;
        let shown: Value = serde_json::from_slice(&shown).expect("JSON");
        let bytes = |way: &str| shown[0]["stats64"][way]["bytes"].as_u64().expect("a counter");
        bytes("rx") + bytes("tx")
    }

    fn host(&self, side: Side) -> &File {
        match side {
            Side::Ours => &self.ours,
            Side::Theirs => &self.theirs,
        }
    }

    fn ip(&self, side: Side, words: &str) -> Result<(), Missing> {
        let mut command = Command::new("ip");
        command.args(words.split(' ')).stdout(Stdio::null()).stderr(Stdio::piped());
        let ended = self.spawn(side, &mut command).and_then(Child::wait_with_output);
        let ended = ended.map_err(|e| Missing(format!("`ip` (package iproute2): {e}")))?;
        if ended.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        Err(Missing(format!("`ip {words}`: {said}")))
    }
}

/// Runs `what` in a namespace, in a new thread.
pub(crate) fn inside<T: Send>(namespace: &File, what: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let there = scope.spawn(|| {
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("into the namespace");
            what()
        });
        there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A network namespace. It exists while a file descriptor or a process refers to it.
pub(crate) fn namespace() -> Result<File, Missing> {
    let made = thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from)?;
        File::open("/proc/thread-self/ns/net")
    });
    let made = made.join().expect("no panic in there");
    made.map_err(|e| Missing(format!("network namespaces (run it as root): {e}")))
}

/// The path by which other processes find a namespace.
pub(crate) fn path_of(namespace: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd()))
}
