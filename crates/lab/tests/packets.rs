//! The list of packets is complete, and its arrivals are right.

use ropewalk_base::{Duration, Time};
use ropewalk_lab::packet_log::{PacketRecord, Packets, Way};
use ropewalk_lab::{Run, RunOptions, run};
use ropewalk_scenario::Scenario;

/// Two paths that lose, duplicate and reorder packets in both directions, and a queue that
/// overflows.
fn scenario(protocol: &str, seconds: u32) -> Scenario {
    let text = format!(
        "[transfer]\nprotocol = '{protocol}'\nduration = '{seconds} s'\nscheduler = 'round-robin'\n\
         receive_buffer = '200 kB'\n\
         [[path]]\nname = 'wifi'\nrate = '2 Mbit/s'\nrtt = '30 ms'\nqueue = '20 packets'\nloss = 0.02\n\
         reorder = {{ probability = 0.05, delay = '20 ms' }}\nduplicate = 0.05\n\
         [[path]]\nname = 'lte'\nrate = '1 Mbit/s'\nrtt = '120 ms'\nqueue = {{ discipline = 'codel' }}\nloss = 0.01\n"
    );
    Scenario::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn listed(protocol: &str, seconds: u32) -> (Run, Packets) {
    let packets = Some(Duration::from_secs(60));
    let options = RunOptions { packets, ..RunOptions::default() };
    let mut run = run(&scenario(protocol, seconds), &options).expect("a good run");
    let packets = run.packets.take().expect("packets were requested");
    (run, packets)
}

fn count(packets: &Packets, wanted: impl Fn(&PacketRecord) -> bool) -> u64 {
    packets.records.iter().filter(|packet| wanted(packet)).count() as u64
}

#[test]
fn the_list_agrees_with_the_figures() {
    for protocol in ["cmt-sctp", "mptcp"] {
        let (run, packets) = listed(protocol, 5);
        assert!(packets.records.is_sorted_by_key(|packet| packet.sent) && packets.cut.is_none());
        for (index, path) in run.result.paths.iter().enumerate() {
            let data = |packet: &PacketRecord| {
                usize::from(packet.path) == index
                    && packet.way == Way::Up
                    && packet.contents.kind == "DATA"
            };
            assert_eq!(count(&packets, data), path.sent_packets, "{protocol}, {}", path.name);
            let lost = count(&packets, |packet| data(packet) && packet.dropped);
            assert!(lost > 0 && lost < path.sent_packets / 4, "{protocol}: {lost}");
        }
        let resent: u64 = run.result.paths.iter().map(|path| path.retransmitted_packets).sum();
        let found = count(&packets, |packet| packet.contents.retransmission);
        assert!(found > 0 && found == resent, "{protocol}: {found}, {resent}");
        let back = |packet: &PacketRecord| packet.way == Way::Down && packet.received.is_some();
        assert!(count(&packets, back) > 100, "{protocol}");
    }
}

#[test]
fn the_list_agrees_with_the_figures_of_both_directions_of_a_tunnel() {
    for (flow, other) in [("up", "down"), ("down", "up")] {
        let text = format!(
            "[transfer]\nduration = '5 s'\nwarmup = '0 s'\n\
             [[path]]\nname = 'wifi'\nrate = '8 Mbit/s'\nrtt = '30 ms'\nloss = 0.02\n\
             [[path]]\nname = 'lte'\nrate = '4 Mbit/s'\nrtt = '120 ms'\nloss = 0.01\n\
             [[flow]]\nname = 'a'\nkind = 'tcp'\ndirection = '{flow}'\n\
             [[flow]]\nname = 'b'\nkind = 'udp'\nrate = '1 Mbit/s'\ndirection = '{other}'\n"
        );
        let scenario = Scenario::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
        let packets = Some(Duration::from_secs(60));
        let mut run =
            run(&scenario, &RunOptions { packets, ..RunOptions::default() }).expect("runs");
        let packets = run.packets.take().expect("packets were requested");
        for (way, direction) in [Way::Up, Way::Down].into_iter().zip(&run.result.directions) {
            assert_eq!(direction.name, way.name());
            for (index, path) in direction.paths.iter().enumerate() {
                let data = |packet: &PacketRecord| {
                    usize::from(packet.path) == index
                        && packet.way == way
                        && packet.contents.kind == "DATA"
                };
                assert_eq!(count(&packets, data), path.sent_packets, "{flow}: {path:?}");
                // Data that was lost, or is in flight at the end, is not acknowledged.
                let sent = packets.records.iter().filter(|packet| data(packet));
                let sent: u64 = sent.map(|packet| u64::from(packet.contents.payload)).sum();
                assert!(
                    path.delivered_bytes <= sent && path.delivered_bytes > sent / 2,
                    "{path:?}"
                );
            }
            assert!(direction.paths[0].sent_packets > 300, "{flow}: {direction:?}");
        }
    }
}

#[test]
fn what_is_on_the_way_at_the_end_arrives_in_a_longer_run() {
    for protocol in ["cmt-sctp", "mptcp"] {
        let (short, long) = (listed(protocol, 3).1, listed(protocol, 6).1);
        let end = Time::from_secs(3);
        let mut moving = 0;
        for (early, late) in short.records.iter().zip(&long.records) {
            assert_eq!((early.sent, early.path, early.way), (late.sent, late.path, late.way));
            match (early.received, early.dropped) {
                (Some(_), dropped) => assert!(!dropped && early == late, "{early:?}"),
                (None, true) => assert!(late.received.is_none() && late.dropped, "{late:?}"),
                (None, false) => {
                    moving += 1;
                    // CoDel may drop packets from its queue.
                    assert!(late.received.is_some_and(|at| at >= end) || late.dropped, "{late:?}");
                }
            }
        }
        assert!(moving > 5, "{protocol}: {moving}");
    }
}
