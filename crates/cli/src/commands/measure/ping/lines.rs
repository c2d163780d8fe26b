//! The lines that ping and fping print.

/// Round trip that `time<1ms` of Windows stands for: its upper bound, seconds.
const LEAST_OF_WINDOWS_S: f64 = 1e-3;

/// The meaning of a line.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    /// Iputils, BSD, macOS and BusyBox: the beginning of a run.
    Header,
    /// The same: a probe with its 16-bit number, and its round trip if it was answered, seconds. A copy is a second
    /// answer.
    Numbered {
        number: u64,
        rtt_s: Option<f64>,
        copy: bool,
    },
    /// Windows: the beginning of a run, or its statistics.
    WindowsHeader,
    /// Windows: a probe and its round trip, seconds.
    Windows(Option<f64>),
    /// fping: a probe.
    Fping {
        host: &'a str,
        number: u64,
        rtt_s: Option<f64>,
    },
    /// fping -C: all probes of a host.
    FpingTimes {
        host: &'a str,
        times: Vec<Option<f64>>,
    },
    /// The end of a run, with the number of sent packets.
    Summary {
        sent: u64,
    },
    Blank,
    Other,
}

/// Reads a line. `in_windows` is true between the header or an answer of ping of Windows and the next blank line.
pub(super) fn read(line: &str, in_windows: bool) -> Line<'_> {
    let line = line.trim();
    if line.is_empty() {
        return Line::Blank;
    }
    if line.starts_with("PING ") || line.starts_with("PING6(") {
        return Line::Header;
    }
    if let Some(fping) = fping(line) {
        return fping;
    }
    // Translations have other words, but all have `icmp_seq`.
    if let Some(number) =
        line.split_once("seq").and_then(|(_, rest)| leading(rest.strip_prefix(['=', ' '])?))
    {
        return Line::Numbered { number, rtt_s: time(line), copy: line.contains("DUP!") };
    }
    if let Some(sent) = summary(line) {
        return Line::Summary { sent };
    }
    if line.ends_with(':') && line.to_ascii_lowercase().contains("ping") {
        return Line::WindowsHeader;
    }
    if line.contains(':')
        && let Some(rtt_s) = time(line)
    {
        return Line::Windows(Some(rtt_s));
    }
    // In every language, the report of a probe without an answer is a sentence.
    if in_windows && line.ends_with(['.', '。']) {
        return Line::Windows(None);
    }
    Line::Other
}

/// The integer at the beginning of a text.
fn leading(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The round trip in `time=11.5 ms`, `Zeit=12ms`, `temps=11,5 ms` or `time<1ms`, seconds. Statistics have a space after
/// the sign.
fn time(line: &str) -> Option<f64> {
    line.match_indices(['=', '<']).find_map(|(place, sign)| {
        let rest = &line[place + 1..];
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))?;
        let ms: f64 = rest[..end].replace(',', ".").parse().ok()?;
        let has_unit = rest[end..].trim_start().starts_with("ms");
        let seconds = if sign == "<" { LEAST_OF_WINDOWS_S } else { ms * 1e-3 };
        has_unit.then_some(seconds)
    })
}

/// The first number in `100 packets transmitted, 98 received` or in its translation.
fn summary(line: &str) -> Option<u64> {
    let (sent, rest) = line.split_once(", ")?;
    let received = leading(rest)?;
    let sent = sent.split_once(' ')?.0.parse().ok()?;
    (received <= sent).then_some(sent)
}

/// `192.0.2.7 : [0], 64 bytes, 11.5 ms (11.5 avg, 0% loss)`, `192.0.2.7 : [1], timed out (11.5 avg, 50% loss)`, and the
/// summary `192.0.2.7 : 11.5 - 11.7` of -C. Hosts are padded to a common width; -D adds the time in front.
fn fping(line: &str) -> Option<Line<'_>> {
    let (host, rest) = line.split_once(" : ")?;
    let host = host.trim_end().rsplit(' ').next()?;
    if let Some((number, rest)) = rest.strip_prefix('[').and_then(|rest| rest.split_once("], ")) {
        let number = number.parse().ok()?;
        if rest.starts_with("timed out") {
            return Some(Line::Fping { host, number, rtt_s: None });
        }
        let (ms, _) = rest.split_once(" bytes, ")?.1.split_once(" ms")?;
        let rtt_s = Some(ms.parse::<f64>().ok()? * 1e-3);
        return Some(Line::Fping { host, number, rtt_s });
    }
    let one =
        |word: &str| if word == "-" { Some(None) } else { word.parse::<f64>().ok().map(Some) };
    let times: Option<Vec<Option<f64>>> = rest.split_whitespace().map(one).collect();
    let times = times?.into_iter().map(|ms| ms.map(|ms| ms * 1e-3)).collect();
    Some(Line::FpingTimes { host, times })
}
