//! Totals: the reports of both ends match the contents of the receiver's directory and their origin.

use std::fs;

use proptest::prelude::*;

use super::transfer::noise;
use super::*;
use crate::files::test_support::tree;

/// Bytes and number of the complete files in a directory that the sender has as well.
fn complete(dir: &TempDir) -> (u64, u64) {
    let (there, here) = (tree(&dir.path("to")), tree(&dir.path("")));
    let same = |name: &PathBuf, bytes: &Vec<u8>| {
        here.iter().any(|(other, content)| other == name && content.as_ref() == Some(bytes))
    };
    let files = there.iter().filter_map(|(name, bytes)| Some((name, bytes.as_ref()?)));
    let files: Vec<_> = files.filter(|(name, bytes)| same(name, bytes)).collect();
    (files.len() as u64, files.iter().map(|(_, bytes)| bytes.len() as u64).sum())
}

fn assert_true(dir: &TempDir, outcome: &Outcome, existing: u64) {
    let (files, bytes) = complete(dir);
    for (end, progress) in [("sender", outcome.progress), ("receiver", outcome.arrived)] {
        assert_eq!((progress.files_done, progress.placed), (files, bytes), "{end}: {progress:?}");
        assert_eq!(progress.existing(), existing, "{end}: {progress:?}");
    }
}

#[test]
fn bytes_of_refused_entries_do_not_count_as_arrived() {
    let dir = TempDir::new("totals-refused");
    for (name, len) in
        [("from/fine", 1000), ("from/way/inside", 20_000), ("from/taken", 300), ("from/kind", 4000)]
    {
        dir.write(name, &noise(len, 1));
    }
    dir.write("to/from/way", b"a file in the way of a folder");
    dir.write("to/from/taken", b"other contents");
    fs::create_dir_all(dir.path("to/from/kind/inside")).expect("a folder in the way of a file");
    for overwrite in [false, true] {
        let outcome = transfer(&dir, &["from"], &[None], overwrite);
        assert_eq!(outcome.sent, Ok(()));
        assert_true(&dir, &outcome, if overwrite { 1000 } else { 0 });
        let refused = if overwrite { 24_000 } else { 24_300 };
        assert_eq!((outcome.progress.failed, outcome.arrived.failed), (refused, refused));
    }
}

#[test]
fn bytes_of_files_that_change_or_do_not_fit_do_not_count_as_arrived() {
    let dir = TempDir::new("totals-changed");
    for name in ["from/a", "from/b", "from/c"] {
        dir.write(name, &noise(100_000, 1));
    }
    let job = Arc::new(Job::new(Manifest::of(&[dir.path("from")], false).expect("sources")));
    dir.write("from/b", &noise(90_000, 1));
    let rules = Rules { quota_bytes: Some(150_000), ..Rules::default() };
    let outcome = transfer_job(&dir, job, &[None], rules);
    assert_eq!((outcome.sent, outcome.failures.len()), (Ok(()), 2), "{:?}", outcome.failures);
    assert_eq!((outcome.progress.placed, outcome.arrived.placed), (100_000, 100_000));
    assert_eq!((outcome.progress.files_done, outcome.arrived.files_done), (1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    /// The first command leaves unfinished files at the receiver. The second one continues over associations
    /// that are cut.
    #[test]
    fn totals_are_true_after_resumptions(
        sizes in prop::collection::vec(0..1_500_000_usize, 1..6),
        first in 0..2_000_000_u64,
        cuts in prop::collection::vec(300_000..1_500_000_u64, 0..4),
    ) {
        let dir = TempDir::new("totals-resumed");
        for (n, size) in sizes.iter().enumerate() {
            dir.write(&format!("from/{n}"), &noise(*size, n as u64));
        }
        // This sender gives up soon after the cut.
        let before = transfer(&dir, &["from"], &[Some(first)], false);
        let kept = parts(&dir) + complete(&dir).1;
        prop_assert!(before.progress.placed <= kept, "{:?}", before.progress);
        let plan: Vec<_> = cuts.into_iter().map(Some).chain([None]).collect();
        let outcome = transfer(&dir, &["from"], &plan, false);
        prop_assert_eq!(&outcome.sent, &Ok(()));
        assert_true(&dir, &outcome, kept);
        prop_assert!(outcome.progress.moved >= outcome.progress.brought);
    }
}

/// Bytes of unfinished files.
fn parts(dir: &TempDir) -> u64 {
    let parts = fs::read_dir(dir.path("to/.ropewalk")).into_iter().flatten().flatten();
    parts.map(|part| part.metadata().expect("there").len()).sum()
}
