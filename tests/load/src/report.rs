//! The figures of a run.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::Load;

/// Goodputs of several clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Group {
    /// Number of clients.
    pub clients: usize,
    /// Jain's index: 1 if all are equal, 1/n if one client has everything (Jain, Chiu and Hawe,
    /// 1984).
    pub fairness: f64,
    /// Sum, bit/s.
    pub total_bps: f64,
    /// Minimum, bit/s.
    pub least_bps: f64,
    /// Maximum, bit/s.
    pub most_bps: f64,
}

impl Group {
    /// The figures of these goodputs, bit/s.
    pub fn of(goodputs: Vec<f64>) -> Self {
        let total: f64 = goodputs.iter().sum();
        let squares: f64 = goodputs.iter().map(|goodput| goodput * goodput).sum();
        let least = goodputs.iter().copied().reduce(f64::min).unwrap_or(0.0);
        let most = goodputs.iter().copied().fold(0.0, f64::max);
        let fairness =
            if squares > 0.0 { total * total / (goodputs.len() as f64 * squares) } else { 0.0 };
        Self {
            clients: goodputs.len(),
            fairness,
            total_bps: total,
            least_bps: least,
            most_bps: most,
        }
    }
}

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Number of clients.
    pub clients: usize,
    /// Time until all were connected.
    pub connect_s: f64,
    /// CPU time of the hub until it had noticed that all clients had left simultaneously.
    pub leave_cpu_s: f64,
    /// Time until all clients had reconnected after the hub was killed and restarted.
    pub return_s: f64,
    /// Resident memory of the hub before the first client.
    pub memory_before_bytes: u64,
    /// Growth of the hub's resident memory while the clients are idle, per client.
    pub idle_bytes_per_client: f64,
    /// CPU time of the hub for idle clients, in CPUs.
    pub idle_cpu_share: f64,
    /// Largest resident memory while some clients are busy.
    pub memory_busy_bytes: u64,
    /// Resident memory afterwards.
    pub memory_after_bytes: u64,
    /// CPU time of the hub while some clients are busy, in CPUs.
    pub busy_cpu_share: f64,
    /// Clients that download.
    pub downloads: Group,
    /// Clients that upload.
    pub uploads: Group,
    /// The log of the hub.
    #[serde(skip)]
    pub said: String,
}

impl Report {
    pub(crate) fn new(load: Load) -> Self {
        Self {
            clients: load.clients,
            connect_s: 0.0,
            leave_cpu_s: 0.0,
            return_s: 0.0,
            memory_before_bytes: 0,
            idle_bytes_per_client: 0.0,
            idle_cpu_share: 0.0,
            memory_busy_bytes: 0,
            memory_after_bytes: 0,
            busy_cpu_share: 0.0,
            downloads: Group::default(),
            uploads: Group::default(),
            said: String::new(),
        }
    }

    pub(crate) fn on_idle(&mut self, before: u64, now: u64, cpu: Duration) {
        self.memory_before_bytes = before;
        self.idle_bytes_per_client = (now as f64 - before as f64) / self.clients as f64;
        self.idle_cpu_share = cpu.as_secs_f64();
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        writeln!(f, "{} clients connected in {:.1} s", self.clients, self.connect_s)?;
        writeln!(
            f,
            "idle: {:.1} KiB of memory each, {:.3} CPUs in all; the hub alone had {:.1} MiB",
            self.idle_bytes_per_client / 1024.0,
            self.idle_cpu_share,
            mib(self.memory_before_bytes)
        )?;
        for (name, group) in [("downloads", &self.downloads), ("uploads", &self.uploads)] {
            if group.clients > 0 {
                writeln!(
                    f,
                    "{} {name}: Jain's index {:.3}; {:.1} Mbit/s in all, least {:.2}, most {:.2}",
                    group.clients,
                    group.fairness,
                    group.total_bps / 1e6,
                    group.least_bps / 1e6,
                    group.most_bps / 1e6
                )?;
            }
        }
        if self.memory_busy_bytes > 0 {
            writeln!(
                f,
                "busy: {:.2} CPUs; memory {:.1} MiB at most, {:.1} MiB afterwards",
                self.busy_cpu_share,
                mib(self.memory_busy_bytes),
                mib(self.memory_after_bytes)
            )?;
        }
        writeln!(
            f,
            "all leave: {:.2} s of CPU time; all return to a restarted hub in {:.1} s",
            self.leave_cpu_s, self.return_s
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_have_index_one_and_a_single_one_its_part() {
        assert_eq!(Group::of(vec![3.0; 7]).fairness, 1.0);
        assert_eq!(Group::of(vec![5.0, 0.0, 0.0, 0.0]).fairness, 0.25);
        assert_eq!(Group::of(Vec::new()).fairness, 0.0);
    }
}
