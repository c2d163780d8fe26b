//! The file that names the name servers (resolv.conf(5)).

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use crate::tunnel::journal::{Journal, JournalError};

/// How the first line of a list of name servers begins that a tunnel has written; then its name follows.
const MARK: &str = "# written by ropewalk tunnel ";

/// Addresses at which systemd-resolved answers (systemd-resolved.service(8)).
const RESOLVED: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 53), Ipv4Addr::new(127, 0, 0, 54)];

/// Sets the name servers, unless they are set. Other lines that matter to programs, such as `search` and `options`, stay.
///
/// # Errors
/// Another tunnel has set them, or as the system says.
pub fn set(
    journal: &mut Journal,
    file: &Path,
    tunnel: &str,
    servers: &[IpAddr],
) -> Result<(), JournalError> {
    let now = std::fs::read(file).unwrap_or_default();
    let lines = || now.split(|byte| *byte == b'\n');
    let owner = lines().next().and_then(|line| line.strip_prefix(MARK.as_bytes()));
    if let Some(other) = owner.filter(|owner| *owner != tunnel.as_bytes()) {
        let other = String::from_utf8_lossy(other);
        let message = format!("the tunnel {other} has set the name servers");
        return Err(JournalError::Io(file.to_owned(), io::Error::other(message)));
    }
    let mut text = format!("{MARK}{tunnel}\n").into_bytes();
    text.extend(list(servers).bytes());
    for line in lines().filter(|line| is_kept(line)) {
        text.extend(line);
        text.push(b'\n');
    }
    if now == text { Ok(()) } else { journal.replace(file, &text) }
}

/// The lines that name these servers.
pub fn list(servers: &[IpAddr]) -> String {
    servers.iter().map(|server| format!("nameserver {server}\n")).collect()
}

/// Whether a line of `resolv.conf` stays: all settings but the name servers (resolv.conf(5)).
fn is_kept(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace);
    let keyword = words.find(|word| !word.is_empty()).unwrap_or_default();
    [&b"search"[..], b"domain", b"options", b"sortlist"].contains(&keyword)
}

/// Whether programs that read the file ask systemd-resolved, and nobody else.
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
    // Without a server, programs ask 127.0.0.1.
    servers.next().is_some_and(is_resolved) && servers.all(is_resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

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
