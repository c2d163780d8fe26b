//! The access list of a server, which can be replaced while the server runs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;
use ropewalk_base::PeerText;
use ropewalk_runtime::seal::{
    Allowed, Grant, KeyFileProblem, PublicKey, Secrecy, Timestamp, read_trusted,
};

use super::error::{AccessError, line_of};
use super::file::parse;
use super::policy::PeerPolicy;

/// Maximum size of an access file, bytes: about ten thousand entries.
const FILE_MAX: u64 = 2 << 20;

/// The peers that may use a server. Clones share one list: a reload applies to all of them.
#[derive(Clone)]
pub struct AccessList {
    shared: Arc<Shared>,
}

struct Shared {
    file: Option<PathBuf>,
    /// Peers from the command line, which a reload keeps.
    given: RwLock<Vec<PeerPolicy>>,
    table: RwLock<Arc<Table>>,
}

/// `None` if every peer may use the server.
type Table = Option<BTreeMap<PublicKey, Arc<PeerPolicy>>>;

/// Changes made by a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Peers whose keys were not listed before.
    pub added: Vec<Arc<PeerPolicy>>,
    /// Peers whose keys are no longer listed.
    pub removed: Vec<Arc<PeerPolicy>>,
    /// Peers whose entries have changed, with their new entries.
    pub changed: Vec<Arc<PeerPolicy>>,
}

/// Why a peer is not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The list has no entry for this key.
    #[error("the key {0} is not in the access list")]
    NotListed(PublicKey),
    /// The peer's entry has expired.
    #[error("the entry of {} ({}) has expired", .0.name, .0.key)]
    Expired(Arc<PeerPolicy>),
}

impl AccessList {
    /// Admits every key, without restrictions.
    pub fn anyone() -> Self {
        Self::of(None, Vec::new(), None)
    }

    /// Admits the peers of a file, and the peers `given`. If a key is in both, the restrictions of the file apply.
    ///
    /// # Errors
    /// If the file cannot be read, or contains an error.
    pub fn open(given: &[PeerPolicy], file: Option<&Path>) -> Result<Self, AccessError> {
        let peers = file.map(read).transpose()?.unwrap_or_default();
        let table = table(peers, given);
        Ok(Self::of(file.map(Path::to_owned), given.to_vec(), Some(table)))
    }

    /// Admits the peers of a text in the syntax of the file. Errors refer to it as `origin`.
    ///
    /// # Errors
    /// If the text contains an error.
    pub fn from_text(text: &str, origin: &Path) -> Result<Self, AccessError> {
        let table = table(parse_text(text, origin)?, &[]);
        Ok(Self::of(None, Vec::new(), Some(table)))
    }

    fn of(file: Option<PathBuf>, given: Vec<PeerPolicy>, table: Table) -> Self {
        let table = RwLock::new(Arc::new(table));
        Self { shared: Arc::new(Shared { file, given: RwLock::new(given), table }) }
    }

    /// Reads the file again. Does nothing if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, or contains an error. In that case the list is unchanged.
    pub fn reload(&self) -> Result<Changes, AccessError> {
        let Some(file) = &self.shared.file else { return Ok(Changes::default()) };
        let peers = read(file)?;
        let given = self.shared.given.read();
        Ok(self.replace(table(peers, &given)))
    }

    /// Replaces the peers that were given in addition to the file, and reads the file again.
    ///
    /// # Errors
    /// If the file cannot be read, or contains an error. In that case the list is unchanged.
    ///
    /// # Panics
    /// If every key is admitted: such a list stays open.
    pub fn set_given(&self, peers: &[PeerPolicy]) -> Result<Changes, AccessError> {
        assert!(!self.is_anyone(), "a list that admits everyone has no peers");
        let listed = self.shared.file.as_deref().map(read).transpose()?.unwrap_or_default();
        *self.shared.given.write() = peers.to_vec();
        Ok(self.replace(table(listed, peers)))
    }

    fn replace(&self, peers: BTreeMap<PublicKey, Arc<PeerPolicy>>) -> Changes {
        let table = Arc::new(Some(peers));
        let mut current = self.shared.table.write();
        let changes = compare(&current, &table);
        *current = table;
        changes
    }

    /// The file that [`AccessList::reload`] reads.
    pub fn file(&self) -> Option<&Path> {
        self.shared.file.as_deref()
    }

    /// Whether every key is admitted.
    pub fn is_anyone(&self) -> bool {
        self.table().is_none()
    }

    /// The permissions of the peer with this key. An expired entry is returned as well, because existing associations
    /// continue. [`AccessList::admit`] decides about new ones.
    pub fn policy(&self, key: &PublicKey) -> Option<Arc<PeerPolicy>> {
        match self.table().as_ref() {
            None => Some(Arc::new(PeerPolicy::nameless(*key))),
            Some(peers) => peers.get(key).cloned(),
        }
    }

    /// The permissions of the peer with this key, for a new association.
    ///
    /// # Errors
    /// [`Refusal`], for the log.
    pub fn admit(&self, key: &PublicKey, now: SystemTime) -> Result<Arc<PeerPolicy>, Refusal> {
        let policy = self.policy(key).ok_or(Refusal::NotListed(*key))?;
        if policy.has_expired(now) { Err(Refusal::Expired(policy)) } else { Ok(policy) }
    }

    /// The list in the form that an endpoint uses. After a reload, pass the new one to the endpoint.
    pub fn allowed(&self) -> Allowed {
        let grant = |peer: &Arc<PeerPolicy>| {
            let since_1970 = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default();
            let nanos = peer.expires.map(|at| since_1970(at).as_nanos());
            let expires = nanos.map(|nanos| u64::try_from(nanos).unwrap_or(u64::MAX));
            Grant { psk: peer.psk.clone(), expires: expires.map(Timestamp::from_unix_nanos) }
        };
        match self.table().as_ref() {
            None => Allowed::Anyone,
            Some(peers) => {
                Allowed::Peers(peers.iter().map(|(key, peer)| (*key, grant(peer))).collect())
            }
        }
    }

    /// The name of the peer with this key in logs: its name in the list, or the beginning of the key.
    pub fn name(&self, key: &PublicKey) -> String {
        self.policy(key)
            .map_or_else(|| PeerPolicy::nameless(*key).name, |policy| policy.name.clone())
    }

    /// The name of the peer with this key in the list. `None` if it is not listed.
    pub fn listed_name(&self, key: &PublicKey) -> Option<String> {
        if self.is_anyone() { None } else { self.policy(key).map(|policy| policy.name.clone()) }
    }

    /// All entries, in the order of their keys. `None` if every key is admitted.
    pub fn peers(&self) -> Option<Vec<Arc<PeerPolicy>>> {
        self.table().as_ref().as_ref().map(|peers| peers.values().cloned().collect())
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.shared.table.read())
    }
}

fn read(path: &Path) -> Result<Vec<PeerPolicy>, AccessError> {
    parse_text(&read_text(path)?, path)
}

/// The text of an access file, if only its owner can write it.
pub(super) fn read_text(path: &Path) -> Result<String, AccessError> {
    let text = read_trusted(path, Secrecy::Public, FILE_MAX).map_err(|error| AccessError {
        path: path.to_owned(),
        line: None,
        message: error.to_string(),
        help: match error.problem {
            KeyFileProblem::Open { .. } | KeyFileProblem::Owner { .. } => error.help(),
            _ => "give a regular file with [[peer]] entries that you may read".to_owned(),
        },
    })?;
    Ok(text.to_string())
}

pub(super) fn parse_text(text: &str, origin: &Path) -> Result<Vec<PeerPolicy>, AccessError> {
    let directory = origin.parent().unwrap_or(Path::new(""));
    // The message contains values from the file, which may be long or contain escape sequences.
    parse(text, directory).map_err(|problem| AccessError {
        path: origin.to_owned(),
        line: Some(line_of(text, problem.at)),
        message: PeerText::new(problem.message).to_string(),
        help: PeerText::new(problem.help).to_string(),
    })
}

fn table(peers: Vec<PeerPolicy>, given: &[PeerPolicy]) -> BTreeMap<PublicKey, Arc<PeerPolicy>> {
    given.iter().cloned().chain(peers).map(|peer| (peer.key, Arc::new(peer))).collect()
}

fn compare(old: &Table, new: &Table) -> Changes {
    let (Some(old), Some(new)) = (old, new) else { return Changes::default() };
    let missing = |from: &BTreeMap<PublicKey, Arc<PeerPolicy>>, one: &&Arc<PeerPolicy>| {
        !from.contains_key(&one.key)
    };
    let differs = |one: &&Arc<PeerPolicy>| old.get(&one.key).is_some_and(|before| before != *one);
    Changes {
        added: new.values().filter(|one| missing(old, one)).cloned().collect(),
        removed: old.values().filter(|one| missing(new, one)).cloned().collect(),
        changed: new.values().filter(differs).cloned().collect(),
    }
}

impl fmt::Debug for AccessList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peers = self.table().as_ref().as_ref().map(BTreeMap::len);
        f.debug_struct("AccessList")
            .field("file", &self.shared.file)
            .field("peers", &peers)
            .finish_non_exhaustive()
    }
}
