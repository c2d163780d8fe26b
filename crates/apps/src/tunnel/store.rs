//! Files of a hub: the addresses and the used volumes of clients.
//!
//! New addresses are appended, so that another client costs one line; the complete file is written when the hub
//! starts. Volumes change with each packet, and their complete file is written periodically. A file is replaced
//! atomically: after a crash, the old or the new one exists.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ropewalk_runtime::seal::PublicKey;

use super::addresses::{Leases, Pool};
use super::error::TunnelError;
use super::quota::Volume;

/// Replaces a file atomically, so that no reader sees a part of it, even after a power failure. Creates its
/// directory.
pub(super) fn replace(file: &Path, text: &str) -> io::Result<()> {
    let aside = file.with_extension("ropewalk-new");
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut out = fs::File::create(&aside)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    fs::rename(&aside, file).inspect_err(|_| {
        let _ = fs::remove_file(&aside);
    })
}

/// The text of a file, empty if it does not exist. In that case its directory is created.
fn read(file: &Path) -> Result<String, TunnelError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = file.parent().unwrap_or(file);
            let failed = TunnelError::store(format!("creating {}", directory.display()));
            fs::create_dir_all(directory).map_err(failed)?;
            Ok(String::new())
        }
        Err(error) => Err(TunnelError::Store(format!("reading {}", file.display()), error)),
    }
}

/// The file of addresses.
#[derive(Debug)]
pub(super) struct LeaseFile(PathBuf);

impl LeaseFile {
    /// Reads the file, and rewrites it with the valid entries.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(super) fn open(file: &Path, pool: Pool) -> Result<(Self, Leases), TunnelError> {
        let text = read(file)?;
        let leases = Leases::read(pool, &text);
        let now = leases.text();
        if now != text {
            let failed = TunnelError::store(format!("writing {}", file.display()));
            replace(file, &now).map_err(failed)?;
        }
        Ok((Self(file.to_owned()), leases))
    }

    /// Appends the line of a key.
    ///
    /// # Errors
    /// The error of the system, with the name of the file.
    pub(super) fn append(&self, line: &str) -> Result<(), String> {
        let file = &self.0;
        let opened = OpenOptions::new().create(true).append(true).open(file);
        let written = opened.and_then(|mut open| open.write_all(line.as_bytes()));
        written.map_err(|error| format!("{}: {error}", file.display()))
    }
}

/// The file of volumes: a key, a month and bytes in each line.
#[derive(Debug)]
pub(super) struct VolumeFile(PathBuf);

impl VolumeFile {
    /// Reads the file. Invalid lines are ignored.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn open(file: &Path) -> Result<(Self, BTreeMap<PublicKey, Volume>), TunnelError> {
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            let key = words.next()?.parse().ok()?;
            let month = words.next()?.parse().ok()?;
            let bytes = words.next()?.parse().ok()?;
            Some((key, Volume { month, bytes }))
        };
        let volumes = read(file)?.lines().filter_map(line).collect();
        Ok((Self(file.to_owned()), volumes))
    }

    /// Writes these volumes.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn write(&self, volumes: &[(PublicKey, Volume)]) -> io::Result<()> {
        let line = |(key, Volume { month, bytes }): &(PublicKey, Volume)| {
            format!("{key} {month} {bytes}\n")
        };
        replace(&self.0, &volumes.iter().map(line).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_runtime::seal::SecretKey;

    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("ropewalk-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn key() -> PublicKey {
        SecretKey::generate().expect("random numbers").public()
    }

    #[test]
    fn addresses_are_there_after_a_crash_in_the_middle_of_a_line() {
        let directory = directory("leases");
        let file = directory.join("hub.leases");
        let pool = || Pool::new(&["10.88.0.0/24".parse().expect("a network")]).expect("a pool");
        let keys = [key(), key(), key()];
        let (store, mut leases) = LeaseFile::open(&file, pool()).expect("a new file");
        let mut given = Vec::new();
        for key in &keys {
            given.push(leases.assign(*key, &[], |_| true).expect("room").0);
            store.append(&leases.line(key)).expect("written");
        }
        let whole = fs::read_to_string(&file).expect("text");
        fs::write(&file, &whole[..whole.len() - 2]).expect("written");
        let (store, mut leases) = LeaseFile::open(&file, pool()).expect("the file");
        assert_eq!(
            leases.assign(keys[1], &[], |_| true).expect("its own"),
            (given[1].clone(), false)
        );
        let (again, is_new) = leases.assign(keys[2], &[], |_| true).expect("room");
        assert!(is_new && again == given[2], "it was cut off, and is free");
        store.append(&leases.line(&keys[2])).expect("written");
        let (_, leases) = LeaseFile::open(&file, pool()).expect("the file");
        assert_eq!(leases.text().lines().count(), 3);
        fs::remove_dir_all(&directory).expect("it is there");
    }

    #[test]
    fn volumes_are_read_as_they_were_written() {
        let directory = directory("volumes");
        let file = directory.join("hub.volumes");
        let (store, before) = VolumeFile::open(&file).expect("a new file");
        assert!(before.is_empty());
        let volume = Volume { month: "2026-11".parse().expect("a month"), bytes: u64::MAX };
        let volumes = [(key(), volume), (key(), Volume { bytes: 0, ..volume })];
        store.write(&volumes).expect("written");
        let (_, read) = VolumeFile::open(&file).expect("the file");
        assert_eq!(read, volumes.into());
        fs::write(&file, "nonsense\n\u{1F4A9} 2026-11 1\n").expect("written");
        assert!(VolumeFile::open(&file).expect("the file").1.is_empty());
        fs::remove_dir_all(&directory).expect("it is there");
    }
}
