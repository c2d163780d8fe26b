//! Reasons for which a scenario cannot be tuned, with hints.

use ropewalk_models::OutOfRange;
use ropewalk_models::optimise::OptimiseError;

/// Reason for which a scenario has no limits.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TuneError {
    /// The scenario has one path, so there is nothing to divide.
    #[error("`{path}` is the only path: its window has the whole buffer")]
    OnePath {
        /// Name of the path.
        path: String,
    },
    /// Plain SCTP sends on one path at a time.
    #[error("transfer.protocol = \"sctp\" sends on one path at a time: there is nothing to divide")]
    OneAtATime,
    /// Paths cross shared links, and their share is unknown.
    #[error(
        "paths over shared links cannot be tuned ({paths}): no model gives their share of the link",
        paths = .paths.join(", ")
    )]
    SharedLinks {
        /// Names of the paths.
        paths: Vec<String>,
    },
    /// Paths have a wireless hop, and their share of the channel is unknown.
    #[error(
        "paths over 802.11 cannot be tuned ({paths}): no model gives their share of the channel",
        paths = .paths.join(", ")
    )]
    OverTheAir {
        /// Names of the paths.
        paths: Vec<String>,
    },
    /// Several associations share every path.
    #[error("{associations} associations share each path: no model gives the share of one")]
    SharedPaths {
        /// Number of associations.
        associations: u32,
    },
    /// The losses are a list of packets.
    #[error("path `{path}` loses a list of packets, which has no rate")]
    ListedLosses {
        /// Name of the path.
        path: String,
    },
    /// A parameter is outside the models' range.
    #[error("path `{path}`: {error}")]
    Number {
        /// Name of the path.
        path: String,
        /// The parameter.
        error: OutOfRange,
    },
    /// There are so many packets that the computation would take minutes.
    #[error("windows of {packets} packets in total are too many to search")]
    TooLarge {
        /// Sum of all useful windows, packets.
        packets: u64,
    },
    /// There is no allocation.
    #[error(transparent)]
    Optimise(#[from] OptimiseError),
}

impl TuneError {
    /// A hint: what can be done.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::OnePath { .. } => "one path takes the whole buffer; add a second [[path]]",
            Self::OneAtATime => "set transfer.protocol = \"cmt-sctp\"",
            Self::SharedLinks { .. } => {
                "take `via` away and give each path the rate that it has for itself, or compare \
                 limits by simulation: ropewalk compare --vary"
            }
            Self::OverTheAir { .. } => {
                "remove `wifi` and give each path the rate that it has over the air, or compare \
                 limits by simulation: ropewalk compare --vary"
            }
            Self::SharedPaths { .. } => {
                "set world.associations = 1, and each path's rate to its share"
            }
            Self::ListedLosses { .. } => "give a rate instead, such as loss = 1e-3",
            Self::Number { .. } => "change the rate, the delay or the loss of this path",
            Self::TooLarge { .. } => "a smaller packet count is needed: lower rate or round trip",
            Self::Optimise(_) => "enlarge transfer.receive_buffer",
        }
    }
}
