//! This machine's identity: a given key, or the user's default key, which is created on first use.

use std::fs;
use std::path::Path;

use ropewalk_apps::access::default_key;
use ropewalk_runtime::seal::SecretKey;

use crate::console::Console;
use crate::failure::Failure;

/// Reads the given key, otherwise the user's default key.
///
/// # Errors
/// The key cannot be read, or cannot be created.
pub fn identity(given: Option<&Path>, console: Console) -> Result<SecretKey, Failure> {
    if let Some(path) = given {
        return Ok(SecretKey::read_file(path)?);
    }
    let path = default_key().ok_or_else(|| {
        let help = "name a key with --key FILE (`ropewalk keygen FILE` creates one), or set HOME";
        Failure::input("no directory for your key: HOME is not set", help)
    })?;
    if path.exists() {
        return Ok(SecretKey::read_file(&path)?);
    }
    let key = SecretKey::generate().map_err(|error| Failure::Run(error.to_string()))?;
    if let Some(directory) = path.parent() {
        private_directory(directory).map_err(|error| {
            let message = format!("cannot create `{}`: {error}", directory.display());
            Failure::input(
                message,
                "name a key with --key FILE; `ropewalk keygen FILE` creates one",
            )
        })?;
    }
    key.write_new_file(&path)?;
    console.note(format_args!("created your key, which is used by default: {}", path.display()));
    Ok(key)
}

/// Creates a directory that only this user may enter.
///
/// # Errors
/// As the system says.
#[cfg(unix)]
pub fn private_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a directory.
///
/// # Errors
/// As the system says.
#[cfg(not(unix))]
pub fn private_directory(path: &Path) -> std::io::Result<()> {
    fs::create_dir_all(path)
}
