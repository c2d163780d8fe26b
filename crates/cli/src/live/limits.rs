//! Limits on the resources that peers can use on a server.

use clap::Args;
use ropewalk_runtime::endpoint::{Admission, Limits};
use ropewalk_scenario::parse_size;

use super::reload::Commit;
use crate::failure::Failure;

/// Limits of a server's endpoint. The defaults are those of [`Limits`].
#[derive(Clone, Debug, Args)]
pub struct LimitArgs {
    /// Most associations that peers have open at a time
    #[arg(long, help_heading = "Limits", value_name = "N", default_value_t = Limits::default().associations)]
    associations: usize,
    /// Most associations of one key at a time
    #[arg(long, help_heading = "Limits", value_name = "N", default_value_t = Limits::default().associations_per_key)]
    associations_per_key: usize,
    /// Most associations of one network (IPv4 /24, IPv6 /56) at a time
    #[arg(long, help_heading = "Limits", value_name = "N", default_value_t = Limits::default().associations_per_prefix)]
    associations_per_prefix: usize,
    /// Most memory of all associations: 20 KiB each, plus the data in their receive buffers
    #[arg(long, help_heading = "Limits", value_name = "SIZE", default_value = "256 MiB", value_parser = parse_size)]
    memory: u64,
}

impl LimitArgs {
    /// The names of its options.
    pub const NAMES: &'static [&'static str] =
        &["associations", "associations-per-key", "associations-per-prefix", "memory"];

    /// Checks the limits, for an endpoint that runs. `apply` learns of them when they apply.
    ///
    /// # Errors
    /// The limits would not admit a single association.
    pub fn check(
        &self,
        admission: &Admission,
        apply: impl FnOnce(&Limits) + Send + 'static,
    ) -> Result<Option<Commit>, Failure> {
        let (limits, admission) = (self.limits()?, admission.clone());
        Ok(Some(Box::new(move || {
            apply(&limits);
            admission.set_limits(limits);
            Ok(())
        })))
    }

    /// The limits as the endpoint takes them.
    ///
    /// # Errors
    /// The limits would not admit a single association.
    pub fn limits(&self) -> Result<Limits, Failure> {
        let counts = [
            ("--associations", self.associations),
            ("--associations-per-key", self.associations_per_key),
            ("--associations-per-prefix", self.associations_per_prefix),
        ];
        if let Some((option, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(Failure::input(format!("{option} 0 admits no peer"), "give at least 1"));
        }
        if self.memory < Limits::BASE_COST {
            let message = format!("--memory {} B is too small for an association", self.memory);
            return Err(Failure::input(message, "give at least 20 KiB; 256 MiB is the default"));
        }
        Ok(Limits {
            associations: self.associations,
            associations_per_key: self.associations_per_key,
            associations_per_prefix: self.associations_per_prefix,
            memory: self.memory,
            ..Limits::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        limits: LimitArgs,
    }

    fn limits(words: &[&str]) -> Result<Limits, Failure> {
        Line::parse_from([&["server"], words].concat()).limits.limits()
    }

    #[test]
    fn without_options_the_limits_are_the_defaults_of_the_endpoint() {
        assert_eq!(limits(&[]).expect("the defaults"), Limits::default());
    }

    #[test]
    fn each_option_sets_its_limit_and_none_may_keep_out_everybody() {
        let words = ["--associations", "7", "--associations-per-key", "5", "--memory", "1 MiB"];
        let found = limits(&words).expect("limits");
        assert_eq!((found.associations, found.associations_per_key), (7, 5));
        assert_eq!((found.associations_per_prefix, found.memory), (1024, 1 << 20));
        for wrong in
            [["--associations", "0"], ["--associations-per-prefix", "0"], ["--memory", "1 kB"]]
        {
            assert!(limits(&wrong).is_err(), "{wrong:?}");
        }
    }
}
