//! Records of other programs: their text, and the keys that they share.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use ropewalk_apps::measure::estimate::LossModel;
use ropewalk_apps::measure::estimate::loss::LossFit;
use ropewalk_apps::measure::gzip::Plain;

/// Maximum size of a text, decompressed, bytes.
pub const LARGEST_TEXT: u64 = 256 << 20;
/// The default queue of a scenario, 100 packets of 1500 B, bytes.
const DEFAULT_QUEUE: f64 = 150_000.0;

/// The content of a file, decompressed if gzip has compressed it, and whether compressed data was cut off.
///
/// # Errors
/// The file cannot be read, or has more than `largest` bytes.
pub fn content(file: &Path, largest: u64) -> io::Result<(Vec<u8>, bool)> {
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

/// The text in these bytes. Programs of Windows write UTF-16, or code pages whose letters beyond ASCII do not matter.
pub fn text(content: &[u8]) -> String {
    let units = |unit: fn([u8; 2]) -> u16| {
        let pairs = content[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        String::from_utf16_lossy(&pairs.collect::<Vec<u16>>())
    };
    match content {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        _ => String::from_utf8_lossy(content).into_owned(),
    }
}

/// A queue with a known lower bound. It becomes a key only if it exceeds the default of scenarios: a queue of
/// exactly the bound would drop packets that the real one has kept.
pub fn queue_bound(suffix: &str, bytes: f64, rise_s: f64) -> String {
    let rise = rise_s * 1e3;
    if bytes > DEFAULT_QUEUE {
        return format!(
            "# Lower bound: the round trip rose by {rise:.1} ms.\nqueue{suffix} = \"{bytes:.0} B\"\n"
        );
    }
    format!(
        "# queue{suffix}: not known, at least {bytes:.0} B, because the round trip rose by {rise:.1} ms. The default of \
         100 packets applies.\n"
    )
}

/// The key `loss` of a path, with the evidence for bursts before it.
pub fn loss_key(loss: &LossFit) -> String {
    match loss.model {
        LossModel::Bernoulli { rate } => format!("loss = {rate:.6}\n"),
        LossModel::GilbertElliott { p, r, bad } => format!(
            "# Bursts of {:.2} on average; log-likelihood {:.1} above that of independent losses.\n\
             loss = {{ model = \"gilbert-elliott\", p = {p:.6}, r = {r:.6}, bad = {bad:.4} }}\n",
            loss.burst_mean, loss.log_likelihood_gain
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_from_each_encoding_that_programs_write() {
        let said = "Antwort von ::1: Zeit<1ms";
        let units =
            |unit: fn(u16) -> [u8; 2]| said.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
        let [little, big] = [units(u16::to_le_bytes), units(u16::to_be_bytes)];
        assert_eq!(text(&[&[0xff, 0xfe], &little[..]].concat()), said);
        assert_eq!(text(&[&[0xfe, 0xff], &big[..]].concat()), said);
        assert_eq!(text(said.as_bytes()), said);
        assert!(text(b"Zeit\x81berschreitung").contains("berschreitung"));
        assert_eq!(text(b"\xff\xfe"), "");
    }

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
