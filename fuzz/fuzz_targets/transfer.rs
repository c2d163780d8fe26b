//! Whole file transfers with both ends, in folders in memory. Associations are cut, either end restarts, files are changed
//! between two attempts, and frames are changed on their way.
//!
//! * Nothing is written outside of the receiver's directory.
//! * A file gets its name only with a hash that the sender told for that name.
//! * A last attempt without changes brings every file, bit for bit, or reports it as failed, and leaves nothing unfinished.
//! * Both ends come to an end, and memory is bounded.

#![no_main]

use std::alloc::System;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use cap::Cap;
use libfuzzer_sys::fuzz_target;
use ropewalk_apps::files::{
    Admit, Inbox, Job, Manifest, Peer, Rules, SendError, Store, Summary, TransferError,
    TransferStatus, receive, send, shown,
};
use ropewalk_fuzz::Input;
use ropewalk_fuzz::transfer::{
    Claims, Digest, Ends, Plan, Room, Snapshot, Vocabulary, edits, watch_idle,
};
use tokio::runtime::{Builder, Runtime};

/// What both ends may take together, bytes: blocks of 256 KiB on their way, and one for each thread that hashes.
const MEMORY: usize = 48 << 20;
const SIZES: [usize; 8] = [1400, 700, 50, 1400, 13, 1400, 7, 1];
/// Messages from which on files may be large, bytes.
const LARGE_FROM: usize = 700;
/// How often it is looked whether a thread has ended: at least ten seconds.
const LAST_STEPS: u32 = 100_000;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Time stands still while anything is at work, and passes at once when nothing is.
static RUNTIME: LazyLock<Mutex<Runtime>> = LazyLock::new(|| {
    let mut builder = Builder::new_current_thread();
    Mutex::new(builder.enable_time().start_paused(true).build().expect("a runtime"))
});

/// What has happened in the room so far.
struct World {
    room: Room,
    rules: Rules,
    size: usize,
    is_patient: bool,
    /// The contents that each name may have at the receiver.
    allowed: BTreeMap<Vec<u8>, BTreeSet<Digest>>,
    /// What is at the receiver.
    before: Snapshot,
    /// Nothing hinders the receiver from taking every file.
    is_clean: bool,
    /// Frames or files were changed.
    was_touched: bool,
    bytes_before: u64,
}

/// What came of a phase.
struct Outcome {
    sent: Result<(), SendError>,
    received: Result<(), TransferError>,
    summaries: Vec<Result<Summary, String>>,
    job: Arc<Job>,
    said: Arc<Mutex<Claims>>,
    heard: Arc<Mutex<Claims>>,
}

impl World {
    fn new(input: &mut Input<'_>) -> Self {
        let (what, limits) = (input.byte(), input.byte());
        let size = SIZES[usize::from(what & 7)];
        let limit = |bit: u8| (limits & bit != 0).then(|| u64::from(limits >> 3) << 9);
        let rules = Rules {
            overwrite: what & 8 != 0,
            exact_modes: what & 16 != 0,
            max_file_bytes: limit(1),
            quota_bytes: limit(2).map(|bytes| 8 * bytes),
        };
        let room = Room::default();
        room.fill(input, size >= LARGE_FROM);
        let is_free = rules.max_file_bytes.is_none() && rules.quota_bytes.is_none();
        let is_clean = !room.prepare(input) && is_free;
        let before = Snapshot::of(&room.path("to"));
        let allowed = before.files.iter().map(|(name, hash)| (name.clone(), [*hash].into()));
        Self {
            rules,
            size,
            is_patient: what >> 5 == 7,
            allowed: allowed.collect(),
            is_clean,
            was_touched: false,
            bytes_before: before.bytes,
            before,
            room,
        }
    }

    fn store(&self) -> Arc<Store> {
        Arc::new(Store::open(&self.room.path("to")).expect("an ordinary folder"))
    }

    /// One sender, from its start to its end, and one receiver.
    fn run(&self, store: &Arc<Store>, plans: Vec<Plan>) -> Outcome {
        let manifest = Manifest::of(&[self.room.path("from")], self.rules.exact_modes);
        let job = Arc::new(Job::new(manifest.expect("a folder")));
        let (own, rules) = (store.clone(), self.rules);
        let admit: Arc<Admit> = Arc::new(move |peer: &Peer| {
            Inbox::new(own.clone(), peer.clone(), rules).map_err(|error| error.to_string())
        });
        let is_honest = plans.iter().all(Plan::is_honest);
        let ends = Ends::new(plans, self.size);
        let [here, there] = [(); 2].map(|()| Arc::new(TransferStatus::new(|_| ())));
        let mut summaries = Vec::new();
        let both = async {
            let receiving = receive(&ends, &admit, &there, |summary| {
                summaries.push(summary);
                true
            });
            let sending = async {
                let sent = send(&ends, &job, &here, Duration::from_secs(1 << 20)).await;
                there.stop();
                sent
            };
            let both = async { tokio::join!(sending, receiving) };
            if is_honest {
                return both.await;
            }
            tokio::select! {
                both = both => both,
                () = watch_idle(&ends, self.is_patient) => unreachable!("it never ends"),
            }
        };
        let (sent, received) = RUNTIME.lock().expect("unharmed").block_on(both);
        Outcome { sent, received, summaries, job, said: ends.said, heard: ends.heard }
    }

    /// Notes whether frames or files were changed.
    fn touch(&mut self, was_touched: bool) {
        self.was_touched |= was_touched;
        self.is_clean &= !was_touched;
    }

    /// Takes what lies at the receiver now as given.
    fn look_again(&mut self, was_meddled: bool) {
        if !was_meddled {
            return;
        }
        self.before = Snapshot::of(&self.room.path("to"));
        for (name, hash) in &self.before.files {
            self.allowed.entry(name.clone()).or_default().insert(*hash);
        }
        self.bytes_before = self.bytes_before.max(self.before.bytes);
    }

    /// What holds after every phase, whatever was said.
    fn check(&mut self, outcome: &Outcome) {
        self.room.is_closed();
        let before = std::mem::take(&mut self.before);
        let Outcome { sent, received, job, said, heard, .. } = outcome;
        assert_eq!(*received, Ok(()), "nothing is wrong with the receiver's directory");
        assert!(job.files_done() <= said.lock().expect("unharmed").offered.len() as u64);
        if sent.is_ok() {
            assert_eq!(job.files_pending(), 0);
            assert!(job.files_done() + job.failed() >= job.manifest.files() as u64);
        }
        for (name, hashes) in &heard.lock().expect("unharmed").sent {
            self.allowed.entry(name.clone()).or_default().extend(hashes);
        }
        let after = Snapshot::of(&self.room.path("to"));
        for (name, hash) in &after.files {
            let is_known = self.allowed.get(name).is_some_and(|hashes| hashes.contains(hash));
            assert!(is_known, "`{}` has a content that nobody sent", shown(name));
            let was = before.files.get(name).filter(|_| !self.rules.overwrite);
            assert!(was.is_none_or(|was| was == hash), "`{}` was replaced", shown(name));
        }
        assert!(before.files.keys().all(|name| after.files.contains_key(name)), "a file is gone");
        let limit = self.rules.quota_bytes.unwrap_or(u64::MAX);
        assert!(after.bytes <= limit.max(before.bytes).max(self.bytes_before), "over the quota");
        let largest = self.rules.max_file_bytes.unwrap_or(u64::MAX);
        assert!(after.largest <= largest.max(before.largest), "a file is too large");
        self.before = after;
    }

    /// What holds after a transfer that nobody has changed.
    fn check_whole(&self, outcome: &Outcome) {
        let after = &self.before;
        let Outcome { sent, summaries, job, .. } = outcome;
        assert_eq!(*sent, Ok(()));
        let failures = job.failures();
        let failed: BTreeSet<&str> = failures.iter().map(|(name, _)| name.unescaped()).collect();
        let source = Snapshot::of(&self.room.path("from"));
        for (name, hash) in &source.files {
            let name = [b"from/", &name[..]].concat();
            let is_there = after.files.get(&name) == Some(hash);
            let has_failed = failed.contains(&shown(&name)[..]);
            assert!(is_there || has_failed, "`{}` is not there", shown(&name));
        }
        assert!(failed.is_empty() || !self.is_clean, "{failures:?}");
        let Some(Ok(summary)) = summaries.last() else { panic!("{summaries:?}") };
        assert_eq!(summary.not_sent, 0, "{summary:?}");
        assert!(u64::from(summary.failed) <= job.failed(), "{summary:?}, but {failures:?}");
        if self.is_clean {
            assert_eq!(after.files.len(), source.files.len());
        }
    }

    /// The receiver ends. Nothing of it stays but what is unfinished.
    fn close(&self, mut store: Arc<Store>) -> Snapshot {
        // A thread may still be looking for files of a sender that has gone.
        for step in 0.. {
            match Arc::try_unwrap(store) {
                Ok(last) => {
                    drop(last);
                    break;
                }
                Err(shared) => store = shared,
            }
            assert!(step < LAST_STEPS, "a thread of the receiver does not end");
            match step {
                0..100 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(100)),
            }
        }
        let after = Snapshot::of(&self.room.path("to"));
        let others = |name: &&String| !name.ends_with(".part") && *name != "lock";
        let others: Vec<_> = after.hidden.iter().flatten().filter(others).collect();
        assert!(others.is_empty(), "{others:?} are left");
        assert!(after.hidden.is_none() || after.parts() > 0, "an empty folder is left");
        after
    }
}

/// What happens to some associations, at most so many. Not every one of them is changed, even where this may be.
fn plans(input: &mut Input<'_>, most: u8, words: Option<&Vocabulary>) -> Vec<Plan> {
    let plan = |input: &mut Input<'_>| {
        let what = input.byte();
        let cut_after = match what & 3 {
            0 => Some(u64::from(input.number())),
            1 => Some(u64::from(input.number()) << 4),
            _ => None,
        };
        let cut_after = if words.is_none() { cut_after.or(Some(300)) } else { cut_after };
        let mut plan = Plan { cut_after, ..Plan::default() };
        if let Some(words) = words {
            plan.sender = if what & 4 == 0 { edits(input, words) } else { Default::default() };
            plan.receiver = if what & 8 == 0 { Default::default() } else { edits(input, words) };
        }
        plan
    };
    let counts = [most / 2, 0, most, 1.min(most)];
    (0..counts[usize::from(input.byte() % 4)]).map(|_| plan(input)).collect()
}

fn vocabulary(folder: &Path) -> Vocabulary {
    let mut hashes: Vec<_> = Snapshot::of(folder).files.into_values().collect();
    hashes.push(*blake3::hash(b"").as_bytes());
    Vocabulary { hashes }
}

fuzz_target!(|input: &[u8]| {
    let _ = &*RUNTIME;
    ALLOCATOR.set_limit(ALLOCATOR.allocated() + MEMORY).expect("less is taken");
    let mut input = Input(input);
    let mut world = World::new(&mut input);
    let phases = input.byte();
    let mut store = world.store();
    for phase in 0..2_u8 {
        // Frames are changed in the first phase, the second one is cut.
        if phases & (1 << phase) == 0 {
            continue;
        }
        let words = vocabulary(&world.room.path("from"));
        let plans = plans(&mut input, 2, (phase == 0).then_some(&words));
        world.touch(!plans.iter().all(Plan::is_honest));
        world.check(&world.run(&store, plans));
        if phases & (4 << phase) != 0 {
            world.close(store);
            store = world.store();
        }
        let was_meddled = world.room.meddle(&mut input);
        world.touch(was_meddled);
        world.look_again(was_meddled);
    }
    let mut plans = plans(&mut input, 1, None);
    plans.push(Plan::default());
    let outcome = world.run(&store, plans);
    world.check(&outcome);
    world.check_whole(&outcome);
    let left = world.close(store);
    let may_stay = world.was_touched || outcome.job.failed() > 0;
    assert!(left.hidden.is_none() || may_stay, "{:?} is left", left.hidden);
    drop(world);
    ALLOCATOR.set_limit(usize::MAX).expect("no limit");
});
