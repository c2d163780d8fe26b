//! Checks whether a sender's entries may be created in a folder, by its permissions.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

const NOT_WRITABLE: &str = "the folder is not writable";
const NOT_READABLE: &str = "the receiver cannot read the folder, so its quota cannot be checked";

/// Checks the folders of a list. The list is in the order of names, so successive folders have most of their path in
/// common, and that is checked once.
#[derive(Debug, Default)]
pub struct FolderCheck {
    /// The last existing folder that was checked, and why nothing may be created in it.
    last: Option<(PathBuf, Option<&'static str>)>,
    /// A folder that is readable, as are all folders around it.
    readable: PathBuf,
}

impl FolderCheck {
    /// Why nothing may be created in this folder. A folder that does not exist will be created by the receiver. With
    /// a quota, all folders of the path must be readable, because their contents could not be measured otherwise.
    ///
    /// # Errors
    /// The error of the system.
    pub fn obstacle(
        &mut self,
        root: &Dir,
        folder: &Path,
        has_quota: bool,
    ) -> io::Result<Option<&'static str>> {
        if let Some((last, obstacle)) = &self.last
            && last == folder
        {
            return Ok(*obstacle);
        }
        let is_writable = permits(root, folder, is_writable_at)?;
        let obstacle = match is_writable {
            Some(false) => Some(NOT_WRITABLE),
            _ if has_quota && !self.is_readable(root, folder)? => Some(NOT_READABLE),
            _ => None,
        };
        self.last = is_writable.map(|_| (folder.to_owned(), obstacle));
        Ok(obstacle)
    }

    /// Whether all existing folders of a path are readable.
    fn is_readable(&mut self, root: &Dir, folder: &Path) -> io::Result<bool> {
        let same = |(one, other): &(_, _)| one == other;
        let known = folder.iter().zip(self.readable.iter()).take_while(same).count();
        self.readable = folder.iter().take(known).collect();
        for part in folder.iter().skip(known) {
            self.readable.push(part);
            match permits(root, &self.readable, is_readable_at)? {
                Some(true) => {}
                other => {
                    self.readable.pop();
                    return Ok(other.is_none());
                }
            }
        }
        Ok(true)
    }
}

/// Whether the permissions of a folder pass this check. `None` if it does not exist.
fn permits(root: &Dir, folder: &Path, check: fn(&Dir, &Path) -> bool) -> io::Result<Option<bool>> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match root.open_dir(folder) {
        Ok(dir) => Ok(Some(check(&dir, Path::new(".")))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // The folder cannot be opened, but may have the permission.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(Some(check(root, folder))),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn is_writable_at(dir: &Dir, path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, accessat};
    accessat(dir, path, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(unix)]
fn is_readable_at(dir: &Dir, path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, accessat};
    accessat(dir, path, Access::READ_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(not(unix))]
fn is_writable_at(_: &Dir, _: &Path) -> bool {
    true
}

#[cfg(not(unix))]
fn is_readable_at(_: &Dir, _: &Path) -> bool {
    true
}
