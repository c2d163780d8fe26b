use std::fs;
use std::path::PathBuf;

use super::transfer::noise;
use super::*;
use crate::files::manifest::ManifestError;

/// Files whose content the kernel generates when they are read: their size is 0 or a page.
#[cfg(target_os = "linux")]
#[test]
fn files_with_a_wrong_size_arrive_with_their_content() {
    let dir = TempDir::new("sizes");
    let sources = [
        "/proc/version",
        "/proc/sys/kernel/ostype",
        "/proc/self/cmdline",
        "/proc/filesystems",
        "/sys/class/net/lo/mtu",
        "/sys/class/net/lo/address",
    ];
    let sources: Vec<_> = sources.iter().map(PathBuf::from).filter(|path| path.exists()).collect();
    assert!(sources.len() >= 4, "procfs is mounted");
    dir.write("empty", b"");
    let all = [&sources[..], &[dir.path("empty")]].concat();
    let job = Arc::new(Job::new(Manifest::of(&all, false).expect("sources")));
    let outcome = transfer_job(&dir, job, &[None], Rules::default());
    assert_eq!((outcome.sent, outcome.failures), (Ok(()), vec![]));
    let mut total = 0;
    for path in sources {
        let expected = fs::read(&path).expect("readable");
        assert!(!expected.is_empty(), "{path:?}");
        total += expected.len() as u64;
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert_eq!(dir.read(&format!("to/{name}")), expected, "{path:?}");
    }
    assert_eq!(dir.read("to/empty"), b"");
    assert_eq!((outcome.progress.bytes, outcome.progress.placed), (total, total));
}

/// The content after the listed size must not be dropped silently.
#[test]
fn files_that_grow_or_shrink_after_the_list_do_not_arrive() {
    let dir = TempDir::new("grow");
    let sizes = [0, 1, 4096, 300_000];
    for size in sizes {
        dir.write(&format!("from/grows-{size}"), &noise(size, 1));
        dir.write(&format!("from/shrinks-{}", size + 1), &noise(size + 1, 1));
    }
    let job = Arc::new(Job::new(Manifest::of(&[dir.path("from")], false).expect("sources")));
    for size in sizes {
        for (name, after) in
            [(format!("grows-{size}"), size + 1), (format!("shrinks-{}", size + 1), size)]
        {
            // The time does not change, as with a coarse clock. Only the size differs.
            let path = dir.path("from").join(&name);
            let modified = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
            dir.write(&format!("from/{name}"), &noise(after, 1));
            let file = fs::File::options().write(true).open(&path).expect("a file");
            file.set_modified(modified).expect("set");
        }
    }
    let outcome = transfer_job(&dir, job, &[None], Rules::default());
    assert_eq!(outcome.sent, Ok(()));
    assert_eq!(outcome.failures.len(), 2 * sizes.len(), "{:?}", outcome.failures);
    assert!(fs::read_dir(dir.path("to/from")).expect("a folder").next().is_none());
}

#[cfg(unix)]
#[test]
fn pipes_are_refused_and_in_folders_left_out() {
    let dir = TempDir::new("pipes");
    dir.write("from/file", b"1");
    let pipe = dir.path("from/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let error = Manifest::of(std::slice::from_ref(&pipe), false).expect_err("no size");
    assert!(matches!(error, ManifestError::NotAFile(_)), "{error}");
    let manifest = Manifest::of(&[dir.path("from")], false).expect("sources");
    assert_eq!(manifest.left_out, [(pipe, "neither a file nor a folder")]);
    // A pipe that replaces a file after the list must not block the sender.
    let file = dir.path("from/file");
    fs::rename(dir.path("from/pipe"), &file).expect("replaced");
    let outcome = transfer_job(&dir, Arc::new(Job::new(manifest)), &[None], Rules::default());
    assert_eq!((outcome.sent, outcome.failures.len()), (Ok(()), 1));
}
