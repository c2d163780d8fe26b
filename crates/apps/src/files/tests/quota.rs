//! The quota of several senders that use one directory at the same time.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use ropewalk_runtime::seal::{PublicKey, SecretKey};

use super::hostile::entry;
use super::transfer::noise;
use super::*;
use crate::files::receiver::{ExistingEntry, Part};
use crate::files::wire::{Entry, Kind};

/// The quota counts blocks of 4 KiB, plus one for each entry.
const BLOCK: u64 = 4096;
const QUOTA: u64 = 30 * BLOCK;
const NAMES: [&str; 4] = ["one", "two", "new/three", "new/deep/four"];
const SENDERS: usize = 3;
/// Nested directories, and names that senders to the outer ones give to files in the inner ones.
const NESTED: [(&str, [&str; 4]); SENDERS] = [
    ("", ["one", "team/two", "team/anna/three", "new/four"]),
    ("team", ["two", "anna/three", "anna/new/five", "new/six"]),
    ("team/anna", ["three", "new/five", "new/seven", "eight"]),
];

/// The next step of one sender.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Connects again; its open file stays unfinished.
    Connect,
    /// Lists a file with this number of blocks.
    List(usize, u64),
    /// Starts a file, from its unfinished part or from the beginning.
    Begin(bool),
    /// Sends this number of blocks of the file.
    Send(u64),
    /// Leaves the file unfinished.
    Skip,
    /// Ends the file, which gets its name if it is complete.
    End,
    /// Ends the file with a wrong hash.
    Mismatch,
    /// Lists a folder.
    Folder(u8),
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let what = prop_oneof![
        1 => Just(Step::Connect),
        4 => (0..NAMES.len(), 0..12_u64).prop_map(|(name, blocks)| Step::List(name, blocks)),
        4 => any::<bool>().prop_map(Step::Begin),
        4 => (1..12_u64).prop_map(Step::Send),
        1 => Just(Step::Skip),
        4 => Just(Step::End),
        1 => Just(Step::Mismatch),
        1 => any::<u8>().prop_map(Step::Folder),
    ];
    (0..SENDERS, what)
}

struct Sender {
    inbox: Inbox,
    names: [&'static str; 4],
    listed: Option<(Entry, u64)>,
    part: Option<(Entry, Part, u64)>,
}

/// Bytes on disk, as the quota counts them.
fn on_disk(folder: &Path) -> u64 {
    charged(folder, &[])
}

/// Bytes that are charged for a directory: its usage on disk, and for open files their reservations.
fn charged(folder: &Path, open: &[(PathBuf, u64)]) -> u64 {
    let items = fs::read_dir(folder).expect("a directory").map(|item| item.expect("an item"));
    let on_disk: u64 = items
        .filter(|item| open.iter().all(|(path, _)| *path != item.path()))
        .map(|item| match item.metadata().expect("its size") {
            found if found.is_dir() => BLOCK + charged(&item.path(), open),
            found if found.is_file() => found.len().div_ceil(BLOCK) * BLOCK + BLOCK,
            _ => BLOCK,
        })
        .sum();
    let reserved = open.iter().filter(|(path, _)| path.parent() == Some(folder));
    on_disk + reserved.map(|(_, bytes)| bytes).sum::<u64>()
}

/// Whether the account of a directory is exact.
fn check_account(store: &Store, folder: &Path) -> Result<(), TestCaseError> {
    let (used, open) = store.account();
    let folder = folder.canonicalize().expect("a directory");
    prop_assert_eq!(used, Some(charged(&folder, &open)), "{:?}, open: {:?}", folder, open);
    Ok(())
}

fn connect(store: &Arc<Store>, key: PublicKey, overwrite: bool) -> Sender {
    let rules = Rules { overwrite, quota_bytes: Some(QUOTA), ..Rules::default() };
    let inbox = Inbox::new(store.clone(), Peer::new(Some(key)), rules).expect("an inbox");
    Sender { inbox, names: NAMES, listed: None, part: None }
}

fn list(sender: &mut Sender, name: usize, blocks: u64) {
    let file = entry(sender.names[name], Kind::File(blocks * BLOCK));
    sender.listed = match sender.inbox.inspect(&file) {
        ExistingEntry::Nothing => Some((file, 0)),
        ExistingEntry::Part(len, _) => Some((file, len)),
        // The file exists, and the sender's file has another hash.
        ExistingEntry::Exists if sender.inbox.replaces() => {
            sender.inbox.plan(&file.name, file.size()).is_ok().then_some((file, 0))
        }
        _ => None,
    };
}

/// Returns the path and size of a file that got its name.
fn act(sender: &mut Sender, step: Step) -> Option<(PathBuf, u64)> {
    match step {
        Step::Connect => {}
        Step::List(name, blocks) if sender.part.is_none() => list(sender, name, blocks),
        Step::List(..) => {}
        Step::Begin(resumes) => {
            if let (None, Some((file, len))) = (&sender.part, sender.listed.take()) {
                let offset = if resumes { len } else { 0 };
                let part = sender.inbox.begin(&file, offset).ok();
                let left = file.size() - offset;
                sender.part = part.map(|part| (file, part, left));
            }
        }
        Step::Send(blocks) => {
            if let Some((_, part, left)) = &mut sender.part {
                let now = (blocks * BLOCK).min(*left);
                // Fails if another sender with the same key has begun the same file.
                if part.write_all(&noise(now as usize, 1)).is_ok() {
                    *left -= now;
                }
            }
        }
        Step::Skip => sender.part = None,
        Step::End => {
            if let Some((file, part, 0)) = sender.part.take()
                && sender.inbox.finish(&file, part).is_ok()
            {
                return Some((file.name.path(), file.size()));
            }
        }
        Step::Mismatch => {
            if let Some((_, part, _)) = sender.part.take() {
                part.discard();
            }
        }
        Step::Folder(number) => {
            sender.inbox.inspect(&entry(&format!("folder/{number}"), Kind::Folder));
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn senders_at_the_same_time_never_exceed_the_quota_together(
        steps in prop::collection::vec(step(), 1..120),
        overwrite: bool,
        same_key: bool,
    ) {
        let dir = TempDir::new("quota");
        let store = Arc::new(Store::open(&dir.path("to")).expect("a directory"));
        let keys = [(); SENDERS].map(|()| SecretKey::generate().expect("a key").public());
        let key = |sender: usize| keys[if same_key { 0 } else { sender }];
        let mut senders: Vec<_> =
            (0..SENDERS).map(|sender| connect(&store, key(sender), overwrite)).collect();
        let mut finished = BTreeMap::new();
        for (number, step) in steps {
            match step {
                Step::Connect => senders[number] = connect(&store, key(number), overwrite),
                step => finished.extend(act(&mut senders[number], step)),
            }
            for (path, size) in &finished {
                let found = fs::metadata(dir.path("to").join(path)).expect("a finished file").len();
                prop_assert_eq!(found, *size, "{:?} changed after {:?} of {}", path, step, number);
            }
            let bytes = on_disk(&dir.path("to"));
            prop_assert!(bytes <= QUOTA, "{bytes} B after {step:?} of {number}");
            check_account(&store, &dir.path("to"))?;
        }
        // Unreserved space is free: a single sender may use all the rest.
        drop(senders);
        let left = QUOTA.checked_sub(on_disk(&dir.path("to")) + BLOCK);
        let mut last = connect(&store, SecretKey::generate().expect("a key").public(), false);
        if let Some(left) = left {
            let fill = entry("fill", Kind::File(left));
            let part = last.inbox.begin(&fill, 0);
            prop_assert!(part.is_ok(), "{left} B are left, {part:?}");
            last.part = Some((fill, part.expect("just seen"), left));
            act(&mut last, Step::Send(left / BLOCK));
            act(&mut last, Step::End);
            prop_assert_eq!(on_disk(&dir.path("to")), QUOTA);
        }
        let one_more = last.inbox.inspect(&entry("more", Kind::File(0)));
        prop_assert!(matches!(one_more, ExistingEntry::Obstacle(_)), "{:?}", one_more);
    }

    #[test]
    fn accounts_of_directories_within_each_other_are_exact(
        steps in prop::collection::vec(step(), 1..120),
        overwrite: bool,
    ) {
        let dir = TempDir::new("nested");
        let key = SecretKey::generate().expect("a key").public();
        let outer = Arc::new(Store::open(&dir.path("to")).expect("a directory"));
        // The outer directory is measured before the inner ones exist.
        drop(connect(&outer, key, overwrite));
        let [team, anna] = [1, 2].map(|number: usize| {
            Arc::new(outer.open_inner(Path::new(NESTED[number].0)).expect("a directory"))
        });
        let stores = [outer, team, anna];
        let join = |number: usize| {
            Sender { names: NESTED[number].1, ..connect(&stores[number], key, overwrite) }
        };
        let mut senders = [0, 1, 2].map(join);
        for (number, step) in steps {
            match step {
                Step::Connect => senders[number] = join(number),
                step => drop(act(&mut senders[number], step)),
            }
            for (store, (name, _)) in stores.iter().zip(NESTED) {
                check_account(store, &dir.path("to").join(name))?;
            }
        }
    }
}

/// Creates a tree with entries of all kinds, and returns what the quota counts for it.
#[cfg(unix)]
fn hostile_tree(root: &Path, outside: &Path) -> u64 {
    use std::os::unix::fs::symlink;
    let mut blocks = 0;
    let mut folder = |path: &Path| {
        fs::create_dir(path).expect("a folder");
        blocks += 1;
    };
    folder(&root.join("wide"));
    (0..5000).for_each(|number| folder(&root.join(format!("wide/{number}"))));
    let mut deep = root.join("deep");
    folder(&deep);
    for _ in 0..1100 {
        deep.push("d");
        folder(&deep);
    }
    let mut file = |path: &Path, bytes: u64| {
        // A sparse file counts like any other.
        fs::File::create(path).and_then(|file| file.set_len(bytes)).expect("a file");
        blocks += 1 + bytes.div_ceil(BLOCK);
    };
    (0..5000).step_by(50).for_each(|number| file(&root.join(format!("wide/{number}/f")), 1));
    file(&deep.join("bottom"), 3 * BLOCK);
    file(&root.join("sparse"), 1 << 30);
    file(&root.join("linked"), BLOCK + 1);
    for number in 0..100 {
        fs::hard_link(root.join("linked"), root.join(format!("hard{number}"))).expect("a link");
        blocks += 3;
    }
    let targets = [outside, Path::new("/"), Path::new("."), Path::new(".."), Path::new("missing")];
    for (number, target) in targets.into_iter().enumerate() {
        symlink(target, root.join(format!("link{number}"))).expect("a link");
        symlink(target, deep.join(format!("link{number}"))).expect("a link");
        blocks += 2;
    }
    blocks * BLOCK
}

#[cfg(unix)]
#[test]
fn a_directory_of_any_shape_is_counted_exactly() {
    let dir = TempDir::new("shape");
    dir.write("outside/large", &noise(1 << 20, 1));
    let root = dir.path("to");
    fs::create_dir(&root).expect("a directory");
    let bytes = hostile_tree(&root, &dir.path("outside"));
    let store = Arc::new(Store::open(&root).expect("a directory"));
    // The hidden folder and its lock, and room for one file of three blocks.
    let quota = bytes + 2 * BLOCK + 4 * BLOCK;
    for (size, fits) in [(3 * BLOCK, true), (3 * BLOCK + 1, false)] {
        let rules = Rules { quota_bytes: Some(quota), ..Rules::default() };
        let inbox = Inbox::new(store.clone(), Peer::default(), rules).expect("an inbox");
        assert_eq!(store.account().0, Some(bytes + 2 * BLOCK));
        let found = inbox.inspect(&entry("new", Kind::File(size)));
        assert_eq!(matches!(found, ExistingEntry::Nothing), fits, "{size} B: {found:?}");
    }
}

#[test]
fn a_killed_receiver_loses_nothing_of_the_account() {
    let dir = TempDir::new("killed");
    let root = dir.path("to");
    let rules = Rules { quota_bytes: Some(QUOTA), ..Rules::default() };
    let inbox = || {
        let store = Arc::new(Store::open(&root).expect("a directory"));
        Inbox::new(store, Peer::default(), rules).expect("an inbox")
    };
    let file = entry("new/file", Kind::File(20 * BLOCK));
    let before = inbox();
    let mut part = before.begin(&file, 0).expect("a part");
    part.write_all(&noise(5 * BLOCK as usize, 1)).expect("written");
    // The lock ends with the process, and the hidden directory with its name.
    fs::rename(root.join(".ropewalk"), root.join("kept")).expect("moved");
    let after = inbox();
    assert_eq!(after.store().account().0, Some(on_disk(&root)));
    let left = QUOTA - on_disk(&root) - BLOCK;
    for (size, fits) in [(left + 1, false), (left, true)] {
        let found = after.inspect(&entry("rest", Kind::File(size)));
        assert_eq!(matches!(found, ExistingEntry::Nothing), fits, "{size} B: {found:?}");
    }
}

/// Runs this on a thread of an ordinary user, who owns the directory. Root could read all folders.
#[cfg(target_os = "linux")]
fn as_ordinary_user(dir: &TempDir, act: impl FnOnce() + Send) {
    const USER: u32 = 65_534;
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(dir.path(""), Some(USER), None).expect("a new owner");
    }
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if nix::unistd::geteuid().is_root() {
                nix::unistd::setfsuid(USER.into());
            }
            act();
        });
    });
}

#[cfg(target_os = "linux")]
#[test]
fn folders_that_cannot_be_read_stop_no_sender_and_take_nothing_with_a_quota() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new("unreadable");
    as_ordinary_user(&dir, || {
        dir.write("to/closed/inner/file", &noise(100 * BLOCK as usize, 1));
        dir.write("to/shut/file", b"1");
        let set_mode = |name: &str, mode| {
            fs::set_permissions(dir.path(name), fs::Permissions::from_mode(mode)).expect("a mode");
        };
        set_mode("to/closed", 0o300);
        set_mode("to/shut", 0o400);
        let store = Arc::new(Store::open(&dir.path("to")).expect("a directory"));
        for quota_bytes in [Some(QUOTA), None] {
            let rules = Rules { quota_bytes, ..Rules::default() };
            let inbox = Inbox::new(store.clone(), Peer::default(), rules).expect("an inbox");
            if quota_bytes.is_some() {
                // The hidden folder, its lock and the two folders.
                assert_eq!(store.account().0, Some(4 * BLOCK));
            }
            for (name, kind, takes) in [
                ("closed/file", Kind::File(1), quota_bytes.is_none()),
                ("closed/inner/new", Kind::File(1), quota_bytes.is_none()),
                ("closed/new/file", Kind::File(1), quota_bytes.is_none()),
                ("open/new/file", Kind::File(1), true),
                ("closed/folder", Kind::Folder, quota_bytes.is_none()),
                ("closed/inner/new", Kind::Folder, quota_bytes.is_none()),
                ("shut/new", Kind::Folder, false),
                ("open", Kind::Folder, true),
            ] {
                let found = inbox.inspect(&entry(name, kind));
                let is_obstacle = matches!(found, ExistingEntry::Obstacle(_));
                assert_eq!(is_obstacle, !takes, "{name} at {quota_bytes:?}: {found:?}");
            }
        }
        set_mode("to/closed", 0o700);
        set_mode("to/shut", 0o700);
    });
}

#[cfg(unix)]
#[test]
fn a_sender_cannot_hide_what_a_folder_contains_from_the_quota() {
    use crate::files::wire::EXACT;
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new("hidden");
    let store = Arc::new(Store::open(&dir.path("to")).expect("a directory"));
    for (name, quota_bytes, expected) in [("limited", Some(QUOTA), 0o500), ("free", None, 0)] {
        let rules = Rules { quota_bytes, exact_modes: true, ..Rules::default() };
        let inbox = Inbox::new(store.clone(), Peer::default(), rules).expect("an inbox");
        let folder = Entry { mode: EXACT, ..entry(name, Kind::Folder) };
        assert!(matches!(inbox.inspect(&folder), ExistingEntry::Ready));
        assert_eq!(inbox.settle(&[folder], &Default::default()), []);
        let found = fs::metadata(dir.path("to").join(name)).expect("a folder").permissions();
        assert_eq!(found.mode() & 0o777, expected, "{name}");
    }
}
