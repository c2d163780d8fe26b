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

/// The next step of one sender.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Connects again; its open file stays unfinished.
    Connect,
    /// Lists a file of so many blocks.
    List(usize, u64),
    /// Begins a file, from where it was left or from the beginning.
    Begin(bool),
    /// Sends so many blocks of the file.
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
    listed: Option<(Entry, u64)>,
    part: Option<(Entry, Part, u64)>,
}

/// Bytes on disk, as the quota counts them.
fn on_disk(folder: &Path) -> u64 {
    let items = fs::read_dir(folder).expect("a directory").map(|item| item.expect("an item"));
    items
        .map(|item| match item.metadata().expect("its size") {
            found if found.is_dir() => BLOCK + on_disk(&item.path()),
            found => found.len().div_ceil(BLOCK) * BLOCK + BLOCK,
        })
        .sum()
}

fn connect(store: &Arc<Store>, key: PublicKey, overwrite: bool) -> Sender {
    let rules = Rules { overwrite, quota_bytes: Some(QUOTA), ..Rules::default() };
    let inbox = Inbox::new(store.clone(), Peer::new(Some(key)), rules).expect("an inbox");
    Sender { inbox, listed: None, part: None }
}

fn list(sender: &mut Sender, name: usize, blocks: u64) {
    let file = entry(NAMES[name], Kind::File(blocks * BLOCK));
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
        }
        // Space that no sender uses is free: a single sender may use all the rest.
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
}
