//! explore
use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

#[test]
fn table() {
    for rates in [(5.0, 5.0), (20.0, 1.5)] {
        for rule in ["none", "eifel", "tcp-door", "f-rto", "d-sack"] {
            let stamps = if rule == "eifel" { 12 } else { 0 };
            let text = format!(
                "
[transfer]
protocol = 'mptcp'
preset = 'chihani2011'
duration = '50 s'
packet = '{} B'
[tcp]
recovery = '{rule}'
[[path]]
name = 'a'
rate = '{} Mbit/s'
delay = '10 ms'
queue = '100 packets'
[[path]]
name = 'b'
rate = '{} Mbit/s'
delay = '10 ms'
queue = '100 packets'
",
                1464 + stamps,
                rates.0,
                rates.1
            );
            let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}"));
            let r = run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}")).result;
            println!(
                "{rates:?} {rule:9} {:.2} Mbit/s ooo {:.3} max {} | {}",
                r.goodput_bps / 1e6,
                r.out_of_order.ratio,
                r.out_of_order.max_bytes,
                r.paths
                    .iter()
                    .map(|p| format!(
                        "sent {} again {} rto {} undone {} cwnd {}",
                        p.sent_packets,
                        p.retransmitted_packets,
                        p.timeouts,
                        p.undone_reductions,
                        p.cwnd_bytes / 1400
                    ))
                    .collect::<Vec<_>>()
                    .join(" | ")
            );
        }
    }
}
