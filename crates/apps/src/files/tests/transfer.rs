use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::files::test_support::tree;
use crate::files::wire::{Decoder, WireItem};

/// Pseudo-random bytes.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(step).collect()
}

#[test]
fn a_tree_arrives_as_it_is() {
    let dir = TempDir::new("tree");
    for (name, len) in [
        ("from/empty", 0),
        ("from/one", 1),
        ("from/deep/er/block", 262_144),
        ("from/deep/er/block and one", 262_145),
        ("from/deep/large", 3_000_001),
        ("from/zz", 699),
    ] {
        dir.write(name, &noise(len, len as u64));
    }
    fs::create_dir(dir.path("from/hollow")).expect("a folder");
    let outcome = transfer(&dir, &["from"], &[None], false);
    assert_eq!((&outcome.sent, &outcome.received), (&Ok(()), &Ok(())));
    assert_eq!(tree(&dir.path("to/from")), tree(&dir.path("from")));
    assert_eq!(outcome.summary.expect("a summary").received, 6);
    let Progress { files, files_done, bytes, failed, placed, brought, moved } = outcome.progress;
    let all = 262_144 + 262_145 + 3_000_001 + 700;
    assert_eq!((files, files_done, bytes, failed), (6, 6, all, 0));
    assert_eq!((placed, brought, moved), (all, all, all));
    let left: Vec<_> = fs::read_dir(dir.path("to")).expect("a directory").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[cfg(unix)]
#[test]
fn permissions_and_times_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new("modes");
    let time = |n| UNIX_EPOCH + Duration::new(1_000_000_000 + n, 123_456_789);
    for (n, (name, mode)) in
        [("from/a", 0o640), ("from/b", 0o755), ("from/c/d", 0o444)].into_iter().enumerate()
    {
        dir.write(name, b"x");
        let file = fs::File::options().write(true).open(dir.path(name)).expect("a file");
        file.set_modified(time(n as u64)).expect("a time");
        file.set_permissions(fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let folder = fs::File::open(dir.path("from/c")).expect("a folder");
    folder.set_modified(time(9)).expect("a time");
    folder.set_permissions(fs::Permissions::from_mode(0o555)).expect("a mode");
    let rules = Rules { exact_modes: true, ..Rules::default() };
    let outcome = transfer_with(&dir, &["from"], &[None], rules);
    assert_eq!(outcome.sent, Ok(()));
    let inspect = |name: &str| {
        let found = fs::metadata(dir.path(name)).expect("there");
        (found.permissions().mode() & 0o777, found.modified().expect("a time"))
    };
    for name in ["from/a", "from/b", "from/c", "from/c/d"] {
        assert_eq!(inspect(&format!("to/{name}")), inspect(name), "{name}");
    }
}

#[test]
fn many_small_files_arrive_and_are_not_sent_again() {
    let dir = TempDir::new("small");
    for n in 0..1500 {
        dir.write(&format!("from/{}/{n}", n % 7), &noise(n, n as u64));
    }
    let outcome = transfer(&dir, &["from"], &[None], false);
    assert_eq!(outcome.sent, Ok(()));
    assert_eq!(tree(&dir.path("to/from")), tree(&dir.path("from")));
    let again = transfer(&dir, &["from"], &[None], false);
    assert_eq!((again.sent, again.received), (Ok(()), Ok(())));
    assert_eq!((again.progress.files_done, again.progress.moved), (1500, 0));
}

#[test]
fn files_that_exist_are_replaced_only_if_that_was_asked_for() {
    let dir = TempDir::new("exists");
    for (name, bytes) in [("same", &b"1111"[..]), ("other", b"2222"), ("longer", b"3333")] {
        dir.write(&format!("from/{name}"), bytes);
    }
    dir.write("to/from/same", b"1111");
    let modified = fs::metadata(dir.path("from/same")).and_then(|found| found.modified());
    let same = fs::File::options().write(true).open(dir.path("to/from/same")).expect("a file");
    same.set_modified(modified.expect("a time")).expect("set");
    dir.write("to/from/other", b"xxxx");
    dir.write("to/from/longer", b"xxxxx");
    dir.write("to/from/unrelated", b"5");
    let outcome = transfer(&dir, &["from"], &[None], false);
    assert_eq!(outcome.sent, Ok(()));
    let failed: Vec<_> = outcome.failures.iter().map(|(name, _)| name.unescaped()).collect();
    assert_eq!(failed, ["from/longer", "from/other"]);
    assert_eq!(dir.read("to/from/other"), b"xxxx");
    assert_eq!(outcome.summary.expect("a summary").failed, 2);
    let outcome = transfer(&dir, &["from"], &[None], true);
    assert_eq!(outcome.failures, []);
    assert_eq!(dir.read("to/from/other"), b"2222");
    assert_eq!(dir.read("to/from/longer"), b"3333");
    assert_eq!(dir.read("to/from/unrelated"), b"5");
    assert_eq!(outcome.progress.moved, 8);
}

#[test]
fn what_is_in_the_way_is_reported_and_the_rest_arrives() {
    let dir = TempDir::new("obstacles");
    dir.write("from/file", b"1");
    dir.write("from/folder/inside", b"2");
    dir.write("from/fine", b"3");
    dir.write("to/from/file/x", b"");
    dir.write("to/from/folder", b"");
    let outcome = transfer(&dir, &["from"], &[None], true);
    assert_eq!(outcome.sent, Ok(()));
    let failed: Vec<_> = outcome.failures.iter().map(|(name, _)| name.unescaped()).collect();
    assert_eq!(failed, ["from/file", "from/folder", "from/folder/inside"]);
    assert_eq!(dir.read("to/from/fine"), b"3");
}

#[test]
fn a_file_that_changed_since_the_list_was_made_does_not_arrive() {
    let dir = TempDir::new("changed");
    for name in ["from/gone", "from/shorter", "from/steady"] {
        dir.write(name, &noise(5000, 1));
    }
    let job = Arc::new(Job::new(Manifest::of(&[dir.path("from")], false).expect("sources")));
    fs::remove_file(dir.path("from/gone")).expect("removed");
    dir.write("from/shorter", b"short");
    let outcome = transfer_job(&dir, job, &[None], Rules::default());
    assert_eq!(outcome.sent, Ok(()));
    let failed: Vec<_> = outcome.failures.iter().map(|(name, _)| name.unescaped()).collect();
    assert_eq!(failed, ["from/gone", "from/shorter"]);
    assert!(outcome.failures[1].1.unescaped().contains("changed"), "{:?}", outcome.failures);
    assert_eq!(dir.read("to/from/steady"), noise(5000, 1));
    assert!(!dir.path("to/from/gone").exists() && !dir.path("to/from/shorter").exists());
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_arrive_as_they_are() {
    use std::os::unix::ffi::OsStrExt;
    let dir = TempDir::new("odd");
    for bytes in [&b"caf\xe9"[..], b"new\nline", b"\x1b[2J", b" -rf "] {
        let path = dir.path("from").join(std::ffi::OsStr::from_bytes(bytes));
        fs::create_dir_all(dir.path("from")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
    let outcome = transfer(&dir, &["from"], &[None], false);
    assert_eq!(outcome.sent, Ok(()));
    assert_eq!(tree(&dir.path("to/from")), tree(&dir.path("from")));
}

#[test]
fn the_greeting_comes_first_however_late_the_reading_thread_starts() {
    let dir = TempDir::new("late");
    dir.write("file", b"1");
    let job = Arc::new(Job::new(Manifest::of(&[dir.path("file")], false).expect("sources")));
    let (ends, watch) = (Ends::new(&[None]), Arc::new(TransferStatus::new(|_| ())));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    // Another task occupies the only thread for blocking work.
    let runtime = builder.enable_time().start_paused(true).max_blocking_threads(1).build();
    let pieces = runtime.expect("a runtime").block_on(async {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let other = tokio::task::spawn_blocking(move || released.recv());
        let listening = async {
            let link = ends.accept().await.expect("an association");
            tokio::time::advance(Duration::from_secs(1)).await;
            tokio::time::advance(Duration::from_secs(1)).await;
            let (mut messages, mut decoder) = (Vec::new(), Decoder::default());
            link.receive_all(&mut messages).await;
            let pieces: Result<Vec<_>, _> =
                messages.iter_mut().map(|message| decoder.next(message)).collect();
            drop(release);
            other.await.expect("no panic").expect_err("released");
            pieces
        };
        tokio::select! {
            _ = send(&ends, &job, &watch, Duration::ZERO) => panic!("nobody has answered"),
            pieces = listening => pieces,
        }
    });
    let pieces = pieces.expect("frames");
    assert!(
        matches!(&pieces[..], [Some(WireItem::Greeting), Some(WireItem::Frame(_)), ..]),
        "{pieces:?}"
    );
}
