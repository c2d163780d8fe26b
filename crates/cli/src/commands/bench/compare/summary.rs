//! Number of scenarios in which Ropewalk is at least as fast as the kernel's transports, and in which the
//! simulator agrees.

use serde::Serialize;

use super::row::Row;

/// Minimum fraction of the other transport's goodput to count as equal.
const LEVEL: f64 = 0.98;
/// Maximum difference between simulated and measured goodput that counts as agreement.
const AGREEMENT: f64 = 0.05;

/// The rows of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Bundle {
    /// Name of the scenario.
    pub scenario: String,
    /// A row for each transport.
    pub rows: Vec<Row>,
}

impl Bundle {
    /// The row of a transport.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The highest goodput among transports whose names have this prefix, if all of them have
    /// figures.
    fn best(&self, prefix: &str) -> Option<f64> {
        let rows = self.rows.iter().filter(|row| row.name.starts_with(prefix));
        let all: Option<Vec<f64>> = rows.map(|row| row.goodput_bps).collect();
        all?.into_iter().reduce(f64::max)
    }
}

/// How often one transport reaches another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reached {
    /// Scenarios in which it has at least the same goodput.
    pub at_least: usize,
    /// Scenarios in which it has at least 98 % of it.
    pub at_least_98_percent: usize,
    /// Scenarios in which both have figures.
    pub of: usize,
}

/// How often simulation and measurement agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agreed {
    /// Scenarios in which the simulated goodput is within 5 % of the measured one.
    pub within_5_percent: usize,
    /// Scenarios with both figures.
    pub of: usize,
}

/// The summary of one of Ropewalk's transports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Its name for `--transport`.
    pub name: &'static str,
    /// Name of the transport in tables.
    pub transport: String,
    /// Compared with the faster congestion control of Linux TCP on the best link.
    pub tcp: Reached,
    /// Compared with the faster congestion control of Linux Multipath TCP.
    pub multipath_tcp: Reached,
    /// Compared with the simulator.
    pub simulated: Agreed,
}

fn reached(pairs: impl Iterator<Item = (f64, f64)>) -> Reached {
    let mut reached = Reached::default();
    for (own, other) in pairs {
        reached.of += 1;
        reached.at_least += usize::from(own >= other);
        reached.at_least_98_percent += usize::from(own >= LEVEL * other);
    }
    reached
}

/// Summarises each of Ropewalk's transports with runs.
pub fn summary(bundles: &[Bundle]) -> Vec<Verdict> {
    let verdict = |name: &'static str| {
        let rows = || bundles.iter().filter_map(|one| Some((one, one.row(name)?)));
        let transport = rows().next()?.1.transport.clone();
        let against = |prefix: &'static str| {
            reached(
                rows().filter_map(move |(one, row)| Some((row.goodput_bps?, one.best(prefix)?))),
            )
        };
        let mut simulated = Agreed::default();
        let both = rows().filter_map(|(_, row)| row.goodput_bps.zip(row.simulated_bps));
        for (measured, predicted) in both {
            simulated.of += 1;
            let is_close = (predicted / measured.max(1.0) - 1.0).abs() <= AGREEMENT;
            simulated.within_5_percent += usize::from(is_close);
        }
        let (tcp, multipath_tcp) = (against("tcp-"), against("mptcp-"));
        Some(Verdict { name, transport, tcp, multipath_tcp, simulated })
    };
    ["ropewalk", "ropewalk-in-order"].into_iter().filter_map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(rows: &[(&'static str, Option<f64>, Option<f64>)]) -> Bundle {
        let row = |&(name, goodput_bps, simulated_bps): &(&'static str, Option<f64>, _)| Row {
            name,
            goodput_bps,
            simulated_bps,
            ..Row::default()
        };
        Bundle { scenario: "a".to_owned(), rows: rows.iter().map(row).collect() }
    }

    #[test]
    fn each_scenario_counts_once_and_only_where_all_figures_exist() {
        for (own, cubic, bbr, mptcp, expected) in [
            (Some(100.0), Some(90.0), Some(100.0), Some(101.0), ([1, 1, 1], [0, 1, 1])),
            (Some(97.0), Some(99.0), Some(50.0), Some(99.1), ([0, 0, 1], [0, 0, 1])),
            // The missing one could be the faster one.
            (Some(100.0), Some(90.0), None, Some(1.0), ([0, 0, 0], [1, 1, 1])),
            (None, Some(90.0), Some(90.0), Some(1.0), ([0, 0, 0], [0, 0, 0])),
        ] {
            let one = bundle(&[
                ("ropewalk", own, None),
                ("tcp-cubic", cubic, None),
                ("tcp-bbr", bbr, None),
                ("mptcp-cubic", mptcp, None),
            ]);
            let found = summary(&[one]);
            let counts =
                |reached: Reached| [reached.at_least, reached.at_least_98_percent, reached.of];
            assert_eq!(found.len(), 1);
            assert_eq!((counts(found[0].tcp), counts(found[0].multipath_tcp)), expected, "{own:?}");
        }
    }

    #[test]
    fn transports_that_did_not_run_are_compared_with_nothing() {
        let found = summary(&[bundle(&[("ropewalk-in-order", Some(1e6), Some(1.04e6))])]);
        assert_eq!(found[0].name, "ropewalk-in-order");
        assert_eq!(
            (found[0].tcp, found[0].multipath_tcp),
            (Reached::default(), Reached::default())
        );
        assert_eq!(found[0].simulated, Agreed { within_5_percent: 1, of: 1 });
        assert!(summary(&[bundle(&[("tcp-cubic", Some(1.0), None)])]).is_empty());
    }

    #[test]
    fn the_simulator_agrees_within_a_twentieth_of_the_measured_goodput() {
        let bundles: Vec<Bundle> = [(100.0, 104.9), (100.0, 94.0), (100.0, 95.5), (0.0, 10.0)]
            .map(|(measured, simulated)| {
                bundle(&[("ropewalk", Some(measured * 1e6), Some(simulated * 1e6))])
            })
            .into();
        assert_eq!(summary(&bundles)[0].simulated, Agreed { within_5_percent: 2, of: 4 });
    }
}
