//! The attacked `ropewalk`: a process with its own key and address.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ropewalk_runtime::seal::{PublicKey, SecretKey};

use crate::figure::Failure;

/// Maximum time until a process listens.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Memory counts as settled after it has not grown for the first time, or after the second at the
/// latest.
const STABLE_TIME: Duration = Duration::from_millis(1500);
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Minimum growth that counts, bytes.
const GROWTH_MIN: u64 = 100_000;

/// A directory that is removed when this is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Result<Self, Failure> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ropewalk-attacks-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A new key in a file of this folder.
    pub fn key(&self, name: &str) -> Result<(SecretKey, PathBuf), Failure> {
        let secret = SecretKey::generate()?;
        let path = self.0.join(name);
        secret.write_new_file(&path).map_err(|error| error.to_string())?;
        Ok((secret, path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Ends a process when this is dropped.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// Resident memory, bytes. `None` if the process has ended.
    pub fn memory(&mut self) -> Option<u64> {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return None;
        }
        let text = fs::read_to_string(format!("/proc/{}/statm", self.0.id())).ok()?;
        Some(text.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
    }

    /// Resident memory once it stops growing, bytes. `None` if the process ends.
    pub fn memory_settled(&mut self) -> Option<u64> {
        let (began, mut grown, mut most) = (Instant::now(), Instant::now(), 0);
        while grown.elapsed() < STABLE_TIME && began.elapsed() < SETTLE_TIMEOUT {
            let now = self.memory()?;
            if now > most + GROWTH_MIN {
                (grown, most) = (Instant::now(), now);
            }
            sleep(Duration::from_millis(50));
        }
        Some(most)
    }
}

/// A running server.
pub struct Server {
    pub process: Process,
    pub key: PublicKey,
    pub address: SocketAddr,
    pub folder: Folder,
}

/// Options for starting a server.
#[derive(Default)]
pub struct Setup<'a> {
    /// Arguments before `--key` and `--listen`.
    pub words: &'a [&'a str],
    /// Public keys that it accepts. Empty to accept all.
    pub allow: &'a [PublicKey],
    /// Limit of virtual memory, KiB.
    pub memory: Option<u64>,
    /// A wrapper command, which precedes the binary.
    pub wrapper: &'a [&'a str],
}

impl Server {
    /// Starts the binary and waits until it listens.
    pub fn start(binary: &Path, setup: &Setup<'_>) -> Result<Self, Failure> {
        let folder = Folder::new()?;
        let (secret, key) = folder.key("server.key")?;
        let address = free_address()?;
        let limit = setup.memory.map_or("unlimited".to_owned(), |kib| kib.to_string());
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &limit]);
        command.args(setup.wrapper).arg(binary).args(setup.words);
        command.arg("--key").arg(key).args(["--listen", &address.to_string()]);
        for allowed in setup.allow {
            command.args(["--allow", &allowed.to_string()]);
        }
        let log = fs::File::create(folder.path().join("log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut process = Process(command.current_dir(folder.path()).spawn()?);
        let until = Instant::now() + START_TIMEOUT;
        while UdpSocket::bind(address).is_ok() {
            if Instant::now() > until || process.memory().is_none() {
                let said = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
                return Err(format!("{:?} does not listen: {said}", setup.words).into());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(Self { process, key: secret.public(), address, folder })
    }

    /// `recv` into a new directory.
    pub fn recv(binary: &Path) -> Result<Self, Failure> {
        Self::start(binary, &Setup { words: &["recv", "inbox"], ..Setup::default() })
    }

    /// `bench serve`.
    pub fn bench(binary: &Path) -> Result<Self, Failure> {
        Self::start(binary, &Setup { words: &["bench", "serve"], ..Setup::default() })
    }

    /// Arguments with which a command-line client reaches the server, possibly through a relay.
    pub fn reach(&self, through: SocketAddr) -> [String; 4] {
        ["--to", &through.to_string(), "--peer", &self.key.to_string()].map(str::to_owned)
    }
}

/// A free UDP address of the loopback interface.
pub fn free_address() -> Result<SocketAddr, Failure> {
    Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// One of many addresses of the loopback interface.
pub fn loopback(number: usize) -> IpAddr {
    let [high, low] = ((number % 60_000) as u16).to_be_bytes();
    Ipv4Addr::new(127, 9, high, low.clamp(1, 254)).into()
}
