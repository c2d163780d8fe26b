//! `ropewalk status`: the activity of the running commands of this machine.

use clap::Args;
use ropewalk_apps::observe::{LinkStatus, Status, TunnelFigures, clock};
use serde::Serialize;

use super::transfer::counted;
use crate::console::width;
use crate::failure::Failure;
use crate::live::running;
use crate::output;
use crate::printer::{percent, rate, size, time, time_or_dash};
use crate::table::Table;

/// Events that are shown for each command.
const EVENTS: usize = 5;

/// Arguments of `status`.
#[derive(Debug, Args)]
#[command(
    after_help = "Shows each running send, recv, bench, proxy and tunnel of this user; for root, also those of services. `ropewalk top`\n\
    shows the same and keeps it up to date.\n\n\
    Examples:\n  \
    ropewalk status\n  \
    ropewalk status --json"
)]
pub struct StatusArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    commands: Vec<Status>,
}

/// Prints the status of all running commands.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &StatusArgs) -> Result<(), Failure> {
    print(running()?, args.json, "no send, recv, bench, proxy or tunnel is running\n")
}

/// Prints the status of these commands; `none` if there is none.
///
/// # Errors
/// Stdout cannot be written.
pub fn print(commands: Vec<Status>, json: bool, none: &str) -> Result<(), Failure> {
    if json {
        return output::print_json(&Document { schema: "ropewalk.running/1", commands });
    }
    if commands.is_empty() {
        return output::print(none);
    }
    let texts: Vec<String> = commands.iter().map(text).collect();
    output::print(&texts.join("\n"))
}

fn text(status: &Status) -> String {
    let Status { command, pid, .. } = status;
    let peers = counted(status.associations.len() as u64, "association", "associations");
    let mut text =
        format!("{command} (pid {pid}), running for {}: {peers}\n", time(status.uptime_s));
    if let Some(transfer) = status.transfer {
        text.push_str(&format!(
            "{} of {}, {} of {}\n",
            counted(transfer.files_done, "file", "files"),
            transfer.files,
            size(transfer.placed_bytes as f64),
            size(transfer.bytes as f64),
        ));
    }
    text.extend(status.tunnel.as_ref().map(tunnel));
    if !status.links.is_empty() {
        text.push_str(&links(&status.links));
    }
    let events = &status.events[status.events.len().saturating_sub(EVENTS)..];
    for event in events {
        let peer = if event.peer.is_empty() { String::new() } else { format!("{}: ", event.peer) };
        text.push_str(&format!("{} {peer}{}\n", clock(event.time_s), event.text));
    }
    text
}

fn tunnel(tunnel: &TunnelFigures) -> String {
    let addresses = match tunnel.addresses.join(" and ") {
        none if none.is_empty() => "no address yet".to_owned(),
        some => some,
    };
    let mut text = format!(
        "{}: {addresses}; sent {} packets, {}; received {} packets, {}\n",
        tunnel.interface,
        tunnel.sent_packets,
        size(tunnel.sent_bytes as f64),
        tunnel.received_packets,
        size(tunnel.received_bytes as f64),
    );
    let refused = tunnel.refused.iter().filter(|refused| refused.packets > 0);
    let refused: Vec<String> = refused.map(|it| format!("{} {}", it.packets, it.reason)).collect();
    if !refused.is_empty() {
        text.push_str(&format!("packets not carried: {}\n", refused.join(", ")));
    }
    if !tunnel.volumes.is_empty() {
        let mut table = Table::new(&["client", "this month", "of"]);
        for volume in &tunnel.volumes {
            let (used, quota) = (volume.used_bytes as f64, volume.quota_bytes as f64);
            table.row(vec![volume.client.clone(), size(used), size(quota)]);
        }
        text.push_str(&table.text(width()));
    }
    if !tunnel.caps.is_empty() {
        let mut table = Table::new(&["cap of link", "this month", "of"]);
        for cap in &tunnel.caps {
            let (used, most) = (cap.used_bytes as f64, cap.cap_bytes as f64);
            table.row(vec![cap.link.clone(), size(used), size(most)]);
        }
        text.push_str(&table.text(width()));
    }
    text
}

fn links(links: &[LinkStatus]) -> String {
    // Only tunnels have rules about the use of links.
    let has_rules = links.iter().any(|link| link.usage != "always");
    let usage = has_rules.then_some("use");
    let mut names = vec!["link", "peer", "state"];
    names.extend(usage.into_iter().chain(["up", "down", "share", "RTT", "loss", "queue"]));
    let mut table = Table::new(&names);
    for link in links {
        let mut row = vec![link.name().to_owned(), link.peer.clone(), link.state.clone()];
        row.extend(has_rules.then(|| link.usage.clone()));
        row.extend([
            rate(link.up_bps),
            rate(link.down_bps),
            percent(link.share),
            time_or_dash(link.rtt_s),
            link.loss.map_or_else(|| "-".to_owned(), percent),
            time(link.queue_s),
        ]);
        table.row(row);
    }
    table.text(width())
}
