//! Options that control who may use a server, and the task that keeps the list of peers current.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use ropewalk_apps::access::{AccessError, AccessList, Changes, KnownPeers, peers_file};
use ropewalk_apps::observe::{Event, PeerIdentity, Reporter};
use ropewalk_runtime::endpoint::{Admission, Endpoint, Options};
use ropewalk_runtime::seal::{PresharedKey, SecretKey};

use super::interrupt::Hangups;
use super::log::as_note;
use super::peers::PeerArg;
use super::reload::Commit;
use crate::console::Console;
use crate::failure::Failure;

/// How long refused peers are collected until they are reported. The endpoint keeps a few of them between two reports, so a flood of
/// refusals does not flood the log.
const REPORT: Duration = Duration::from_secs(1);

/// Who may use a server.
#[derive(Clone, Debug, Args)]
pub struct AccessArgs {
    /// Peer that may use this server, by public key or by the name under which it was paired; may be repeated
    #[arg(long, value_name = "NAME|PUBKEY", value_delimiter = ',', value_parser = str::parse::<PeerArg>)]
    allow: Vec<PeerArg>,
    /// File of peers with names and restrictions (peers.toml), reloaded on SIGHUP, and after a refusal if it has changed
    #[arg(long, value_name = "FILE")]
    allow_file: Option<PathBuf>,
    /// Pre-shared key for every peer that has none of its own in --allow-file
    #[arg(long, value_name = "FILE")]
    psk_file: Option<PathBuf>,
}

/// Who may use a server, read from the options and files.
pub struct Access {
    list: AccessList,
    psk: Option<PresharedKey>,
}

impl AccessArgs {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or has an error.
    pub fn open(&self) -> Result<Access, Failure> {
        let psk = self.psk_file.as_deref().map(PresharedKey::read_file).transpose()?;
        let list = match self.is_anyone() {
            true => AccessList::anyone(),
            false => {
                let peers = self.allow.iter().map(|peer| peer.find("--allow"));
                let peers = peers.collect::<Result<Vec<_>, _>>()?;
                AccessList::open(&peers, self.allow_file.as_deref())?
            }
        };
        Ok(Access { list, psk })
    }

    /// Admits the peers in the user's list if it has any and no peer is named. Returns their names.
    ///
    /// # Errors
    /// The list has an error.
    pub fn admit_paired(&mut self) -> Result<Vec<String>, Failure> {
        let Some(file) = peers_file().filter(|file| self.is_anyone() && file.exists()) else {
            return Ok(Vec::new());
        };
        let names: Vec<_> = KnownPeers::read(&file)?.names().map(str::to_owned).collect();
        if !names.is_empty() {
            self.allow_file = Some(file);
        }
        Ok(names)
    }

    /// Whether no peer is named: then every peer that has our public key may use the server.
    pub const fn is_anyone(&self) -> bool {
        self.allow.is_empty() && self.allow_file.is_none()
    }
}

impl Access {
    /// The options of an endpoint that admits these peers.
    pub fn seal(&self, options: Options, secret: SecretKey) -> Options {
        options.sealed(secret, self.list.allowed()).with_psk(self.psk.clone())
    }

    /// Checks the `--allow` of `args`, for the list and the endpoint. None if the server was open to everyone, or would
    /// become so: that needs a restart. A server that is `never_open` admits nobody without `--allow`. `changed` is called
    /// with the new list.
    ///
    /// # Errors
    /// A name is not known, or the file of peers has an error.
    pub fn check_allow(
        list: &AccessList,
        admission: &Admission,
        args: &AccessArgs,
        never_open: bool,
        changed: impl FnOnce(&AccessList) + Send + 'static,
    ) -> Result<Option<Commit>, Failure> {
        if list.is_anyone() || args.is_anyone() && !never_open {
            return Ok(None);
        }
        let peers = args.allow.iter().map(|peer| peer.find("--allow"));
        let peers = peers.collect::<Result<Vec<_>, _>>()?;
        AccessList::open(&peers, list.file())?;
        let (list, admission) = (list.clone(), admission.clone());
        Ok(Some(Box::new(move || {
            list.set_given(&peers)?;
            admission.set_allowed(list.allowed());
            changed(&list);
            Ok(())
        })))
    }

    /// What each peer may do. Clones see each reload.
    pub const fn list(&self) -> &AccessList {
        &self.list
    }

    /// Reloads the file on SIGHUP, or if it has changed when a peer is refused, and reports refused peers, until the
    /// endpoint has ended. Calls `reloaded` with each new list.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn watch(
        &self,
        endpoint: &Endpoint,
        reporter: Reporter,
        console: Console,
        reloaded: impl Fn(&AccessList) + Send + 'static,
    ) {
        // Install the handler before the server reports that it listens.
        let hangups = Hangups::new(self.list.file().is_some());
        let (list, admission) = (self.list.clone(), endpoint.admission());
        let watcher = Watcher { list, admission, reporter, console, read: None };
        tokio::spawn(watcher.run(hangups, reloaded));
    }
}

/// Keeps the list of peers current, and reports refused peers.
struct Watcher {
    list: AccessList,
    admission: Admission,
    reporter: Reporter,
    console: Console,
    /// The state of the file that was last read for a refused peer. Before the first one, the file may have changed
    /// since the start.
    read: Option<Stamp>,
}

/// What changes if a file is written: its size and the time of its last modification.
type Stamp = (u64, SystemTime);

impl Watcher {
    async fn run(mut self, mut hangups: Hangups, reloaded: impl Fn(&AccessList)) {
        while !self.admission.is_over() {
            tokio::select! {
                () = hangups.next() => self.reload(&reloaded, true),
                () = self.admission.refused() => {
                    // The peer may have been added meanwhile; its handshake is repeated. The pause limits what peers that are
                    // refused can cause to one look at the file per second.
                    if self.has_new_file() {
                        self.reload(&reloaded, false);
                    }
                    tokio::time::sleep(REPORT).await;
                }
            }
            for refused in self.admission.take_refused() {
                let name = self.list.listed_name(&refused.peer);
                let (key, address) = (Some(refused.peer), Some(refused.from));
                let reason = refused.why.to_string();
                self.say(PeerIdentity { name, key, address }, Event::AssociationRefused { reason });
            }
        }
    }

    /// Whether the file differs from the one that was read for the last refused peer.
    fn has_new_file(&mut self) -> bool {
        let stamp = self.list.file().and_then(|file| {
            let found = std::fs::metadata(file).ok()?;
            Some((found.len(), found.modified().ok()?))
        });
        let is_new = stamp.is_some() && stamp != self.read;
        self.read = stamp;
        is_new
    }

    /// Reads the file. A result without any change is reported only if it was `requested`.
    fn reload(&self, reloaded: impl Fn(&AccessList), requested: bool) {
        let changes = match self.list.reload() {
            Ok(changes) => changes,
            Err(error) => {
                let problem = format!("{error}; help: {}; the old list stays in force", error.help);
                return self.say(PeerIdentity::default(), Event::Problem(problem));
            }
        };
        if !requested && changes == Changes::default() {
            return;
        }
        let ended = self.admission.set_allowed(self.list.allowed());
        reloaded(&self.list);
        let file = self.list.file().map(|file| file.display().to_string()).unwrap_or_default();
        let (added, removed, changed) =
            (changes.added.len(), changes.removed.len(), changes.changed.len());
        let what = format!(
            "read {file}: peers added {added}, removed {removed}, changed {changed}; \
             associations of removed peers ended: {ended}"
        );
        self.say(PeerIdentity::default(), Event::PeersChanged(what));
    }

    /// Logs an event and shows it to a person at a terminal.
    fn say(&self, peer: PeerIdentity, event: Event) {
        if self.console.has_viewer() {
            self.console.note(as_note(&peer, &event));
        }
        self.reporter.report(peer, event);
    }
}

impl From<AccessError> for Failure {
    fn from(error: AccessError) -> Self {
        let help = error.help.clone();
        Self::input(error, help)
    }
}
