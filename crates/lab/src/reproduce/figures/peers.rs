//! Our round robin beside a peer's.

use super::super::peers::{cases, whole_goodput_bps};
use super::super::row::{Figure, Origin};
use super::{Material, bars, frame};

/// Goodput and longest wait, for both rules of acknowledgement.
pub fn figures(item: &str, material: Material<'_>) -> Result<Vec<Figure>, String> {
    let all = cases(item)?;
    let mut figures = Vec::new();
    for (variant, title) in [("base", "a SACK per 2 packets"), ("no_delayed_sack", "a SACK each")] {
        let chosen: Vec<_> = all.iter().filter(|c| c.variant == variant).collect();
        let names: Vec<String> = chosen.iter().map(|c| c.short.clone()).collect();
        let id = |what: &str| format!("{item}-{what}-{variant}");
        let heading = |what: &str| format!("{what}, {item}: {title}");
        let label = ("", "Goodput on the wire (Mbit/s)");
        let mut goodput = frame("ns2", &id("goodput"), &heading("Goodput"), label);
        let ours = chosen.iter().map(|c| whole_goodput_bps(&c.key, material.runs));
        let ours = ours.collect::<Result<Vec<f64>, String>>()?;
        let ours = ours.into_iter().map(|bps| bps * 1e-6).collect();
        goodput.series.push(bars("Ropewalk", Origin::Simulated, &names, ours));
        let peer = chosen.iter().map(|c| c.goodput_bps * 1e-6).collect();
        goodput.series.push(bars("ns-2", Origin::Peer, &names, peer));
        let mut wait = frame("ns2", &id("wait"), &heading("Longest wait"), ("", "ms"));
        let ours = chosen.iter().map(|c| Ok(material.runs.get(&c.key)?.result.blocking_time_s.max));
        let ours = ours.collect::<Result<Vec<f64>, String>>()?;
        let ours = ours.into_iter().map(|s| s * 1e3).collect();
        wait.series.push(bars("Ropewalk", Origin::Simulated, &names, ours));
        let peer = chosen.iter().map(|c| c.wait_max_s * 1e3).collect();
        wait.series.push(bars("ns-2", Origin::Peer, &names, peer));
        figures.extend([goodput, wait]);
    }
    Ok(figures)
}
