//! Values of the system that tunnels set, such as those below `/proc/sys`. Several tunnels may need the same one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::origin::namespace;
use super::{Change, Journal, JournalError, lock};

impl Journal {
    /// The values that this tunnel has set: the files, and what they held before.
    pub fn values(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.changes.iter().filter_map(|change| match change {
            Change::Value { file, before, .. } => Some((file.as_path(), before.as_str())),
            _ => None,
        })
    }

    /// Writes a value of the system, unless it is set. If `switch` has changed by the end, the value stays: another
    /// program has since set it for all interfaces.
    ///
    /// # Errors
    /// The error of the system.
    pub fn set(
        &mut self,
        file: &Path,
        value: &str,
        switch: Option<&Path>,
    ) -> Result<(), JournalError> {
        let failed = |error| JournalError::Io(file.to_owned(), error);
        let now = read_value(file).map_err(failed)?;
        let is_known = self.changes.iter().any(|change| change.sets(file, value));
        if !is_known {
            let _lock = lock(self.directory()).map_err(failed)?;
            let shared = self.others().flat_map(|(_, all)| all);
            let shared = shared.into_iter().find(|change| change.sets(file, value));
            if shared.is_none() && now == value {
                return Ok(());
            }
            let switch = switch.and_then(|switch| Some((switch, read_value(switch).ok()?)));
            let new = || Change::Value {
                file: file.to_owned(),
                before: now.clone(),
                after: value.to_owned(),
                switch: switch.map(|(switch, held)| (switch.to_owned(), held)),
                namespace: namespace(),
            };
            self.write(&shared.unwrap_or_else(new))?;
        }
        if now == value {
            return Ok(());
        }
        fs::write(file, value).map_err(failed)
    }

    /// Writes a switch of the system that also sets the values of all interfaces. These are restored with it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn set_switch(
        &mut self,
        switch: &Path,
        value: &str,
        interfaces: &[PathBuf],
    ) -> Result<(), JournalError> {
        let failed = |error| JournalError::Io(switch.to_owned(), error);
        let lock = lock(self.directory()).map_err(failed)?;
        // Once the switch is on, the previous values of the interfaces are only known from another journal.
        let others: Vec<Change> = self.others().flat_map(|(_, all)| all).collect();
        let off = match others.iter().find(|change| change.sets(switch, value)) {
            Some(Change::Value { before, .. }) => before.clone(),
            _ => read_value(switch).map_err(failed)?,
        };
        for file in interfaces {
            let inherited = others.iter().find(|change| change.sets(file, &off));
            let is_off = off != value && read_value(switch).is_ok_and(|now| now == off);
            let is_other = is_off && read_value(file).is_ok_and(|now| now == value);
            let new = || Change::Value {
                file: file.clone(),
                before: value.to_owned(),
                after: off.clone(),
                switch: None,
                namespace: namespace(),
            };
            let change = inherited.cloned().or_else(|| is_other.then(new));
            if let Some(change) = change.filter(|change| !self.changes.contains(change)) {
                self.write(&change)?;
            }
        }
        drop(lock);
        self.set(switch, value, None)
    }
}

impl Change {
    /// Whether this sets a value of the system, in this network namespace, to `value`.
    fn sets(&self, wanted: &Path, value: &str) -> bool {
        let Self::Value { file, after, namespace: place, .. } = self else { return false };
        file == wanted && after == value && *place == namespace()
    }
}

pub(super) fn read_value(file: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(file)?.trim().to_owned())
}
