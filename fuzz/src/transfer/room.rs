//! Folders in memory: what is sent, where it arrives, and what lies beside it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::track::Digest;
use crate::Input;

/// What is sent lies in `from`. A file is where a folder is to be, if the fuzzer wants it so.
const NAMES: [&[u8]; 10] =
    [b"a", b"b", b"d/a", b"d/b", b"d/e/f", b"caf\xe9", b"\x1b[2J", b"d", b"zz/zz", b"link/x"];
/// Large files go beyond what either end holds of one at a time, bytes.
const LARGE: usize = (256 << 10) - 3;
const SECRET: &[u8] = b"precious";
/// Where the receiver keeps what is unfinished.
const HIDDEN: &str = ".ropewalk";

/// Bytes that differ from place to place and from seed to seed.
fn content(seed: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
    bytes
}

/// Regular files below a folder, by their names, but for those that are unfinished.
#[derive(Default)]
pub struct Snapshot {
    pub files: BTreeMap<Vec<u8>, Digest>,
    /// Bytes of all files, unfinished ones included.
    pub bytes: u64,
    pub largest: u64,
    /// What lies in the folder of unfinished files.
    pub hidden: Option<Vec<String>>,
}

impl Snapshot {
    pub fn of(root: &Path) -> Self {
        let mut found = Self::default();
        let mut pending = vec![root.to_owned()];
        while let Some(folder) = pending.pop() {
            let Ok(inside) = fs::read_dir(&folder) else { continue };
            let is_hidden = folder == root.join(HIDDEN);
            for item in inside.flatten() {
                let (path, kind) = (item.path(), item.file_type().expect("a type"));
                if is_hidden {
                    let name = item.file_name().to_string_lossy().into_owned();
                    found.hidden.get_or_insert_default().push(name);
                }
                if kind.is_dir() {
                    pending.push(path);
                } else if kind.is_file() {
                    let Ok(bytes) = fs::read(&path) else { continue };
                    found.bytes += bytes.len() as u64;
                    if is_hidden {
                        continue;
                    }
                    found.largest = found.largest.max(bytes.len() as u64);
                    let name = path.strip_prefix(root).expect("below").as_os_str().as_bytes();
                    found.files.insert(name.to_vec(), *blake3::hash(&bytes).as_bytes());
                }
            }
            if is_hidden {
                found.hidden.get_or_insert_default();
            }
        }
        found
    }

    /// Unfinished files.
    pub fn parts(&self) -> usize {
        let hidden = self.hidden.iter().flatten();
        hidden.filter(|name| name.ends_with(".part")).count()
    }
}

/// A folder that goes away with this value.
pub struct Room(PathBuf);

/// Where rooms are: in memory if there is such a place. What processes have left that ended within an input is removed.
static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    // Where the system does not list its processes, nobody can tell what belongs to one that has ended.
    let left = fs::read_dir(&place).ok().filter(|_| Path::new("/proc/self").exists());
    for item in left.into_iter().flatten().flatten() {
        let name = item.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        let process = number.map(|number| Path::new("/proc").join(number));
        if process.is_some_and(|process| !process.is_dir() || process.ends_with(own_number())) {
            let _ = fs::remove_dir_all(item.path());
        }
    }
    place
});
const PREFIX: &str = "ropewalk-fuzz-";

fn own_number() -> String {
    std::process::id().to_string()
}

impl Default for Room {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = PLACE.join(format!("{PREFIX}{}-{number}", own_number()));
        for folder in ["from", "to", "outside"] {
            fs::create_dir_all(path.join(folder)).expect("a folder");
        }
        fs::write(path.join("outside/secret"), SECRET).expect("a file");
        Self(path)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Room {
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Where to put a file of this name; its folders are made. None: a link or a file is in its way.
    fn place(&self, folder: &str, name: &[u8]) -> Option<PathBuf> {
        let mut path = self.0.join(folder);
        let _ = fs::create_dir(&path);
        let mut parts = name.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            path.push(OsStr::from_bytes(part));
            if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
                return None;
            }
            if parts.peek().is_some() && !path.is_dir() {
                fs::create_dir(&path).ok()?;
            }
        }
        Some(path)
    }

    fn write(&self, folder: &str, name: &[u8], bytes: &[u8]) {
        if let Some(path) = self.place(folder, name) {
            let _ = fs::write(path, bytes);
        }
    }

    /// Files to be sent. Large ones only if messages are not small.
    pub fn fill(&self, input: &mut Input<'_>, may_be_large: bool) {
        for _ in 0..input.byte() % 7 {
            let (name, size, seed) = (input.byte(), usize::from(input.byte()), input.byte());
            let length = match size {
                0..=199 => size,
                200..=239 => (size - 200) * 97,
                _ if may_be_large => LARGE + 3 * (size - 240),
                _ => 2000,
            };
            let name = NAMES[usize::from(name) % NAMES.len()];
            self.write("from", name, &content(seed % 4, length));
        }
        if input.byte() & 1 != 0 {
            let _ = fs::create_dir(self.path("from/hollow"));
        }
    }

    /// What is at the receiver before anything is sent. Whether there is something.
    pub fn prepare(&self, input: &mut Input<'_>) -> bool {
        let count = input.byte() % 4;
        for _ in 0..count {
            let (name, what) = (input.byte(), input.byte());
            let name = NAMES[usize::from(name) % NAMES.len()];
            let from = self.path("from").join(OsStr::from_bytes(name));
            let Some(to) = self.place("to/from", name) else { continue };
            match what % 6 {
                0 | 1 => {
                    let bytes = fs::read(&from).unwrap_or_default();
                    self.write("to/from", name, &bytes);
                    if what % 6 == 0 {
                        copy_time(&from, &to);
                    }
                }
                2 => self.write("to/from", name, &content(what, what.into())),
                3 => drop(fs::create_dir(to)),
                4 => drop(symlink(self.path("outside"), self.path("to/from/link"))),
                _ => drop(symlink(self.path("outside/secret"), to)),
            }
        }
        count > 0
    }

    /// Changes files at either end, as other programs may. Whether it did.
    pub fn meddle(&self, input: &mut Input<'_>) -> bool {
        let (what, by) = (input.byte(), input.byte());
        let part = self.part();
        match (what % 12, part) {
            (1, _) => drop(fs::remove_dir_all(self.path("to").join(HIDDEN))),
            (2, Some(part)) => {
                let mut bytes = fs::read(&part).unwrap_or_default();
                Input(&[0, by, 1]).spoil(&mut bytes);
                let _ = fs::write(part, bytes);
            }
            (3, Some(part)) => drop(fs::write(part, content(by, by.into()))),
            (4, Some(part)) => {
                let _ = fs::remove_file(&part);
                let _ = symlink(self.path("outside/secret"), part);
            }
            (5, Some(part)) => {
                let _ = fs::remove_file(&part);
                drop(UnixListener::bind(part));
            }
            (6, _) => self.write("from", NAMES[usize::from(by) % NAMES.len()], &content(by, 99)),
            (7, _) => {
                let path = self.path("from").join(OsStr::from_bytes(NAMES[usize::from(by) % 10]));
                let grown = [fs::read(&path).unwrap_or_default(), content(by, 50)].concat();
                let _ = fs::write(path, grown);
            }
            (8, _) => drop(fs::remove_file(self.path("from/a"))),
            (9, _) => {
                self.write(
                    "to/from",
                    NAMES[usize::from(by) % NAMES.len()],
                    &content(by, by.into()),
                );
            }
            (10, _) => drop(symlink(self.path("outside"), self.path("to/from/d"))),
            _ => return false,
        }
        true
    }

    /// An unfinished file.
    fn part(&self) -> Option<PathBuf> {
        let inside = fs::read_dir(self.path("to").join(HIDDEN)).ok()?;
        let mut parts: Vec<_> = inside.flatten().map(|item| item.path()).collect();
        parts.retain(|path| path.extension().is_some_and(|end| end == "part"));
        parts.retain(|path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file()));
        parts.into_iter().min()
    }

    /// Nothing was written anywhere else.
    pub fn is_closed(&self) {
        let all = |folder: &Path| -> Vec<_> {
            let inside = fs::read_dir(folder).expect("a folder").flatten();
            let mut names: Vec<_> = inside.map(|item| item.file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(all(&self.0), ["from", "outside", "to"]);
        assert_eq!(all(&self.path("outside")), ["secret"]);
        assert_eq!(fs::read(self.path("outside/secret")).expect("a file"), SECRET);
    }
}

fn copy_time(from: &Path, to: &Path) {
    let time = fs::metadata(from).and_then(|found| found.modified());
    let file = fs::File::options().write(true).open(to);
    if let (Ok(time), Ok(file)) = (time, file) {
        let _ = file.set_modified(time);
    }
}
