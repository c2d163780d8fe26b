//! Documents and texts of iperf3 with known rates.

use ropewalk_scenario::Scenario;
use serde_json::json;

use super::*;

fn loads(keys: &str) {
    let text = format!("[[path]]\n{keys}");
    Scenario::parse(&text, "links").unwrap_or_else(|error| panic!("{error}\n{text}"));
}

fn keys(text: &str) -> String {
    let found = iperf3(text, true).unwrap_or_else(|error| panic!("{error}\n{text}"));
    loads(&found.keys);
    found.keys
}

const TCP: &str = r#"{"start": {"tcp_mss_default": 1448, "test_start": {"protocol": "TCP", "reverse": 0}},
    "intervals": [{"sum": {"seconds": 1.0, "bits_per_second": 9e6}}, {"sum": {"seconds": 1.0, "bits_per_second": 1e7}}],
    "end": {"streams": [{"sender": {"min_rtt": 20000, "max_rtt": 60000}}],
            "sum_sent": {"retransmits": 12}, "sum_received": {"seconds": 10.0, "bits_per_second": 9.653e6}}}"#;

#[test]
fn the_document_of_iperf3_gives_rate_round_trip_and_queue() {
    let found = keys(TCP);
    for expected in [
        "rate = \"10.000 Mbit/s\"",
        "rtt = \"20.000 ms\"",
        "at least 49998 B",
        "between 9.000 and 10.000",
    ] {
        assert!(found.contains(expected), "{found}");
    }
    let reverse = TCP.replace("\"reverse\": 0", "\"reverse\": 1");
    let reverse = iperf3(&reverse, false).expect("read").keys;
    assert!(reverse.contains("rate_down = ") && !reverse.contains("rtt = "), "{reverse}");
    loads(&reverse);
    let udp = r#"{"start": {"test_start": {"protocol": "UDP", "blksize": 1472}}, "end": {"sum":
        {"seconds": 5.0, "bits_per_second": 2e7, "lost_packets": 50, "packets": 100, "jitter_ms": 0.4}}}"#;
    assert!(keys(udp).contains("rate = \"10.190 Mbit/s\""));
}

#[test]
fn values_that_a_document_does_not_know_are_unknown() {
    let server = TCP.replace("\"tcp_mss_default\": 1448", "\"tcp_mss_default\": 0");
    for text in [server, "warning: this is no JSON\n".to_owned() + TCP + "\niperf Done.\n"] {
        assert!(keys(&text).contains("rate = \"10.000 Mbit/s\""), "{text}");
    }
    let udp = r#"{"start": {"test_start": {"protocol": "UDP", "blksize": 1472}}, "intervals": [{"sum": {"seconds": 1.0,
        "lost_packets": -2, "packets": 85}}], "end": {"sum": {"seconds": 5.0, "bits_per_second": 2e6,
        "lost_packets": -1, "packets": 346}}}"#;
    assert!(keys(udp).contains("0 of 346 packets lost"));
    // A server of iperf3 3.9 knows neither what was sent nor a total of what it has received.
    let server = udp
        .replace("2e6", "0")
        .replace("\"packets\": 85", "\"packets\": 85, \"bits_per_second\": 1.472e6");
    assert!(keys(&server).contains("rate = \"1.500 Mbit/s\""));
}

#[test]
fn what_is_no_document_of_iperf3_is_refused() {
    for (text, said) in [
        ("", "neither JSON nor a summary"),
        ("[ ID] Interval\n- - - - -\n[ ID] Interval\n", "no figures"),
        ("{}", "iperf3 --json"),
        (r#"{"error": "unable to connect"}"#, "unable to connect"),
        (&TCP.replace("TCP", "SCTP"), "protocol SCTP"),
        (&TCP.replace("9.653e6", "0"), "a rate of 0 bit/s"),
        (&TCP.replacen('{', "{\"schema\": \"ropewalk.transfer/1\", ", 1), "a transfer of Ropewalk"),
    ] {
        assert!(iperf3(text, true).expect_err(text).contains(said), "{text}");
    }
    let twice = format!("{BIDIR_TEXT}{BIDIR_TEXT}");
    assert!(iperf3(&twice, true).expect_err("two tests").contains("2 tests"));
}

/// User data of all streams in each direction, Mbit/s. Each direction has two streams.
const UP: f64 = 8.0;
const DOWN: f64 = 40.0;

/// The document of a client or server of 3.9 or 3.12, with data in these directions. Each stream has half of the rate.
fn document(version: f64, udp: bool, is_server: bool, ways: &[bool]) -> String {
    let (mut end, mut interval) = (Vec::new(), Vec::new());
    let mut streams = Vec::new();
    for (place, down) in ways.iter().enumerate() {
        let bps = if *down { DOWN } else { UP } * 1e6;
        let suffix = if place > 0 && version > 3.1 { "_bidir_reverse" } else { "" };
        let counts = |all: u32| format!(r#", "lost_packets": {}, "packets": {all}"#, all / 10);
        let sum = |name: &str, bps: f64, rest: &str| {
            format!(r#""{name}{suffix}": {{"seconds": 1.0, "bits_per_second": {bps}{rest}}}"#)
        };
        if udp {
            end.push(sum("sum", bps / 0.9, &counts(1000)));
        }
        if !udp || version > 3.1 {
            end.push(sum("sum_sent", bps / 0.9, if udp { "" } else { r#", "retransmits": 3"# }));
            end.push(sum("sum_received", bps, &if udp { counts(1000) } else { String::new() }));
        }
        interval.push(sum("sum", bps, ""));
        let rtt = if *down { 30_000 } else { 20_000 };
        for _ in 0..2 {
            let sender = json!({"min_rtt": rtt, "max_rtt": 2 * rtt, "sender": *down == is_server});
            streams.push(if udp { json!({"udp": {}}) } else { json!({"sender": sender}) });
        }
    }
    let reverse = u8::from(ways == [true]);
    let protocol = if udp { "UDP" } else { "TCP" };
    let role = if is_server { r#""accepted_connection": {}"# } else { r#""connecting_to": {}"# };
    let interval = format!("{{{}}}", interval.join(", "));
    format!(
        r#"{{"start": {{{role}, "tcp_mss_default": 1448, "test_start": {{"protocol": "{protocol}", "num_streams": 2, "blksize": 1472,
        "reverse": {reverse}}}}}, "intervals": [{interval}, {interval}],
        "end": {{"streams": {}, {}}}}}"#,
        json!(streams),
        end.join(", ")
    )
}

/// Until 3.9 the sums of both directions have the same names.
#[test]
fn parallel_streams_and_both_directions_have_the_sum_of_each_direction() {
    for udp in [false, true] {
        for is_server in [false, true] {
            for version in [3.09, 3.12] {
                for ways in [&[false][..], &[true], &[false, true]] {
                    let text = document(version, udp, is_server, ways);
                    let found = keys(&text);
                    let payload = if udp { 1500.0 / 1472.0 } else { 1500.0 / 1448.0 };
                    for (down, key, mbps) in [(false, "rate = ", UP), (true, "rate_down = ", DOWN)]
                    {
                        let line = format!("{key}\"{:.3} Mbit/s\"", mbps * payload);
                        assert_eq!(found.contains(&line), ways.contains(&down), "{text}\n{found}");
                        assert_eq!(found.contains(key), ways.contains(&down), "{text}\n{found}");
                        let interval = format!("between {mbps:.3} and {mbps:.3} Mbit/s");
                        assert_eq!(found.contains(&interval), ways.contains(&down), "{found}");
                    }
                    let rtt = if ways == [true] { "30.000" } else { "20.000" };
                    assert_eq!(found.contains(&format!("rtt = \"{rtt} ms\"")), !udp, "{found}");
                    assert_eq!(
                        found.matches("100 of 1000 packets lost").count(),
                        if udp { ways.len() } else { 0 }
                    );
                    assert_eq!(
                        iperf3(&text, true).expect("read").carried.is_some(),
                        !udp && ways.len() == 1
                    );
                }
            }
        }
    }
}

/// What iperf3 3.12 printed with `-P 2 --bidir`, with the rates changed by hand.
const BIDIR_TEXT: &str = "Connecting to host 127.0.0.1, port 5999
[  5] local 127.0.0.1 port 53208 connected to 127.0.0.1 port 5999
[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd
[  5][TX-C]   0.00-1.00   sec   500 KBytes  4.10 Mbits/sec    1   1.12 MBytes       (omitted)
[SUM][TX-C]   0.00-1.00   sec   500 KBytes  1.10 Mbits/sec    2             (omitted)
[  5][TX-C]   0.00-1.00   sec   500 KBytes  4.10 Mbits/sec    1   1.12 MBytes       
[  7][TX-C]   0.00-1.00   sec   500 KBytes  4.10 Mbits/sec    1   1.12 MBytes       
[SUM][TX-C]   0.00-1.00   sec  1000 KBytes  8.19 Mbits/sec    2             
[  9][RX-C]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec                  
[ 12][RX-C]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec                  
[SUM][RX-C]   0.00-1.00   sec  5.00 MBytes  41.9 Mbits/sec                  
- - - - - - - - - - - - - - - - - - - - - - - - -
[SUM][TX-C]   1.00-2.00   sec   977 KBytes  8.00 Mbits/sec    0             
[SUM][RX-C]   1.00-2.00   sec  4.75 MBytes  39.8 Mbits/sec                  
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID][Role] Interval           Transfer     Bitrate         Retr
[  5][TX-C]   0.00-2.00   sec   990 KBytes  4.05 Mbits/sec    1             sender
[  5][TX-C]   0.00-2.00   sec   977 KBytes  4.00 Mbits/sec                  receiver
[  7][TX-C]   0.00-2.00   sec   990 KBytes  4.05 Mbits/sec    1             sender
[  7][TX-C]   0.00-2.00   sec   977 KBytes  4.00 Mbits/sec                  receiver
[SUM][TX-C]   0.00-2.00   sec  1.93 MBytes  8.10 Mbits/sec    2             sender
[SUM][TX-C]   0.00-2.00   sec  1.91 MBytes  8.00 Mbits/sec                  receiver
[  9][RX-C]   0.00-2.00   sec  4.88 MBytes  20.4 Mbits/sec    0             sender
[ 12][RX-C]   0.00-2.00   sec  4.88 MBytes  20.4 Mbits/sec    0             sender
[SUM][RX-C]   0.00-2.00   sec  9.75 MBytes  40.9 Mbits/sec    5             sender
[SUM][RX-C]   0.00-2.00   sec  9.54 MBytes  40.0 Mbits/sec                  receiver

iperf Done.
";

#[test]
fn the_text_of_iperf3_gives_the_sum_of_each_direction() {
    let found = keys(BIDIR_TEXT);
    for expected in [
        "rate = \"8.287 Mbit/s\"",
        "rate_down = \"41.436 Mbit/s\"",
        "2 retransmissions",
        "5 retransmissions",
        "between 8.000 and 8.190",
        "between 39.800 and 41.900",
    ] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    // Without roles and with one stream, as 3.1 prints it, and with other units.
    let head = "Connecting to host 127.0.0.1, port 5201\n[ ID] Interval           Transfer     Bandwidth       Retr  Cwnd\n\
                [  4]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec    0   1.12 MBytes       \n\
                - - - - - - - - - - - - - - - - - - - - - - - - -\n[ ID] Interval           Transfer     Bandwidth       Retr\n";
    let sums = |rate: &str| {
        format!(
            "[  4]   0.00-2.00   sec  2.10 MBytes  {rate}    7             sender\n\
             [  4]   0.00-2.00   sec  2.00 MBytes  {rate}                  receiver\n"
        )
    };
    for (rate, expected) in
        [("8.00 Mbits/sec", "8.287"), ("8000 Kbits/sec", "8.287"), ("977 KBytes/sec", "8.291")]
    {
        let found = keys(&(head.to_owned() + &sums(rate)));
        assert!(found.contains(&format!("rate = \"{expected} Mbit/s\"")), "{found}");
        assert!(found.contains("; 7 retransmissions"), "{found}");
    }
    let reverse = "Reverse mode, remote host 127.0.0.1 is sending\n".to_owned()
        + head
        + &sums("8.00 Mbits/sec");
    let server = "Accepted connection from 127.0.0.1, port 1\n".to_owned()
        + head
        + sums("8.00 Mbits/sec").lines().next().expect("a line");
    for text in [reverse, server] {
        let found = keys(&text);
        assert!(
            found.contains("rate_down = \"8.287 Mbit/s\"") && !found.contains("rate = "),
            "{found}"
        );
    }
}

#[test]
fn the_text_of_udp_gives_the_received_rate_and_the_losses() {
    let head = "[ ID] Interval           Transfer     Bitrate         Total Datagrams\n\
                [  5]   0.00-2.00   sec  2.41 MBytes  20.2 Mbits/sec  77  \n\
                - - - - - - - - - - - - - - - - - - - - - - - - -\n\
                [ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n";
    let now = "[  5]   0.00-2.00   sec  1.41 MBytes  5.90 Mbits/sec  0.000 ms  0/1000 (0%)  sender\n\
               [  5]   0.00-2.00   sec  1.26 MBytes  5.30 Mbits/sec  0.072 ms  100/1000 (10%)  receiver\n\
               [SUM]   0.00-2.00   sec  2.81 MBytes  11.8 Mbits/sec  0.000 ms  0/2000 (0%)  sender\n\
               [SUM]   0.00-2.00   sec  2.53 MBytes  10.6 Mbits/sec  0.059 ms  200/2000 (10%)  receiver\n";
    let early = "[SUM]   0.00-2.00   sec  2.81 MBytes  11.8 Mbits/sec  0.059 ms  200/2000 (10%)  \n[SUM] Sent 2000 datagrams\n";
    for text in [now, early] {
        let found = keys(&(head.to_owned() + text));
        assert!(found.contains("200 of 2000 packets lost, jitter 0.06 ms"), "{found}");
        let rate = found
            .split_once("rate = \"")
            .and_then(|(_, rest)| rest.split(' ').next()?.parse::<f64>().ok());
        let expected = 10.6 * 1501.0 / 1473.0;
        assert!(rate.is_some_and(|rate| (rate / expected - 1.0).abs() < 0.01), "{found}");
    }
}
