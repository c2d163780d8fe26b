//! The two namespaces, and the link between them.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use ropewalk_runtime::emulate::Namespace;

use crate::Failure;

/// Address of the hub on the link.
pub const HUB_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// Address of the clients' end of the link.
const CLIENTS_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// The network from which clients connect.
const SOURCES: &str = "198.18.0.0/15";
/// Address of the servers behind the hub.
pub const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The network of the clients in the tunnel.
const INNER: &str = "10.88.0.0/16";

/// The source address of a client. Networks have 100 clients each, because limits of the hub are per network.
pub fn source(number: usize) -> Ipv4Addr {
    let (network, host) = (number / 100, number % 100);
    Ipv4Addr::from_bits(u32::from_be_bytes([198, 18, 0, 0]) + (network * 256 + host + 1) as u32)
}

/// The namespaces of the hub and of the clients, and a directory for files. Dropping this removes
/// them.
#[derive(Debug)]
pub struct Places {
    hub: Namespace,
    clients: Namespace,
    directory: PathBuf,
}

impl Places {
    /// Creates them.
    ///
    /// # Errors
    /// The system does not permit it.
    pub fn new() -> Result<Self, Failure> {
        let directory = tempfile("ropewalk-load")?;
        let places = Self { hub: Namespace::new()?, clients: Namespace::new()?, directory };
        let there = places.clients.file().display().to_string();
        let hub = [
            "link set lo up".to_owned(),
            format!("address add {SERVER_ADDRESS}/32 dev lo"),
            format!("link add v0 type veth peer v1 netns {there}"),
            format!("address add {HUB_ADDRESS}/24 dev v0"),
            "link set v0 up".to_owned(),
            format!("route add {SOURCES} via {CLIENTS_ADDRESS}"),
        ];
        places.at_hub(|| ip(&hub))?;
        let clients = [
            "link set lo up".to_owned(),
            format!("address add {CLIENTS_ADDRESS}/24 dev v1"),
            "link set v1 up".to_owned(),
            // Each address of the network is local: sockets can be bound to it.
            format!("route add local {SOURCES} dev lo"),
            format!("route add local {INNER} dev lo"),
        ];
        places.at_clients(|| ip(&clients))?;
        Ok(places)
    }

    /// Path of a file for this run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Calls `what` in the namespace of the hub, in a new thread.
    ///
    /// # Errors
    /// Those of `what`.
    pub fn at_hub<T: Send>(
        &self,
        what: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        inside(&self.hub, what)
    }

    /// Calls `what` in the namespace of the clients, in a new thread.
    ///
    /// # Errors
    /// Those of `what`.
    pub fn at_clients<T: Send>(
        &self,
        what: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        inside(&self.clients, what)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn inside<T: Send>(
    namespace: &Namespace,
    what: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        let work = || {
            namespace.enter()?;
            what()
        };
        scope.spawn(work).join().unwrap_or_else(|_| Err("a thread of the load panicked".into()))
    })
}

/// Creates a new directory.
fn tempfile(name: &str) -> Result<PathBuf, Failure> {
    let path = std::env::temp_dir();
    let free = (0..).map(|n| path.join(format!("{name}-{}-{n}", std::process::id())));
    for path in free {
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err("no name is free".into())
}

/// Runs `ip` with each line.
fn ip(lines: &[String]) -> Result<(), Failure> {
    for line in lines {
        run(Path::new("ip"), &line.split(' ').collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Runs a program that must succeed.
///
/// # Errors
/// It fails.
pub fn run(program: &Path, words: &[&str]) -> Result<(), Failure> {
    let output = Command::new(program).args(words).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{} {words:?}: {said}", program.display()).into())
}
