//! Where and when changes were made. Kernel state ends with the boot and with the network namespace; files do not.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A boot of the machine and a network namespace. The first line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Origin {
    boot: Option<String>,
    network: Option<PathBuf>,
}

impl Origin {
    /// The origin of this process.
    pub(super) fn here() -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Self { boot: boot.map(|id| id.trim().to_owned()), network: namespace() }
    }
}

/// The network namespace of this process.
pub(super) fn namespace() -> Option<PathBuf> {
    fs::read_link("/proc/thread-self/ns/net").ok()
}
