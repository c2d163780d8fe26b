//! The program that `ropewalk preload` runs: whether it can be run, and whether the library can be
//! loaded into it.

use std::env;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Exit statuses of a shell, `env` and `timeout` for a program that cannot be run, and for a missing program.
const CANNOT_RUN: u8 = 126;
const MISSING: u8 = 127;

/// Bits of a file's mode: set-user-ID, set-group-ID, and permission to execute.
const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const EXECUTE: u32 = 0o111;

/// Finds a program as the system does: a name without a slash in the directories of `PATH`.
pub fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|directory| directory.join(name));
    found.filter(|path| path.is_file()).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.permissions().mode() & EXECUTE != 0)
}

/// Why a program was not run, with the corresponding exit status.
pub fn failure(name: &OsStr, error: &io::Error) -> Failure {
    let shown = name.to_string_lossy();
    let path = Path::new(name);
    let (status, why, help) = match error.kind() {
        io::ErrorKind::NotFound if path.is_file() => {
            let help = "its first line, or its header, names a program that is missing";
            (MISSING, "its interpreter is missing".to_owned(), help)
        }
        io::ErrorKind::NotFound => {
            (MISSING, "there is no such program".to_owned(), "is it installed?")
        }
        _ if path.is_dir() => (CANNOT_RUN, "it is a directory".to_owned(), "name a program in it"),
        io::ErrorKind::PermissionDenied if path.is_file() && !is_executable(path) => (
            CANNOT_RUN,
            "it is not executable".to_owned(),
            "name a program, or make it executable with chmod +x",
        ),
        _ => {
            (CANNOT_RUN, error.to_string(), "name a program that this user may run on this machine")
        }
    };
    Failure::NotRun(status, format!("cannot run `{shown}`: {why}\n = help: {help}"))
}

/// Why the library cannot be loaded into a program that can be run. `None` if it may be. `user`: the real
/// user and group.
pub fn obstacle(path: &Path, user: (u32, u32)) -> Option<String> {
    let file = path.metadata().ok()?;
    let head = head_of(path).ok()?;
    if let Some(interpreter) = interpreter_of(&head) {
        // The bits of a script have no effect.
        let head = head_of(&interpreter).ok()?;
        return is_static(&head).then(|| format!("{} is linked statically", interpreter.display()));
    }
    let shown = path.display();
    if is_static(&head) {
        return Some(format!("{shown} is linked statically"));
    }
    let bit = changes_user(&file, user)?;
    Some(format!("{shown} has the {bit} bit, so the system's loader ignores preloaded libraries"))
}

/// The mode bit by which a program runs as another user or group than its caller.
fn changes_user(file: &Metadata, (uid, gid): (u32, u32)) -> Option<&'static str> {
    let mode = file.permissions().mode();
    if mode & SET_USER_ID != 0 && file.uid() != uid {
        return Some("set-user-ID");
    }
    (mode & SET_GROUP_ID != 0 && file.gid() != gid).then_some("set-group-ID")
}

/// The beginning of a file. The program headers of an ELF file follow its header.
fn head_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(4096).read_to_end(&mut head)?;
    Ok(head)
}

/// The interpreter of a script.
fn interpreter_of(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.next().map(|word| PathBuf::from(OsStr::from_bytes(word)))
}

/// Type of the program header that names the loader (System V ABI, ELF, 5).
const PT_INTERP: u32 = 3;

/// Whether this is the head of a statically linked ELF program. Without a loader, it cannot preload libraries.
/// False if unknown.
fn is_static(head: &[u8]) -> bool {
    types_of_headers(head).is_some_and(|types| !types.is_empty() && !types.contains(&PT_INTERP))
}

/// Types of the program headers of an ELF file. `None` if it is not an ELF file, or if `head` does
/// not contain all of them.
fn types_of_headers(head: &[u8]) -> Option<Vec<u32>> {
    let rest = head.strip_prefix(b"\x7fELF")?;
    let (wide, little) = (*rest.first()? == 2, *rest.get(1)? == 1);
    let number = |at: usize, length: usize| -> Option<u64> {
        let bytes = head.get(at..at.checked_add(length)?)?;
        let join = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) })
    };
    // Offset of the headers, size of one, and their number.
    let (first, size, count) = match wide {
        true => (number(32, 8)?, number(54, 2)?, number(56, 2)?),
        false => (number(28, 4)?, number(42, 2)?, number(44, 2)?),
    };
    let at = |index: u64| usize::try_from(first.checked_add(index.checked_mul(size)?)?).ok();
    (0..count).map(|index| number(at(index)?, 4).map(|kind| kind as u32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of an ELF file with program headers of these types.
    fn elf(wide: bool, little: bool, types: &[u32]) -> Vec<u8> {
        let (header, size) = if wide { (64_usize, 56_usize) } else { (52, 32) };
        let mut head = vec![0; header + size * types.len()];
        head[..6].copy_from_slice(&[
            0x7f,
            b'E',
            b'L',
            b'F',
            1 + u8::from(wide),
            2 - u8::from(little),
        ]);
        let mut put = |at: usize, length: usize, value: usize| {
            for i in 0..length {
                let shift = 8 * if little { i } else { length - 1 - i };
                head[at + i] = (value >> shift) as u8;
            }
        };
        let [offset, entry, count] = if wide { [32, 54, 56] } else { [28, 42, 44] };
        put(offset, if wide { 8 } else { 4 }, header);
        put(entry, 2, size);
        put(count, 2, types.len());
        for (i, kind) in types.iter().enumerate() {
            put(header + i * size, 4, *kind as usize);
        }
        head
    }

    #[test]
    fn a_program_without_a_loader_is_linked_statically() {
        for (wide, little) in [(true, true), (true, false), (false, true), (false, false)] {
            for (types, expected) in
                [(&[6, 3, 1, 2][..], false), (&[1, 1, 4], true), (&[1, 3], false), (&[], false)]
            {
                let head = elf(wide, little, types);
                assert_eq!(is_static(&head), expected, "{wide} {little} {types:?}");
                // Truncated anywhere, it is not classified wrongly.
                let cut = (0..head.len()).any(|length| is_static(&head[..length]));
                assert!(!cut || expected, "{wide} {little} {types:?}");
            }
        }
        assert!(!is_static(b"#!/bin/sh\n") && !is_static(b""));
    }

    #[test]
    fn a_script_names_its_interpreter() {
        for (head, expected) in [
            (&b"#!/bin/sh\necho"[..], Some("/bin/sh")),
            (b"#! /usr/bin/env python3", Some("/usr/bin/env")),
            (b"#!\n", None),
            (b"\x7fELF", None),
        ] {
            assert_eq!(interpreter_of(head), expected.map(PathBuf::from), "{head:?}");
        }
    }
}
