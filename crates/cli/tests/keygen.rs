//! `ropewalk keygen`: keys in files.

use std::fs;

use crate::support::TestDir;

#[test]
fn a_new_key_is_written_and_its_public_half_printed() {
    let dir = TestDir::new("keygen");
    let made = dir.ropewalk(&["keygen", "me.key"]).good();
    let public = made.stdout();
    assert_eq!(public.len(), 45, "44 characters and the end of the line: {public}");
    assert!(made.stderr().contains("me.key holds the secret"), "{}", made.stderr());
    assert_eq!(dir.left_behind(), ["me.key"]);
    let secret = fs::read_to_string(dir.file("me.key")).expect("the key");
    assert_eq!(secret.len(), 45);
    assert_ne!(secret, public);
    let read = dir.ropewalk(&["keygen", "--public", "me.key"]).good();
    assert_eq!((read.stdout(), read.stderr()), (public, ""));
}

#[test]
fn json_is_one_document_without_the_secret() {
    let dir = TestDir::new("keygen-json");
    let made = dir.ropewalk(&["keygen", "--json", "me.key"]).good();
    let secret = fs::read_to_string(dir.file("me.key")).expect("the key");
    assert!(!made.stdout().contains(secret.trim()));
    let made = made.json("ropewalk.keygen/1");
    let read = dir.ropewalk(&["keygen", "me.key", "--public", "--json"]).good();
    let read = read.json("ropewalk.keygen/1");
    assert_eq!(made["public_key"], read["public_key"]);
    assert_eq!((&made["file"], &made["created"]), (&"me.key".into(), &true.into()));
    assert_eq!(read["created"], false);
}

#[test]
fn a_pre_shared_key_is_written_and_never_printed() {
    let dir = TestDir::new("keygen-psk");
    let made = dir.ropewalk(&["keygen", "--psk", "shared.psk"]).good();
    assert_eq!(made.stdout(), "");
    assert!(made.stderr().contains("--psk-file shared.psk"), "{}", made.stderr());
    assert_eq!(fs::read_to_string(dir.file("shared.psk")).expect("the key").len(), 45);
    let json = dir.ropewalk(&["keygen", "--psk", "--json", "other.psk"]).good();
    let secret = fs::read_to_string(dir.file("other.psk")).expect("the key");
    assert!(!json.stdout().contains(secret.trim()));
    assert!(json.json("ropewalk.keygen/1").get("public_key").is_none());
    dir.ropewalk(&["keygen", "--psk", "shared.psk"]).refused(&["exists"]);
}

/// Each option that names a key file gets a path that would block or is not a file.
#[cfg(target_os = "linux")]
#[test]
fn a_fifo_a_directory_and_a_device_are_refused_at_once() {
    let dir = TestDir::new("keygen-kinds");
    let made = std::process::Command::new("mkfifo").arg(dir.file("fifo")).status();
    assert!(made.expect("mkfifo").success());
    for (file, kind) in [("fifo", "a FIFO"), (".", "a directory"), ("/dev/zero", "a device")] {
        for option in ["--key", "--psk-file", "--allow-file"] {
            let listen = ["recv", "--listen", "127.0.0.1:0", option, file];
            dir.ropewalk(&listen).refused(&[file, kind]);
        }
        dir.ropewalk(&["keygen", "--public", file]).refused(&[file, kind]);
    }
}

#[test]
fn two_keys_differ() {
    let dir = TestDir::new("keygen-two");
    let one = dir.ropewalk(&["--quiet", "keygen", "one.key"]).good();
    let two = dir.ropewalk(&["--quiet", "keygen", "two.key"]).good();
    assert_ne!(one.stdout(), two.stdout());
    assert_eq!(one.stderr(), "");
}

#[test]
fn a_key_is_never_overwritten() {
    let dir = TestDir::new("keygen-exists");
    dir.ropewalk(&["keygen", "me.key"]).good();
    let before = fs::read(dir.file("me.key")).expect("the key");
    dir.ropewalk(&["keygen", "me.key"]).refused(&["me.key", "exists", "another name"]);
    assert_eq!(fs::read(dir.file("me.key")).expect("the key"), before);
    assert_eq!(dir.left_behind(), ["me.key"]);
}

#[test]
fn what_cannot_be_read_or_written_is_refused_with_a_hint() {
    let dir = TestDir::new("keygen-wrong");
    dir.ropewalk(&["keygen", "no/such/me.key"]).refused(&["no/such/me.key", "directory"]);
    dir.ropewalk(&["keygen", "--public", "me.key"]).refused(&["me.key", "ropewalk keygen me.key"]);
    dir.ropewalk(&["keygen"]).refused(&["FILE"]);
}

#[cfg(unix)]
#[test]
fn a_key_that_others_may_read_is_refused_with_the_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TestDir::new("keygen-mode");
    dir.ropewalk(&["keygen", "me.key"]).good();
    let mode = fs::metadata(dir.file("me.key")).expect("the key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(dir.file("me.key"), open).expect("a mode");
    dir.ropewalk(&["keygen", "--public", "me.key"]).refused(&["0644", "chmod 600 me.key"]);
}
