//! The list of files and folders to send.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::names::{self, BadName, Name};
use super::sender::source::{SNAPSHOT_LIMIT, snapshot};
use super::wire::{EXACT, Entry, Kind, Stamp};

/// Maximum number of entries of a transfer.
pub const ENTRY_LIMIT: usize = 1 << 20;
/// Memory limit for the list of a transfer at either end, bytes: the names, and [`ENTRY_COST`] for each entry.
pub const LIST_LIMIT: usize = 192 << 20;
/// Memory of an entry in addition to its name, including its state and a pending answer, bytes.
pub const ENTRY_COST: usize = 160;

/// The files and folders to send, in ascending order of names.
#[derive(Debug, Default)]
pub struct Manifest {
    /// The entries.
    pub entries: Vec<Entry>,
    /// The source path of each entry.
    pub places: Vec<PathBuf>,
    /// Contents of files whose reported size is wrong, by source path.
    pub snapshots: BTreeMap<PathBuf, Arc<[u8]>>,
    /// Items that are left out because users do not expect them to be sent (links, sockets, devices), with the
    /// reason.
    pub left_out: Vec<(PathBuf, &'static str)>,
    /// Items that should have been sent but cannot be read, with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// Why the list could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A source cannot be read.
    #[error("`{path}` cannot be read: {1}", path = names::shown_path(.0))]
    Source(PathBuf, io::Error),
    /// A source is neither a file nor a folder.
    #[error("`{}` is neither a file nor a folder", names::shown_path(.0))]
    NotAFile(PathBuf),
    /// Two sources would have the same name at the receiver.
    #[error("`{one}` and `{other}` would both arrive as `{0}`", one = names::shown_path(.1), other = names::shown_path(.2))]
    DuplicateName(Name, PathBuf, PathBuf),
    /// The name of a source is one that no receiver accepts.
    #[error("`{path}` cannot be sent: {1}", path = names::shown_path(.0))]
    Name(PathBuf, BadName),
    /// There are more entries than a transfer may have.
    #[error("more than {ENTRY_LIMIT} files and folders")]
    TooMany,
}

impl ManifestError {
    /// A hint on how to solve the problem.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Source(..) => "give files and folders that exist and that you may read",
            Self::NotAFile(_) => "give a file or a folder; pack anything else into an archive",
            Self::DuplicateName(..) => "send them one after the other, to different directories",
            Self::Name(..) => "rename it, or send the folder that it is in",
            Self::TooMany => "send them in parts, or as an archive",
        }
    }
}

/// A file or folder that has yet to be examined.
struct Pending {
    name: Vec<u8>,
    place: PathBuf,
    metadata: Metadata,
}

impl Manifest {
    /// Lists the sources and the contents of those that are folders. Each source is named by the last part of its
    /// path. With `exact_modes` the receiver is asked to keep the permissions.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn of(sources: &[PathBuf], exact_modes: bool) -> Result<Self, ManifestError> {
        let mut found = BTreeMap::new();
        let mut manifest = Self::default();
        let mut bytes = 0;
        for source in sources {
            let mut pending = vec![top(source)?];
            while let Some(Pending { name, place, metadata }) = pending.pop() {
                let name = match Name::new(&name) {
                    Ok(name) => name,
                    Err(why) if place == *source => return Err(ManifestError::Name(place, why)),
                    Err(why) => {
                        manifest.unreadable.push((place, why.to_string()));
                        continue;
                    }
                };
                if metadata.is_dir() {
                    manifest.look_into(&name, &place, &mut pending);
                }
                bytes += ENTRY_COST + name.bytes().len();
                if found.len() == ENTRY_LIMIT || bytes > LIST_LIMIT {
                    return Err(ManifestError::TooMany);
                }
                let mut entry = entry(name.clone(), &metadata, exact_modes);
                match snapshot(&place, &metadata, manifest.snapshot_room()) {
                    Ok(None) => {}
                    Ok(Some(bytes)) => {
                        entry.kind = Kind::File(bytes.len() as u64);
                        manifest.snapshots.insert(place.clone(), bytes);
                    }
                    Err(why) => {
                        manifest.unreadable.push((place, why.to_string()));
                        continue;
                    }
                }
                if let Some((_, other)) = found.insert(name.clone(), (entry, place.clone())) {
                    return Err(ManifestError::DuplicateName(name, other, place));
                }
            }
        }
        (manifest.entries, manifest.places) = found.into_values().unzip();
        Ok(manifest)
    }

    fn look_into(&mut self, name: &Name, place: &Path, pending: &mut Vec<Pending>) {
        let inside = match fs::read_dir(place) {
            Ok(inside) => inside,
            Err(error) => return self.unreadable.push((place.to_owned(), error.to_string())),
        };
        for item in inside {
            let item = match item {
                Ok(item) => item,
                Err(error) => {
                    self.unreadable.push((place.to_owned(), error.to_string()));
                    continue;
                }
            };
            let place = item.path();
            // Metadata of the item itself: links are not followed.
            match item.metadata() {
                Err(error) => self.unreadable.push((place, error.to_string())),
                Ok(metadata) => match (ordinary(&metadata), names::wire_bytes(&item.file_name())) {
                    (Err(why), _) => self.left_out.push((place, why)),
                    (_, None) => self.unreadable.push((place, BadName::Foreign.to_string())),
                    (Ok(()), Some(last)) => {
                        let name = [name.bytes(), b"/", last].concat();
                        pending.push(Pending { name, place, metadata });
                    }
                },
            }
        }
    }

    fn snapshot_room(&self) -> u64 {
        SNAPSHOT_LIMIT - self.snapshots.values().map(|bytes| bytes.len() as u64).sum::<u64>()
    }

    /// Total size of all files, bytes.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(Entry::size).sum()
    }

    /// Number of files.
    pub fn files(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.kind, Kind::File(_))).count()
    }
}

/// Examines a source as the user named it. A link that the user named is followed.
fn top(source: &Path) -> Result<Pending, ManifestError> {
    let failed = |error| ManifestError::Source(source.to_owned(), error);
    let metadata = fs::metadata(source).map_err(failed)?;
    if ordinary(&metadata).is_err() {
        return Err(ManifestError::NotAFile(source.to_owned()));
    }
    // `.`, `..` and `/` have no file name.
    let real = match source.file_name() {
        Some(_) => source.to_owned(),
        None => fs::canonicalize(source).map_err(failed)?,
    };
    let last = real.file_name().and_then(names::wire_bytes).unwrap_or_default();
    Ok(Pending { name: last.to_vec(), place: source.to_owned(), metadata })
}

fn ordinary(metadata: &Metadata) -> Result<(), &'static str> {
    match metadata.file_type() {
        kind if kind.is_file() || kind.is_dir() => Ok(()),
        kind if kind.is_symlink() => Err("a symbolic link"),
        _ => Err("neither a file nor a folder"),
    }
}

fn entry(name: Name, metadata: &Metadata, exact: bool) -> Entry {
    let kind = if metadata.is_dir() { Kind::Folder } else { Kind::File(metadata.len()) };
    Entry {
        name,
        kind,
        mode: mode(metadata) | if exact { EXACT } else { 0 },
        modified: stamp(metadata),
    }
}

#[cfg(unix)]
fn mode(metadata: &Metadata) -> u16 {
    use std::os::unix::fs::PermissionsExt;
    (metadata.permissions().mode() & 0o777) as u16
}

#[cfg(not(unix))]
fn mode(metadata: &Metadata) -> u16 {
    let readable = if metadata.is_dir() { 0o755 } else { 0o644 };
    if metadata.permissions().readonly() { readable & 0o555 } else { readable }
}

/// Time of the last modification; 1970 if the system does not provide it.
pub fn stamp(metadata: &Metadata) -> Stamp {
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    match modified.duration_since(UNIX_EPOCH) {
        Ok(since) => Stamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() },
        Err(before) => {
            let until = before.duration();
            let whole = -(until.as_secs() as i64);
            match until.subsec_nanos() {
                0 => Stamp { seconds: whole, nanoseconds: 0 },
                part => Stamp { seconds: whole - 1, nanoseconds: 1_000_000_000 - part },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::TempDir;
    use super::*;

    fn names(manifest: &Manifest) -> Vec<String> {
        manifest.entries.iter().map(|entry| entry.name.to_string()).collect()
    }

    #[test]
    fn folders_are_sent_with_all_that_is_in_them_in_the_order_of_names() {
        let dir = TempDir::new("manifest");
        dir.write("tree/b/one.txt", b"1");
        dir.write("tree/b-side", b"22");
        dir.write("tree/empty", b"");
        dir.write("alone", b"333");
        fs::create_dir(dir.path("tree/hollow")).expect("a folder");
        let manifest =
            Manifest::of(&[dir.path("tree/"), dir.path("alone")], false).expect("sources");
        let expected = [
            "alone",
            "tree",
            "tree/b",
            "tree/b-side",
            "tree/b/one.txt",
            "tree/empty",
            "tree/hollow",
        ];
        assert_eq!(names(&manifest), expected);
        assert_eq!((manifest.bytes(), manifest.files()), (6, 4));
    }

    #[cfg(unix)]
    #[test]
    fn links_in_folders_are_left_out_and_said_so() {
        let dir = TempDir::new("links");
        dir.write("tree/real", b"1");
        std::os::unix::fs::symlink("/etc/passwd", dir.path("tree/link")).expect("a link");
        std::os::unix::fs::symlink(dir.path("tree/real"), dir.path("named")).expect("a link");
        let manifest =
            Manifest::of(&[dir.path("tree"), dir.path("named")], false).expect("sources");
        assert_eq!(names(&manifest), ["named", "tree", "tree/real"]);
        assert_eq!(manifest.left_out, [(dir.path("tree/link"), "a symbolic link")]);
    }

    #[test]
    fn what_cannot_be_sent_is_refused_with_its_name_and_a_hint() {
        let dir = TempDir::new("refused");
        dir.write("a/same", b"1");
        dir.write("b/same", b"2");
        dir.write(".ropewalk/x", b"2");
        let cases: [(&[&str], &str); 3] = [
            (&["nothing"], "nothing` cannot be read"),
            (&["a/same", "b/same"], "would both arrive as `same`"),
            (&[".ropewalk"], "folder of unfinished files"),
        ];
        for (sources, said) in cases {
            let sources: Vec<_> = sources.iter().map(|name| dir.path(name)).collect();
            let error = Manifest::of(&sources, false).expect_err("refused");
            assert!(error.to_string().contains(said), "{error}");
            assert!(!error.help().is_empty());
        }
    }

    #[test]
    fn times_before_1970_are_told_as_well() {
        let dir = TempDir::new("stamp");
        dir.write("old", b"");
        let file = fs::File::options().write(true).open(dir.path("old")).expect("a file");
        let time = UNIX_EPOCH - std::time::Duration::from_millis(1500);
        file.set_modified(time).expect("a time");
        let found = stamp(&fs::metadata(dir.path("old")).expect("a file"));
        assert_eq!(found, Stamp { seconds: -2, nanoseconds: 500_000_000 });
    }
}
