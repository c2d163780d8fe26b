//! Addresses and device names of the ends of the paths.

use core::fmt;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::links::Side;

/// The longest device name in Linux: IFNAMSIZ less the terminating zero.
const NAME_LENGTH: usize = 15;

/// One end of one path. Paths are numbered from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// Number of the path, from 1.
    pub path: u8,
    /// The side of the end.
    pub side: Side,
}

impl Address {
    /// 10.77.PATH.1 at the sender, 10.77.PATH.2 at the receiver, with a prefix of 24 bits.
    pub const fn v4(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.path, self.host())
    }

    /// fd77::PATH:1 and fd77::PATH:2, with a prefix of 112 bits.
    pub const fn v6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, self.path as u16, self.host() as u16)
    }

    /// The routing table for packets from this address.
    pub const fn table(self) -> u32 {
        100 + self.path as u32
    }

    const fn host(self) -> u8 {
        match self.side {
            Side::Sender => 1,
            Side::Receiver => 2,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.v4().fmt(f)
    }
}

/// Describes the paths to programs on one side.
#[derive(Clone, Copy, Debug)]
pub struct Addresses<'a> {
    /// The side of the programs.
    pub side: Side,
    /// Device of each path.
    pub devices: &'a [String],
}

impl Addresses<'_> {
    /// Number, local address and remote address of each path.
    pub fn pairs(&self) -> impl Iterator<Item = (u8, Address, Address)> + '_ {
        (1..=self.devices.len() as u8).map(|path| {
            let own = Address { path, side: self.side };
            (path, own, Address { path, side: self.side.other() })
        })
    }

    /// Environment variables for a program.
    pub fn environment(&self) -> Vec<(String, String)> {
        let mut all = vec![("ROPEWALK_PATHS".to_owned(), self.devices.len().to_string())];
        for ((path, own, peer), device) in self.pairs().zip(self.devices) {
            all.push((format!("ROPEWALK_DEVICE_{path}"), device.clone()));
            all.push((format!("ROPEWALK_LOCAL_{path}"), own.to_string()));
            all.push((format!("ROPEWALK_REMOTE_{path}"), peer.to_string()));
            all.push((format!("ROPEWALK_LOCAL6_{path}"), own.v6().to_string()));
            all.push((format!("ROPEWALK_REMOTE6_{path}"), peer.v6().to_string()));
        }
        all
    }

    /// Fills placeholders such as `{local1}`, `{remote2}`, `{remote6_1}` and `{device1}` in an argument of a command
    /// line.
    pub fn fill(&self, word: &str) -> String {
        let mut word = word.to_owned();
        for ((path, own, peer), device) in self.pairs().zip(self.devices) {
            for (name, value) in [
                (format!("{{local{path}}}"), own.to_string()),
                (format!("{{remote{path}}}"), peer.to_string()),
                (format!("{{local6_{path}}}"), own.v6().to_string()),
                (format!("{{remote6_{path}}}"), peer.v6().to_string()),
                (format!("{{device{path}}}"), device.clone()),
            ] {
                word = word.replace(&name, &value);
            }
        }
        word
    }
}

/// A device name for each path: the path's name if Linux accepts it, otherwise `path1`, `path2` and so on.
pub fn device_names<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::from(["lo".to_owned()]);
    let mut names = Vec::new();
    for (number, path) in (1..).zip(paths) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let fits = (1..=NAME_LENGTH).contains(&path.len()) && path.chars().all(plain);
        let mut name = if fits { path.to_owned() } else { format!("path{number}") };
        while !taken.insert(name.clone()) {
            name.push('x');
        }
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_called_as_their_paths_where_linux_takes_the_name() {
        for (paths, devices) in [
            (vec!["wifi", "lte"], vec!["wifi", "lte"]),
            (vec!["lo", "a-name-that-is-far-too-long"], vec!["lox", "path2"]),
            (vec!["path2", "größe"], vec!["path2", "path2x"]),
        ] {
            assert_eq!(device_names(paths.into_iter()), devices);
        }
    }

    #[test]
    fn a_word_is_filled_in_from_the_side_that_runs_it() {
        let devices = ["wifi".to_owned(), "lte".to_owned()];
        for (side, word, filled) in [
            (Side::Sender, "{remote1}", "10.77.1.2"),
            (Side::Receiver, "{remote1}", "10.77.1.1"),
            (Side::Sender, "{local2}%{device2}:{remote3}", "10.77.2.1%lte:{remote3}"),
            (Side::Sender, "[{remote6_2}]", "[fd77::2:2]"),
        ] {
            assert_eq!(Addresses { side, devices: &devices }.fill(word), filled);
        }
    }
}
