//! Measures the figures that the README quotes: `make bench`.

mod random;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let count = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(200);
    let contenders = [
        ("daps", true),
        ("min-rtt", true),
        ("round-robin", true),
        ("daps", false),
        ("min-rtt", false),
        ("round-robin", false),
    ];
    let all = random::ratios(count, &contenders);
    for (i, (name, guard)) in contenders.iter().enumerate() {
        let good = all.iter().filter(|(_, _, r)| r[i] >= 0.98).count();
        let mean: f64 = all.iter().map(|(_, _, r)| r[i].ln()).sum::<f64>() / all.len() as f64;
        println!("{name} guard {guard}: {good} of {} ; geo mean {:.3}", all.len(), mean.exp());
    }
    for (draw, best, r) in &all {
        if r[0] < 0.98 {
            println!(
                "{}: {:.3} of {:.2} Mbit/s (rr {:.3} minrtt {:.3}): {}",
                draw.number,
                r[0],
                best / 1e6,
                r[5],
                r[1],
                draw.describe()
            );
        }
    }
}
