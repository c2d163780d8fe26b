//! Transfers of other programs over the links, if they are installed.

use std::process::{Command, Stdio};

use ropewalk_lab::validate::Observed;
use ropewalk_scenario::Scenario;
use serde::Deserialize;
use serde_json::Value;

use super::{Conditions, Folder, Line, NoFigures, counted, emulate, read};
use crate::failure::Failure;

/// Another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherProgram {
    /// iperf3 with TCP.
    Iperf3,
    /// `quinn-peer` of Ropewalk's benchmarks: QUIC with quinn.
    Quinn,
    /// `usrsctp-peer` of Ropewalk's tests: CMT-SCTP with usrsctp, unencrypted.
    Usrsctp,
}

/// Output of the peers of Ropewalk's benchmarks.
#[derive(Deserialize)]
struct Counted {
    bytes: Option<f64>,
    seconds: Option<f64>,
    goodput_bps: Option<f64>,
}

impl OtherProgram {
    /// The program.
    pub const fn command(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Quinn => "quinn-peer",
            Self::Usrsctp => "usrsctp-peer",
        }
    }

    /// Whether it uses all paths.
    pub const fn is_multipath(self) -> bool {
        matches!(self, Self::Usrsctp)
    }

    /// Whether it is installed.
    pub fn is_installed(self) -> bool {
        let mut command = Command::new(self.command());
        let quiet = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
        quiet.stderr(Stdio::null()).status().is_ok()
    }

    /// Runs a transfer over the path with index `path`, or over all if the program uses them. Also returns the
    /// conditions of the run.
    ///
    /// # Errors
    /// The emulation or the program failed, or no attempt counted.
    pub fn run(
        self,
        scenario: &Scenario,
        path: usize,
        seed: u64,
    ) -> Result<(Observed, Conditions), NoFigures> {
        counted(scenario, seed, |seed| self.attempt(scenario, path + 1, seed))
    }

    fn attempt(
        self,
        scenario: &Scenario,
        place: usize,
        seed: u64,
    ) -> Result<(Observed, Conditions), Failure> {
        let folder = Folder::new(None)?;
        let (out, certificate) = (folder.file("out.json"), folder.file("certificate"));
        let (out_name, certificate) = (out.display(), certificate.display());
        let transfer = &scenario.transfer;
        let (warmup, buffer) = (transfer.warmup.as_secs_f64(), transfer.receive_buffer);
        let time = transfer.duration.as_secs_f64();
        let all = |side: &str| {
            let each: Vec<String> =
                (1..=scenario.paths.len()).map(|place| format!("{{{side}{place}}}")).collect();
            each.join(",")
        };
        let (far, near) = match self {
            Self::Iperf3 => (
                "exec iperf3 -s -1".to_owned(),
                format!(
                    "exec iperf3 -c {{remote{place}}} -t {:.0} -O {warmup:.0} -J > '{out_name}'",
                    time - warmup
                ),
            ),
            // It has no warm-up and no option for the buffer.
            Self::Quinn => (
                format!(
                    "exec quinn-peer recv {{local{place}}}:5002 '{certificate}' > '{out_name}'"
                ),
                format!("exec quinn-peer send {{remote{place}}}:5002 '{certificate}' {time}"),
            ),
            Self::Usrsctp => {
                let common = format!(
                    "usrsctp-peer --bind {} --message 1400 --sysctl sctp_cmt_on_off=1 --receive-buffer {buffer} --unordered",
                    all("local")
                );
                let to = all("remote");
                (
                    format!("exec {common} --server --warmup {warmup} > '{out_name}'"),
                    format!(
                        "sleep 0.5; {common} --connect {to} --seconds {time} --finish shutdown; sleep 1"
                    ),
                )
            }
        };
        let conditions = emulate(&folder, scenario, seed, Line { far: Some(&far), near: &near })?;
        let goodput_bps = if self == Self::Iperf3 {
            let document: Value = read(&out)?;
            document["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0)
        } else {
            let counted: Counted = read(&out)?;
            let rate = || Some(counted.bytes? * 8.0 / counted.seconds?.max(1e-9));
            counted.goodput_bps.or_else(rate).unwrap_or(0.0)
        };
        Ok((Observed { goodput_bps, retransmitted: f64::NAN, ..Observed::default() }, conditions))
    }
}
