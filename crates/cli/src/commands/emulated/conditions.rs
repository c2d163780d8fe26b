//! The conditions under which a live run counts: the emulator was on time, and no end waited long for a CPU.
//!
//! A run that does not count shows the performance of the machine and not of the transport. It is repeated, and its
//! figure is never shown.

use std::fmt;

use ropewalk_scenario::Scenario;
use serde::Serialize;
use serde_json::Value;

/// Maximum lateness of the emulator, s. All links stand still during that time.
const LATENESS_S: f64 = 0.020;
/// Maximum lateness of the emulator on links with short round trips, s. The kernel's timers and one batch of packets
/// already take a few milliseconds on a busy CPU.
const LATENESS_ON_SHORT_LINKS_S: f64 = 0.010;
/// Maximum 99th percentile of the lateness of packets, as a fraction of the shortest round trip. The typical
/// lateness is part of every round trip that a transport measures.
const USUAL_LATENESS: f64 = 0.1;
/// Minimum of this bound, s, because of timers and batches.
const USUAL_LATENESS_S: f64 = 0.002;
/// Maximum time that the threads of an end, or the emulator, waited for a CPU, as a fraction of the run. Time
/// withheld by the hypervisor counts too. On two cores, ends that use most of a core each wait up to a fifth of the
/// time, for each other and for the emulator, but only for 10 us at a time. While a compiler kept both cores busy,
/// they waited half of the time or more.
const WAITED: f64 = 0.25;

/// CPU time of a run, and lateness of its emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Conditions {
    /// Time for which the links were up, s.
    pub seconds: f64,
    /// Maximum lateness of the emulator, s, for packets and wake-ups.
    pub lateness_s: f64,
    /// 99th percentile of the lateness of packets, s.
    pub packet_lateness_p99_s: f64,
    /// Time that the emulator waited for a CPU, s; null if the kernel does not count it.
    pub emulator_waited_s: Option<f64>,
    /// The same for the sender's threads, summed.
    pub sender_waited_s: Option<f64>,
    /// The same for the receiver's threads, summed.
    pub receiver_waited_s: Option<f64>,
    /// CPU time withheld by the hypervisor, summed over the CPUs, s.
    pub stolen_s: Option<f64>,
}

/// Why a run does not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shortage {
    /// The emulator was late.
    Late {
        /// Maximum lateness, s.
        seconds: f64,
        /// The bound, s.
        most: f64,
    },
    /// One of 100 packets was late by this or more.
    OftenLate {
        /// Lateness, s.
        seconds: f64,
        /// The bound, s.
        most: f64,
    },
    /// An end or the emulator waited for a CPU.
    Waited {
        /// The waiting party.
        who: &'static str,
        /// Waiting time as a fraction of the run.
        share: f64,
    },
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |seconds: f64| seconds * 1e3;
        match *self {
            Self::Late { seconds, most } => {
                let [late, most] = [seconds, most].map(ms);
                write!(f, "the emulator was late by {late:.1} ms (limit {most:.1} ms)")
            }
            Self::OftenLate { seconds, most } => {
                let [late, most] = [seconds, most].map(ms);
                write!(
                    f,
                    "1 % of the packets were late by {late:.1} ms or more (limit {most:.1} ms)"
                )
            }
            Self::Waited { who, share } => {
                let [share, most] = [share, WAITED].map(|share| share * 100.0);
                write!(f, "{who} waited for a CPU {share:.0} % of the time (limit {most:.0} %)")
            }
        }
    }
}

impl Conditions {
    /// Reads the document of `emulate --stats`.
    pub fn read(stats: &Value) -> Self {
        let late = |kind: &str, figure: &str| stats[kind][figure].as_f64().unwrap_or(0.0);
        let cpu = &stats["cpu"];
        Self {
            seconds: stats["duration_s"].as_f64().unwrap_or(0.0),
            lateness_s: late("delivery_lateness_s", "max").max(late("waking_lateness_s", "max")),
            packet_lateness_p99_s: late("delivery_lateness_s", "p99"),
            emulator_waited_s: cpu["emulator_waited_s"].as_f64(),
            sender_waited_s: cpu["sender"]["waited_s"].as_f64(),
            receiver_waited_s: cpu["receiver"]["waited_s"].as_f64(),
            stolen_s: cpu["stolen_s"].as_f64(),
        }
    }

    /// Why the run does not count, or `None`. `shortest_rtt_s` is that of the links without their queues.
    ///
    /// To a transport, a pause shorter than a round trip looks like acknowledgements that arrive together, which is
    /// common. A longer pause is an outage that the scenario does not have.
    pub fn shortage(&self, shortest_rtt_s: f64) -> Option<Shortage> {
        let most = shortest_rtt_s.clamp(LATENESS_ON_SHORT_LINKS_S, LATENESS_S);
        if self.lateness_s > most {
            return Some(Shortage::Late { seconds: self.lateness_s, most });
        }
        let most = (USUAL_LATENESS * shortest_rtt_s).max(USUAL_LATENESS_S);
        if self.packet_lateness_p99_s > most {
            return Some(Shortage::OftenLate { seconds: self.packet_lateness_p99_s, most });
        }
        let stolen = self.stolen_s.unwrap_or(0.0);
        let all = [
            ("the emulator", self.emulator_waited_s),
            ("the sender", self.sender_waited_s),
            ("the receiver", self.receiver_waited_s),
        ];
        let share = |waited: Option<f64>| (waited.unwrap_or(0.0) + stolen) / self.seconds.max(1e-9);
        let (who, share) = all
            .map(|(who, waited)| (who, share(waited)))
            .into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        (share > WAITED).then_some(Shortage::Waited { who, share })
    }
}

/// The shortest round trip of the links without their queues, s.
pub fn shortest_rtt_s(scenario: &Scenario) -> f64 {
    let rtt = |path: &ropewalk_scenario::Path| {
        let shared = path.via.iter().map(|at| &scenario.links[*at]);
        let delays = shared.map(|link| (link.up.delay + link.down.delay).as_secs_f64());
        (path.up.delay + path.down.delay).as_secs_f64() + delays.sum::<f64>()
    };
    scenario.paths.iter().map(rtt).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A run of 10 s with plenty of CPU time.
    const GOOD: Conditions = Conditions {
        seconds: 10.0,
        lateness_s: 0.003,
        packet_lateness_p99_s: 0.0002,
        emulator_waited_s: Some(0.01),
        sender_waited_s: Some(0.2),
        receiver_waited_s: Some(0.3),
        stolen_s: Some(0.02),
    };

    #[test]
    fn a_run_counts_unless_the_emulator_or_an_end_were_short_of_cpu() {
        let late = |lateness_s| Conditions { lateness_s, ..GOOD };
        let often = |packet_lateness_p99_s| Conditions { packet_lateness_p99_s, ..GOOD };
        let uncounted = Conditions {
            emulator_waited_s: None,
            sender_waited_s: None,
            receiver_waited_s: None,
            stolen_s: None,
            ..GOOD
        };
        for (conditions, rtt_s, expected) in [
            (GOOD, 0.020, None),
            (uncounted, 0.020, None),
            // The bound of the lateness is the shortest round trip, within 10 to 20 ms.
            (late(0.0199), 0.600, None),
            (late(0.0201), 0.600, Some("the emulator was late by 20.1 ms (limit 20.0 ms)")),
            (late(0.015), 0.016, None),
            (late(0.017), 0.016, Some("the emulator was late by 17.0 ms (limit 16.0 ms)")),
            (late(0.009), 0.002, None),
            (late(0.011), 0.002, Some("the emulator was late by 11.0 ms (limit 10.0 ms)")),
            // The typical lateness must be below a tenth of the shortest round trip, or below 2 ms.
            (often(0.0019), 0.005, None),
            (often(0.0025), 0.030, None),
            (
                often(0.0025),
                0.020,
                Some("1 % of the packets were late by 2.5 ms or more (limit 2.0 ms)"),
            ),
            (
                Conditions { sender_waited_s: Some(2.8), ..GOOD },
                0.020,
                Some("the sender waited for a CPU 28 % of the time (limit 25 %)"),
            ),
            (
                Conditions { receiver_waited_s: Some(6.0), ..GOOD },
                0.020,
                Some("the receiver waited for a CPU 60 % of the time (limit 25 %)"),
            ),
            (
                Conditions { emulator_waited_s: Some(2.6), ..GOOD },
                0.020,
                Some("the emulator waited for a CPU 26 % of the time (limit 25 %)"),
            ),
            (
                Conditions { stolen_s: Some(2.4), ..GOOD },
                0.020,
                Some("the receiver waited for a CPU 27 % of the time (limit 25 %)"),
            ),
            (Conditions { stolen_s: Some(2.1), ..GOOD }, 0.020, None),
        ] {
            let shortage = conditions.shortage(rtt_s).map(|shortage| shortage.to_string());
            assert_eq!(shortage.as_deref(), expected, "{conditions:?}, {rtt_s} s");
        }
    }

    #[test]
    fn the_figures_of_the_emulator_are_read_and_unknown_ones_are_none() {
        let stats = json!({
            "duration_s": 10.0,
            "delivery_lateness_s": { "max": 0.002, "p99": 0.0002 },
            "waking_lateness_s": { "max": 0.003, "p99": 0.001 },
            "cpu": {
                "emulator_waited_s": 0.01, "stolen_s": 0.02,
                "sender": { "used_s": 1.0, "waited_s": 0.2 }, "receiver": { "used_s": 2.0, "waited_s": 0.3 },
            },
        });
        assert_eq!(Conditions::read(&stats), GOOD);
        let unknown = json!({ "cpu": { "sender": null, "stolen_s": null } });
        assert_eq!(Conditions::read(&unknown), Conditions::default());
    }

    #[test]
    fn the_shortest_round_trip_includes_shared_links() {
        let text = "[[link]]\nname = 'l'\ndelay = '20 ms'\n\
            [[path]]\nname = 'a'\nrtt = '10 ms'\nvia = ['l']\n[[path]]\nname = 'b'\nrtt = '60 ms'\n";
        let scenario = Scenario::parse(text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        assert!((shortest_rtt_s(&scenario) - 0.05).abs() < 1e-9);
    }
}
