//! A thousand associations over one bottleneck: CPU time per packet, and memory per idle
//! association.

use crate::memory;
use crate::row::{Findings, Row};
use crate::runs::{fastest, grouped};

const ASSOCIATIONS: u32 = 1_000;
/// Maximum CPU time per packet with a thousand associations, relative to one association.
const COST: f64 = 2.0;
/// Maximum memory of an idle association, with both ends and all links.
const IDLE_BYTES: f64 = 20_000.0;

/// Two paths of 1 and 0.5 Mbit/s per association, through a bottleneck slightly slower than their
/// sum. Its rate and queue grow with the number of associations, so each behaves as if it were
/// alone.
fn scenario(associations: u32, seconds: u32) -> String {
    let (kilobits, queue) = (1_200 * u64::from(associations), 20 * u64::from(associations));
    format!(
        "[transfer]\nduration = \"{seconds} s\"\nscheduler = \"daps\"\nreceive_buffer = \"64 KiB\"\n\
         [[path]]\nname = \"a\"\nrate = \"1 Mbit/s\"\nrtt = \"20 ms\"\nqueue = \"20 packets\"\n\
         via = [\"dumbbell\"]\n\
         [[path]]\nname = \"b\"\nrate = \"0.5 Mbit/s\"\nrtt = \"60 ms\"\nqueue = \"20 packets\"\n\
         via = [\"dumbbell\"]\n\
         [[link]]\nname = \"dumbbell\"\nrate = \"{kilobits} kbit/s\"\ndelay = \"5 ms\"\n\
         queue = \"{queue} packets\"\n\
         [world]\nassociations = {associations}\nstagger = \"1 ms\"\n"
    )
}

pub fn measure() -> Result<Findings, String> {
    eprintln!("  many: one association");
    // A single association runs for longer, to take a measurable time.
    let one = fastest(3, &scenario(1, 6_000), &[])?.engine;
    eprintln!("  many: {ASSOCIATIONS} associations");
    let all = fastest(2, &scenario(ASSOCIATIONS, 60), &[])?.engine;
    let cost = |seconds: f64, packets: u64| seconds / packets as f64;
    let ratio = cost(all.cpu_s, all.packets) / cost(one.cpu_s, one.packets);
    let told = |what: String, packets: u64, seconds: f64| {
        let micros = cost(seconds, packets) * 1e6;
        let text =
            format!("{micros:.2} µs ({} packets in {seconds:.2} s)", grouped(packets as f64));
        Row::told(what, micros, text)
    };
    let mut findings = Findings::default();
    findings.rows.push(told(
        "one association: CPU time per packet".to_owned(),
        one.packets,
        one.cpu_s,
    ));
    let what = format!("{ASSOCIATIONS} associations, 60 s: CPU time per packet");
    findings.rows.push(told(what, all.packets, all.cpu_s));
    let row = Row::told("cost of a packet, a thousand over one", ratio, format!("{ratio:.2}"));
    findings.rows.push(row.with_target(format!("<= {COST:.0}"), ratio <= COST));
    findings.rows.push(idle());
    Ok(findings)
}

fn idle() -> Row {
    eprintln!("  many: idle associations");
    let what = "memory per idle association, both ends and the links of two paths";
    match memory::per_association() {
        Ok(bytes) => Row::told(what, bytes, format!("{:.1} kB", bytes / 1e3))
            .with_target(format!("< {:.0} kB", IDLE_BYTES / 1e3), bytes < IDLE_BYTES),
        Err(reason) => Row::skipped(what, reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::simulate;

    #[test]
    fn associations_among_others_fare_as_one_alone() {
        let one = simulate(&scenario(1, 20), &[]).unwrap().goodput_bps;
        let ten = simulate(&scenario(10, 20), &[]).unwrap().goodput_bps / 10.0;
        assert!((ten / one - 1.0).abs() < 0.1, "{one} alone, {ten} among ten");
    }
}
