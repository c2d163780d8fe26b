//! Facts about this machine, gathered without sending a packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use ropewalk_apps::tunnel::machine;
use ropewalk_runtime::clock::Clock;
use ropewalk_runtime::endpoint::{BindAddress, SocketGrants};
use ropewalk_runtime::interfaces::{self, InterfaceAddress};
use ropewalk_runtime::seal::SecretKey;

use super::routes::{self, Route};
use crate::commands::tunnel::STATE_DIRECTORY;

/// Number of readings to determine the step of the monotonic clock.
const CLOCK_READINGS: usize = 1000;

/// A value, or why it could not be read.
pub type Fact<T> = Result<T, String>;

/// A network interface that is up and has a usable address.
#[derive(Clone, Debug)]
pub struct Link {
    pub name: String,
    /// Addresses, with the prefix lengths of their networks.
    pub addresses: Vec<(IpAddr, u8)>,
    pub mtu: Fact<u32>,
    /// Buffers and options granted to a socket that is bound to this interface.
    pub bound: Fact<SocketGrants>,
    /// Whether the kernel drops packets whose return route uses another interface.
    pub strict_filter: Fact<bool>,
}

/// The key of this machine.
#[derive(Clone, Debug)]
pub enum KeyFact {
    /// The default key, which the first command that needs it creates.
    Missing(PathBuf),
    Valid {
        path: PathBuf,
        public: String,
    },
    /// With the error and its advice.
    Unusable(String, String),
    /// The system has no directory for settings.
    NoDirectory,
}

/// All facts that can be checked without a peer.
#[derive(Debug)]
pub struct Facts {
    pub links: Vec<Link>,
    /// IPv4 routes of the main table.
    pub routes: Fact<Vec<Route>>,
    /// Buffers and options granted to a socket that is not bound to an interface.
    pub socket: Fact<SocketGrants>,
    /// Each address to listen on, and the error of binding it.
    pub listen: Vec<(SocketAddr, Fact<()>)>,
    /// Whether the user specified the addresses to listen on.
    pub listen_given: bool,
    pub tun: Fact<()>,
    /// Killed tunnels, with the number of their changes that remain.
    pub killed_tunnels: Vec<(String, usize)>,
    /// Minimum step of the monotonic clock, nanoseconds.
    pub clock_step_ns: Option<u64>,
    /// Whether a time server sets the system clock.
    pub synchronised: Fact<bool>,
    /// Evidence that the system clock is wrong.
    pub wrong_date: Option<String>,
    pub key: KeyFact,
    /// Directory of the key, with its mode.
    pub settings: Option<(PathBuf, Fact<u32>)>,
    pub kernel: Fact<String>,
}

impl Facts {
    /// Reads the facts.
    pub fn gather(listen: &[SocketAddr], listen_given: bool, key: Option<&Path>) -> Self {
        let path = key.map(Path::to_owned).or_else(crate::live::default_key);
        let settings = path.as_deref().and_then(Path::parent).filter(|path| path.is_dir());
        Self {
            links: links(),
            routes: routes::read(),
            socket: grants(&anywhere(false)),
            listen: listen.iter().map(|address| (*address, free(*address))).collect(),
            listen_given,
            tun: tun(),
            killed_tunnels: machine::left_behind(Path::new(STATE_DIRECTORY)),
            clock_step_ns: clock_step(),
            synchronised: synchronised(),
            wrong_date: crate::live::wrong_date(),
            settings: settings.map(|path| (path.to_owned(), mode(path))),
            key: read_key(path, key.is_some()),
            kernel: read("/proc/sys/kernel/osrelease"),
        }
    }
}

fn anywhere(ipv6: bool) -> BindAddress {
    let ip = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    BindAddress::of(SocketAddr::new(ip, 0))
}

fn grants(local: &BindAddress) -> Fact<SocketGrants> {
    SocketGrants::try_bind(local).map_err(|error| error.to_string())
}

fn free(address: SocketAddr) -> Fact<()> {
    grants(&BindAddress::of(address)).map(drop)
}

fn links() -> Vec<Link> {
    let links = interfaces::outside_tunnels(&[]).map(links_of).unwrap_or_default();
    // A container whose only network is a TUN device, or the inside of `ropewalk emulate`.
    if links.is_empty() { interfaces::list().map(links_of).unwrap_or_default() } else { links }
}

fn links_of(all: Vec<InterfaceAddress>) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for seen in all {
        if !(seen.up && seen.is_routable()) {
            continue;
        }
        if let Some(link) = links.iter_mut().find(|link| link.name == seen.name) {
            link.addresses.push((seen.ip, seen.prefix));
            continue;
        }
        let local =
            BindAddress { interface: Some(seen.name.clone()), ..anywhere(seen.ip.is_ipv6()) };
        links.push(Link {
            addresses: vec![(seen.ip, seen.prefix)],
            mtu: number(&format!("/sys/class/net/{}/mtu", seen.name)),
            bound: grants(&local),
            strict_filter: strict_filter(&seen.name),
            name: seen.name,
        });
    }
    links
}

/// The kernel uses the larger of the values for all interfaces and for this one (ip-sysctl, `rp_filter`).
fn strict_filter(link: &str) -> Fact<bool> {
    let of = |name: &str| number::<u32>(&format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"));
    Ok(of("all")?.max(of(link)?) == 1)
}

fn read(file: &str) -> Fact<String> {
    if !cfg!(target_os = "linux") {
        return Err("needs Linux".to_owned());
    }
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok(text.trim().to_owned())
}

fn number<T: std::str::FromStr>(file: &str) -> Fact<T> {
    read(file)?.parse().map_err(|_| format!("{file}: not a number"))
}

fn tun() -> Fact<()> {
    if !cfg!(target_os = "linux") {
        return Err("needs Linux".to_owned());
    }
    let opened = std::fs::File::options().read(true).write(true).open("/dev/net/tun");
    opened.map(drop).map_err(|error| error.to_string())
}

fn clock_step() -> Option<u64> {
    let clock = Clock::start();
    let mut last = clock.now().as_nanos();
    let mut step = None;
    for _ in 0..CLOCK_READINGS {
        let now = clock.now().as_nanos();
        let passed = (now > last).then(|| now - last);
        step = passed.map_or(step, |passed| Some(step.map_or(passed, |s: u64| s.min(passed))));
        last = now;
    }
    step
}

/// The state of the kernel's clock according to systemd, which reads it by adjtimex.
fn synchronised() -> Fact<bool> {
    if !cfg!(target_os = "linux") {
        return Err("needs Linux and systemd".to_owned());
    }
    let mut command = std::process::Command::new("timedatectl");
    let output = command.args(["show", "--property=NTPSynchronized", "--value"]).output();
    let output = output.map_err(|error| format!("`timedatectl` cannot be run: {error}"))?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("`timedatectl` gives no answer: systemd is not running".to_owned()),
    }
}

fn read_key(path: Option<PathBuf>, given: bool) -> KeyFact {
    let Some(path) = path else { return KeyFact::NoDirectory };
    if !given && !path.exists() {
        return KeyFact::Missing(path);
    }
    match SecretKey::read_file(&path) {
        Ok(key) => KeyFact::Valid { path, public: key.public().to_string() },
        Err(error) => KeyFact::Unusable(error.to_string(), error.help()),
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> Fact<u32> {
    use std::os::unix::fs::PermissionsExt;
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    Ok(found.permissions().mode() & 0o7777)
}

#[cfg(not(unix))]
fn mode(_: &Path) -> Fact<u32> {
    Err("this system has no file modes".to_owned())
}
