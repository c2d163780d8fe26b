//! Our round robin compared with a peer's.

use super::super::peers::{PeerCase, cases};
use super::super::row::{Figure, Origin};
use super::{FigureSources, bars};

/// Goodput and waiting times of one run each, for both rules of acknowledgement.
pub fn figures(item: &str, sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    let all = cases(item)?;
    let mut figures = Vec::new();
    for (variant, title) in [("base", "a SACK per 2 packets"), ("no_delayed_sack", "a SACK each")] {
        let chosen: Vec<_> = all.iter().filter(|c| c.variant == variant).collect();
        let names: Vec<String> = chosen.iter().map(|c| c.short.clone()).collect();
        let id = |what: &str| format!("{item}-{what}-{variant}");
        let heading = |what: &str| format!("{what}, {item}: {title}");
        let kinds = [
            ("goodput", "Goodput in steady state", "Goodput on the wire (Mbit/s)", 1e-6),
            ("mean-wait", "Mean wait", "ms", 1e3),
            ("wait", "Longest wait", "ms", 1e3),
        ];
        for (what, title, label, factor) in kinds {
            let peer = |case: &PeerCase| match what {
                "goodput" => case.goodput_steady_bps,
                "mean-wait" => case.wait_mean_s,
                _ => case.wait_max_s,
            };
            let of_run = |case: &PeerCase| {
                let result = &sources.runs.get(&case.keys(item)[0])?.result;
                Ok(match what {
                    "goodput" => result.goodput_wire_bps,
                    "mean-wait" => result.blocking_time_s.mean,
                    _ => result.blocking_time_s.max,
                })
            };
            let mut figure = Figure::empty("ns2", &id(what), &heading(title), ("", label));
            let ours = chosen.iter().map(|case| of_run(case));
            let ours = ours.collect::<Result<Vec<f64>, String>>()?;
            let scaled = |values: Vec<f64>| values.into_iter().map(|v| v * factor).collect();
            figure.series.push(bars("Ropewalk", Origin::Simulated, &names, scaled(ours)));
            let peer = chosen.iter().map(|case| peer(case)).collect();
            figure.series.push(bars("ns-2", Origin::Peer, &names, scaled(peer)));
            figures.push(figure);
        }
    }
    Ok(figures)
}
