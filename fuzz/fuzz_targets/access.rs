//! The access file of a server: any text, or a text whose meaning is known. An error names a line that is wrong. An accepted
//! file means what it says, means the same when it is written again, and permits nothing that it does not list.

#![no_main]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libfuzzer_sys::fuzz_target;
use ropewalk_apps::access::{AccessError, AccessList, FilePolicy, PeerPolicy, Refusal};
use ropewalk_apps::proxy::exit::check_targets;
use ropewalk_fuzz::Input;
use ropewalk_fuzz::peers::{Draft, month_lengths, quoted, year_length};
use ropewalk_runtime::seal::{Allowed, PublicKey, Timestamp};

const DAY_SECONDS: u64 = 86_400;
/// The first moment that a date of TOML cannot name: 10000-01-01.
const LAST: u64 = 253_402_300_800;

fn read(text: &str) -> Result<AccessList, AccessError> {
    AccessList::from_text(text, Path::new("peers.toml"))
}

/// Checks that a terminal or a log shows the error as one line; the line of the file that it names.
fn check_error(error: &AccessError, text: &str) -> usize {
    let line = error.line.expect("the text was there");
    assert!((1..=1 + text.matches('\n').count()).contains(&line), "{error}");
    let shown = error.to_string();
    assert!(shown.starts_with(&format!("peers.toml:{line}: ")), "{shown}");
    assert!(!error.message.is_empty() && !error.help.is_empty());
    assert!(![shown, error.help.clone()].concat().chars().any(char::is_control), "{error:?}");
    line
}

fn check_directory(directory: &Path) {
    let plain = |part: Component<'_>| match part {
        Component::Normal(name) => !name.to_string_lossy().starts_with('.'),
        _ => false,
    };
    let inbox = Path::new("/inbox");
    let joined = inbox.join(directory);
    assert!(directory.components().all(plain) && joined.starts_with(inbox) && joined != inbox);
    let text = directory.to_str().expect("it came from text");
    assert!(!text.contains(|c: char| c.is_control() || c == '\\'), "{text:?}");
}

/// Checks the limits that the reference gives for any entry.
fn check_entry(peer: &PeerPolicy) {
    let PeerPolicy { name, files, exit, .. } = peer;
    let good = |c: char| c.is_alphanumeric() || "-_.@+".contains(c);
    assert!((1..=64).contains(&name.chars().count()) && name.chars().all(good), "{name:?}");
    files.directory.iter().for_each(|directory| check_directory(directory));
    assert!(files.quota_bytes != Some(0) && files.max_file_bytes != Some(0));
    assert!(exit.max_connections != Some(0));
}

/// Checks that each entry expires at its moment, and that no other key is admitted.
fn check_admission(list: &AccessList, peers: &[Arc<PeerPolicy>]) {
    let Allowed::Peers(allowed) = list.allowed() else { panic!("anyone is allowed") };
    assert_eq!(allowed.len(), peers.len());
    for peer in peers {
        assert_eq!(list.policy(&peer.key).as_ref(), Some(peer));
        let since_1970 = |at: SystemTime| at.duration_since(UNIX_EPOCH).expect("after 1970");
        let nanos = peer.expires.map(|at| since_1970(at).as_nanos().min(u64::MAX.into()) as u64);
        assert_eq!(allowed[&peer.key].expires, nanos.map(Timestamp::from_unix_nanos));
        let Some(expires) = peer.expires else {
            assert_eq!(list.admit(&peer.key, UNIX_EPOCH).as_ref(), Ok(peer));
            continue;
        };
        let refused = Err(Refusal::Expired(peer.clone()));
        assert_eq!(list.admit(&peer.key, expires), refused);
        if let Some(before) = expires.checked_sub(Duration::from_nanos(1)) {
            assert_eq!(list.admit(&peer.key, before).as_ref(), Ok(peer));
        }
    }
    let other = PublicKey::from_bytes([201; 32]).expect("a key");
    if !allowed.contains_key(&other) {
        assert_eq!(list.admit(&other, UNIX_EPOCH), Err(Refusal::NotListed(other)));
    }
}

/// All entries, after all checks that need nothing but the list.
fn entries(list: &AccessList) -> Vec<Arc<PeerPolicy>> {
    let peers = list.peers().expect("a list");
    peers.iter().for_each(|peer| check_entry(peer));
    let names: BTreeSet<&str> = peers.iter().map(|peer| &peer.name[..]).collect();
    assert_eq!(names.len(), peers.len());
    check_admission(list, &peers);
    peers
}

/// A date of TOML for a moment: that of the day that ends then, or with its time.
fn date(at: SystemTime) -> Option<String> {
    let seconds = at.duration_since(UNIX_EPOCH).ok()?.as_secs();
    if seconds > LAST {
        return None;
    }
    let ends_day = seconds % DAY_SECONDS == 0 && seconds > 0;
    let mut days = seconds / DAY_SECONDS - u64::from(ends_day);
    let mut year = 1970;
    while days >= u64::from(year_length(year)) {
        days -= u64::from(year_length(year));
        year += 1;
    }
    let (lengths, mut month) = (month_lengths(year).map(u64::from), 0);
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let day = format!("{year:04}-{:02}-{:02}", month + 1, days + 1);
    let time = seconds % DAY_SECONDS;
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    Some(if ends_day { day } else { format!("{day} {hour:02}:{minute:02}:{second:02}Z") })
}

/// An entry as a text. Files and targets stay as they were written.
fn entry(peer: &PeerPolicy, written: &toml::Table) -> Option<String> {
    let mut out = format!("[[peer]]\nname = {}\nkey = \"{}\"\n", quoted(&peer.name), peer.key);
    if let Some(at) = peer.expires {
        out += &format!("expires = {}\n", date(at)?);
    }
    if let Some(file) = written.get("psk_file").and_then(toml::Value::as_str) {
        out += &format!("psk_file = {}\n", quoted(file));
    }
    let FilePolicy { directory, quota_bytes, max_file_bytes, allow_overwrite } = &peer.files;
    out += &format!("[peer.files]\noverwrite = {allow_overwrite}\n");
    if let Some(directory) = directory {
        out += &format!("directory = {}\n", quoted(directory.to_str()?));
    }
    for (key, bytes) in [("quota", quota_bytes), ("max_file", max_file_bytes)] {
        out += &bytes.map(|bytes| format!("{key} = \"{bytes} B\"\n")).unwrap_or_default();
    }
    out += "[peer.exit]\n";
    if let Some(most) = peer.exit.max_connections {
        out += &format!("connections = {most}\n");
    }
    let targets = written.get("exit").and_then(|exit| exit.get("targets")?.as_array());
    if let Some(targets) = targets {
        let all: Option<Vec<_>> = targets.iter().map(|text| Some(quoted(text.as_str()?))).collect();
        out += &format!("targets = [{}]\n", all?.join(", "));
    }
    Some(out)
}

/// Any text: if it is accepted, the list is the same after it was written and read again.
fn check_text(text: &str) {
    let list = match read(text) {
        Ok(list) => list,
        Err(error) => {
            check_error(&error, text);
            return;
        }
    };
    let peers = entries(&list);
    let written: toml::Table = text.parse().expect("it was read as TOML");
    let tables = written.get("peer").and_then(|all| all.as_array()).cloned().unwrap_or_default();
    let mut again = String::new();
    for table in tables.iter().filter_map(toml::Value::as_table) {
        let name = table["name"].as_str().expect("a name");
        let peer = peers.iter().find(|peer| peer.name == name).expect("an entry for each table");
        let Some(text) = entry(peer, table) else { return };
        again += &text;
    }
    let other = read(&again).unwrap_or_else(|error| panic!("{error}\nin\n{again}"));
    assert_eq!(entries(&other), peers, "{again}");
}

/// A text whose meaning is known.
fn check_draft(draft: &Draft) {
    let list = match read(&draft.text) {
        Ok(list) => list,
        Err(error) => {
            let line = check_error(&error, &draft.text);
            assert!(draft.faults.contains(&line), "{error}\nin\n{}", draft.text);
            return;
        }
    };
    assert!(draft.faults.is_empty(), "{:?} of\n{}", draft.faults, draft.text);
    let peers = entries(&list);
    assert_eq!(peers.len(), draft.peers.len());
    for (expected, targets) in draft.peers.iter().zip(&draft.targets) {
        let found = list.policy(&expected.key).expect("an entry");
        let mut expected = expected.clone();
        expected.exit.targets.clone_from(&found.exit.targets);
        assert_eq!(*found, expected, "{}", draft.text);
        assert_eq!(found.exit.targets.len(), targets.len());
        for (name, ip, port) in targets.iter().flat_map(|rule| rule.probes()) {
            let lists = targets.iter().any(|rule| rule.covers(name.as_deref(), ip, port));
            let at = SocketAddr::new(ip, port);
            let permits = check_targets(&found.exit.targets, name.as_deref(), at).is_ok();
            assert_eq!(permits, lists, "{name:?} at {at} with {targets:?}");
        }
    }
}

fuzz_target!(|input: &[u8]| {
    match input {
        [0, choices @ ..] => check_draft(&Draft::new(&mut Input(choices))),
        _ => {
            if let Ok(text) = str::from_utf8(input) {
                check_text(text);
            }
        }
    }
});
