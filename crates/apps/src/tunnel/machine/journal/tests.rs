use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("ropewalk-journal-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a new directory");
        Self(path)
    }

    fn open(&self) -> (Journal, usize) {
        Journal::open(&self.0.join("run"), "home", false).expect("nobody has it open")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn put_file(journal: &mut Journal, file: &Path, text: &[u8]) -> Result<(), JournalError> {
    journal.replace(file, Before::read(file).expect("it can be read"), text)
}

/// The effect of `kill -9`: the file as it is, without its lock.
fn kill(journal: Journal) {
    let journal = std::mem::ManuallyDrop::new(journal);
    journal.file.unlock().expect("it was locked");
}

#[test]
fn files_and_values_are_restored_at_the_end_and_after_a_kill() {
    let place = Place::new("restore");
    let [value, text, link, target] =
        ["value", "text", "link", "target"].map(|name| place.0.join(name));
    fs::write(&value, "0\n").expect("written");
    fs::write(&text, "before").expect("written");
    fs::write(&target, "target").expect("written");
    symlink("target", &link).expect("a link");
    for killed in [false, true] {
        let (mut journal, left) = place.open();
        assert_eq!(left, 0);
        journal.set(&value, "1", None).expect("set");
        put_file(&mut journal, &text, b"after").expect("replaced");
        put_file(&mut journal, &link, b"own").expect("replaced");
        put_file(&mut journal, &place.0.join("new"), b"own").expect("created");
        assert_eq!(fs::read_to_string(&link).expect("a file"), "own");
        assert_eq!(fs::read_to_string(&target).expect("a file"), "target");
        if killed {
            kill(journal);
            assert_eq!(place.open().1, 4, "all changes were found");
        } else {
            drop(journal);
        }
        assert_eq!(fs::read_to_string(&value).expect("a file"), "0");
        assert_eq!(fs::read_to_string(&text).expect("a file"), "before");
        assert_eq!(fs::read_link(&link).expect("a link"), Path::new("target"));
        assert!(!place.0.join("new").exists());
    }
}

#[test]
fn a_file_in_the_place_of_a_link_does_not_get_the_mode_of_its_target() {
    let place = Place::new("mode");
    let [link, target] = ["link", "target"].map(|name| place.0.join(name));
    fs::write(&target, "target").expect("written");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o666)).expect("an own file");
    symlink("target", &link).expect("a link");
    let (mut journal, _) = place.open();
    put_file(&mut journal, &link, b"own").expect("replaced");
    assert_eq!(fs::symlink_metadata(&link).expect("a file").mode() & 0o7777, 0o644);
    drop(journal);
    assert_eq!(fs::read_link(&link).expect("a link"), Path::new("target"));
}

#[test]
fn what_others_have_changed_meanwhile_stays() {
    let place = Place::new("others");
    let file = place.0.join("resolv.conf");
    let (mut journal, _) = place.open();
    put_file(&mut journal, &file, b"own").expect("replaced");
    fs::write(&file, "theirs").expect("written");
    drop(journal);
    assert_eq!(fs::read_to_string(&file).expect("a file"), "theirs");
}

#[test]
fn a_file_that_is_replaced_many_times_takes_one_line_and_gets_its_first_text_back() {
    let place = Place::new("often");
    let file = place.0.join("resolv.conf");
    for killed in [false, true] {
        fs::write(&file, "before").expect("written");
        let (mut journal, _) = place.open();
        for text in ["one", "two", "one", "three"] {
            put_file(&mut journal, &file, text.as_bytes()).expect("replaced");
            assert_eq!(journal.changes.len(), 1);
        }
        if killed {
            kill(journal);
            assert_eq!(place.open().1, 1);
        } else {
            drop(journal);
        }
        assert_eq!(fs::read_to_string(&file).expect("a file"), "before");
    }
    let (mut journal, _) = place.open();
    put_file(&mut journal, &file, b"one").expect("replaced");
    fs::write(&file, "theirs").expect("written");
    put_file(&mut journal, &file, b"two").expect("replaced");
    drop(journal);
    assert_eq!(fs::read_to_string(&file).expect("a file"), "theirs");
}

#[test]
fn a_journal_is_replaced_at_once_and_stays_locked() {
    let place = Place::new("at-once");
    let (mut journal, _) = place.open();
    for name in ["one", "two"] {
        put_file(&mut journal, &place.0.join(name), b"own").expect("created");
    }
    let path = place.0.join("run/home.journal");
    let before = fs::read_to_string(&path).expect("a journal");
    // The view of a process that has opened the journal in time, and the result of a kill in the middle of the next
    // line.
    let mut seen = File::open(&path).expect("a journal");
    put_file(&mut journal, &place.0.join("two"), b"other").expect("replaced");
    let mut text = String::new();
    seen.read_to_string(&mut text).expect("a journal");
    assert!(text.starts_with(&before), "{text}");
    assert_eq!(
        fs::read_to_string(&path).expect("a journal").lines().count(),
        3,
        "the origin, two files"
    );
    let second = Journal::open(&place.0.join("run"), "home", false).expect_err("it is running");
    assert_eq!(second.to_string(), "the tunnel home is running");
    kill(journal);
    assert_eq!(place.open().1, 2);
}

#[test]
fn what_is_left_behind_is_that_of_tunnels_that_were_killed() {
    let place = Place::new("left");
    let run = place.0.join("run");
    assert_eq!(left_behind(&run), [], "there is no such directory");
    let (mut journal, _) = place.open();
    put_file(&mut journal, &place.0.join("text"), b"after").expect("replaced");
    assert_eq!(left_behind(&run), [], "it is running");
    kill(journal);
    assert_eq!(left_behind(&run), [("home".to_owned(), 1)]);
    assert_eq!(place.open().1, 1, "a look changes nothing");
    assert_eq!(left_behind(&run), []);
}

#[test]
fn a_tunnel_runs_once() {
    let place = Place::new("once");
    let (_journal, _) = place.open();
    let second = Journal::open(&place.0.join("run"), "home", false).expect_err("it is running");
    assert_eq!(second.to_string(), "the tunnel home is running");
}

#[test]
fn a_line_that_was_cut_off_is_ignored() {
    let place = Place::new("cut");
    let (mut journal, _) = place.open();
    put_file(&mut journal, &place.0.join("new"), b"own").expect("created");
    journal.file.write_all(b"{\"firewall\":{\"ta").expect("written");
    kill(journal);
    assert_eq!(place.open().1, 1);
    assert!(!place.0.join("new").exists());
}

/// Two journals in one directory.
fn two(place: &Place) -> [Journal; 2] {
    ["one", "two"]
        .map(|name| Journal::open(&place.0.join("run"), name, false).expect("not running").0)
}

#[test]
fn a_value_is_restored_by_the_last_of_the_tunnels_that_need_it() {
    let place = Place::new("shared");
    let value = place.0.join("value");
    let now = || fs::read_to_string(&value).expect("a file").trim().to_owned();
    for (last, killed) in [(0, false), (1, false), (0, true), (1, true)] {
        fs::write(&value, "0\n").expect("written");
        let [mut one, mut two] = two(&place);
        for journal in [&mut one, &mut two] {
            journal.set(&value, "1", None).expect("set");
        }
        let (first, last) = if last == 1 { (one, two) } else { (two, one) };
        if killed {
            kill(first);
        } else {
            drop(first);
        }
        assert_eq!(now(), "1", "the other one runs");
        drop(last);
        assert_eq!(now(), "0");
    }
}

#[test]
fn a_tunnel_that_starts_again_after_a_kill_takes_no_value_from_one_that_runs() {
    let place = Place::new("again");
    let value = place.0.join("value");
    fs::write(&value, "0\n").expect("written");
    let [mut one, mut two] = two(&place);
    one.set(&value, "1", None).expect("set");
    kill(one);
    two.set(&value, "1", None).expect("set");
    let (mut one, left) = Journal::open(&place.0.join("run"), "one", false).expect("not running");
    assert_eq!((left, fs::read_to_string(&value).expect("a file").trim()), (1, "1"));
    one.set(&value, "1", None).expect("set");
    drop(two);
    assert_eq!(fs::read_to_string(&value).expect("a file").trim(), "1");
    drop(one);
    assert_eq!(fs::read_to_string(&value).expect("a file").trim(), "0");
}

#[test]
fn a_value_stays_if_another_program_has_used_its_switch_since() {
    let place = Place::new("switch");
    let [value, switch] = ["value", "switch"].map(|name| place.0.join(name));
    for (by_other, expected) in [("0", "0"), ("1", "1")] {
        fs::write(&value, "0\n").expect("written");
        fs::write(&switch, "0\n").expect("written");
        let (mut journal, _) = place.open();
        journal.set(&value, "1", Some(&switch)).expect("set");
        fs::write(&switch, by_other).expect("written");
        drop(journal);
        assert_eq!(fs::read_to_string(&value).expect("a file"), expected.to_owned());
    }
}

/// Models IPv6 before Linux 6.17: writing a switch sets the values of all interfaces.
#[test]
fn values_that_a_switch_has_set_are_restored_with_it_by_the_last_tunnel() {
    let place = Place::new("all");
    let files = ["all", "on", "off"].map(|name| place.0.join(name));
    let [switch, on, off] = &files;
    let write = |file: &Path, value: &str| fs::write(file, value).expect("written");
    let everywhere = |value: &str| files.iter().for_each(|file| write(file, value));
    for last in [0, 1] {
        everywhere("0");
        write(on, "1");
        let mut both = two(&place);
        for journal in &mut both {
            let dependent = [on.clone(), off.clone()];
            journal.set_switch(switch, "1", &dependent).expect("set");
            everywhere("1");
        }
        let [one, two] = both;
        let (first, last) = if last == 1 { (one, two) } else { (two, one) };
        drop(first);
        assert_eq!(fs::read_to_string(switch).expect("a file"), "1");
        // What the kernel does when the switch goes off, before the other values come back.
        let mut last = last;
        last.changes
            .iter()
            .filter(|it| matches!(it, Change::Value { file, .. } if file == switch))
            .for_each(|it| it.undo());
        everywhere("0");
        last.undo();
        let now = [switch, on, off].map(|file| fs::read_to_string(file).expect("a file"));
        assert_eq!(now, ["0", "1", "0"]);
    }
}

#[test]
fn a_replaced_file_that_is_no_text_comes_back_byte_by_byte() {
    let place = Place::new("bytes");
    let file = place.0.join("resolv.conf");
    for killed in [false, true] {
        fs::write(&file, b"# caf\xe9\n").expect("written");
        let (mut journal, _) = place.open();
        put_file(&mut journal, &file, b"own").expect("replaced");
        if killed {
            kill(journal);
            assert_eq!(place.open().1, 1);
        } else {
            drop(journal);
        }
        assert_eq!(fs::read(&file).expect("a file"), b"# caf\xe9\n");
    }
}

#[test]
fn what_another_program_writes_between_two_replacements_comes_back() {
    let place = Place::new("between");
    let file = place.0.join("resolv.conf");
    let (mut journal, _) = place.open();
    for theirs in ["one", "two", "three"] {
        fs::write(&file, theirs).expect("written");
        put_file(&mut journal, &file, b"own").expect("replaced");
        assert_eq!(journal.changes.len(), 1);
    }
    drop(journal);
    assert_eq!(fs::read_to_string(&file).expect("a file"), "three");
}

/// Makes the journal belong to another boot, or to another network namespace.
fn move_elsewhere(place: &Place, key: &str) {
    let path = place.0.join("run/home.journal");
    let text = fs::read_to_string(&path).expect("a journal");
    let (origin, changes) = text.split_once('\n').expect("lines");
    let mut origin: serde_json::Value = serde_json::from_str(origin).expect("an object");
    origin[key] = "other".into();
    fs::write(&path, format!("{origin}\n{changes}")).expect("written");
}

#[test]
fn after_a_reboot_files_are_restored_and_values_stay_as_the_new_boot_has_them() {
    let place = Place::new("reboot");
    let [value, text] = ["value", "text"].map(|name| place.0.join(name));
    for key in ["boot", "network"] {
        fs::write(&value, "0\n").expect("written");
        fs::write(&text, "before").expect("written");
        let (mut journal, _) = place.open();
        journal.set(&value, "1", None).expect("set");
        put_file(&mut journal, &text, b"after").expect("replaced");
        kill(journal);
        move_elsewhere(&place, key);
        assert_eq!(place.open().1, 1, "the file alone");
        assert_eq!(fs::read_to_string(&value).expect("a file"), "1");
        assert_eq!(fs::read_to_string(&text).expect("a file"), "before");
    }
}

#[test]
fn what_closes_the_machine_stays_after_errors_and_kills_and_until_it_is_undone_if_it_is_held() {
    let place = Place::new("closed");
    let run = place.0.join("run");
    let table = || Change::Closed { table: "ropewalk-test-no-such-table".to_owned() };
    let open = |closed| Journal::open(&run, "home", closed).expect("not running").0;
    let mut journal = open(true);
    journal.stay_closed();
    journal.write(&table()).expect("written");
    drop(journal);
    let mut journal = open(true);
    assert_eq!(journal.changes, [table()], "an error");
    journal.opens_at_end();
    drop(journal);
    assert_eq!(open(true).changes, [], "an orderly end");
    let mut journal = open(true);
    journal.write(&table()).expect("written");
    journal.hold().expect("written");
    journal.opens_at_end();
    drop(journal);
    let journal = open(false);
    assert_eq!(journal.changes, [table(), Change::Held], "held");
    drop(journal);
    assert_eq!(undo(&run, "home").expect("not running"), 2);
    assert_eq!(open(true).changes, []);
}
