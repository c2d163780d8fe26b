//! Documents of `send` and `recv` have the fields that readers of iperf3's documents use.

use std::process::Stdio;

use crate::support::noise;
use crate::transfer::{HERE, TestHome, good};
use serde_json::Value;

/// Numeric fields of a document of iperf3 3.12 (`-J -n`, TCP). `null` stands for values that this end does not
/// know.
const NUMBERS: &[&str] = &[
    "start/timestamp/timesecs",
    "start/connected/0/socket",
    "start/connected/0/local_port",
    "start/connected/0/remote_port",
    "start/target_bitrate",
    "start/test_start/num_streams",
    "start/test_start/blksize",
    "start/test_start/omit",
    "start/test_start/duration",
    "start/test_start/bytes",
    "start/test_start/blocks",
    "start/test_start/reverse",
    "start/test_start/tos",
    "start/test_start/target_bitrate",
    "intervals/0/streams/0/socket",
    "end/streams/0/sender/socket",
    "end/streams/0/receiver/socket",
    "end/cpu_utilization_percent/host_total",
];
const UNKNOWN: &[&str] = &[
    "start/tcp_mss_default",
    "end/cpu_utilization_percent/remote_total",
    "end/cpu_utilization_percent/remote_user",
    "end/cpu_utilization_percent/remote_system",
];
const TEXTS: &[&str] = &[
    "start/version",
    "start/system_info",
    "start/cookie",
    "start/timestamp/time",
    "start/test_start/protocol",
    "start/connected/0/local_host",
    "start/connected/0/remote_host",
];
/// Places with the figures of a period.
const PERIODS: &[&str] = &[
    "intervals/0/sum",
    "intervals/0/streams/0",
    "end/sum_sent",
    "end/sum_received",
    "end/streams/0/sender",
    "end/streams/0/receiver",
];
/// Figures that only a sender has.
const OF_SENDERS: &[&str] = &[
    "intervals/0/sum/retransmits",
    "intervals/0/streams/0/retransmits",
    "intervals/0/streams/0/snd_cwnd",
    "intervals/0/streams/0/rtt",
    "end/streams/0/sender/retransmits",
    "end/streams/0/sender/max_snd_cwnd",
    "end/streams/0/sender/max_rtt",
    "end/streams/0/sender/min_rtt",
    "end/streams/0/sender/mean_rtt",
    "end/sum_sent/retransmits",
];

fn at<'a>(document: &'a Value, place: &str) -> &'a Value {
    document.pointer(&format!("/{place}")).unwrap_or_else(|| panic!("no {place} in {document}"))
}

fn assert_readable(document: &Value, peer: &str) {
    for place in NUMBERS {
        assert!(at(document, place).is_number(), "{place}");
    }
    for place in TEXTS {
        assert!(at(document, place).is_string(), "{place}");
    }
    for place in UNKNOWN {
        assert!(at(document, place).is_null(), "{place}");
    }
    for place in PERIODS {
        for figure in ["start", "end", "seconds", "bytes", "bits_per_second"] {
            assert!(at(document, &format!("{place}/{figure}")).is_number(), "{place}/{figure}");
        }
        assert!(at(document, &format!("{place}/sender")).is_boolean(), "{place}");
    }
    assert_eq!(at(document, "intervals/0/sum/omitted"), false);
    assert!(at(document, &format!("start/{peer}/host")).is_string());
    assert!(at(document, &format!("start/{peer}/port")).is_number());
    assert!(document.get("error").is_none(), "readers take `error` for a failed test");
}

#[test]
fn both_ends_write_the_fields_of_iperf3_and_agree_on_the_data() {
    let home = TestHome::new("iperf3");
    home.write("file", &noise(3_000_000));
    let receiver = home.receiver(&[&["in", "--plain", "--json"], &HERE[..]].concat());
    let sent = home.sender(&receiver, &["file"], &["--json"]).stderr(Stdio::null()).output();
    let sent = sent.expect("send");
    good(&sent);
    let mut receiver = receiver;
    let mut received = String::new();
    let stdout = receiver.child.stdout.as_mut().expect("stdout");
    std::io::Read::read_to_string(stdout, &mut received).expect("text");
    let sent: Value = serde_json::from_slice(&sent.stdout).expect("one document");
    let received: Value = serde_json::from_str(&received).expect("one document");
    assert_readable(&sent, "connecting_to");
    assert_readable(&received, "accepted_connection");
    for place in OF_SENDERS {
        assert!(at(&sent, place).is_number(), "{place}");
    }
    for document in [&sent, &received] {
        assert_eq!(at(document, "end/sum_sent/bytes"), at(document, "end/sum_received/bytes"));
        assert_eq!(at(document, "start/test_start/bytes"), 3_000_000);
    }
}
