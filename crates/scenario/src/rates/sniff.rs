//! Distinguishes text from other files, and names the readers of known other kinds.

use std::borrow::Cow;

use super::RateLogError;

/// Number of bytes at the beginning by which other kinds of files are recognised.
const HEAD: usize = 4096;

/// The content as text, without a byte order mark, and with line feeds as the only line ends.
pub(super) fn text(content: &[u8]) -> Result<Cow<'_, str>, RateLogError> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    if content.starts_with(b"\xff\xfe") || content.starts_with(b"\xfe\xff") {
        let message = "the text is encoded in UTF-16";
        return Err(RateLogError::new(0, message, "save it as UTF-8"));
    }
    if let Some((kind, help)) = other_kind(content) {
        return Err(RateLogError::new(0, format!("it is {kind}, not a log of rates"), help));
    }
    if content.contains(&0) {
        return Err(RateLogError::unknown("it is a binary file"));
    }
    let text = std::str::from_utf8(content).map_err(|error| {
        let before = &content[..error.valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let message = "this line is not UTF-8 text";
        RateLogError::new(line, message, "if the file is text, save it as UTF-8")
    })?;
    Ok(if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    })
}

/// Name and reader of a file of another kind.
fn other_kind(content: &[u8]) -> Option<(&'static str, &'static str)> {
    const CAPTURES: [&[u8]; 5] = [
        b"\xd4\xc3\xb2\xa1",
        b"\xa1\xb2\xc3\xd4",
        b"\x4d\x3c\xb2\xa1",
        b"\xa1\xb2\x3c\x4d",
        b"\x0a\x0d\x0d\x0a",
    ];
    if CAPTURES.iter().any(|magic| content.starts_with(magic)) {
        return Some(("a packet capture", "read it with `ropewalk measure --from-pcap FILE`"));
    }
    let compressed: [&[u8]; 4] = [b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh"];
    if compressed.iter().any(|magic| content.starts_with(magic)) {
        return Some(("a compressed file", "decompress it first"));
    }
    if content.starts_with(b"PAR1") {
        return Some(("a Parquet file", "write it as CSV with columns of time and rate"));
    }
    let head = String::from_utf8_lossy(&content[..content.len().min(HEAD)]);
    if head.trim_start().starts_with('{') {
        return Some((
            "a JSON document",
            "read that of iperf3 with `ropewalk measure --from-iperf3 FILE`; write others as CSV with columns of time and rate",
        ));
    }
    if head.contains("bytes from ") && head.contains("time=") {
        return Some((
            "the output of ping",
            "read it with `ropewalk measure --from-ping FILE`; it has no rates",
        ));
    }
    let is_scenario = |line: &str| line.trim() == "[[path]]" || line.trim() == "[transfer]";
    if head.lines().any(is_scenario) {
        return Some(("a scenario", "run it with `ropewalk run FILE`"));
    }
    None
}
