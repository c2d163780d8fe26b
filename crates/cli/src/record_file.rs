//! Files of other programs, which may be compressed by gzip.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use ropewalk_apps::measure::gzip::Plain;

use crate::console::Console;

/// Reads a file, and decompresses it if gzip has compressed it. A note says if compressed data was cut off.
///
/// # Errors
/// The file cannot be read, or has more than `largest` bytes.
pub fn read(file: &Path, largest: u64, console: Console) -> io::Result<Vec<u8>> {
    let (content, cut) = content(file, largest)?;
    if cut {
        console.note(format_args!("{}: the compressed data ends too early", file.display()));
    }
    Ok(content)
}

/// The content of a file, decompressed if gzip has compressed it, and whether compressed data was cut off.
fn content(file: &Path, largest: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut plain = Plain::new(BufReader::new(File::open(file)?))?;
    let mut content = Vec::new();
    // Reading one byte more than permitted detects files that are too large, even if their size is unknown.
    plain.by_ref().take(largest + 1).read_to_end(&mut content)?;
    if content.len() as u64 > largest {
        let message = format!("more than {} MiB", largest >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok((content, plain.damage().is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `gzip -9n` of 20 equal lines of ping.
    const COMPRESSED: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x33\x33\x51\x48\xaa\x2c\x49\x2d\x56\x48\x2b\xca\xcf\x55\x30\xb4\x34\xd2\x33\xd0\x33\xd2\x33\xb7\x52\xc8\x4c\xce\x2d\x88\x2f\x4e\x2d\xb4\x35\x54\x28\x29\xc9\xb1\x35\x35\x57\x28\xc9\xcc\x4d\xb5\x35\x36\xd0\x33\x55\xc8\x2d\xe6\x32\x1b\xd5\x37\xaa\x6f\x54\xdf\xa8\x3e\x02\xfa\x00\xe6\x7e\x84\x8a\x60\x04\x00\x00";

    #[test]
    fn a_compressed_text_is_read_up_to_the_limit_and_a_cut_is_known() {
        let file = std::env::temp_dir().join(format!("ropewalk-recorded-{}", std::process::id()));
        let read = |bytes: &[u8], largest| {
            std::fs::write(&file, bytes).expect("written");
            content(&file, largest)
        };
        let line = "64 bytes from 192.0.2.7: icmp_seq=1 ttl=57 time=30.5 ms\n";
        let lines = line.repeat(20).into_bytes();
        assert_eq!(read(COMPRESSED, 1120).expect("read"), (lines.clone(), false));
        assert_eq!(read(&lines, 1120).expect("read"), (lines.clone(), false));
        let (part, cut) = read(&COMPRESSED[..COMPRESSED.len() - 9], 1120).expect("read");
        assert!(cut && lines.starts_with(&part));
        for whole in [COMPRESSED, &lines] {
            let error = read(whole, 1119).expect_err("too large");
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        }
        std::fs::remove_file(&file).expect("removed");
    }
}
