//! Visits everything below a directory. Neither memory nor descriptors depend on the shape of the tree, which senders
//! and other programs determine.
//!
//! ```text
//!   root / a / m / q      folder that is being read
//!    |     |   |   +- pending: r, s                              open
//!    |     |   +----- pending: n                                 open
//!    |     +--------- pending: dropped, read again after "m"     closed
//!    +--------------- pending: b, c; read again after "c"        open
//! ```
//!
//! The names of pending subfolders have a limit in bytes. A folder with more subfolders is read several times, each
//! time for the next names in order. If all pending names together exceed the limit, those of outer folders are
//! dropped. Only the innermost folders stay open. An outer folder is opened again from the root, name by name.

use std::collections::BinaryHeap;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use cap_std::fs::{Dir, DirEntry, Metadata};

use super::workdir::open_nofollow;

/// Memory overhead of a pending name.
const NAME_COST: usize = 64;
/// Maximum depth of a tree. A sender's names have at most 2048 parts; other programs can create deeper trees. A level
/// takes 40 bytes and its name.
const DEPTH_LIMIT: usize = 1 << 16;

/// Limits of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Folders that stay open, at least 1. Reading one takes two more descriptors, and the root has one.
    pub open_folders: usize,
    /// Memory for the names of pending subfolders, bytes. Reading a folder may take half of it in addition.
    pub name_bytes: usize,
}

/// Limits for a receiver's directory. 8 MiB hold the names of 100 000 subfolders.
pub const BOUNDS: Bounds = Bounds { open_folders: 64, name_bytes: 8 << 20 };

/// Calls `visit` once for each entry below the root, with the path of its folder relative to the root, and its name.
/// Symbolic links are visited, and never followed. A subfolder that cannot be read is visited without its contents.
/// An entry that is created or removed during the walk may be missing.
///
/// # Errors
/// The error of the system, that the root cannot be read, or that the tree has more than 65 536 levels.
pub fn walk(
    root: &Dir,
    bounds: Bounds,
    visit: &mut dyn FnMut(&Path, &OsStr, &Metadata),
) -> io::Result<()> {
    let root = Rc::new(root.try_clone()?);
    let levels = vec![Level { dir: Some(root.clone()), ..Level::default() }];
    Walk { root, bounds, visit, path: PathBuf::new(), levels, name_bytes: 0 }.run()
}

struct Walk<'a> {
    root: Rc<Dir>,
    bounds: Bounds,
    visit: &'a mut dyn FnMut(&Path, &OsStr, &Metadata),
    /// Path of the current folder, relative to the root.
    path: PathBuf,
    /// The root, and the folders of `path`.
    levels: Vec<Level>,
    /// Memory of all pending names.
    name_bytes: usize,
}

#[derive(Default)]
struct Level {
    /// `None` if the folder was closed.
    dir: Option<Rc<Dir>>,
    /// Names of subfolders to visit, in descending order.
    pending: Vec<OsString>,
    /// Whether the folder has more subfolders, whose names follow all of these.
    has_more: bool,
}

impl Walk<'_> {
    fn run(&mut self) -> io::Result<()> {
        self.read(None)?;
        // The subfolder of the current level that was visited last.
        let mut last = OsString::new();
        while let Some(level) = self.levels.last_mut() {
            if let Some(name) = level.pending.pop() {
                self.name_bytes -= cost(&name);
                if !self.descend(&name)? {
                    last = name;
                }
            } else if level.has_more {
                self.read(Some(&last))?;
            } else {
                self.levels.pop();
                last = self.path.file_name().map(OsStr::to_owned).unwrap_or_default();
                self.path.pop();
            }
        }
        Ok(())
    }

    /// Opens and reads a subfolder of the current folder. Returns false if that is not possible.
    fn descend(&mut self, name: &OsStr) -> io::Result<bool> {
        let Some(dir) = self.current()? else { return Ok(false) };
        let Some(inner) = open_folder(&dir, name)? else { return Ok(false) };
        if self.levels.len() > DEPTH_LIMIT {
            return Err(io::Error::other("its folders are nested too deeply"));
        }
        self.path.push(name);
        self.levels.push(Level { dir: Some(Rc::new(inner)), ..Level::default() });
        if let Some(outer) = self.levels.len().checked_sub(1 + self.bounds.open_folders) {
            self.levels[outer].dir = None;
        }
        self.read(None)?;
        Ok(true)
    }

    /// The current folder. `None` if another program has moved or removed it.
    fn current(&mut self) -> io::Result<Option<Rc<Dir>>> {
        if let Some(dir) = self.levels.last().and_then(|level| level.dir.clone()) {
            return Ok(Some(dir));
        }
        let outermost = self.levels.len().saturating_sub(self.bounds.open_folders);
        let mut dir = self.root.clone();
        for (name, place) in self.path.iter().zip(1..) {
            let Some(inner) = open_folder(&dir, name)? else { return Ok(None) };
            dir = Rc::new(inner);
            if place >= outermost {
                self.levels[place].dir = Some(dir.clone());
            }
        }
        Ok(Some(dir))
    }

    /// Reads the current folder: visits all entries, and collects the names of its first subfolders. If it was read
    /// before, only collects those that follow this name.
    fn read(&mut self, after: Option<&OsStr>) -> io::Result<()> {
        let mut names = FirstNames::new(self.bounds.name_bytes / 2);
        let is_below_root = self.levels.len() > 1;
        if let Some(dir) = self.current()? {
            match dir.entries() {
                Ok(mut entries) => entries.try_for_each(|entry| {
                    let entry = entry?;
                    if self.is_next(&entry, after)? {
                        names.add(entry.file_name());
                    }
                    Ok::<_, io::Error>(())
                })?,
                Err(error) if is_below_root && is_out_of_reach(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.name_bytes += names.bytes;
        if let Some(level) = self.levels.last_mut() {
            level.has_more = names.end.is_some();
            level.pending = names.descending();
        }
        self.drop_outer_names();
        Ok(())
    }

    /// Whether the entry is a subfolder whose name follows `after`. Visits the entry at the first reading.
    fn is_next(&mut self, entry: &DirEntry, after: Option<&OsStr>) -> io::Result<bool> {
        let name = entry.file_name();
        if let Some(after) = after
            && (*name <= *after || entry.file_type()?.is_file())
        {
            return Ok(false);
        }
        match entry.metadata() {
            Ok(found) => {
                if after.is_none() {
                    (self.visit)(&self.path, &name, &found);
                }
                Ok(found.is_dir())
            }
            Err(error) if is_out_of_reach(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// If the pending names exceed the limit, drops those of outer folders until the rest takes at most half of it.
    /// At least as many new names are thus read before any are dropped again.
    fn drop_outer_names(&mut self) {
        let (limit, current) = (self.bounds.name_bytes, self.levels.len() - 1);
        if self.name_bytes <= limit {
            return;
        }
        for level in self.levels[..current].iter_mut().filter(|level| !level.pending.is_empty()) {
            if self.name_bytes <= limit / 2 {
                return;
            }
            self.name_bytes -= level.pending.iter().map(|name| cost(name)).sum::<usize>();
            level.pending = Vec::new();
            level.has_more = true;
        }
    }
}

/// Opens a subfolder. `None` if it cannot be read, or if another program has removed or replaced it.
fn open_folder(dir: &Dir, name: &OsStr) -> io::Result<Option<Dir>> {
    match open_nofollow(dir, name) {
        Ok(inner) => Ok(Some(inner)),
        Err(error) if is_out_of_reach(&error) => Ok(None),
        Err(_) if !dir.symlink_metadata(name).is_ok_and(|found| found.is_dir()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the entry is gone or may not be read.
fn is_out_of_reach(error: &io::Error) -> bool {
    [ErrorKind::NotFound, ErrorKind::PermissionDenied].contains(&error.kind())
}

fn cost(name: &OsStr) -> usize {
    NAME_COST + name.len()
}

/// The first names in order, as many as fit into the limit, and at least one.
struct FirstNames {
    names: BinaryHeap<OsString>,
    bytes: usize,
    limit: usize,
    /// The first name that did not fit. No later name may be taken, or this one would be missed.
    end: Option<OsString>,
}

impl FirstNames {
    const fn new(limit: usize) -> Self {
        Self { names: BinaryHeap::new(), bytes: 0, limit, end: None }
    }

    fn add(&mut self, name: OsString) {
        if self.end.as_ref().is_some_and(|end| name >= *end) {
            return;
        }
        self.bytes += cost(&name);
        self.names.push(name);
        while self.bytes > self.limit && self.names.len() > 1 {
            self.end = self.names.pop();
            self.bytes -= self.end.as_ref().map_or(0, |end| cost(end));
        }
    }

    fn descending(self) -> Vec<OsString> {
        let mut names = self.names.into_sorted_vec();
        names.reverse();
        names
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    use cap_std::ambient_authority;
    use proptest::prelude::*;

    use super::*;
    use crate::files::test_support::TempDir;

    /// An item of a tree. The numbers choose its parent folder.
    #[derive(Clone, Debug)]
    enum Item {
        Folder(usize, String),
        File(usize),
        HardLink(usize),
        LinkToFolder(usize, usize),
        LinkOut(usize),
    }

    fn item() -> impl Strategy<Value = Item> {
        prop_oneof![
            6 => (any::<usize>(), "[a-c]{1,40}").prop_map(|(at, name)| Item::Folder(at, name)),
            2 => any::<usize>().prop_map(Item::File),
            1 => any::<usize>().prop_map(Item::HardLink),
            1 => (any::<usize>(), any::<usize>()).prop_map(|(at, to)| Item::LinkToFolder(at, to)),
            1 => any::<usize>().prop_map(Item::LinkOut),
        ]
    }

    /// Creates a tree, next to a folder that no walk may enter. Returns the paths of all folders, with that of the
    /// root, and of everything else.
    fn create(dir: &TempDir, items: &[Item]) -> (Vec<PathBuf>, BTreeSet<PathBuf>) {
        dir.write("outside/secret", b"secret");
        dir.write("linked", b"linked");
        let (root, outside) = (dir.path("root"), dir.path("outside"));
        fs::create_dir(&root).expect("a directory");
        let (mut folders, mut others) = (vec![PathBuf::new()], BTreeSet::new());
        for (number, item) in items.iter().enumerate() {
            let (at, name) = match item {
                Item::Folder(at, name) => (at, format!("{name}{number}")),
                Item::File(at) => (at, format!("file{number}")),
                Item::HardLink(at) => (at, format!("hard{number}")),
                Item::LinkToFolder(at, _) | Item::LinkOut(at) => (at, format!("link{number}")),
            };
            let path = folders[at % folders.len()].join(name);
            let place = root.join(&path);
            match item {
                Item::Folder(..) => fs::create_dir(place).expect("a folder"),
                Item::File(..) => drop(File::create(place).expect("a file")),
                Item::HardLink(..) => fs::hard_link(dir.path("linked"), place).expect("a link"),
                Item::LinkToFolder(_, to) => {
                    symlink(root.join(&folders[to % folders.len()]), place).expect("a link");
                }
                Item::LinkOut(..) => symlink(&outside, place).expect("a link"),
            }
            match item {
                Item::Folder(..) => folders.push(path),
                _ => assert!(others.insert(path)),
            }
        }
        (folders, others)
    }

    fn visited(root: &Path, bounds: Bounds, mut act: impl FnMut(usize)) -> Vec<PathBuf> {
        let root = Dir::open_ambient_dir(root, ambient_authority()).expect("a directory");
        let mut found = Vec::new();
        walk(&root, bounds, &mut |folder, name, _| {
            found.push(folder.join(name));
            act(found.len());
        })
        .expect("a walk");
        found.sort();
        found
    }

    fn bounds() -> impl Strategy<Value = Bounds> {
        (1..5_usize, 0..1000_usize)
            .prop_map(|(open_folders, name_bytes)| Bounds { open_folders, name_bytes })
    }

    proptest! {
        #[test]
        fn every_entry_is_visited_once(
            items in prop::collection::vec(item(), 0..80),
            bounds in bounds(),
        ) {
            let dir = TempDir::new("walk");
            let (folders, others) = create(&dir, &items);
            let mut all: Vec<_> = folders[1..].iter().chain(&others).cloned().collect();
            all.sort();
            prop_assert_eq!(visited(&dir.path("root"), bounds, |_| ()), all);
        }

        #[test]
        fn a_folder_that_disappears_during_the_walk_affects_no_other_entry(
            items in prop::collection::vec(item(), 1..80),
            bounds in bounds(),
            (victim, moment) in any::<(usize, usize)>(),
            becomes_link in any::<Option<bool>>(),
        ) {
            let dir = TempDir::new("walk-changed");
            let (folders, others) = create(&dir, &items);
            let victim = &folders[victim % folders.len()];
            prop_assume!(!victim.as_os_str().is_empty());
            let moment = 1 + moment % items.len();
            let found = visited(&dir.path("root"), bounds, |number| {
                if number == moment {
                    let place = dir.path("root").join(victim);
                    fs::rename(&place, dir.path("removed")).expect("moved");
                    let to_root = victim.iter().skip(1).map(|_| "..").collect::<PathBuf>().join(".");
                    match becomes_link {
                        Some(true) => symlink(dir.path("outside"), place).expect("a link"),
                        Some(false) => symlink(to_root, place).expect("a link"),
                        None => {}
                    }
                }
            });
            let is_other = |path: &&PathBuf| !path.starts_with(victim);
            let mut wanted: Vec<_> = folders[1..].iter().chain(&others).filter(is_other).collect();
            wanted.sort();
            let left: Vec<_> = found.iter().filter(is_other).collect();
            prop_assert_eq!(left, wanted);
            let is_known = |path: &PathBuf| folders.contains(path) || others.contains(path);
            prop_assert!(found.iter().all(is_known), "{:?}", found);
        }
    }

    /// A tree with 1000 subfolders in one folder, and a chain of 1100 folders that each have a second subfolder.
    #[cfg(target_os = "linux")]
    fn large_tree(root: &Path) -> usize {
        let mut folders = 2;
        fs::create_dir_all(root.join("wide")).expect("a folder");
        for number in 0..1000 {
            fs::create_dir(root.join(format!("wide/{number}"))).expect("a folder");
            folders += 1;
        }
        let mut place = root.join("c");
        fs::create_dir(&place).expect("a folder");
        for _ in 0..1100 {
            for name in ["b", "c"] {
                fs::create_dir(place.join(name)).expect("a folder");
                folders += 1;
            }
            place.push("c");
        }
        folders
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn few_descriptors_are_open_whatever_the_shape_of_the_tree() {
        let dir = TempDir::new("descriptors");
        let root = dir.path("root");
        let folders = large_tree(&root);
        let is_below = |entry: io::Result<fs::DirEntry>| {
            let target = entry.and_then(|entry| fs::read_link(entry.path()));
            target.is_ok_and(|target| target.starts_with(&root))
        };
        let mut most = 0;
        let found = visited(&root, BOUNDS, |number| {
            if number % 50 == 0 {
                let open = fs::read_dir("/proc/self/fd").expect("descriptors");
                most = most.max(open.map(is_below).filter(|is_below| *is_below).count());
            }
        });
        assert_eq!(found.len(), folders);
        // The root, once from the caller, and two for reading.
        let limit = BOUNDS.open_folders + 4;
        assert!((BOUNDS.open_folders..=limit).contains(&most), "{most} descriptors");
    }
}
