//! The text that iperf3 prints without `--json`.

use super::{Protocol, Test, USUAL_MSS, Way};

/// A line of figures: `[  5][TX-C]   0.00-2.00   sec  4.88 MBytes  20.4 Mbits/sec    1             sender`.
struct Figures<'a> {
    /// The sum of several streams.
    is_sum: bool,
    /// The data comes from the server. Only `--bidir` has roles.
    down: Option<bool>,
    seconds: f64,
    bytes: f64,
    bps: f64,
    /// What follows the rate.
    rest: Vec<&'a str>,
}

/// Reads the text of a client or of a server.
pub(super) fn read(text: &str) -> Result<Test, String> {
    let Some((intervals, summary)) = parts(text)? else {
        return Err(
            "it has neither JSON nor a summary of iperf3, whose heading begins with `[ ID]`"
                .to_owned(),
        );
    };
    let is_reverse = text.contains("Reverse mode, remote host");
    let is_server = text.contains("Accepted connection from");
    let is_udp = summary.contains("Total Datagrams");
    let figures = |part| str::lines(part).filter_map(figures).collect::<Vec<Figures<'_>>>();
    let (intervals, totals) = (figures(intervals), figures(summary));
    let mut ways = Vec::new();
    for role in [None, Some(false), Some(true)] {
        let totals = of_all_streams(&totals, role);
        if totals.is_empty() {
            continue;
        }
        let is_sender = |line: &&Figures<'_>| line.rest.last() == Some(&"sender");
        // A server reports only its own side.
        let down = role.unwrap_or(is_reverse || (is_server && totals.iter().all(is_sender)));
        let rates = of_all_streams(&intervals, role).into_iter().filter(|line| line.seconds > 0.5);
        ways.push(Way {
            down,
            rates_bps: rates.map(|line| line.bps).collect(),
            ..way(&totals, is_udp)
        });
    }
    if ways.is_empty() {
        return Err("its summary has no figures".to_owned());
    }
    let counted =
        |line: &Figures<'_>| Some(line.bytes / line.datagrams()?.1).filter(|size| size.is_finite());
    let block = totals.iter().filter_map(counted).find(|size| *size >= 1.0);
    let protocol = if is_udp {
        Protocol::Udp { block: block.unwrap_or(USUAL_MSS) }
    } else {
        // `--verbose` prints `TCP MSS: 1448 (default)`.
        let mss =
            text.split_once("TCP MSS: ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        Protocol::Tcp { mss, congestion: None }
    };
    Ok(Test { protocol, ways })
}

/// The lines before and after the heading of the summary, which follows a separator.
fn parts(text: &str) -> Result<Option<(&str, &str)>, String> {
    let (mut separated, mut found, mut place) = (false, Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        if line.contains("[ ID]") {
            if separated {
                found.push(place);
            }
            separated = false;
        } else if line.contains("- - - -") {
            separated = true;
        } else if figures(line).is_some() {
            separated = false;
        }
        place += line.len();
    }
    match found[..] {
        [] => Ok(None),
        [place] => Ok(Some(text.split_at(place))),
        _ => Err(format!("it has {} tests: give the text of one", found.len())),
    }
}

/// The lines of all streams together in this direction: those of the sum, if there are several.
fn of_all_streams<'a>(lines: &'a [Figures<'a>], role: Option<bool>) -> Vec<&'a Figures<'a>> {
    let lines =
        || lines.iter().filter(|line| line.down == role && !line.rest.contains(&"(omitted)"));
    let has_sum = lines().any(|line| line.is_sum);
    lines().filter(|line| line.is_sum == has_sum).collect()
}

/// The totals of a direction. Before UDP's receiver had a line (3.1), there is one line of UDP without a side: the sender's
/// rate, and the receiver's losses.
fn way(totals: &[&Figures<'_>], is_udp: bool) -> Way {
    let of = |side: &str| totals.iter().find(|line| line.rest.last() == Some(&side));
    let (sent, received) = (of("sender"), of("receiver"));
    let counts = received.or(totals.first());
    let datagrams = counts.and_then(|line| line.datagrams());
    let numbers =
        |line: &&&Figures<'_>| line.rest.first().and_then(|word| word.parse::<f64>().ok());
    Way {
        seconds: counts.map_or(0.0, |line| line.seconds),
        sent_bps: sent.or(totals.first().filter(|_| received.is_none())).map(|line| line.bps),
        received_bps: received.map(|line| line.bps),
        retransmissions: sent.as_ref().and_then(numbers).filter(|_| !is_udp),
        lost: datagrams.map(|(lost, _)| lost),
        packets: datagrams.map(|(_, all)| all),
        jitter_ms: counts.as_ref().and_then(numbers).filter(|_| is_udp),
        ..Way::default()
    }
}

impl Figures<'_> {
    /// Lost datagrams and all, from `0/153`.
    fn datagrams(&self) -> Option<(f64, f64)> {
        let pairs = self.rest.iter().filter_map(|word| word.split_once('/'));
        pairs.filter_map(|(lost, all)| Some((lost.parse().ok()?, all.parse().ok()?))).next()
    }
}

fn figures(line: &str) -> Option<Figures<'_>> {
    // `--timestamps` and `--title` precede the bracket.
    let line = &line[line.find("[ ").or_else(|| line.find("[S")).or_else(|| line.find('['))?..];
    let (id, rest) = line[1..].split_once(']')?;
    let (role, rest) =
        rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).unwrap_or(("", rest));
    let down = match role {
        "" => None,
        "TX-C" | "RX-S" => Some(false),
        "RX-C" | "TX-S" => Some(true),
        _ => return None,
    };
    let mut words = rest.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let seconds = end.parse::<f64>().ok()? - start.parse::<f64>().ok()?;
    words.next().filter(|word| *word == "sec")?;
    let mut quantity = || Some((words.next()?.parse::<f64>().ok()?, words.next()?));
    let (bytes, unit) = quantity()?;
    let bytes = bytes * factor(unit.strip_suffix("Bytes")?, 1024.0)?;
    let (rate, unit) = quantity()?;
    let unit = unit.strip_suffix("/sec")?;
    let bps = match unit.strip_suffix("bits") {
        Some(prefix) => rate * factor(prefix, 1000.0)?,
        None => rate * 8.0 * factor(unit.strip_suffix("Bytes")?, 1024.0)?,
    };
    Some(Figures { is_sum: id == "SUM", down, seconds, bytes, bps, rest: words.collect() })
}

fn factor(prefix: &str, step: f64) -> Option<f64> {
    let power = ["", "K", "M", "G", "T"].iter().position(|known| *known == prefix)?;
    Some(step.powi(power as i32))
}
