//! Selects the directory and the rules of each sender.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::inbox::Inbox;
use super::store::{Rules, Store, StoreError};
use crate::access::AccessList;
use crate::files::peer::Peer;

/// Applies an access list to senders.
///
/// A peer's directory is below the inbox and is created when the peer connects for the first time. Its rules narrow
/// those of the command: it may overwrite only if both permit it.
#[derive(Debug)]
pub struct Admission {
    inbox: Arc<Store>,
    access: AccessList,
    rules: Mutex<Rules>,
    /// Directories of peers in use. Each is locked once, even if several peers share it.
    directories: Mutex<BTreeMap<PathBuf, Arc<Store>>>,
}

impl Admission {
    /// Opens the inbox.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path, access: AccessList, rules: Rules) -> Result<Self, StoreError> {
        let inbox = Arc::new(Store::open(path)?);
        Ok(Self { inbox, access, rules: Mutex::new(rules), directories: Mutex::default() })
    }

    /// Replaces the rules of the command. They apply to senders that connect from now on.
    pub fn set_rules(&self, rules: Rules) {
        *self.rules.lock() = rules;
    }

    /// The inbox of this peer, with its directory and its rules.
    ///
    /// # Errors
    /// Why the peer may not send, as text for both ends.
    pub fn admit(&self, peer: &Peer) -> Result<Inbox, String> {
        let own = *self.rules.lock();
        let Some(key) = &peer.key else { return self.inbox(&self.inbox, peer, own) };
        let Some(policy) = self.access.policy(key) else {
            return Err("this key is not in the access list".to_owned());
        };
        let peer =
            Peer { name: (!self.access.is_anyone()).then(|| policy.name.clone()), ..peer.clone() };
        let files = &policy.files;
        let rules = Rules {
            overwrite: own.overwrite && files.allow_overwrite,
            exact_modes: own.exact_modes,
            quota_bytes: least(own.quota_bytes, files.quota_bytes),
            max_file_bytes: least(own.max_file_bytes, files.max_file_bytes),
        };
        match &files.directory {
            None => self.inbox(&self.inbox, &peer, rules),
            Some(directory) => self.inbox(&self.directory(directory)?, &peer, rules),
        }
    }

    fn inbox(&self, store: &Arc<Store>, peer: &Peer, rules: Rules) -> Result<Inbox, String> {
        Inbox::new(store.clone(), peer.clone(), rules)
            .map_err(|error| format!("its directory cannot be measured: {error}"))
    }

    fn directory(&self, name: &Path) -> Result<Arc<Store>, String> {
        let mut directories = self.directories.lock();
        if let Some(store) = directories.get(name) {
            return Ok(store.clone());
        }
        // Names in an access list are plain: they never lead outside of the inbox.
        let store = self.inbox.open_inner(name).map_err(|error| match error {
            StoreError::Locked(_) => "another program uses its directory".to_owned(),
            StoreError::Io(_, error) => format!("its directory cannot be used: {error}"),
        })?;
        let store = Arc::new(store);
        directories.insert(name.to_owned(), store.clone());
        Ok(store)
    }
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use ropewalk_runtime::seal::SecretKey;
    use tokio::time::Instant;

    use super::*;
    use crate::files::names::Name;
    use crate::files::receiver::inbox::ExistingEntry;
    use crate::files::test_support::TempDir;
    use crate::files::wire::{Entry, Kind, Stamp};

    fn entry(name: &str, size: u64) -> Entry {
        let name = Name::new(name.as_bytes()).expect("a name");
        Entry { name, kind: Kind::File(size), mode: 0o644, modified: Stamp::default() }
    }

    #[test]
    fn each_key_gets_its_directory_its_quota_and_no_more_than_the_command_permits() {
        let dir = TempDir::new("admission");
        let [anna, bert] = [(); 2].map(|()| SecretKey::generate().expect("a key").public());
        let text = format!(
            "[[peer]]\nname = \"anna\"\nkey = \"{anna}\"\n[peer.files]\ndirectory = \"team/anna\"\n\
             quota = \"1 MB\"\nmax_file = \"300 kB\"\noverwrite = false\n\
             [[peer]]\nname = \"bert\"\nkey = \"{bert}\"\n"
        );
        let access = AccessList::from_text(&text, Path::new("peers.toml")).expect("a list");
        let rules = Rules { overwrite: true, ..Rules::default() };
        let admission = Admission::open(&dir.path("in"), access, rules).expect("a directory");
        let inbox = admission.admit(&Peer::new(Some(anna))).expect("admitted");
        assert_eq!(inbox.store().path(), dir.path("in/team/anna"));
        assert_eq!(inbox.peer().to_string(), format!("anna ({anna})"));
        assert!(!inbox.replaces());
        let obstacle = |found: ExistingEntry, said: &str| match found {
            ExistingEntry::Obstacle(why) => assert!(why.contains(said), "{why}"),
            other => panic!("{other:?} instead of {said}"),
        };
        obstacle(inbox.inspect(&entry("large", 300_001)), "300000 bytes");
        for name in ["a", "b", "c"] {
            assert!(matches!(inbox.inspect(&entry(name, 290_000)), ExistingEntry::Nothing));
        }
        obstacle(inbox.inspect(&entry("d", 290_000)), "quota of 1000000");
        // A reservation that was not used is free for the next transfer; space on disk is not.
        fs::write(dir.path("in/team/anna/a"), vec![0; 600_000]).expect("a file");
        let started = Instant::now();
        loop {
            // Data that other programs write counts from the next measurement on.
            let inbox = admission.admit(&Peer::new(Some(anna))).expect("admitted");
            assert!(matches!(inbox.inspect(&entry("e", 290_000)), ExistingEntry::Nothing));
            match inbox.inspect(&entry("f", 290_000)) {
                ExistingEntry::Nothing => std::thread::yield_now(),
                found => break obstacle(found, "quota of 1000000"),
            }
            assert!(started.elapsed() < Duration::from_secs(60), "the file was never counted");
        }
        let inbox = admission.admit(&Peer::new(Some(bert))).expect("admitted");
        assert_eq!(inbox.store().path(), dir.path("in"));
        assert!(inbox.replaces());
        let unlisted = SecretKey::generate().expect("a key").public();
        assert!(admission.admit(&Peer::new(Some(unlisted))).is_err());
    }
}
