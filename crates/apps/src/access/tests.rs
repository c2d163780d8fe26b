//! Valid and invalid access files, and changes by a reload.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ropewalk_runtime::seal::{Allowed, PresharedKey, PublicKey, SecretKey, Timestamp};

use super::*;
use crate::proxy::exit::ExitPolicy;

const ANNA: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
const BEN: &str = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=";

fn key(text: &str) -> PublicKey {
    text.parse().expect("a key")
}

fn list(text: &str) -> Result<AccessList, AccessError> {
    AccessList::from_text(text, Path::new("peers.toml"))
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn every_key_of_an_entry_is_read() {
    let text = format!(
        "[[peer]]\nname = \"anna\"\nkey = \"{ANNA}\"\nexpires = \"2027-01-31\"\n\
         addresses = [\"192.0.2.7\", \"[2001:db8::1]:9000\"]\n\
         [peer.files]\ndirectory = \"team/anna\"\nquota = \"20 GB\"\nmax_file = \"1 GiB\"\noverwrite = false\n\
         [peer.exit]\ntargets = [\"*.example.org:443\", \"192.0.2.0/24:22\"]\nconnections = 16\n\
         [peer.tunnel]\naddresses = [\"10.88.0.9\"]\nrate = \"20 Mbit/s\"\nquota = \"20 GB/month\"\n\
         [[peer]]\nname = \"ben\"\nkey = \"{BEN}\"\nexpires = 2027-01-31T00:00:00Z\n"
    );
    let list = list(&text).expect("a list");
    let anna = list.policy(&key(ANNA)).expect("an entry");
    assert_eq!(anna.name, "anna");
    assert_eq!(anna.expires, Some(at(1_801_440_000)));
    assert_eq!(anna.addresses, ["192.0.2.7", "[2001:db8::1]:9000"]);
    let files = FilePolicy {
        directory: Some(PathBuf::from("team/anna")),
        quota_bytes: Some(20_000_000_000),
        max_file_bytes: Some(1 << 30),
        allow_overwrite: false,
    };
    assert_eq!(anna.files, files);
    let targets =
        ["*.example.org:443", "192.0.2.0/24:22"].map(|text| text.parse().expect("a rule"));
    assert_eq!(anna.exit, ExitPolicy { targets: targets.into(), max_connections: Some(16) });
    let limits = ClientLimits { rate_bps: Some(20_000_000), quota_bytes: Some(20_000_000_000) };
    let addresses = vec![[10, 88, 0, 9].into()];
    assert_eq!(anna.tunnel, TunnelPolicy { addresses, limits });
    let mut ben = PeerPolicy::unrestricted("ben", key(BEN));
    ben.expires = Some(at(1_801_353_600));
    assert_eq!(*list.policy(&key(BEN)).expect("an entry"), ben);
    assert!(!list.is_anyone());
}

#[test]
fn an_error_names_its_line_its_value_and_what_is_valid() {
    let head = format!("[[peer]]\nname = \"anna\"\nkey = \"{ANNA}\"\n");
    for (more, line, parts) in [
        ("quota = \"1 GB\"\n", 4, &["unknown field `quota`", "`files`"][..]),
        ("[peer.file]\n", 4, &["unknown field `file`", "`files`"]),
        ("addresses = [\"a b\"]\n", 4, &["\"a b\" is not an address", "host.example"]),
        ("[peer.files]\nquotas = \"1 GB\"\n", 5, &["unknown field `quotas`", "`quota`"]),
        ("[peer.files]\nquota = \"1 gigabyte\"\n", 5, &["`1 gigabyte`", "GiB"]),
        ("[peer.files]\nquota = 7\n", 5, &["integer `7`"]),
        ("[peer.files]\ndirectory = \"../x\"\n", 5, &["\"../x\"", "below the inbox"]),
        ("[peer.files]\ndirectory = \"/etc\"\n", 5, &["\"/etc\""]),
        ("[peer.files]\ndirectory = \"\"\n", 5, &["\"\""]),
        ("[peer.files]\ndirectory = \".\"\n", 5, &["\".\""]),
        ("[peer.files]\ndirectory = \"a/.ropewalk\"\n", 5, &["\"a/.ropewalk\""]),
        ("[peer.files]\ndirectory = \"a\\\\b\"\n", 5, &["is not a directory"]),
        ("[peer.files]\ndirectory = \"a\\u001bb\"\n", 5, &["\\u{1b}"]),
        ("[peer.exit]\ntargets = [\"*.a:1\",\n \"10.0.0.0/33\"]\n", 6, &["`10.0.0.0/33`"]),
        ("[peer.exit]\ntargets = []\n", 5, &["empty"]),
        ("[peer.exit]\nconnections = 0\n", 5, &["0 is not a number"]),
        ("[peer.tunnel]\nrate = \"20 MB\"\n", 5, &["\"20 MB\" is not a rate", "Mbit/s"]),
        ("[peer.tunnel]\nquota = \"20 GB\"\n", 5, &["\"20 GB\" is not a volume", "20 GB/month"]),
        ("expires = \"2027-02-30\"\n", 4, &["\"2027-02-30\"", "2027-01-31"]),
        ("expires = \"tomorrow\"\n", 4, &["\"tomorrow\""]),
        ("expires = 7\n", 4, &["7 is not a date"]),
        ("expires = \"2027-01-31T10:00:00\"\n", 4, &["not a date", "Z"]),
        (
            "[[peer]]\nname = \"anna\"\nkey = \"3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=\"\n",
            5,
            &["`anna`", "line 2"],
        ),
        (
            "[[peer]]\nname = \"ben\"\nkey = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\n",
            6,
            &[ANNA, "line 3"],
        ),
        ("[[peer]]\nname = \"a b\"\nkey = \"x\"\n", 5, &["\"a b\"", "letters"]),
        ("[[peer]]\nname = \"ben\"\nkey = \"x\"\n", 6, &["`x`", "44 characters"]),
        ("[[peer]]\nname = \"ben\"\n", 4, &["missing field `key`"]),
        ("x = = y\n", 4, &[]),
    ] {
        let error = list(&format!("{head}{more}")).expect_err(more);
        let shown = format!("{error}\n{}", error.help);
        assert_eq!(error.line, Some(line), "{more}: {shown}");
        assert!(shown.starts_with(&format!("peers.toml:{line}: ")), "{shown}");
        for part in parts {
            assert!(shown.contains(part), "`{part}` in {shown}");
        }
    }
}

#[test]
fn an_error_is_a_short_line_that_does_nothing_to_a_terminal() {
    let odd = "\\u001b]0;x\\u0007\\u202e\\n".to_owned() + &"x".repeat(5000);
    for text in [
        format!("name = \"{odd}\"\n"),
        format!("name = \"a\"\nkey = \"{odd}\"\n"),
        format!("name = \"a\"\nkey = \"{ANNA}\"\nexpires = \"{odd}\"\n"),
        format!("name = \"a\"\nkey = \"{ANNA}\"\npsk_file = \"{odd}\"\n"),
        format!("name = \"a\"\nkey = \"{ANNA}\"\n\"{odd}\" = 1\n"),
        format!("name = \"a\"\nkey = \"{ANNA}\"\n[peer.files]\nquota = \"{odd}\"\n"),
        format!("name = \"a\"\nkey = \"{ANNA}\"\n[peer.files]\ndirectory = \"{odd}/..\"\n"),
        format!("name = \"a\"\nkey = \"{ANNA}\"\n[peer.files]\noverwrite = \"{odd}\"\n"),
        format!("name = \"a\"\nkey = \"{ANNA}\"\n[peer.exit]\ntargets = [\"{odd}\"]\n"),
    ] {
        let error = list(&format!("[[peer]]\n{text}")).expect_err("an error");
        let shown = format!("{error}{}", error.help);
        assert!(!shown.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:.80}");
        assert!(shown.chars().count() < 1500, "{} characters", shown.chars().count());
    }
}

#[test]
fn an_expired_entry_is_refused_but_still_known() {
    let text = format!("[[peer]]\nname = \"anna\"\nkey = \"{ANNA}\"\nexpires = \"2027-01-31\"\n");
    let list = list(&text).expect("a list");
    let end = 1_801_440_000;
    assert_eq!(list.admit(&key(ANNA), at(end - 1)).expect("admitted").name, "anna");
    let refusal = list.admit(&key(ANNA), at(end)).expect_err("expired");
    assert!(refusal.to_string().contains("anna"), "{refusal}");
    assert!(refusal.to_string().contains("expired"), "{refusal}");
    assert!(list.policy(&key(ANNA)).is_some());
    let refusal = list.admit(&key(BEN), at(end)).expect_err("not listed");
    assert!(refusal.to_string().contains(BEN), "{refusal}");
}

#[test]
fn without_a_list_every_key_is_admitted_and_called_by_its_beginning() {
    let list = AccessList::anyone();
    assert!(list.is_anyone() && list.peers().is_none());
    let policy = list.admit(&key(ANNA), at(0)).expect("admitted");
    assert_eq!(*policy, PeerPolicy::unrestricted("hSDwCYkw", key(ANNA)));
}

#[test]
fn a_reload_replaces_the_list_for_all_clones_and_an_error_changes_nothing() {
    let name = format!("ropewalk-peers-{}.toml", std::process::id());
    let file = std::env::temp_dir().join(name);
    let write = |text: String| std::fs::write(&file, text).expect("a file");
    let entry = |name: &str, key: &str, more: &str| {
        format!("[[peer]]\nname = \"{name}\"\nkey = \"{key}\"\n{more}")
    };
    let own = SecretKey::generate().expect("random numbers").public();
    write(entry("anna", ANNA, ""));
    let list =
        AccessList::open(&[own, key(ANNA)].map(PeerPolicy::nameless), Some(&file)).expect("a list");
    let clone = list.clone();
    assert_eq!(clone.name(&key(ANNA)), "anna");

    write(format!("{}{}", entry("ben", BEN, ""), entry("x", "y", "")));
    let error = list.reload().expect_err("an error");
    assert_eq!(error.line, Some(6), "{error}");
    assert_eq!(clone.name(&key(ANNA)), "anna");
    assert!(clone.policy(&key(BEN)).is_none());

    write(entry("ben", BEN, ""));
    let changes = list.reload().expect("a list");
    assert_eq!(changes.added.iter().map(|peer| &peer.name[..]).collect::<Vec<_>>(), ["ben"]);
    // The key is also on the command line: without an entry it has no restrictions.
    assert!(changes.removed.is_empty());
    assert_eq!(clone.name(&key(BEN)), "ben");
    assert_eq!(clone.name(&key(ANNA)), "hSDwCYkw");

    write(entry("ben", BEN, "[peer.files]\nquota = \"1 kB\"\n"));
    let changes = list.reload().expect("a list");
    assert_eq!(changes.changed[0].files.quota_bytes, Some(1000));
    write(String::new());
    let changes = list.reload().expect("an empty list");
    assert_eq!(changes.removed[0].name, "ben");
    assert!(list.policy(&own).is_some() && list.policy(&key(BEN)).is_none());

    std::fs::remove_file(&file).expect("removed");
    assert!(list.reload().expect_err("no file").line.is_none());
    assert!(list.policy(&own).is_some());
}

#[test]
fn the_endpoint_gets_keys_dates_and_pre_shared_keys_from_beside_the_file() {
    let directory = std::env::temp_dir().join(format!("ropewalk-psks-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir(&directory).expect("a directory");
    let psk = PresharedKey::generate().expect("random numbers");
    psk.write_new_file(&directory.join("anna.psk")).expect("written");
    let entry = |file: &str| {
        format!(
            "[[peer]]\nname = \"anna\"\nkey = \"{ANNA}\"\npsk_file = \"{file}\"\n\
             expires = \"2027-01-31\"\n[[peer]]\nname = \"ben\"\nkey = \"{BEN}\"\n"
        )
    };
    let file = directory.join("peers.toml");
    std::fs::write(&file, entry("anna.psk")).expect("written");
    let list = AccessList::open(&[], Some(&file)).expect("a list");
    let Allowed::Peers(peers) = list.allowed() else { panic!("no peers") };
    assert_eq!(peers[&key(ANNA)].psk, Some(psk));
    let expires = Timestamp::from_unix_nanos(1_801_440_000_000_000_000);
    assert_eq!(peers[&key(ANNA)].expires, Some(expires));
    assert_eq!(peers[&key(BEN)], Default::default());
    assert_eq!(AccessList::anyone().allowed(), Allowed::Anyone);

    std::fs::write(&file, entry("none.psk")).expect("written");
    let error = list.reload().expect_err("no such file");
    assert_eq!(error.line, Some(4), "{error}");
    assert!(error.to_string().contains("none.psk"), "{error}");
    let _ = std::fs::remove_dir_all(&directory);
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ropewalk-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).expect("a directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn known_peers_are_added_once_under_free_names_and_the_rest_of_the_file_stays() {
    let directory = Directory::new("known-peers");
    let file = directory.0.join("peers.toml");
    assert_eq!(KnownPeers::read(&file).expect("no file, no peers").names().count(), 0);
    let add = |name: &str, key: PublicKey, addresses: &[&str]| {
        let addresses: Vec<_> = addresses.iter().map(|text| (*text).to_owned()).collect();
        let added = KnownPeers::add(&file, name, key, &addresses).expect("added");
        (added.name, added.known)
    };
    let other = SecretKey::generate().expect("random numbers").public();
    assert_eq!(add("anna", key(ANNA), &["192.0.2.7"]), ("anna".to_owned(), false));
    assert_eq!(add("an na\u{1b}[1m", key(BEN), &[]), ("anna1m".to_owned(), false));
    let text = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, format!("# my peers\n{text}expires = \"2027-01-31\"\n"))
        .expect("written");
    // The name is taken, the key is known, no character is usable.
    assert_eq!(add("anna", other, &[]), ("anna-2".to_owned(), false));
    assert_eq!(add("ben", key(BEN), &["[2001:db8::1]:9000"]), ("anna1m".to_owned(), true));
    assert_eq!(add("anna", key(ANNA), &[]), ("anna".to_owned(), true));
    let third = SecretKey::generate().expect("random numbers").public();
    assert_eq!(add("\u{1b}/", third, &[]), ("peer".to_owned(), false));
    let known = KnownPeers::read(&file).expect("a list");
    assert_eq!(known.names().collect::<Vec<_>>(), ["anna", "anna1m", "anna-2", "peer"]);
    let find = |name: &str| known.find(name).expect(name);
    assert_eq!(
        (find("anna").key, &find("anna").addresses[..]),
        (key(ANNA), &["192.0.2.7".to_owned()][..])
    );
    assert_eq!(find("anna1m").addresses, ["[2001:db8::1]:9000"]);
    assert!(find("anna1m").expires.is_some() && find("anna-2").key == other);
    assert!(std::fs::read_to_string(&file).expect("a file").starts_with("# my peers\n"));
    assert_eq!(std::fs::read_dir(&directory.0).expect("a directory").count(), 1);
}

#[cfg(unix)]
#[test]
fn a_list_of_known_peers_that_others_may_write_is_not_extended() {
    use std::os::unix::fs::PermissionsExt;
    let directory = Directory::new("known-peers-open");
    let file = directory.0.join("peers.toml");
    std::fs::write(&file, "# mine\n").expect("written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).expect("a mode");
    let error = KnownPeers::add(&file, "anna", key(ANNA), &[]).expect_err("refused");
    assert!(error.to_string().contains("0666"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "# mine\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    std::fs::write(&file, "peer = []\n").expect("written");
    let error = KnownPeers::add(&file, "anna", key(ANNA), &[]).expect_err("refused");
    assert!(error.to_string().contains("[[peer]]"), "{error}");
}
