//! How many cores a server uses.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use clap::Args;
use ropewalk_runtime::endpoint::SHARDS_LIMIT;

/// The shards of a server.
#[derive(Clone, Copy, Debug, Args)]
pub struct ShardArgs {
    /// Parts with their own sockets and associations, which use as many cores [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=SHARDS_LIMIT as i64))]
    shards: Option<u8>,
}

impl ShardArgs {
    /// The number of shards; by default, one for each core that this process may use.
    pub fn count(self) -> usize {
        let cores = || available_parallelism().map_or(1, NonZeroUsize::get).min(SHARDS_LIMIT);
        self.shards.map_or_else(cores, usize::from)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        shards: ShardArgs,
    }

    #[test]
    fn there_is_a_shard_per_core_unless_an_option_says_otherwise() {
        let count = |words: &[&str]| {
            let line = Line::try_parse_from([&["server"], words].concat());
            line.map(|line| line.shards.count()).ok()
        };
        assert!(count(&[]).is_some_and(|shards| (1..=SHARDS_LIMIT).contains(&shards)));
        assert_eq!(count(&["--shards", "3"]), Some(3));
        assert_eq!((count(&["--shards", "0"]), count(&["--shards", "65"])), (None, None));
    }
}
