//! The links of a client: those of `--from`, and the rules of `--link`.

use std::net::IpAddr;

use ropewalk_apps::tunnel::{LinkLedger, LinkSpec};
use ropewalk_runtime::interfaces;
use ropewalk_runtime::system::routes;

use super::INTERFACE_LENGTH;
use super::client::UpArgs;
use crate::console::Console;
use crate::failure::Failure;

/// Refuses names that cannot belong to an interface.
///
/// # Errors
/// [`Failure`].
pub fn check(from: &[String]) -> Result<(), Failure> {
    let is_possible = |name: &str| {
        (1..=INTERFACE_LENGTH).contains(&name.len())
            && !name.contains(|c: char| c == '/' || c.is_whitespace())
    };
    let Some(wrong) = from.iter().find(|one| !is_address(one) && !is_possible(one)) else {
        return Ok(());
    };
    let message = format!("--from {wrong}: neither an address nor the name of an interface");
    let help = "give an address of this machine, or an interface, which has at most 15 characters without spaces";
    Err(Failure::input(message, help))
}

/// The rules of the links.
///
/// # Errors
/// [`Failure`].
pub fn ledger(args: &UpArgs) -> Result<Option<LinkLedger>, Failure> {
    if args.link.is_empty() {
        return Ok(None);
    }
    let specs = LinkSpec::joined(&args.link).map_err(|error| {
        Failure::input(
            format!("--link: {error}"),
            "give each of use=, cap= and cost= once for a link",
        )
    })?;
    let file = args.common.state_directory.join(format!("{}.links", args.common.name()));
    let ledger = LinkLedger::open(&specs, &file).map_err(|error| {
        let message = format!("what links have carried, {}: {error}", file.display());
        Failure::input(message, "--state-directory names a directory that can be written")
    })?;
    Ok(Some(ledger))
}

/// Notes links that this machine does not have at present. One of them may be misspelt.
pub fn note_missing(args: &UpArgs, console: Console) {
    let (Ok(all), Ok(addresses)) = (routes::interfaces(), interfaces::list()) else { return };
    let names: Vec<String> = all.into_iter().map(|interface| interface.name).collect();
    let is_there = |link: &str| match address(link) {
        Some(ip) => ip.is_loopback() || addresses.iter().any(|own| own.ip == ip),
        None => names.iter().any(|name| name == link),
    };
    let rules = args.link.iter().map(|spec| ("--link", &spec.link, "its rule applies"));
    let from = args.from.iter().map(|link| ("--from", link, "it is used"));
    let mut told = Vec::new();
    for (option, link, then) in from.chain(rules) {
        if !is_there(link) && !told.contains(&(option, link)) {
            let there = names.join(", ");
            console.note(format_args!(
                "{option}: {link} is not there now; {then} when it appears; interfaces now: {there}"
            ));
            told.push((option, link));
        }
    }
}

/// Whether it is an address, with or without a port.
fn is_address(text: &str) -> bool {
    address(text).is_some()
}

fn address(text: &str) -> Option<IpAddr> {
    crate::live::numeric(text, 0).map(|address| address.ip())
}
