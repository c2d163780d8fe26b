//! When the links of a tunnel carry data: uses, costs and caps.
//!
//! The end that has the links counts their traffic, and sends its peer the use of each path in a message
//! ([`encode_uses`]), because both directions count.

use std::fmt;
use std::str::FromStr;

/// When a link carries data. Earlier uses are preferred.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum LinkUse {
    /// Always.
    #[default]
    Always,
    /// Only traffic that exceeds the other links.
    WhenNeeded,
    /// Only while no link of the earlier uses works.
    Backup,
    /// Never, even if no other link works.
    Never,
}

impl LinkUse {
    /// All uses with their names.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("always", Self::Always),
        ("when-needed", Self::WhenNeeded),
        ("backup", Self::Backup),
        ("never", Self::Never),
    ];
}

impl fmt::Display for LinkUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMED[*self as usize].0)
    }
}

impl FromStr for LinkUse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMED.iter().find(|(name, _)| *name == text);
        found.map(|(_, usage)| *usage).ok_or_else(|| {
            let names = Self::NAMED.map(|(name, _)| name).join(", ");
            format!("`{text}` is no use of a link: {names} are")
        })
    }
}

/// Configuration of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkRule {
    /// When it carries data.
    pub usage: LinkUse,
    /// Price of a byte, on any scale. Among several links that are used only when needed, or as backups, the cheapest
    /// come first.
    pub cost: u32,
    /// Maximum number of bytes that the link carries in a period, in both directions and with all headers.
    pub cap: Option<u64>,
}

impl Default for LinkRule {
    fn default() -> Self {
        Self { usage: LinkUse::Always, cost: 1, cap: None }
    }
}

impl LinkRule {
    /// Minimum cap, bytes. The packets in flight would exceed a smaller one.
    pub const LEAST_CAP: u64 = 1_000_000;

    /// Number of bytes from which on the link is used as a backup: nine tenths of the cap.
    const fn near(cap: u64) -> u64 {
        cap - cap / 10
    }

    /// Number of bytes from which on the link is never used. One hundredth of the cap, at most 1 MB, is left for the
    /// packets that are in flight at that time.
    const fn full(cap: u64) -> u64 {
        let reserve = cap / 100;
        cap - if reserve < 1_000_000 { reserve } else { 1_000_000 }
    }

    /// The use of the link once it has carried `carried` bytes in this period.
    pub fn usage_at(&self, carried: u64) -> LinkUse {
        match self.cap {
            Some(cap) if carried >= Self::full(cap) => LinkUse::Never,
            Some(cap) if carried >= Self::near(cap) => self.usage.max(LinkUse::Backup),
            _ => self.usage,
        }
    }
}

/// The use and the cost of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathRule {
    /// When it carries data.
    pub usage: LinkUse,
    /// Price of a byte.
    pub cost: u32,
}

/// Identifies the message and its version.
const USES: u8 = 1;
/// Maximum number of paths of an association.
const PATHS_MAX: usize = 16;

/// Encodes the message with the rules of all paths, in the order of their numbers:
///
/// ```text
/// 1 (1)   for each path: use, 0 to 3 (1)  cost (4)
/// ```
pub fn encode_uses(rules: &[PathRule]) -> Vec<u8> {
    let mut out = vec![USES];
    for rule in rules.iter().take(PATHS_MAX) {
        out.push(rule.usage as u8);
        out.extend(rule.cost.to_be_bytes());
    }
    out
}

/// The rules in a message. `None` if it is malformed.
pub fn decode_uses(message: &[u8]) -> Option<Vec<PathRule>> {
    let (records, rest) = message.strip_prefix(&[USES])?.as_chunks::<5>();
    if !rest.is_empty() || records.len() > PATHS_MAX {
        return None;
    }
    let rule = |[usage, cost @ ..]: &[u8; 5]| {
        let (_, usage) = LinkUse::NAMED.get(usize::from(*usage))?;
        Some(PathRule { usage: *usage, cost: u32::from_be_bytes(*cost) })
    };
    records.iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_its_cap_a_link_becomes_a_backup_and_before_it_is_reached_it_is_never_used() {
        let rule = |usage| LinkRule { usage, cost: 1, cap: Some(100_000_000) };
        for (usage, carried, expected) in [
            (LinkUse::Always, 89_999_999, LinkUse::Always),
            (LinkUse::Always, 90_000_000, LinkUse::Backup),
            (LinkUse::WhenNeeded, 90_000_000, LinkUse::Backup),
            (LinkUse::Never, 90_000_000, LinkUse::Never),
            (LinkUse::Backup, 98_999_999, LinkUse::Backup),
            (LinkUse::Backup, 99_000_000, LinkUse::Never),
            (LinkUse::Always, u64::MAX, LinkUse::Never),
        ] {
            assert_eq!(rule(usage).usage_at(carried), expected, "{usage} at {carried}");
        }
        let large = LinkRule { cap: Some(20_000_000_000), ..LinkRule::default() };
        assert_eq!(large.usage_at(19_998_999_999), LinkUse::Backup, "1 MB is left, not 200 MB");
        assert_eq!(LinkRule::default().usage_at(u64::MAX), LinkUse::Always);
    }

    #[test]
    fn the_message_names_all_paths_and_a_malformed_one_is_refused() {
        let rules = [
            PathRule { usage: LinkUse::Always, cost: 1 },
            PathRule { usage: LinkUse::Never, cost: u32::MAX },
        ];
        let message = encode_uses(&rules);
        assert_eq!(message, [1, 0, 0, 0, 0, 1, 3, 255, 255, 255, 255]);
        assert_eq!(decode_uses(&message).as_deref(), Some(&rules[..]));
        for wrong in [&message[..10], &[2, 0, 0, 0, 0, 1], &[1, 4, 0, 0, 0, 1], &[]] {
            assert_eq!(decode_uses(wrong), None, "{wrong:?}");
        }
        let many = encode_uses(&[rules[0]; 17]);
        assert_eq!(decode_uses(&many).map(|rules| rules.len()), Some(16));
        assert_eq!(decode_uses(&[1; 1 + 17 * 5]), None, "more paths than an association has");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for (name, usage) in LinkUse::NAMED {
            assert_eq!(name.parse(), Ok(usage));
            assert_eq!(usage.to_string(), name);
        }
        let error = "sometimes".parse::<LinkUse>().expect_err("no use");
        assert!(error.contains("when-needed"), "{error}");
    }
}
