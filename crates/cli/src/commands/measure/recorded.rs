//! Derives a link from records of other programs: ping's output, and iperf3's JSON.

use std::fmt::Write;

use ropewalk_apps::measure::estimate::loss::{self, LossFit};
use ropewalk_apps::measure::estimate::{LossModel, quantile};
use serde::Deserialize;

use super::comparison::{Carried, CarriedBy};

/// Maximum number of packets that a summary of ping may claim: a week of ten per second.
const PACKETS_LIMIT: u64 = 6_000_000;
/// The default queue of a scenario, 100 packets of 1500 B, bytes.
const DEFAULT_QUEUE: f64 = 150_000.0;
/// Number of different sequence numbers of ICMP (RFC 792).
const NUMBERS: u64 = 1 << 16;
/// Headers of IPv4 and TCP with timestamps, and of IPv4 and UDP, bytes.
const TCP_HEADERS: f64 = 52.0;
const UDP_HEADERS: f64 = 28.0;
/// Minimum of the maximum segment size (Linux permits 48), and its usual value, that of Ethernet with timestamps,
/// bytes.
const LEAST_MSS: f64 = 48.0;
const USUAL_MSS: f64 = 1448.0;

/// A record of ping.
#[derive(Debug)]
pub struct Ping {
    /// Round trips of the answers, seconds.
    rtts_s: Vec<f64>,
    /// Losses in the order of sending.
    loss: LossFit,
    reordered: usize,
}

/// Parses the output of ping (iputils, BSD, macOS or busybox): lines with `seq=` and `time=`, and the
/// summary.
///
/// # Errors
/// A message that states what is missing.
pub fn ping(text: &str) -> Result<Ping, String> {
    let mut answers: Vec<(u64, f64)> = text.lines().filter_map(answer).collect();
    unwrap_numbers(&mut answers);
    let in_order = answers.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
    answers.sort_by_key(|(number, _)| *number);
    answers.dedup_by_key(|(number, _)| *number);
    let (Some((least, _)), Some((last, _))) = (answers.first(), answers.last()) else {
        return Err("no line has both a sequence number and a time, such as `icmp_seq=1 ttl=57 time=11.5 ms`".into());
    };
    // BSD numbers from 0, Linux from 1. Probes before the first answer only count as lost if the record includes
    // the beginning.
    let whole = text.lines().any(|line| line.trim_start().starts_with("PING "));
    let first = if whole { (*least).min(NUMBERS + 1) } else { *least };
    let seen = last - first + 1;
    // The summary also counts losses at the end. In a partial record, it counts packets that the record does not
    // include.
    let summary = text.lines().find_map(transmitted).filter(|_| whole || least - NUMBERS <= 1);
    let sent = summary.unwrap_or(0).max(seen);
    if sent > PACKETS_LIMIT {
        return Err(format!("{sent} packets: more than {PACKETS_LIMIT} are not evaluated"));
    }
    let mut lost = vec![true; sent as usize];
    for (number, _) in &answers {
        lost[(number - first) as usize] = false;
    }
    let loss = loss::fit(&lost).ok_or("no packet was sent")?;
    let rtts_s = answers.iter().map(|(_, rtt)| *rtt).collect();
    Ok(Ping { rtts_s, loss, reordered: in_order })
}

/// Replaces the 16-bit numbers, in the order of the answers, by ones that do not wrap: each becomes the one nearest
/// to the preceding number. They begin at [`NUMBERS`], so that a late answer may have a smaller one.
fn unwrap_numbers(answers: &mut [(u64, f64)]) {
    let mut newest: Option<u64> = None;
    for (number, _) in answers {
        let near = newest.unwrap_or(NUMBERS + *number % NUMBERS);
        let step = (*number % NUMBERS).wrapping_sub(near % NUMBERS) as u16;
        *number = near.saturating_add_signed(i64::from(step.cast_signed()));
        newest = Some(near.max(*number));
    }
}

/// Number and round trip of an answer: `64 bytes from 192.0.2.7: icmp_seq=1 ttl=57 time=11.5 ms`.
fn answer(line: &str) -> Option<(u64, f64)> {
    let value = |key: &str| {
        let rest = line.split_once(key)?.1;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        Some(&rest[..end])
    };
    let ms: f64 = value("time=")?.parse().ok()?;
    Some((value("seq=")?.parse().ok()?, ms * 1e-3))
}

/// The number in `100 packets transmitted, 98 received`.
fn transmitted(line: &str) -> Option<u64> {
    line.split_once(" packets transmitted")?.0.trim().parse().ok()
}

impl Ping {
    /// Keys of the scenario, with comments.
    pub fn keys(&self) -> String {
        let at = |share| quantile(&self.rtts_s, share) * 1e3;
        let mut text = format!(
            "# ping, least of {} round trips: median {:.1} ms, 95th percentile {:.1} ms, 99th {:.1} ms; {} came out of \
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

/// A queue with a known lower bound. It becomes a key only if it exceeds the default of scenarios: a queue of
/// exactly the bound would drop packets that the real one has kept.
pub fn queue_bound(suffix: &str, bytes: f64, rise_s: f64) -> String {
    let rise = rise_s * 1e3;
    if bytes > DEFAULT_QUEUE {
        return format!(
            "# Lower bound: the round trip rose by {rise:.1} ms.\nqueue{suffix} = \"{bytes:.0} B\"\n"
        );
    }
    format!(
        "# queue{suffix}: not known, at least {bytes:.0} B, because the round trip rose by {rise:.1} ms. The default of \
         100 packets applies.\n"
    )
}

/// The key `loss` of a path, with the evidence for bursts before it.
pub fn loss_key(loss: &LossFit) -> String {
    match loss.model {
        LossModel::Bernoulli { rate } => format!("loss = {rate:.6}\n"),
        LossModel::GilbertElliott { p, r, bad } => format!(
            "# Bursts of {:.2} on average; log-likelihood {:.1} above that of independent losses.\n\
             loss = {{ model = \"gilbert-elliott\", p = {p:.6}, r = {r:.6}, bad = {bad:.4} }}\n",
            loss.burst_mean, loss.log_likelihood_gain
        ),
    }
}

#[derive(Debug, Deserialize)]
struct Iperf3 {
    start: Option<Start>,
    #[serde(default)]
    intervals: Vec<Interval>,
    end: Option<End>,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Start {
    test_start: Option<TestStart>,
    tcp_mss_default: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct TestStart {
    protocol: String,
    #[serde(default)]
    blksize: f64,
    #[serde(default)]
    reverse: u8,
}

#[derive(Debug, Deserialize)]
struct Interval {
    sum: Sum,
}

#[derive(Debug, Default, Deserialize)]
struct Sum {
    #[serde(default)]
    bits_per_second: f64,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    omitted: bool,
    /// Negative if packets of an earlier interval came late.
    retransmits: Option<f64>,
    lost_packets: Option<f64>,
    packets: Option<f64>,
    jitter_ms: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct End {
    #[serde(default)]
    streams: Vec<Stream>,
    sum: Option<Sum>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    sender_tcp_congestion: Option<String>,
}

/// A record of iperf3.
#[derive(Debug)]
pub struct RecordedTest {
    /// Keys of the scenario, with comments.
    pub keys: String,
    /// Data carried by TCP.
    pub carried: Option<Carried>,
}

#[derive(Debug, Deserialize)]
struct Stream {
    sender: Option<Sender>,
}

#[derive(Debug, Deserialize)]
struct Sender {
    /// Microseconds.
    max_rtt: Option<f64>,
    min_rtt: Option<f64>,
}

/// Parses iperf3's JSON. The keys include the round trip only if `with_rtt`.
///
/// # Errors
/// A message if the record is invalid.
pub fn iperf3(text: &str, with_rtt: bool) -> Result<RecordedTest, String> {
    // Some versions print warnings before the document (esnet/iperf, 3.7 to 3.9) or text after it.
    let document = text.find('{').map_or(text, |start| &text[start..]);
    let mut documents = serde_json::Deserializer::from_str(document).into_iter::<Iperf3>();
    let found = documents.next().ok_or("it is empty")?;
    let found = found.map_err(|error| format!("it is no JSON document of iperf3 ({error})"))?;
    if let Some(error) = found.error {
        return Err(format!("iperf3 has failed: {error}"));
    }
    let test = found.start.as_ref().and_then(|start| start.test_start.as_ref());
    let (Some(test), Some(end)) = (test, &found.end) else {
        return Err(
            "no `start.test_start` or no `end`: is it the output of `iperf3 --json`?".into()
        );
    };
    let suffix = if test.reverse == 0 { "" } else { "_down" };
    let (mut keys, carried) = match test.protocol.as_str() {
        "TCP" => {
            let mss = found.start.as_ref().and_then(|start| start.tcp_mss_default);
            // A server writes 0, because it does not know the size of the segments that it
            // receives.
            let mss = mss.filter(|mss| *mss >= LEAST_MSS).unwrap_or(USUAL_MSS);
            let (keys, carried) = tcp(end, mss, suffix, with_rtt)?;
            (keys, Some(carried))
        }
        "UDP" => (udp(end, test.blksize.max(1.0), suffix)?, None),
        other => return Err(format!("protocol {other}: only TCP and UDP are evaluated")),
    };
    let rates = found
        .intervals
        .iter()
        .filter(|interval| !interval.sum.omitted && interval.sum.seconds > 0.5);
    let rates: Vec<f64> = rates.map(|interval| interval.sum.bits_per_second).collect();
    if rates.len() >= 2 {
        let _ = writeln!(
            keys,
            "# The rates of {} intervals were between {:.3} and {:.3} Mbit/s of user data.",
            rates.len(),
            quantile(&rates, 0.0) / 1e6,
            quantile(&rates, 1.0) / 1e6
        );
    }
    Ok(RecordedTest { keys, carried })
}

fn tcp(end: &End, mss: f64, suffix: &str, with_rtt: bool) -> Result<(String, Carried), String> {
    let received = end.sum_received.as_ref().ok_or("no `end.sum_received`")?;
    let rate = positive(received.bits_per_second)? * (mss + TCP_HEADERS) / mss;
    let by = CarriedBy::Tcp(end.sender_tcp_congestion.clone());
    let carried = Carried { bps: rate, seconds: received.seconds, by };
    let again = end.sum_sent.as_ref().and_then(|sent| sent.retransmits);
    let again = again.map_or_else(String::new, |count| format!("; {count} retransmissions"));
    let mut text = format!(
        "# iperf3, TCP for {:.1} s{again}. Headers of {TCP_HEADERS} B are added to each segment of {mss} B. TCP may have \
         used less than the link carries.\nrate{suffix} = \"{:.3} Mbit/s\"\n",
        received.seconds,
        rate / 1e6
    );
    let senders = || end.streams.iter().filter_map(|stream| stream.sender.as_ref());
    let least = senders().filter_map(|sender| sender.min_rtt).reduce(f64::min);
    let most = senders().filter_map(|sender| sender.max_rtt).reduce(f64::max);
    let (Some(least), Some(most)) = (least.filter(|rtt| *rtt > 0.0), most) else {
        return Ok((text, carried));
    };
    if with_rtt {
        let _ = writeln!(
            text,
            "# Least round trip of TCP, smoothed and under load.\nrtt = \"{:.3} ms\"",
            least * 1e-3
        );
    }
    let queue = (most - least).max(0.0) * 1e-6 * rate / 8.0;
    text += &queue_bound(suffix, queue, (most - least) * 1e-6);
    Ok((text, carried))
}

fn udp(end: &End, block: f64, suffix: &str) -> Result<String, String> {
    let sum = end.sum_received.as_ref().or(end.sum.as_ref()).ok_or("no `end.sum`")?;
    let totals = end.sum.as_ref().unwrap_or(sum);
    let lost = totals.lost_packets.unwrap_or(0.0).max(0.0);
    let packets = totals.packets.unwrap_or(0.0);
    if packets <= 0.0 || lost > packets {
        return Err(format!("{lost} of {packets} packets lost: nothing to evaluate"));
    }
    let sent = end.sum_sent.as_ref().unwrap_or(totals).bits_per_second;
    let share = lost / packets;
    let rate = positive(sent)? * (1.0 - share) * (block + UDP_HEADERS) / block;
    Ok(format!(
        "# iperf3, UDP for {:.1} s: {:.3} Mbit/s were sent, {lost} of {packets} packets lost, jitter {:.2} ms. If hardly any \
         were lost,\n# the link was not full, and the rate is a lower bound.\nrate{suffix} = \"{:.3} Mbit/s\"\n",
        totals.seconds,
        sent / 1e6,
        totals.jitter_ms.unwrap_or(0.0),
        rate / 1e6
    ))
}

fn positive(rate: f64) -> Result<f64, String> {
    if rate.is_finite() && rate > 0.0 { Ok(rate) } else { Err(format!("a rate of {rate} bit/s")) }
}

#[cfg(test)]
mod tests {
    use ropewalk_scenario::Scenario;

    use super::*;

    fn loads(keys: &str) {
        let text = format!("[[path]]\n{keys}");
        Scenario::parse(&text, "links").unwrap_or_else(|error| panic!("{error}\n{text}"));
    }

    #[test]
    fn the_output_of_ping_gives_round_trip_and_loss() {
        let linux = "PING 192.0.2.7 (192.0.2.7) 56(84) bytes of data.\n\
                     64 bytes from 192.0.2.7: icmp_seq=1 ttl=57 time=11.5 ms\n\
                     64 bytes from 192.0.2.7: icmp_seq=4 ttl=57 time=10.5 ms\n\
                     64 bytes from 192.0.2.7: icmp_seq=3 ttl=57 time=19 ms\n\
                     --- 192.0.2.7 ping statistics ---\n\
                     6 packets transmitted, 3 received, 50% packet loss, time 5007ms\n";
        let found = ping(linux).expect("read");
        assert_eq!((found.loss.sent, found.loss.lost, found.reordered), (6, 3, 1));
        let keys = found.keys();
        assert!(keys.contains("rtt = \"10.500 ms\"") && keys.contains("loss = 0.500000"), "{keys}");
        loads(&keys);
        let mac = "64 bytes from 192.0.2.7: icmp_seq=0 ttl=57 time=8.123 ms\n\
                   Request timeout for icmp_seq 1\n\
                   64 bytes from 192.0.2.7: icmp_seq=2 ttl=57 time=9.0 ms\n";
        let found = ping(mac).expect("read");
        assert_eq!((found.loss.sent, found.loss.lost), (3, 1));
        let busybox = "64 bytes from 192.0.2.7: seq=0 ttl=57 time=0.123 ms\n";
        assert_eq!(ping(busybox).expect("read").loss.lost, 0);
    }

    #[test]
    fn numbers_of_ping_wrap_and_a_part_of_a_record_has_no_other_losses() {
        let line = |number: u64| {
            format!("64 bytes from 192.0.2.7: icmp_seq={} ttl=57 time=11.5 ms\n", number % NUMBERS)
        };
        let record = |from: u64, to: u64, every: u64| {
            (from..to).filter(|number| number % every != 0).map(line).collect::<String>()
        };
        for (from, to) in [(1, 70_000), (60_000, 70_000), (901, 1001), (1, 200_001)] {
            for every in [u64::MAX, 97] {
                let lost = (from..to).filter(|number| number % every == 0).count();
                let found = ping(&record(from, to, every)).expect("read");
                let counted = (found.loss.sent as u64, found.loss.lost, found.reordered);
                assert_eq!(counted, (to - from, lost, 0), "{from} {to} {every}");
            }
        }
        let cut = record(901, 1001, u64::MAX) + "1000 packets transmitted, 1000 received\n";
        assert_eq!((ping(&cut).expect("read")).loss.lost, 0);
        let whole =
            "PING 192.0.2.7 (192.0.2.7) 56(84) bytes of data.\n".to_owned() + &record(11, 101, 97);
        assert_eq!((ping(&whole).expect("read")).loss.lost, 11);
    }

    #[test]
    fn values_that_a_document_does_not_know_are_unknown() {
        let server = TCP.replace("\"tcp_mss_default\": 1448", "\"tcp_mss_default\": 0");
        for text in
            [server.clone(), "warning: this is no JSON\n".to_owned() + TCP + "\niperf Done.\n"]
        {
            let keys = iperf3(&text, true).expect("read").keys;
            assert!(keys.contains("rate = \"10.000 Mbit/s\""), "{keys}");
        }
        let udp = r#"{"start": {"test_start": {"protocol": "UDP", "blksize": 1472}}, "intervals": [{"sum": {"seconds": 1.0,
            "lost_packets": -2, "packets": 85}}], "end": {"sum": {"seconds": 5.0, "bits_per_second": 2e6,
            "lost_packets": -1, "packets": 346}}}"#;
        let keys = iperf3(udp, true).expect("read").keys;
        assert!(keys.contains("0 of 346 packets lost"), "{keys}");
    }

    #[test]
    fn what_is_no_output_of_ping_is_refused() {
        for text in ["", "hello", "icmp_seq=1 time=x", "time=3 ms"] {
            assert!(ping(text).expect_err(text).contains("icmp_seq=1"), "{text}");
        }
        let endless = "icmp_seq=1 time=3 ms\n99999999999 packets transmitted, 1 received";
        assert!(ping(endless).expect_err("too many").contains("not evaluated"));
    }

    const TCP: &str = r#"{"start": {"tcp_mss_default": 1448, "test_start": {"protocol": "TCP", "reverse": 0}},
        "intervals": [{"sum": {"seconds": 1.0, "bits_per_second": 9e6}}, {"sum": {"seconds": 1.0, "bits_per_second": 1e7}}],
        "end": {"streams": [{"sender": {"min_rtt": 20000, "max_rtt": 60000}}],
                "sum_sent": {"retransmits": 12}, "sum_received": {"seconds": 10.0, "bits_per_second": 9.653e6}}}"#;

    #[test]
    fn the_document_of_iperf3_gives_rate_round_trip_and_queue() {
        let keys = iperf3(TCP, true).expect("read").keys;
        assert!(keys.contains("rate = \"10.000 Mbit/s\""), "{keys}");
        assert!(
            keys.contains("rtt = \"20.000 ms\"") && keys.contains("at least 49998 B"),
            "{keys}"
        );
        assert!(keys.contains("between 9.000 and 10.000"), "{keys}");
        loads(&keys);
        let reverse =
            iperf3(&TCP.replace("\"reverse\": 0", "\"reverse\": 1"), false).expect("read").keys;
        assert!(reverse.contains("rate_down = ") && !reverse.contains("rtt = "), "{reverse}");
        loads(&reverse);
        let udp = r#"{"start": {"test_start": {"protocol": "UDP", "blksize": 1472}}, "end": {"sum":
            {"seconds": 5.0, "bits_per_second": 2e7, "lost_packets": 50, "packets": 100, "jitter_ms": 0.4}}}"#;
        let keys = iperf3(udp, true).expect("read").keys;
        assert!(keys.contains("rate = \"10.190 Mbit/s\""), "{keys}");
        loads(&keys);
    }

    #[test]
    fn what_is_no_document_of_iperf3_is_refused() {
        for (text, said) in [
            ("", "it is empty"),
            ("{}", "iperf3 --json"),
            (r#"{"error": "unable to connect"}"#, "unable to connect"),
            (&TCP.replace("TCP", "SCTP"), "protocol SCTP"),
            (&TCP.replace("9.653e6", "0"), "a rate of 0 bit/s"),
        ] {
            assert!(iperf3(text, true).expect_err(text).contains(said), "{text}");
        }
    }
}
