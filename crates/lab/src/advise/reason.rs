//! The reason for an advice in plain words.

use super::{Choice, Goal, Link};

/// Decrease of the goodput that counts as a cost of a smaller buffer.
const COSTS: f64 = 0.98;

/// The reason in one or two sentences.
pub fn sentence(
    goal: Goal,
    advice: &Choice,
    best_single: &Choice,
    links: &[Link],
    buffers: &[Choice],
) -> String {
    if links.len() == 1 {
        return format!("There is one link. {}", buffer_part(goal, advice, buffers));
    }
    let left: Vec<&Link> = links.iter().filter(|link| !link.used).collect();
    if let [_] = advice.paths[..] {
        let each: Vec<String> = left.iter().map(|link| costs(goal, link)).collect();
        return format!("{} is best alone: {}.", advice.paths[0], each.join("; "));
    }
    let used = links.iter().filter(|link| link.carries());
    let least = used.min_by(|a, b| added(a).total_cmp(&added(b)));
    let mut parts: Vec<String> =
        least.map(|link| adds(goal, link, best_single)).into_iter().collect();
    let idle = links.iter().filter(|link| link.used && !link.carries());
    parts.extend(idle.map(|link| format!("{} is a reserve and carries nothing", link.name)));
    parts.extend(left.iter().map(|link| costs(goal, link)));
    format!("{}. {}", parts.join("; "), buffer_part(goal, advice, buffers))
}

fn added(link: &Link) -> f64 {
    link.adds_bps.map_or(f64::INFINITY, |adds| adds.mean)
}

fn adds(goal: Goal, link: &Link, best_single: &Choice) -> String {
    let gain = link.gain.map_or(1.0, |gain| gain.mean);
    match goal {
        Goal::Throughput => format!(
            "{} adds {}; {} alone carries {}",
            link.name,
            mbit(added(link)),
            best_single.paths.join(" + "),
            mbit(best_single.goodput_bps.mean)
        ),
        Goal::Latency => {
            format!("{} changes the ratio of goodput to delay by {}", link.name, percent(gain))
        }
        Goal::Calls => match link.adds_mos {
            Some(adds) => format!(
                "{} changes the mean opinion score by {:+.2} and the goodput of other flows by {}",
                link.name,
                adds.mean,
                percent(gain)
            ),
            None => format!("{} changes the delay of calls by {}", link.name, percent(1.0 / gain)),
        },
    }
}

fn costs(goal: Goal, link: &Link) -> String {
    let gain = link.gain.map_or(1.0, |gain| gain.mean);
    match goal {
        Goal::Throughput => format!("with {} goodput changes by {}", link.name, percent(gain)),
        Goal::Latency => {
            format!("with {} the ratio of goodput to delay changes by {}", link.name, percent(gain))
        }
        Goal::Calls => match link.adds_mos {
            Some(adds) => format!(
                "with {} the mean opinion score changes by {:+.2} and the goodput of other flows by {}",
                link.name,
                adds.mean,
                percent(gain)
            ),
            None => {
                format!("with {} the delay of calls changes by {}", link.name, percent(1.0 / gain))
            }
        },
    }
}

/// Text about the largest buffer tried that reduces the goodput.
fn buffer_part(goal: Goal, advice: &Choice, buffers: &[Choice]) -> String {
    let smaller =
        buffers.iter().rev().filter(|one| one.receive_buffer_bytes < advice.receive_buffer_bytes);
    let found = smaller.map(|one| (one, one.ratio.mean)).find(|(_, ratio)| *ratio < COSTS);
    match found {
        Some((one, _)) if goal == Goal::Throughput => format!(
            "With {} of receive buffer instead of {} it is {} instead of {}.",
            kilobytes(one.receive_buffer_bytes),
            kilobytes(advice.receive_buffer_bytes),
            mbit(one.goodput_bps.mean),
            mbit(advice.goodput_bps.mean)
        ),
        Some((one, ratio)) => {
            let (figure, factor) = match goal {
                Goal::Calls if advice.mos.is_some() => ("goodput of other flows", ratio),
                Goal::Calls => ("delay of calls", 1.0 / ratio),
                Goal::Throughput | Goal::Latency => ("ratio of goodput to delay", ratio),
            };
            format!(
                "With {} of receive buffer instead of {} the {figure} changes by {}.",
                kilobytes(one.receive_buffer_bytes),
                kilobytes(advice.receive_buffer_bytes),
                percent(factor)
            )
        }
        None => "No smaller receive buffer that was tried costs 2 %.".to_owned(),
    }
}

fn mbit(bps: f64) -> String {
    format!("{:.3} Mbit/s", bps * 1e-6)
}

fn kilobytes(bytes: u64) -> String {
    format!("{} kB", (bytes as f64 * 1e-3).round())
}

/// A change by a factor.
fn percent(factor: f64) -> String {
    format!("{:+.1} %", (factor - 1.0) * 100.0)
}
