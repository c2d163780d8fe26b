//! The machine on which the figures were measured.

use std::fs::read_to_string;

use serde::Serialize;

/// Load above which other programs affect the measured times.
const QUIET: f64 = 1.5;

/// Properties of the machine at the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// Model of the first processor. `None` if the system does not report it.
    pub cpu: Option<String>,
    /// Cores that this process may use.
    pub cores: usize,
    /// Load average of the last minute.
    pub load: Option<f64>,
    /// Whether the binary was built with profile-guided optimisation (`benches/pgo.py`).
    pub profile_guided: bool,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
}

impl Machine {
    /// Reads the properties from the system.
    pub fn read() -> Self {
        let cpu = read_to_string("/proc/cpuinfo").ok().and_then(|text| model(&text));
        let load = read_to_string("/proc/loadavg").ok().and_then(|text| first_number(&text));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let warnings = warnings(load, cfg!(debug_assertions));
        let profile_guided = option_env!("ROPEWALK_PROFILE_GUIDED").is_some();
        Self { cpu, cores, load, profile_guided, warnings }
    }

    /// The properties in one line.
    pub fn line(&self) -> String {
        let cpu = self.cpu.as_deref().unwrap_or("unknown processor");
        let load = self.load.map_or_else(|| "unknown".to_owned(), |load| format!("{load:.2}"));
        let build = if self.profile_guided { "profile-guided" } else { "plain release" };
        format!("{cpu}, cores: {}, load average at the start: {load}; {build} build.", self.cores)
    }
}

fn warnings(load: Option<f64>, unoptimised: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(load) = load.filter(|load| *load > QUIET) {
        warnings.push(format!(
            "load average {load:.2} is above {QUIET}: other programs share the caches and cores, so \
             times are longer than on a quiet machine"
        ));
    }
    if unoptimised {
        warnings.push("built without optimisation: use `--release`".to_owned());
    }
    warnings
}

fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_read_from_the_list_of_processors() {
        let text = "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\nflags\t: fpu\n";
        assert_eq!(model(text).as_deref(), Some("Fast CPU @ 3 GHz"));
        assert_eq!(model("processor : 0\n"), None);
    }

    #[test]
    fn a_busy_machine_and_a_slow_build_are_warned_of() {
        assert!(warnings(Some(1.5), false).is_empty() && warnings(None, false).is_empty());
        assert!(warnings(Some(1.6), false)[0].starts_with("load average 1.60"));
        assert_eq!(warnings(Some(0.0), true).len(), 1);
        assert_eq!(first_number("5.89 6.33 6.08 6/127 7822\n"), Some(5.89));
    }
}
