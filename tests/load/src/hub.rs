//! The hub: a running `ropewalk tunnel serve`, its memory and its CPU time.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ropewalk_runtime::seal::{PublicKey, SecretKey};

use crate::Failure;
use crate::places::{HUB_ADDRESS, Places};

/// Maximum time until the hub has started.
const START: Duration = Duration::from_secs(30);
/// Clock ticks of `/proc/PID/stat` in a second (USER_HZ, the same on all architectures that Linux supports).
const TICKS: u32 = 100;

/// Options for starting a hub.
#[derive(Clone, Debug, Default)]
pub struct HubOptions {
    /// Number of keys in its list of peers.
    pub clients: usize,
    /// Further options of the command.
    pub more: Vec<String>,
    /// Further lines of each entry in `peers.toml`.
    pub entry: String,
}

/// A running hub. Dropping this ends it.
#[derive(Debug)]
pub struct Hub {
    child: Child,
    log: PathBuf,
    status: PathBuf,
    public: PublicKey,
    keys: Vec<SecretKey>,
}

impl Hub {
    /// Starts a hub with new keys, and waits until it serves.
    ///
    /// # Errors
    /// It ends, or does not serve in time.
    pub fn start(binary: &Path, places: &Places, options: &HubOptions) -> Result<Self, Failure> {
        let keys: Vec<SecretKey> =
            (0..options.clients).map(|_| SecretKey::generate()).collect::<Result<_, _>>()?;
        let mut peers = String::new();
        for (number, key) in keys.iter().enumerate() {
            let (key, entry) = (key.public(), &options.entry);
            write!(peers, "[[peer]]\nname = \"c{number}\"\nkey = \"{key}\"\n{entry}\n")?;
        }
        fs::write(places.file("peers.toml"), peers)?;
        let secret = SecretKey::generate()?;
        secret.write_new_file(&places.file("hub.key"))?;
        Self::launch((binary, places, options), secret.public(), keys)
    }

    fn launch(
        (binary, places, options): (&Path, &Places, &HubOptions),
        public: PublicKey,
        keys: Vec<SecretKey>,
    ) -> Result<Self, Failure> {
        let (log, status) = (places.file("hub.log"), places.file("status"));
        fs::create_dir_all(&status)?;
        let mut command = Command::new(binary);
        command.args(["tunnel", "serve", "--listen", &HUB_ADDRESS.to_string()]);
        for (option, file) in [
            ("--key", "hub.key"),
            ("--allow-file", "peers.toml"),
            ("--state-directory", "state"),
            ("--run-directory", "run"),
        ] {
            command.arg(option).arg(places.file(file));
        }
        command.args(["--associations", "20000", "--memory", "1 GiB"]).args(&options.more);
        command.env("ROPEWALK_RUNTIME_DIR", &status).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&log)?);
        let child = places.at_hub(|| Ok(command.spawn()?))?;
        let mut hub = Self { child, log, status, public, keys };
        let start = Instant::now();
        while !hub.said().contains("ropewalk tunnel up") {
            if hub.child.try_wait()?.is_some() || start.elapsed() > START {
                return Err(format!("the hub does not serve: {}", hub.said()).into());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(hub)
    }

    /// Its public key.
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// The secret keys of its clients.
    pub fn keys(&self) -> &[SecretKey] {
        &self.keys
    }

    /// The log of the hub.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Resident memory, bytes.
    ///
    /// # Errors
    /// It has ended.
    pub fn memory(&self) -> Result<u64, Failure> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?;
        Ok(kib.parse::<u64>()? * 1024)
    }

    /// Total CPU time of all threads.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu(&self) -> Result<Duration, Failure> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program may contain spaces; it ends with the last parenthesis.
        let (_, fields) = text.rsplit_once(')').ok_or("no name")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok());
        let (user, system) = (ticks(11).ok_or("no utime")?, ticks(12).ok_or("no stime")?);
        Ok(Duration::from_secs(1) * (user + system) / TICKS)
    }

    /// Its status, as printed by `ropewalk tunnel status --json`.
    ///
    /// # Errors
    /// The command fails.
    pub fn status(&self, binary: &Path) -> Result<serde_json::Value, Failure> {
        let mut command = Command::new(binary);
        command.args(["tunnel", "status", "--json"]).env("ROPEWALK_RUNTIME_DIR", &self.status);
        let document: serde_json::Value = serde_json::from_slice(&command.output()?.stdout)?;
        Ok(document["commands"][0].clone())
    }

    /// Number of connected clients according to its status.
    ///
    /// # Errors
    /// The command fails.
    pub fn clients(&self, binary: &Path) -> Result<u64, Failure> {
        Ok(self.status(binary)?["tunnel"]["clients"].as_u64().ok_or("no number of clients")?)
    }

    /// Kills it, and starts it again with the same keys and options.
    ///
    /// # Errors
    /// As [`Hub::start`].
    pub fn restart(
        mut self,
        binary: &Path,
        places: &Places,
        options: &HubOptions,
    ) -> Result<Self, Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Self::launch((binary, places, options), self.public, std::mem::take(&mut self.keys))
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
