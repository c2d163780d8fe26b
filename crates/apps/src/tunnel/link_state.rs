//! Whether a link of an association may carry data at all.

use ropewalk_runtime::endpoint::Association;
use ropewalk_runtime::interfaces::{self, InterfaceAddress};

use super::links::LinkLedger;

/// Link rules of the client. `None` allows every link.
pub type Rules<'a> = Option<&'a LinkLedger>;

/// Why no link of an association may carry data. `None` if one may.
pub fn obstacle(association: &Association, rules: Rules<'_>) -> Option<String> {
    let links = association.path_links().into_iter().map(|path| path.link);
    let all = interfaces::list().ok()?;
    obstacle_of(links.filter(|link| !link.is_empty()).collect(), rules, &all)
}

fn obstacle_of(
    mut links: Vec<String>,
    rules: Rules<'_>,
    all: &[InterfaceAddress],
) -> Option<String> {
    links.sort();
    links.dedup();
    let is_up = |link: &str| all.iter().any(|seen| seen.up && seen.is_called(link));
    let why = |link: &String| {
        let forbidden = rules.and_then(|rules| rules.why_forbidden(link));
        forbidden.or_else(|| (!is_up(link)).then(|| format!("{link} is down")))
    };
    let reasons: Vec<String> = links.iter().map(why).collect::<Option<_>>()?;
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_obstacle_unless_one_link_is_up_and_permitted() {
        let file = std::env::temp_dir().join(format!("ropewalk-obstacle-{}", std::process::id()));
        let specs = ["wwan0 cap=10MB/month", "sat0 use=never"];
        let specs = specs.map(|spec| spec.parse().expect("a rule"));
        let ledger = LinkLedger::open(&specs, &file).expect("created");
        let seen = |name: &str, up: bool| InterfaceAddress {
            name: name.to_owned(),
            index: Some(1),
            ip: [192, 0, 2, 1].into(),
            prefix: 24,
            broadcast: None,
            up,
        };
        let all = [seen("wwan0", true), seen("sat0", true), seen("eth0", false)];
        let found = |links: &[&str]| {
            let links = links.iter().map(|link| (*link).to_owned()).collect();
            obstacle_of(links, Some(&ledger), &all)
        };
        assert_eq!(found(&["wwan0", "sat0", "eth0"]), None);
        let expected = "eth0 is down, sat0 has use=never";
        assert_eq!(found(&["sat0", "eth0", "sat0"]).as_deref(), Some(expected));
        ledger.count("wwan0", 10_000_000);
        assert_eq!(found(&["wwan0"]).as_deref(), Some("the cap of wwan0 is used up"));
        assert_eq!(found(&[]), None);
        assert_eq!(obstacle_of(vec!["wwan0".to_owned()], None, &all), None);
        drop(ledger);
        let _ = std::fs::remove_file(&file);
    }
}
