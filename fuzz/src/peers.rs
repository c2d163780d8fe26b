//! Access files whose meaning is known: each value is made together with its text. Sizes and dates are computed in other ways
//! than in the parser.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ropewalk_apps::access::PeerPolicy;
use ropewalk_runtime::seal::PublicKey;

use crate::Input;
use crate::rules::{Rule, rule};

/// Peers of one file.
const PEERS: usize = 6;
const UNITS: [(&str, u128); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];
const BAD_UNITS: [&str; 5] = ["", "kb", "Kib", "B/s", "."];
/// Parts of directories. The first seven are plain, the last ones are nothing that a peer may be given.
const PARTS: [&str; 13] =
    ["anna", "team", "a b", "ä", "..a", "a..", "~", "", ".", "..", ".ropewalk", "a\\b", "a\u{1b}"];

/// A file that is being written.
#[derive(Default)]
pub struct Draft {
    pub text: String,
    /// Lines that are wrong, counted from 1.
    pub faults: BTreeSet<usize>,
    /// What the entries say, but for their targets. It counts only if nothing is wrong.
    pub peers: Vec<PeerPolicy>,
    /// The targets of each entry.
    pub targets: Vec<Vec<Rule>>,
    lines: usize,
    names: BTreeSet<String>,
    keys: BTreeSet<PublicKey>,
}

impl Draft {
    /// Takes the input as a list of choices.
    pub fn new(input: &mut Input<'_>) -> Self {
        let mut draft = Self::default();
        while !input.is_over() && draft.peers.len() < PEERS {
            draft.peer(input);
        }
        draft
    }

    fn line(&mut self, text: &str, is_good: bool) {
        assert!(!text.contains('\n'));
        self.text.push_str(text);
        self.text.push('\n');
        self.lines += 1;
        if !is_good {
            self.faults.insert(self.lines);
        }
    }

    /// An assignment; a fault if there is no value.
    fn set<T>(&mut self, key: &str, text: &str, value: Option<T>) -> Option<T> {
        self.line(&format!("{key} = {text}"), value.is_some());
        value
    }

    fn peer(&mut self, input: &mut Input<'_>) {
        let what = input.byte();
        self.line("[[peer]] # é", true);
        let (text, name) = name(input);
        let name = name.filter(|name| self.names.insert(name.clone()));
        let name = self.set("name", &text, name);
        let (text, key) = key(input);
        let key = key.filter(|key| self.keys.insert(*key));
        let key = self.set("key", &text, key).unwrap_or_else(spare_key);
        let mut peer = PeerPolicy::unrestricted(name.unwrap_or_default(), key);
        if what & 1 != 0 {
            let (text, expires) = expiry(input);
            peer.expires = self.set("expires", &text, expires);
        }
        if what & 2 != 0 {
            self.files(&mut peer, input);
        }
        let mut targets = Vec::new();
        if what & 4 != 0 {
            self.line("[peer.exit]", true);
            if what & 8 != 0 {
                let number = i64::from(input.number()) - 2;
                let most = usize::try_from(number).ok().filter(|most| *most > 0);
                peer.exit.max_connections = self.set("connections", &number.to_string(), most);
            }
            targets = self.targets(input);
        }
        if what & 0xf0 == 0xf0 {
            let no = [("colour", "1"), ("connections", "true"), ("name", "7")];
            let (key, value) = no[usize::from(input.byte()) % no.len()];
            self.set::<()>(key, value, None);
        }
        self.peers.push(peer);
        self.targets.push(targets);
    }

    fn files(&mut self, peer: &mut PeerPolicy, input: &mut Input<'_>) {
        let what = input.byte();
        self.line("[peer.files]", true);
        if what & 1 != 0 {
            let (text, path) = directory(input);
            peer.files.directory = self.set("directory", &text, path);
        }
        if what & 2 != 0 {
            let (text, bytes) = size(input);
            peer.files.quota_bytes = self.set("quota", &text, bytes);
        }
        if what & 4 != 0 {
            let (text, bytes) = size(input);
            peer.files.max_file_bytes = self.set("max_file", &text, bytes);
        }
        if what & 8 != 0 {
            peer.files.allow_overwrite = what & 16 != 0;
            self.set("overwrite", &peer.files.allow_overwrite.to_string(), Some(()));
        }
    }

    fn targets(&mut self, input: &mut Input<'_>) -> Vec<Rule> {
        let count = input.byte() % 4;
        self.line("targets = [", count > 0);
        let mut rules = Vec::new();
        for _ in 0..count {
            let (text, rule) = rule(input);
            self.line(&format!("  {},", quoted(&text)), rule.is_some());
            rules.extend(rule);
        }
        self.line("]", true);
        rules
    }
}

/// A string of TOML.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

/// An entry with a bad key means nothing.
fn spare_key() -> PublicKey {
    PublicKey::from_bytes([200; 32]).expect("a key")
}

fn name(input: &mut Input<'_>) -> (String, Option<String>) {
    let base = ["anna", "ben", "a.b-c_d@e+f", "Zoë", "", "a b", "a/b", "雪"];
    let (what, long) = (input.byte(), input.byte());
    let mut name = base[usize::from(what) % base.len()].to_owned();
    if what & 64 != 0 {
        name.push_str(&"x".repeat(usize::from(long) % 70));
    }
    if what & 128 != 0 {
        name.extend(char::from_u32(u32::from(input.number())));
    }
    let letter = |c: char| c.is_alphabetic() || c.is_numeric() || "-_.@+".contains(c);
    let good = (1..=64).contains(&name.chars().count()) && name.chars().all(letter);
    (quoted(&name), good.then_some(name))
}

fn key(input: &mut Input<'_>) -> (String, Option<PublicKey>) {
    let what = input.byte();
    let bytes = [what % 8 + 2; 32];
    let text = STANDARD.encode(bytes);
    let (text, good) = match what / 8 {
        0..=24 => (text, true),
        25 => (format!(" {text} "), true),
        26 => (text.replace('=', ""), false),
        27 => (text.replace('=', "é"), false),
        28 => (STANDARD.encode([0; 32]), false),
        29 => (STANDARD.encode([7; 31]), false),
        30 => (text.to_ascii_uppercase() + "\u{7f}", false),
        _ => (String::new(), false),
    };
    (quoted(&text), good.then(|| PublicKey::from_bytes(bytes).expect("a key")))
}

fn directory(input: &mut Input<'_>) -> (String, Option<PathBuf>) {
    let count = input.byte() % 5;
    let parts: Vec<_> =
        (0..count).map(|_| PARTS[usize::from(input.byte()) % PARTS.len()]).collect();
    let text = parts.join("/");
    // What is empty, or a dot between others, changes nothing.
    let counts = |part: &&&str| !part.is_empty() && **part != ".";
    let left: Vec<&str> = parts.iter().filter(counts).copied().collect();
    let begins = parts.first().is_some_and(|first| !first.is_empty() && *first != ".");
    let plain = |part: &str| !part.starts_with('.') && !part.contains(['\\', '\u{1b}']);
    let good = begins && left.iter().all(|part| plain(part));
    (quoted(&text), good.then(|| left.iter().collect()))
}

fn size(input: &mut Input<'_>) -> (String, Option<u64>) {
    let (what, unit) = (input.byte(), input.byte());
    let whole = match what & 7 {
        0 => u128::from(u64::MAX) + u128::from(input.byte()),
        1 => u128::from(input.number()) << 48 | u128::from(input.number()),
        _ => u128::from(input.number()),
    };
    let digits = if what & 8 == 0 { String::new() } else { input.number().to_string() };
    let digits = "0".repeat(usize::from(what >> 6)) + &digits;
    let fraction = if what & 8 == 0 { None } else { Some(digits) };
    let (unit, factor) = match UNITS.get(usize::from(unit) % (UNITS.len() + 1)) {
        Some((unit, factor)) => (*unit, Some(*factor)),
        None => (BAD_UNITS[usize::from(unit) / 10 % BAD_UNITS.len()], None),
    };
    let sign = if what & 48 == 48 { ["+", "-"][usize::from(what >> 7)] } else { "" };
    let blank = if what & 16 == 0 { " " } else { "" };
    let number = match &fraction {
        Some(digits) => format!("{whole}.{digits}"),
        None => whole.to_string(),
    };
    let value = || {
        // In units of the last digit, so that nothing is rounded before the end.
        let digits = fraction.unwrap_or_default();
        let scale = 10_u128.pow(digits.len() as u32);
        let part = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let scaled = whole.checked_mul(scale)?.checked_add(part)?.checked_mul(factor?)?;
        u64::try_from(scaled / scale).ok().filter(|bytes| *bytes > 0 && sign.is_empty())
    };
    (quoted(&format!("{sign}{number}{blank}{unit}")), value())
}

fn expiry(input: &mut Input<'_>) -> (String, Option<SystemTime>) {
    let years = [1970, 1969, 2000, 2024, 2027, 2100, 9999, 1600];
    let (what, day_of) = (input.byte(), input.number());
    let year = match what & 8 {
        0 => years[usize::from(what & 7)],
        _ => u32::from(input.number()) % 10_000,
    };
    let (month, day) = (u32::from(day_of) % 14, u32::from(day_of) / 14 % 33);
    let date = format!("{year:04}-{month:02}-{day:02}");
    let midnight = days_before(year, month, day).map(|days| days * 86_400);
    let (text, seconds) = if what & 16 == 0 {
        (date, midnight.map(|seconds| seconds + 86_400))
    } else {
        let (clock, part, valid) = time(input);
        let (zone, behind) = zone(input, what >> 6);
        let seconds = midnight.filter(|_| valid).zip(behind);
        (format!("{date}T{clock}{zone}"), seconds.map(|(day, behind)| day + part + behind))
    };
    let since_1970 = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let moment = since_1970.map(|s| SystemTime::UNIX_EPOCH + Duration::from_secs(s));
    (if what & 32 == 0 { text } else { quoted(&text) }, moment)
}

/// A time of day, its seconds, and whether there is one.
fn time(input: &mut Input<'_>) -> (String, i64, bool) {
    let number = u32::from(input.number());
    let (hour, minute, second) = (number % 25, number / 25 % 61, number / 1525 % 60);
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    (format!("{hour:02}:{minute:02}:{second:02}"), seconds, hour < 24 && minute < 60)
}

/// An offset, and by how many seconds the clock there is behind. None: nobody can say.
fn zone(input: &mut Input<'_>, what: u8) -> (String, Option<i64>) {
    let (hours, minutes) = (input.byte() % 13, input.byte() % 60);
    let by = i64::from(hours) * 3600 + i64::from(minutes) * 60;
    match what {
        0 => ("Z".to_owned(), Some(0)),
        1 => (format!("+{hours:02}:{minutes:02}"), Some(-by)),
        2 => (format!("-{hours:02}:{minutes:02}"), Some(by)),
        _ => (String::new(), None),
    }
}

const fn is_leap(year: u32) -> bool {
    year.is_multiple_of(400) || (year.is_multiple_of(4) && !year.is_multiple_of(100))
}

/// Days of each month.
pub const fn month_lengths(year: u32) -> [u32; 12] {
    let february = if is_leap(year) { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

/// Days of a year.
pub const fn year_length(year: u32) -> u32 {
    if is_leap(year) { 366 } else { 365 }
}

/// Days from 1970-01-01, counted year by year and month by month. None: there is no such day.
fn days_before(year: u32, month: u32, day: u32) -> Option<i64> {
    let months = month_lengths(year);
    let length = *months.get(month.checked_sub(1)? as usize)?;
    if !(1..=length).contains(&day) {
        return None;
    }
    let of = |year: u32| i64::from(year_length(year));
    let years: i64 = match year < 1970 {
        true => -(year..1970).map(of).sum::<i64>(),
        false => (1970..year).map(of).sum(),
    };
    let before: u32 = months[..month as usize - 1].iter().sum();
    Some(years + i64::from(before + day - 1))
}
