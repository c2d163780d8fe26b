//! Transports that `bench compare` can compare.

use ropewalk_lab::validate::{Flow, Observed};
use ropewalk_runtime::kernel as linux;
use ropewalk_scenario::Scenario;

use crate::commands::emulated::others::OtherProgram;
use crate::commands::emulated::{Conditions, NoFigures, kernel, ropewalk};
use crate::failure::Failure;

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// Ropewalk, sealed.
    Ropewalk {
        /// Whether to send one stream of bytes instead of messages that are delivered as they
        /// arrive.
        in_order: bool,
    },
    /// TCP or Multipath TCP of the kernel.
    Kernel(Flow),
    /// Another program.
    Other(OtherProgram),
}

const fn of_kernel(multipath: bool, congestion: &'static str) -> Contender {
    Contender::Kernel(Flow { multipath, congestion })
}

impl Contender {
    /// All of them, with the names of `--transport`.
    pub const ALL: [(&'static str, Self); 9] = [
        ("ropewalk", Self::Ropewalk { in_order: false }),
        ("ropewalk-in-order", Self::Ropewalk { in_order: true }),
        ("tcp-cubic", of_kernel(false, "cubic")),
        ("tcp-bbr", of_kernel(false, "bbr")),
        ("mptcp-cubic", of_kernel(true, "cubic")),
        ("mptcp-bbr", of_kernel(true, "bbr")),
        ("iperf3", Self::Other(OtherProgram::Iperf3)),
        ("quinn-peer", Self::Other(OtherProgram::Quinn)),
        ("usrsctp-peer", Self::Other(OtherProgram::Usrsctp)),
    ];

    /// The transport with this name.
    ///
    /// # Errors
    /// There is none. The error lists the names.
    pub fn named(text: &str) -> Result<Self, Failure> {
        let found = Self::ALL.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, contender)| contender).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            Failure::input(format!("--transport {text}: unknown"), format!("give some of {names}"))
        })
    }

    /// Its name for `--transport`.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(_, contender)| *contender == self);
        found.map_or("", |(name, _)| name)
    }

    /// Its heading in a table with a row per scenario.
    pub fn heading(self) -> String {
        self.title().replace("Linux ", "").replace("Multipath TCP", "MPTCP").replace(',', "")
    }

    /// Whether it is also simulated.
    pub const fn is_simulated(self) -> bool {
        matches!(self, Self::Ropewalk { .. })
    }

    /// Its name in tables.
    pub fn title(self) -> String {
        match self {
            Self::Ropewalk { in_order: false } => "Ropewalk".to_owned(),
            Self::Ropewalk { in_order: true } => "Ropewalk in order".to_owned(),
            Self::Kernel(Flow { multipath, congestion }) => {
                let protocol = if multipath { "Multipath TCP" } else { "TCP" };
                format!("Linux {protocol}, {congestion}")
            }
            Self::Other(program) => program.command().to_owned(),
        }
    }

    /// Whether it uses all paths.
    pub const fn is_multipath(self) -> bool {
        match self {
            Self::Ropewalk { .. } => true,
            Self::Kernel(flow) => flow.multipath,
            Self::Other(program) => program.is_multipath(),
        }
    }

    /// Why it cannot run over these links on this machine, if it cannot.
    pub fn obstacle(self, scenario: &Scenario) -> Option<String> {
        match self {
            Self::Ropewalk { .. } => None,
            Self::Kernel(Flow { multipath: true, .. }) if scenario.paths.len() < 2 => {
                Some("the scenario has a single path".to_owned())
            }
            Self::Kernel(Flow { multipath: true, .. }) if !linux::has_mptcp() => {
                Some("this kernel has no Multipath TCP (sysctl net.mptcp.enabled)".to_owned())
            }
            Self::Kernel(Flow { congestion, .. }) => {
                let known = linux::congestion_controls();
                let is_known = known.iter().any(|name| name == congestion);
                (!is_known).then(|| {
                    format!("this kernel has no {congestion} (try `modprobe tcp_{congestion}`)")
                })
            }
            Self::Other(program) => (!program.is_installed())
                .then(|| format!("the program {} is not installed", program.command())),
        }
    }

    /// Runs a transfer over the path with index `path`, or over all if the transport uses them. Also returns the
    /// conditions of the run.
    ///
    /// # Errors
    /// The emulation or the transport failed, or no attempt counted.
    pub fn run(
        self,
        scenario: &Scenario,
        path: usize,
        seed: u64,
    ) -> Result<(Observed, Conditions), NoFigures> {
        match self {
            Self::Ropewalk { in_order } => {
                let options = if in_order { "--in-order" } else { "" };
                ropewalk::run(scenario, None, options, seed)
            }
            Self::Kernel(flow) => {
                let path = if flow.multipath { 0 } else { path };
                kernel::run(scenario, flow, path, seed, None)
            }
            Self::Other(program) => program.run(scenario, path, seed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_that_of_one_transport() {
        for (name, contender) in Contender::ALL {
            assert_eq!(Contender::named(name), Ok(contender), "{name}");
            assert_eq!(contender.name(), name);
        }
        let error = Contender::named("tcp-vegas").expect_err("there is none").to_string();
        assert!(error.contains("tcp-cubic, tcp-bbr, mptcp-cubic"), "{error}");
        let mut titles = Contender::ALL.map(|(_, contender)| contender.title()).to_vec();
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), Contender::ALL.len());
    }
}
