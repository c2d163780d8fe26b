//! Derives round trip and loss of a link from the output of ping and fping.

mod lines;

use std::collections::BTreeSet;
use std::fmt::Write;

use ropewalk_apps::measure::estimate::loss::{self, LossFit};
use ropewalk_apps::measure::estimate::quantile;

use self::lines::Line;
use super::recorded::loss_key;

/// Maximum number of packets that a summary of ping may claim: a week of ten per second.
const PACKETS_LIMIT: u64 = 6_000_000;
/// Number of different sequence numbers of ICMP (RFC 792).
const NUMBERS: u64 = 1 << 16;
/// The answer to a text of another format.
const ACCEPTED: &str = "no line has the time of an answer. Known formats: ping of Linux, BSD, macOS and BusyBox, such as \
                        `icmp_seq=1 ttl=57 time=11.5 ms`; ping of Windows in any language, such as `bytes=32 time=12ms TTL=57`; \
                        fping -l and fping -C, such as `[0], 64 bytes, 11.5 ms`";

/// A record of ping.
#[derive(Debug)]
pub struct Ping {
    /// Round trips of the answers, seconds.
    rtts_s: Vec<f64>,
    /// Losses in the order of sending.
    loss: LossFit,
    reordered: usize,
    runs: usize,
}

/// What one run of ping has printed.
#[derive(Debug, Default)]
struct Run {
    /// The record includes the beginning.
    whole: bool,
    /// Probes in the order of the lines, with the round trips of the answered ones, seconds.
    probes: Vec<(u64, Option<f64>)>,
    /// Numbers of answered probes.
    answered: BTreeSet<u64>,
    newest: Option<u64>,
    /// Number of sent packets according to the summary.
    sent: Option<u64>,
}

/// Parses the output of ping (iputils, BSD, macOS, BusyBox or Windows) or fping, also of several runs in one text.
///
/// # Errors
/// A message that states what is missing.
pub fn ping(text: &str) -> Result<Ping, String> {
    let runs = runs(text);
    let hosts: BTreeSet<&str> = runs.iter().map(|(host, _)| host.as_str()).collect();
    if hosts.len() > 1 {
        let hosts: Vec<&str> = hosts.into_iter().filter(|host| !host.is_empty()).collect();
        return Err(format!("it has several hosts ({}): keep the lines of one", hosts.join(", ")));
    }
    let runs: Vec<Run> = runs.into_iter().map(|(_, run)| run).collect();
    if !runs.iter().any(|run| run.probes.iter().any(|(_, rtt)| rtt.is_some())) {
        return Err(ACCEPTED.to_owned());
    }
    let (mut lost, mut rtts_s, mut reordered) = (Vec::new(), Vec::new(), 0);
    for run in &runs {
        run.append_losses(&mut lost)?;
        rtts_s.extend(run.probes.iter().filter_map(|(_, rtt)| *rtt));
        reordered += run.reordered();
    }
    let loss = loss::fit(&lost).ok_or("no packet was sent")?;
    Ok(Ping { rtts_s, loss, reordered, runs: runs.len() })
}

/// The runs in a text, with the hosts that fping names. A run begins with its header, after the summary of the preceding
/// run, or where an answered number is answered again without being called a duplicate.
fn runs(text: &str) -> Vec<(String, Run)> {
    let mut runs: Vec<(String, Run)> = Vec::new();
    let mut in_windows = false;
    for line in text.lines() {
        let line = lines::read(line, in_windows);
        in_windows = match line {
            Line::Windows(_) | Line::WindowsHeader => true,
            Line::Blank => false,
            _ => in_windows,
        };
        match line {
            Line::Header | Line::WindowsHeader => {
                runs.push((String::new(), Run { whole: true, ..Run::default() }));
            }
            Line::Numbered { number, rtt_s, copy: false } => {
                let run = current(&mut runs, "");
                if run.sent.is_some() || (rtt_s.is_some() && run.has_answer(number)) {
                    runs.push((String::new(), Run::default()));
                }
                current(&mut runs, "").add(number, rtt_s);
            }
            Line::Windows(rtt_s) => current(&mut runs, "").add_next(rtt_s),
            Line::Fping { host, number, rtt_s } => {
                let run = current(&mut runs, host);
                if run.sent.is_some() || (number == 0 && !run.probes.is_empty()) {
                    runs.push((host.to_owned(), Run::default()));
                }
                current(&mut runs, host).probes.push((number, rtt_s));
            }
            Line::FpingTimes { host, times } => {
                let sent = Some(times.len() as u64);
                // The summary of -C repeats the lines of the probes, unless -q leaves those out.
                let open = |(other, run): &&mut (String, Run)| other == host && run.sent.is_none();
                if let Some((_, run)) = runs.iter_mut().rev().find(open) {
                    run.sent = sent;
                } else {
                    let mut run = Run { sent, ..Run::default() };
                    times.into_iter().for_each(|rtt_s| run.add_next(rtt_s));
                    runs.push((host.to_owned(), run));
                }
            }
            Line::Summary { sent } => {
                if let Some((_, run)) = runs.last_mut() {
                    run.sent = Some(sent);
                }
            }
            Line::Numbered { copy: true, .. } | Line::Blank | Line::Other => {}
        }
    }
    runs.retain(|(_, run)| run.has_packets());
    runs
}

/// The present run with this host, or a new one.
fn current<'a>(runs: &'a mut Vec<(String, Run)>, host: &str) -> &'a mut Run {
    let place = runs.iter().rposition(|(other, _)| other == host).unwrap_or_else(|| {
        runs.push((host.to_owned(), Run::default()));
        runs.len() - 1
    });
    &mut runs[place].1
}

impl Run {
    fn has_packets(&self) -> bool {
        !self.probes.is_empty() || self.sent.is_some_and(|sent| sent > 0)
    }

    /// The number that does not wrap of this 16-bit number: the one nearest to the newest. They begin at [`NUMBERS`], so
    /// that a late answer may have a smaller one.
    fn unwrapped(&self, number: u64) -> u64 {
        let near = self.newest.unwrap_or(NUMBERS + number % NUMBERS);
        let step = (number % NUMBERS).wrapping_sub(near % NUMBERS) as u16;
        near.saturating_add_signed(i64::from(step.cast_signed()))
    }

    fn has_answer(&self, number: u64) -> bool {
        self.answered.contains(&self.unwrapped(number))
    }

    fn add(&mut self, number: u64, rtt_s: Option<f64>) {
        let number = self.unwrapped(number);
        self.newest = self.newest.max(Some(number));
        if rtt_s.is_some() {
            self.answered.insert(number);
        }
        self.probes.push((number, rtt_s));
    }

    /// Adds a probe that has no number.
    fn add_next(&mut self, rtt_s: Option<f64>) {
        self.probes.push((self.probes.len() as u64, rtt_s));
    }

    /// Answers that came after those of later probes.
    fn reordered(&self) -> usize {
        let answers = || self.probes.iter().filter(|(_, rtt)| rtt.is_some());
        answers().zip(answers().skip(1)).filter(|(a, b)| b.0 < a.0).count()
    }

    /// Appends for each packet of this run whether it was lost.
    fn append_losses(&self, lost: &mut Vec<bool>) -> Result<(), String> {
        let numbers = || self.probes.iter().map(|(number, _)| *number);
        // BSD numbers from 0, Linux from 1. Probes before the first answer only count as lost if the record includes
        // the beginning.
        let least = numbers().min().unwrap_or(0);
        let first = if self.whole && least > NUMBERS { NUMBERS + 1 } else { least };
        let seen = numbers().max().map_or(0, |last| last - first + 1);
        // The summary also counts losses at the end. In a partial record, it counts packets that the record does not
        // include.
        let summary = self.sent.filter(|_| self.whole || (NUMBERS..=NUMBERS + 1).contains(&least));
        let sent = summary.unwrap_or(0).max(seen);
        if lost.len() as u64 + sent > PACKETS_LIMIT {
            return Err(format!("{sent} packets: more than {PACKETS_LIMIT} are not evaluated"));
        }
        let start = lost.len();
        lost.resize(start + sent as usize, true);
        for (number, _) in self.probes.iter().filter(|(_, rtt)| rtt.is_some()) {
            lost[start + (number - first) as usize] = false;
        }
        Ok(())
    }
}

impl Ping {
    /// Keys of the scenario, with comments.
    pub fn keys(&self) -> String {
        let at = |share| quantile(&self.rtts_s, share) * 1e3;
        let runs =
            if self.runs > 1 { format!("{} runs of ping", self.runs) } else { "ping".into() };
        let mut text = format!(
            "# {runs}, least of {} round trips: median {:.1} ms, 95th percentile {:.1} ms, 99th {:.1} ms; {} came out of \
             order.\nrtt = \"{:.3} ms\"\n",
            self.rtts_s.len(),
            at(0.5),
            at(0.95),
            at(0.99),
            self.reordered,
            at(0.0)
        );
        let loss = &self.loss;
        let _ = writeln!(
            text,
            "# {} of {} without an answer: {:.3} % to {:.3} % with 99 % confidence. The loss may be in either direction.",
            loss.lost,
            loss.sent,
            loss.low * 100.0,
            loss.high * 100.0
        );
        text + &loss_key(loss)
    }
}

#[cfg(test)]
mod tests;
