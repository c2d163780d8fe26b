//! Records of other programs: their text, and the keys that they share.

use ropewalk_apps::measure::estimate::LossModel;
use ropewalk_apps::measure::estimate::loss::LossFit;

/// Maximum size of a text, decompressed, bytes.
pub const LARGEST_TEXT: u64 = 256 << 20;
/// The default queue of a scenario, 100 packets of 1500 B, bytes.
const DEFAULT_QUEUE: f64 = 150_000.0;

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
}
