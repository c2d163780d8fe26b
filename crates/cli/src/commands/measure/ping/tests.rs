//! Outputs of ping and fping, as their programs print them.

use ropewalk_scenario::Scenario;

use super::*;

/// Sent and lost packets, and answers out of order.
fn counted(text: &str) -> (usize, usize, usize) {
    let found = ping(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (found.loss.sent, found.loss.lost, found.reordered)
}

fn answer(number: u64) -> String {
    format!("64 bytes from 192.0.2.7: icmp_seq={} ttl=57 time=11.5 ms\n", number % NUMBERS)
}

fn answers(from: u64, to: u64, every: u64) -> String {
    (from..to).filter(|number| number % every != 0).map(answer).collect()
}

const HEADER: &str = "PING 192.0.2.7 (192.0.2.7) 56(84) bytes of data.\n";

#[test]
fn the_output_of_ping_gives_round_trip_and_loss() {
    let linux = "PING 192.0.2.7 (192.0.2.7) 56(84) bytes of data.\n\
                 64 bytes from 192.0.2.7: icmp_seq=1 ttl=57 time=11.5 ms\n\
                 64 bytes from 192.0.2.7: icmp_seq=4 ttl=57 time=10.5 ms\n\
                 64 bytes from 192.0.2.7: icmp_seq=3 ttl=57 time=19 ms\n\
                 --- 192.0.2.7 ping statistics ---\n\
                 6 packets transmitted, 3 received, 50% packet loss, time 5007ms\n\
                 rtt min/avg/max/mdev = 10.500/13.666/19.000/3.801 ms\n";
    assert_eq!(counted(linux), (6, 3, 1));
    let keys = ping(linux).expect("read").keys();
    assert!(keys.contains("rtt = \"10.500 ms\"") && keys.contains("loss = 0.500000"), "{keys}");
    Scenario::parse(&format!("[[path]]\n{keys}"), "links").expect("a scenario");
    let mac = "64 bytes from 192.0.2.7: icmp_seq=0 ttl=57 time=8.123 ms\n\
               Request timeout for icmp_seq 1\n\
               64 bytes from 192.0.2.7: icmp_seq=2 ttl=57 time=9.0 ms\n\
               Request timeout for icmp_seq 3\n";
    assert_eq!(counted(mac), (4, 2, 0));
    let busybox = "64 bytes from 192.0.2.7: seq=0 ttl=57 time=0.123 ms\n";
    assert_eq!(counted(busybox), (1, 0, 0));
}

#[test]
fn numbers_of_ping_wrap_and_a_part_of_a_record_has_no_other_losses() {
    for (from, to) in [(1, 70_000), (60_000, 70_000), (901, 1001), (1, 200_001)] {
        for every in [u64::MAX, 97] {
            let lost = (from..to).filter(|number| number % every == 0).count();
            let expected = ((to - from) as usize, lost, 0);
            assert_eq!(counted(&answers(from, to, every)), expected, "{from} {to} {every}");
        }
    }
    let cut = answers(901, 1001, u64::MAX) + "1000 packets transmitted, 1000 received\n";
    assert_eq!(counted(&cut).1, 0);
    assert_eq!(counted(&(HEADER.to_owned() + &answers(11, 101, 97))).1, 11);
}

/// Runs of one second up to several minutes, with and without losses, in each form that a log can have.
#[test]
fn joined_runs_count_as_their_sum() {
    let run = |sent: u64, every: u64, with_header: bool, with_summary: bool| {
        let header = if with_header { HEADER } else { "" };
        let summary = if with_summary {
            format!("\n{sent} packets transmitted, 1 received, 9% packet loss\n")
        } else {
            String::new()
        };
        header.to_owned() + &answers(1, sent + 1, every) + &summary
    };
    for (header, summary) in [(true, true), (true, false), (false, true), (false, false)] {
        let text = run(20, 97, header, summary)
            + &run(300, 7, header, summary)
            + &run(5, 97, header, summary);
        assert_eq!(counted(&text), (325, 42, 0), "{header} {summary}");
    }
    let silent =
        HEADER.to_owned() + "\n10 packets transmitted, 0 received, 100% packet loss, time 9200ms\n";
    assert_eq!(counted(&(run(20, 97, true, true) + &silent)), (30, 10, 0));
}

#[test]
fn a_second_answer_to_a_probe_counts_once() {
    let copy = answer(3).replace(" ms", " ms (DUP!)");
    assert_eq!(counted(&(answers(1, 4, 97) + &copy + &answers(4, 9, 97))), (8, 0, 0));
}

#[test]
fn translations_of_ping_are_read() {
    for text in [
        "64 Bytes von 192.0.2.7: icmp_seq=1 ttl=57 Zeit=12,5 ms\n64 Bytes von 192.0.2.7: icmp_seq=3 ttl=57 Zeit=13,5 ms\n\n\
         --- 192.0.2.7 ping-Statistik ---\n4 Pakete übertragen, 2 empfangen, 50% packet loss, time 3005ms\n",
        "64 octets de 192.0.2.7 : icmp_seq=1 ttl=57 temps=12.5 ms\n64 octets de 192.0.2.7 : icmp_seq=3 ttl=57 temps=13.5\u{a0}ms\n\n\
         --- statistiques ping 192.0.2.7 ---\n4 paquets transmis, 2 reçus, 50 % paquets perdus, temps 3005 ms\n",
    ] {
        let text = HEADER.to_owned() + text;
        assert_eq!(counted(&text), (4, 2, 0), "{text}");
        assert!(ping(&text).expect("read").keys().contains("rtt = \"12.500 ms\""), "{text}");
    }
}

#[test]
fn ping_of_windows_gives_its_timeouts_as_losses_in_every_language() {
    let english = "\r\nPinging 192.0.2.7 with 32 bytes of data:\r\nReply from 192.0.2.7: bytes=32 time=12ms TTL=57\r\n\
                   Request timed out.\r\nReply from 192.0.2.1: Destination host unreachable.\r\n\
                   Reply from 192.0.2.7: bytes=32 time=13ms TTL=57\r\n\r\nPing statistics for 192.0.2.7:\r\n    \
                   Packets: Sent = 4, Received = 3, Lost = 1 (25% loss),\r\nApproximate round trip times in milli-seconds:\r\n    \
                   Minimum = 12ms, Maximum = 13ms, Average = 12ms\r\n";
    let german = "\nPing wird ausgeführt für 192.0.2.7 mit 32 Bytes Daten:\nAntwort von 192.0.2.7: Bytes=32 Zeit=12ms TTL=57\n\
                  Zeitüberschreitung der Anforderung.\nZeitüberschreitung der Anforderung.\n\
                  Antwort von 192.0.2.7: Bytes=32 Zeit=13ms TTL=57\n\nPing-Statistik für 192.0.2.7:\n    \
                  Pakete: Gesendet = 4, Empfangen = 2, Verloren = 2\n    (50% Verlust),\nCa. Zeitangaben in Millisek.:\n    \
                  Minimum = 12ms, Maximum = 13ms, Mittelwert = 12ms\n";
    let french = "\nEnvoi d\u{2019}une requête 'Ping'  192.0.2.7 avec 32 octets de données :\n\
                  Réponse de 192.0.2.7 : octets=32 temps=12 ms TTL=57\nDélai d'attente de la demande dépassé.\n\
                  Délai d'attente de la demande dépassé.\nRéponse de 192.0.2.7 : octets=32 temps=13 ms TTL=57\n\n\
                  Statistiques Ping pour 192.0.2.7:\n    Paquets : envoyés = 4, reçus = 2, perdus = 2 (perte 50%),\n";
    for text in [english, german, french] {
        assert_eq!(counted(text), (4, 2, 0), "{text}");
        assert!(ping(text).expect("read").keys().contains("rtt = \"12.000 ms\""), "{text}");
        let prompt = format!("Microsoft Corporation. All rights reserved.\n{text}{text}");
        assert_eq!(counted(&prompt), (8, 4, 0), "{text}");
    }
    let near = "Pinging ::1 with 32 bytes of data:\nReply from ::1: time<1ms\n";
    assert!(ping(near).expect("read").keys().contains("rtt = \"1.000 ms\""));
}

#[test]
fn fping_gives_each_probe_once() {
    let lines = "192.0.2.7 : [0], 64 bytes, 11.5 ms (11.5 avg, 0% loss)\n192.0.2.7 : [1], timed out (11.5 avg, 50% loss)\n\
                 192.0.2.7 : [2], 64 bytes, 10.5 ms (11.0 avg, 33% loss)\n";
    let summary = "\n192.0.2.7 : 11.5 - 10.5\n";
    let stamped: String =
        lines.lines().map(|line| format!("[1796022395.50558] {line}\n")).collect();
    let quiet = "\n192.0.2.7 : xmt/rcv/%loss = 3/2/33%, min/avg/max = 10.5/11.0/11.5\n";
    for text in [
        lines.to_owned(),
        lines.to_owned() + summary,
        summary.to_owned(),
        stamped,
        lines.to_owned() + quiet,
    ] {
        assert_eq!(counted(&text), (3, 1, 0), "{text}");
        assert_eq!(counted(&text.repeat(2)), (6, 2, 0), "{text}");
        assert!(ping(&text).expect("read").keys().contains("rtt = \"10.500 ms\""), "{text}");
    }
    let others = lines.to_owned() + &lines.replace("192.0.2.7", "192.0.2.8");
    assert!(ping(&others).expect_err("two links").contains("192.0.2.7, 192.0.2.8"));
}

#[test]
fn what_is_no_output_of_ping_is_refused() {
    for text in ["", "hello", "icmp_seq=1 time=x", "time=3 ms", "seq", "192.0.2.7 : - - -\n"] {
        let error = ping(text).expect_err(text);
        for known in ["icmp_seq=1", "Windows", "fping", "BusyBox"] {
            assert!(error.contains(known), "{text}: {error}");
        }
    }
    let endless = "icmp_seq=1 time=3 ms\n99999999999 packets transmitted, 1 received";
    assert!(ping(endless).expect_err("too many").contains("not evaluated"));
}
