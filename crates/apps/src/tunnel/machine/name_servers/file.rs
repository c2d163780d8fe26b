//! The file with the name servers (resolv.conf(5)).

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use crate::tunnel::machine::journal::{Before, Journal, JournalError};

/// Start of the first line of a list of name servers that a tunnel has written; its name follows.
const MARK: &str = "# written by ropewalk tunnel ";

/// Start of the second line. The previous state follows, so that it can be restored without a journal.
const BEFORE: &str = "# before ";

/// The servers that systemd-resolved uses (systemd-resolved.service(8)).
const RESOLVED_SERVERS: &str = "/run/systemd/resolve/resolv.conf";

/// Addresses at which systemd-resolved answers (systemd-resolved.service(8)).
const RESOLVED: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 53), Ipv4Addr::new(127, 0, 0, 54)];

/// Sets the name servers, unless they are set. Other lines that affect programs, such as `search` and `options`,
/// stay.
///
/// # Errors
/// Another tunnel has set them, or the error of the system.
pub fn set(
    journal: &mut Journal,
    file: &Path,
    tunnel: &str,
    servers: &[IpAddr],
) -> Result<(), JournalError> {
    let now = std::fs::read(file).unwrap_or_default();
    if let Some(other) = owner(&now).filter(|owner| *owner != tunnel.as_bytes()) {
        let other = String::from_utf8_lossy(other);
        let message = format!("the tunnel {other} has set the name servers");
        return Err(JournalError::Io(file.to_owned(), io::Error::other(message)));
    }
    let before = match before(&now) {
        Some(before) => before,
        None => Before::read(file).map_err(|error| JournalError::Io(file.to_owned(), error))?,
    };
    let mut text = format!("{MARK}{tunnel}\n{BEFORE}{}\n", before.encode()).into_bytes();
    text.extend(list(servers).bytes());
    for line in now.split(|byte| *byte == b'\n').filter(|line| is_kept(line)) {
        text.extend(line);
        text.push(b'\n');
    }
    if now == text { Ok(()) } else { journal.replace(file, before, &text) }
}

/// The tunnel that has written a file with this text.
fn owner(text: &[u8]) -> Option<&[u8]> {
    text.split(|byte| *byte == b'\n').next()?.strip_prefix(MARK.as_bytes())
}

/// The previous state of a file that a tunnel has written.
fn before(text: &[u8]) -> Option<Before> {
    owner(text)?;
    let line = text.split(|byte| *byte == b'\n').nth(1)?;
    Before::decode(line.strip_prefix(BEFORE.as_bytes())?)
}

/// The tunnel whose name servers are in a file.
pub fn tunnel_of(file: &Path) -> Option<String> {
    let text = std::fs::read(file).ok()?;
    owner(&text).map(|name| String::from_utf8_lossy(name).into_owned())
}

/// Restores a file whose name servers this tunnel has set, if its journal is lost. Returns whether it did.
///
/// # Errors
/// The error of the system.
pub fn restore(file: &Path, tunnel: &str) -> io::Result<bool> {
    let text = std::fs::read(file).unwrap_or_default();
    let is_own = owner(&text) == Some(tunnel.as_bytes());
    match before(&text).filter(|_| is_own) {
        Some(before) => before.restore(file).map(|()| true),
        None => Ok(false),
    }
}

/// The name servers that this machine uses in the network. If programs use systemd-resolved, these are its servers.
pub fn of_system() -> Vec<IpAddr> {
    let is_local = |server: &IpAddr| server.is_loopback() || server.is_unspecified();
    let mut found = servers_in(Path::new(super::RESOLV_CONF));
    if found.iter().all(is_local) {
        found.extend(servers_in(Path::new(RESOLVED_SERVERS)));
    }
    found.retain(|server| !is_local(server));
    found
}

fn servers_in(file: &Path) -> Vec<IpAddr> {
    let text = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse().ok()).flatten()
    });
    servers.collect()
}

/// The lines for these servers.
pub fn list(servers: &[IpAddr]) -> String {
    servers.iter().map(|server| format!("nameserver {server}\n")).collect()
}

/// Whether a line of `resolv.conf` stays: all settings except the name servers (resolv.conf(5)).
fn is_kept(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace);
    let keyword = words.find(|word| !word.is_empty()).unwrap_or_default();
    [&b"search"[..], b"domain", b"options", b"sortlist"].contains(&keyword)
}

/// Whether programs that read the file use only systemd-resolved.
pub fn leads_to_resolved(file: &Path) -> bool {
    std::fs::read(file).is_ok_and(|text| names_resolved_alone(&String::from_utf8_lossy(&text)))
}

fn names_resolved_alone(text: &str) -> bool {
    let mut servers = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())
    });
    let is_resolved = |server: Option<&str>| {
        server.and_then(|it| it.parse().ok()).is_some_and(|it| RESOLVED.contains(&it))
    };
    // Without a server, programs use 127.0.0.1.
    servers.next().is_some_and(is_resolved) && servers.all(is_resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_itself_what_was_there_before() {
        let place = std::env::temp_dir().join(format!("ropewalk-file-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("a directory");
        let file = place.join("resolv.conf");
        let server: IpAddr = "192.0.2.53".parse().expect("an address");
        for before in [&b"search example.org\nnameserver 198.51.100.1\n"[..], b"# caf\xe9\n", b""] {
            std::fs::write(&file, before).expect("written");
            let open = || Journal::open(&place.join("run"), "home", false).expect("not running").0;
            let mut journal = open();
            set(&mut journal, &file, "home", &[server]).expect("set");
            let own = std::fs::read(&file).expect("a file");
            set(&mut journal, &file, "home", &[server]).expect("set");
            assert_eq!(
                std::fs::read(&file).expect("a file"),
                own,
                "setting it again changes nothing"
            );
            // The journal is lost.
            std::mem::forget(journal);
            std::fs::remove_dir_all(place.join("run")).expect("an own directory");
            assert!(!restore(&file, "other").expect("a file"));
            // What the next run finds and leaves.
            let mut journal = open();
            set(&mut journal, &file, "home", &["192.0.2.54".parse().expect("an address")])
                .expect("set");
            drop(journal);
            assert_eq!(std::fs::read(&file).expect("a file"), before);
            std::fs::write(&file, &own).expect("written");
            assert!(restore(&file, "home").expect("a file"));
            assert_eq!(std::fs::read(&file).expect("a file"), before);
        }
        std::fs::remove_dir_all(place).expect("an own directory");
    }

    #[test]
    fn a_file_leads_to_resolved_if_it_names_its_addresses_alone() {
        for (text, expected) in [
            (
                "# This is /run/systemd/resolve/stub-resolv.conf\nnameserver 127.0.0.53\noptions edns0\nsearch .\n",
                true,
            ),
            ("nameserver\t127.0.0.54 \nnameserver 127.0.0.53\n", true),
            ("nameserver 127.0.0.53\nnameserver 192.0.2.53\n", false),
            ("nameserver 192.0.2.53\nnameserver 127.0.0.53\n", false),
            ("nameserver 127.0.0.1\n", false),
            ("# nameserver 127.0.0.53\n", false),
            ("nameserver\n", false),
            ("", false),
        ] {
            assert_eq!(names_resolved_alone(text), expected, "{text}");
        }
    }
}
