//! A hostile sender, or another user of the receiver's machine, cannot harm the receiver's files.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::hostile::{bytes_of, entry, frames, listed};
use super::transfer::noise;
use super::*;
use crate::files::wire::{Decoder, Frame, Kind, WireItem};
use bytes::Bytes;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("there").permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// The permissions that the umask leaves.
fn granted(dir: &TempDir, mode_wanted: u32) -> u32 {
    dir.write("probe", b"");
    // The standard library requests 0666.
    let shown = mode(&dir.path("probe"));
    mode_wanted & if mode_wanted & 0o111 == 0 { shown } else { shown | shown >> 2 & 0o111 }
}

fn part(dir: &TempDir) -> PathBuf {
    let parts = fs::read_dir(dir.path("to/.ropewalk")).expect("unfinished files");
    let mut parts = parts.map(|part| part.expect("a part").path());
    parts.find(|path| path.extension().is_some_and(|e| e == "part")).expect("one")
}

#[test]
fn unfinished_files_are_private_from_the_beginning() {
    let dir = TempDir::new("private");
    dir.write("large", &noise(4 << 20, 1));
    assert!(transfer(&dir, &["large"], &[Some(3 << 20)], false).sent.is_err());
    assert_eq!(mode(&dir.path("to/.ropewalk")), 0o700);
    for item in fs::read_dir(dir.path("to/.ropewalk")).expect("parts") {
        let path = item.expect("a part").path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
    }
    // Files that an older version left readable are made private before anything is added.
    set_mode(&dir.path("to/.ropewalk"), 0o755);
    set_mode(&part(&dir), 0o644);
    assert!(transfer(&dir, &["large"], &[Some(1 << 20)], false).sent.is_err());
    assert_eq!((mode(&dir.path("to/.ropewalk")), mode(&part(&dir))), (0o700, 0o600));
}

#[test]
fn permissions_are_those_of_the_umask_unless_both_ends_ask_for_the_senders() {
    for (sender_asks, receiver_asks) in [(false, false), (true, false), (false, true), (true, true)]
    {
        let dir = TempDir::new("umask");
        dir.write("from/open", b"1");
        dir.write("from/run", b"2");
        set_mode(&dir.path("from/open"), 0o666);
        set_mode(&dir.path("from/run"), 0o777);
        set_mode(&dir.path("from"), 0o777);
        let manifest = Manifest::of(&[dir.path("from")], sender_asks).expect("sources");
        let rules = Rules { exact_modes: receiver_asks, ..Rules::default() };
        let outcome = transfer_job(&dir, Arc::new(Job::new(manifest)), &[None], rules);
        assert_eq!(outcome.sent, Ok(()));
        for (name, wanted) in [("to/from/open", 0o666), ("to/from/run", 0o777), ("to/from", 0o777)]
        {
            let exact = sender_asks && receiver_asks;
            let expected = if exact { wanted } else { granted(&dir, wanted) };
            assert_eq!(mode(&dir.path(name)), expected, "{name} {sender_asks} {receiver_asks}");
        }
    }
}

#[test]
fn folders_that_were_there_before_stay_as_they_were() {
    let dir = TempDir::new("folders");
    dir.write("from/sub/file", b"1");
    dir.write("to/from/sub/other", b"2");
    for (name, bits) in
        [("from", 0o777), ("from/sub", 0o000), ("to/from", 0o700), ("to/from/sub", 0o700)]
    {
        if bits != 0 {
            set_mode(&dir.path(name), bits);
        }
    }
    let before =
        fs::metadata(dir.path("to/from")).and_then(|found| found.modified()).expect("a time");
    let rules = Rules { exact_modes: true, ..Rules::default() };
    let outcome = transfer_with(&dir, &["from"], &[None], rules);
    assert_eq!(outcome.sent, Ok(()));
    assert_eq!(dir.read("to/from/sub/file"), b"1");
    assert_eq!((mode(&dir.path("to/from")), mode(&dir.path("to/from/sub"))), (0o700, 0o700));
    let after =
        fs::metadata(dir.path("to/from")).and_then(|found| found.modified()).expect("a time");
    assert_eq!(before, after);
}

#[test]
fn a_private_file_that_is_replaced_stays_private() {
    let dir = TempDir::new("replaced");
    dir.write("from/secret", b"new");
    dir.write("to/from/secret", b"older");
    set_mode(&dir.path("to/from/secret"), 0o600);
    let outcome = transfer(&dir, &["from"], &[None], true);
    assert_eq!(outcome.failures, []);
    assert_eq!(dir.read("to/from/secret"), b"new");
    assert_eq!(mode(&dir.path("to/from/secret")), 0o600);
}

/// Replaces a file by another kind of file.
fn put(kind: &str, place: &Path, victim: &Path) {
    let _ = fs::remove_file(place);
    match kind {
        "fifo" => assert!(Command::new("mkfifo").arg(place).status().expect("mkfifo").success()),
        "link" => symlink(victim, place).expect("a link"),
        "socket" => drop(std::os::unix::net::UnixListener::bind(place).expect("a socket")),
        other => panic!("{other}"),
    }
}

#[test]
fn nothing_in_place_of_an_unfinished_file_is_followed_or_waited_for() {
    for kind in ["fifo", "link", "socket"] {
        let dir = TempDir::new("special");
        dir.write("large", &noise(4 << 20, 1));
        dir.write("victim", &noise(3 << 20, 1));
        assert!(transfer(&dir, &["large"], &[Some(3 << 20)], false).sent.is_err());
        put(kind, &part(&dir), &dir.path("victim"));
        let outcome = transfer(&dir, &["large"], &[None], false);
        assert_eq!((outcome.sent, outcome.failures), (Ok(()), vec![]), "{kind}");
        assert_eq!(dir.read("to/large"), noise(4 << 20, 1));
        assert_eq!(dir.read("victim"), noise(3 << 20, 1), "{kind}");
    }
}

#[test]
fn nothing_in_place_of_a_target_is_followed_or_waited_for() {
    for (kind, overwrite) in [
        ("fifo", false),
        ("link", false),
        ("socket", false),
        ("fifo", true),
        ("link", true),
        ("socket", true),
    ] {
        let dir = TempDir::new("target");
        dir.write("file", b"new");
        dir.write("victim", b"old");
        fs::create_dir(dir.path("to")).expect("a directory");
        put(kind, &dir.path("to/file"), &dir.path("victim"));
        let outcome = transfer(&dir, &["file"], &[None], overwrite);
        assert_eq!(outcome.sent, Ok(()));
        assert_eq!(
            outcome.failures.len(),
            usize::from(!overwrite),
            "{kind}: {:?}",
            outcome.failures
        );
        assert_eq!(dir.read("victim"), b"old");
        assert_eq!(overwrite, fs::symlink_metadata(dir.path("to/file")).expect("there").is_file());
    }
}

#[test]
fn a_hidden_folder_or_lock_that_is_something_else_is_refused_at_the_start() {
    for (name, kind) in [
        (".ropewalk", "link"),
        (".ropewalk", "fifo"),
        (".ropewalk/lock", "fifo"),
        (".ropewalk/lock", "link"),
    ] {
        let dir = TempDir::new("hidden");
        let folder = if name == ".ropewalk" { "to" } else { "to/.ropewalk" };
        fs::create_dir_all(dir.path(folder)).expect("a directory");
        fs::create_dir(dir.path("elsewhere")).expect("a directory");
        put(kind, &dir.path("to").join(name), &dir.path("elsewhere"));
        assert!(matches!(Store::open(&dir.path("to")), Err(StoreError::Io(..))), "{name} {kind}");
    }
}

#[test]
fn a_hidden_folder_that_is_deleted_meanwhile_is_made_again() {
    let dir = TempDir::new("deleted");
    fs::create_dir(dir.path("to")).expect("a directory");
    let store = Arc::new(Store::open(&dir.path("to")).expect("a directory"));
    let inbox = Inbox::new(store.clone(), Peer::default(), Rules::default()).expect("an inbox");
    let [one, two] = ["one", "two"].map(|name| entry(name, Kind::File(0)));
    let file = inbox.begin(&one, 0).expect("a part");
    fs::remove_dir_all(dir.path("to/.ropewalk")).expect("deleted");
    let error = inbox.finish(&one, file).expect_err("its part is gone").to_string();
    assert!(error.contains(".ropewalk"), "{error}");
    let file = inbox.begin(&two, 0).expect("a part");
    inbox.finish(&two, file).expect("whole");
    assert!(dir.path("to/two").exists());
    assert_eq!(mode(&dir.path("to/.ropewalk")), 0o700);
    assert!(matches!(Store::open(&dir.path("to")), Err(StoreError::Locked(_))), "locked again");
    drop((inbox, store));
    assert!(!dir.path("to/.ropewalk").exists());
}

#[test]
fn a_sender_that_only_says_that_it_is_alive_gives_way_to_one_that_waits() {
    let dir = TempDir::new("gives-way");
    dir.write("file", &noise(100_000, 1));
    let store = Arc::new(Store::open(&dir.path("to")).expect("a directory"));
    let admit = admit_all(&store, Rules::default());
    let watch = Arc::new(TransferStatus::new(|_| ()));
    let ends = Ends::new(&[None]);
    let job = Arc::new(Job::new(Manifest::of(&[dir.path("file")], false).expect("sources")));
    let (here, there) = pair(MESSAGE, None);
    ends.out.send(there).expect("a receiver");
    runtime().block_on(async {
        let idle = async {
            let list = listed(vec![entry("never", Kind::File(10))]);
            let _ = here.send_all(&mut [Bytes::from(bytes_of(&list))].into_iter()).await;
            let alive = Bytes::from(frames(&[Frame::Alive(0, 0)]));
            while here.send_all(&mut [alive.clone()].into_iter()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let (mut heard, mut decoder) = (Vec::new(), Decoder::default());
            here.receive_all(&mut heard).await;
            let mut trouble = 0;
            for mut message in heard {
                while let Ok(Some(item)) = decoder.next(&mut message) {
                    trouble += usize::from(matches!(item, WireItem::Frame(Frame::Error(_))));
                }
            }
            trouble
        };
        let reading = watch.clone();
        let receiving = receive(&ends, &admit, &watch, |_| false);
        let here_watch = Arc::new(TransferStatus::new(|_| ()));
        let sending = send(&ends, &job, &here_watch, Duration::from_secs(60));
        let all = async { tokio::join!(sending, receiving, idle) };
        let (sent, received, _) =
            tokio::time::timeout(Duration::from_secs(60), all).await.expect("it gives way");
        assert_eq!((sent, received), (Ok(()), Ok(())));
        assert_eq!(reading.progress().files_done, 1);
    });
    assert_eq!(dir.read("to/file"), noise(100_000, 1));
}

#[test]
fn a_sender_that_waits_for_its_admission_hears_that_the_receiver_is_alive() {
    let dir = TempDir::new("admission");
    let store = Arc::new(Store::open(&dir.path("to")).expect("a directory"));
    let at_once = admit_all(&store, Rules::default());
    let (end_admission, admission) = std::sync::mpsc::channel();
    let admission = Mutex::new(admission);
    let admit: Arc<Admit> = Arc::new(move |peer: &Peer| {
        let _ = admission.lock().recv();
        at_once(peer)
    });
    let watch = Arc::new(TransferStatus::new(|_| ()));
    let ends = Ends::new(&[]);
    let (here, there) = pair(MESSAGE, None);
    ends.out.send(there).expect("a receiver");
    let talking = async move {
        let all = [listed(vec![]), vec![Frame::EndOfTransfer]].concat();
        here.send_all(&mut [Bytes::from(bytes_of(&all))].into_iter()).await.expect("sent");
        let (mut heard, mut messages, mut decoder) = (Vec::new(), Vec::new(), Decoder::default());
        while !matches!(heard.last(), Some(Frame::Finished(..))) {
            here.receive_all(&mut messages).await;
            assert!(!messages.is_empty(), "the receiver has ended: {heard:?}");
            for mut message in messages.drain(..) {
                while let Some(item) = decoder.next(&mut message).expect("understood") {
                    if let WireItem::Frame(frame) = item {
                        heard.push(frame);
                    }
                }
            }
            if heard == [Frame::Alive(0, 0)] {
                end_admission.send(()).expect("a receiver");
            }
        }
    };
    runtime().block_on(async {
        let both = async { tokio::join!(talking, receive(&ends, &admit, &watch, |_| false)) };
        let (_, received) =
            tokio::time::timeout(Duration::from_secs(60), both).await.expect("a sign of life");
        assert_eq!(received, Ok(()));
    });
}

#[test]
fn what_one_key_has_begun_is_nothing_to_another() {
    let dir = TempDir::new("keys");
    fs::create_dir(dir.path("to")).expect("a directory");
    let store = Arc::new(Store::open(&dir.path("to")).expect("a directory"));
    let key =
        || Peer::new(Some(ropewalk_runtime::seal::SecretKey::generate().expect("a key").public()));
    let [anna, bert] =
        [(); 2].map(|()| Inbox::new(store.clone(), key(), Rules::default()).expect("an inbox"));
    let file = entry("file", Kind::File(10));
    std::io::Write::write_all(&mut anna.begin(&file, 0).expect("a part"), b"12345")
        .expect("written");
    let part = |inbox: &Inbox| format!("{:?}", inbox.inspect(&file));
    assert!(part(&anna).starts_with("Part(5"), "{}", part(&anna));
    assert_eq!(part(&bert), "Nothing");
}
