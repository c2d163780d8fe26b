//! A transfer over the kernel's TCP or Multipath TCP.

use std::path::Path;

use ropewalk_lab::validate::{
    Flow, Observed, PathObserved, Trace, TracePath, TraceWindow, kernel_congestion, median,
};
use ropewalk_runtime::kernel::{Received, Sent, SocketSample, SocketSamples};
use ropewalk_scenario::Scenario;

use super::{Conditions, Folder, Line, NoFigures, counted, emulate, own, read};
use crate::failure::Failure;

/// Port of the receiver.
const PORT: u16 = 5001;

/// Runs the kernel's transport to the receiver's address on the path with index `path`. Also returns the
/// conditions of the run. If there is a folder `kept`, the samples remain in it.
///
/// # Errors
/// The emulation failed, or no attempt counted.
pub fn run(
    scenario: &Scenario,
    flow: Flow,
    path: usize,
    seed: u64,
    kept: Option<&Path>,
) -> Result<(Observed, Conditions), NoFigures> {
    counted(scenario, seed, |seed| attempt(scenario, flow, path, seed, kept))
}

/// Initial commands of the receiver's shell, and the option for the receive buffer. The kernel tunes a buffer
/// within the limits of `net.ipv4.tcp_rmem`, which each namespace has separately.
fn buffer(scenario: &Scenario) -> (String, String) {
    let first = scenario.transfer.receive_buffer;
    match scenario.tcp.receive_buffer_max {
        None => (String::new(), format!("--buffer {first}")),
        Some(most) => {
            let limits = format!("4096 {first} {}", most.max(first));
            (format!("echo '{limits}' > /proc/sys/net/ipv4/tcp_rmem && "), String::new())
        }
    }
}

fn attempt(
    scenario: &Scenario,
    flow: Flow,
    path: usize,
    seed: u64,
    kept: Option<&Path>,
) -> Result<(Observed, Conditions), Failure> {
    let folder = Folder::new(kept)?;
    let (far, near) = (folder.file("receiver.json"), folder.file("sender.json"));
    let flows = scenario.world.associations as usize;
    let seconds = scenario.transfer.duration.as_secs_f64();
    let (own, time) = (own()?, format!("--time '{seconds} s'"));
    let (mptcp, limits) = match flow.multipath {
        true => ("--mptcp", "ip mptcp limits set subflow 8 add_addr_accepted 8 && "),
        false => ("", ""),
    };
    let (tune, buffer) = buffer(scenario);
    let receive = format!(
        "{tune}{limits}exec '{own}' kernel-peer receive --listen 0.0.0.0:{PORT} --flows {flows} {buffer} {mptcp} {time} --out '{}'",
        far.display()
    );
    let endpoints = if flow.multipath {
        "for i in $(seq 2 $ROPEWALK_PATHS); do eval ip mptcp endpoint add \\$ROPEWALK_LOCAL_$i dev \\$ROPEWALK_DEVICE_$i subflow || exit 1; done && "
    } else {
        ""
    };
    let others = scenario.world.other_congestion.and_then(kernel_congestion);
    let each = (0..flows).map(|flow_number| match (flow_number, others) {
        (1.., Some(other)) => format!(" --congestion {other}"),
        _ => format!(" --congestion {}", flow.congestion),
    });
    let congestion: String = each.collect();
    // The receiver ends slightly later, and then writes its results.
    let send = format!(
        "{limits}{endpoints}'{own}' kernel-peer send --to {{remote{}}}:{PORT}{congestion} {mptcp} {time} --out '{}' && sleep 0.5",
        path + 1,
        near.display()
    );
    let conditions = emulate(&folder, scenario, seed, Line { far: Some(&receive), near: &send })?;
    let (sent, received): (Sent, Received) = (read(&near)?, read(&far)?);
    let names: Vec<String> = scenario.paths.iter().map(|path| path.name.clone()).collect();
    Ok((observed(&sent, &received, &names, scenario), conditions))
}

/// The name of the path whose device has the address: the third number of `10.77.N.1`.
fn path_of<'a>(socket: &SocketSample, names: &'a [String]) -> Option<&'a String> {
    let std::net::IpAddr::V4(own) = socket.local.ip() else { return None };
    names.get((own.octets()[2] as usize).checked_sub(1)?)
}

fn observed(sent: &Sent, received: &Received, names: &[String], scenario: &Scenario) -> Observed {
    let warm_s = sent.began_s + scenario.transfer.warmup.as_secs_f64();
    let end_s = sent.began_s + scenario.transfer.duration.as_secs_f64();
    let within = |at: f64| at >= warm_s && at <= end_s + 0.05;
    // Only the first flow, if the others have another congestion control.
    let counted = if scenario.world.other_congestion.is_some() { 1 } else { usize::MAX };
    let arrived = |bytes: &[u64]| bytes.iter().take(counted).sum();
    let arrivals: Vec<(f64, u64)> =
        received.samples.iter().map(|one| (one.at_s, arrived(&one.bytes))).collect();
    let measured: Vec<&(f64, u64)> = arrivals.iter().filter(|(at, _)| within(*at)).collect();
    let goodput_bps = match (measured.first(), measured.last()) {
        (Some(first), Some(last)) if last.0 > first.0 => {
            (last.1 - first.1) as f64 * 8.0 / (last.0 - first.0)
        }
        _ => 0.0,
    };
    let later: Vec<_> = sent.samples.iter().filter(|sample| within(sample.at_s)).collect();
    let grown = |count: fn(&SocketSample) -> u64, of: &dyn Fn(&SocketSample) -> bool| {
        let sum = |sample: &&SocketSamples| -> u64 {
            sample.sockets.iter().filter(|socket| of(socket)).map(count).sum()
        };
        let [first, last] = [later.first(), later.last()].map(|one| one.map_or(0, sum));
        last.saturating_sub(first) as f64
    };
    let all = |_: &SocketSample| true;
    let (bytes, again) = (grown(|s| s.bytes_sent, &all), grown(|s| s.bytes_retrans, &all));
    let acked = grown(|s| s.bytes_acked, &all);
    let path = |name: &String| {
        let own = |socket: &SocketSample| path_of(socket, names) == Some(name);
        let trips = later.iter().flat_map(|sample| sample.sockets.iter().filter(|s| own(s)));
        PathObserved {
            name: name.clone(),
            share: grown(|s| s.bytes_acked, &own) / acked.max(1.0),
            rtt_s: median(trips.filter_map(|socket| socket.srtt_s).collect()),
        }
    };
    let windows = later.iter().flat_map(|sample| sample.sockets.iter().map(|s| s.snd_wnd));
    Observed {
        goodput_bps,
        retransmitted: again / bytes.max(1.0),
        paths: names.iter().map(path).collect(),
        receive_window_bytes: windows.max(),
        trace: trace(sent, &arrivals, names),
    }
}

fn trace(sent: &Sent, arrivals: &[(f64, u64)], names: &[String]) -> Trace {
    let rate = |pair: &[(f64, u64)]| {
        (pair[1].1 - pair[0].1) as f64 * 8.0 / (pair[1].0 - pair[0].0).max(1e-3)
    };
    let path = |name: &String| {
        let mut path = TracePath { name: name.clone(), ..TracePath::default() };
        for sample in &sent.samples {
            let own = sample.sockets.iter().find(|socket| path_of(socket, names) == Some(name));
            let Some(own) = own else { continue };
            path.time_s.push(sample.at_s - sent.began_s);
            path.srtt_s.push(own.srtt_s);
            path.cwnd_bytes.push((own.cwnd * own.mss) as f64);
        }
        path
    };
    let window =
        |sample: &SocketSamples| sample.sockets.iter().map(|s| s.snd_wnd as f64).reduce(f64::max);
    Trace {
        window: TraceWindow {
            time_s: sent.samples.iter().map(|sample| sample.at_s - sent.began_s).collect(),
            bytes: sent.samples.iter().filter_map(window).collect(),
        },
        time_s: arrivals.iter().skip(1).map(|(at, _)| at - sent.began_s).collect(),
        goodput_bps: arrivals.windows(2).map(rate).collect(),
        paths: names.iter().map(path).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_set_by_the_program_or_tuned_by_the_kernel() {
        let path = "[[path]]\nname = 'a'\nrate = '1 Mbit/s'\nrtt = '20 ms'\n";
        let head =
            "[transfer]\nprotocol = 'mptcp'\npreset = 'linux-6'\nreceive_buffer = '128 KiB'\n";
        for (tcp, expected) in [
            ("", ("", "--buffer 131072")),
            (
                "[tcp]\nreceive_buffer_max = '32 MiB'\n",
                ("echo '4096 131072 33554432' > /proc/sys/net/ipv4/tcp_rmem && ", ""),
            ),
        ] {
            let text = format!("{head}{tcp}{path}");
            let scenario = Scenario::parse(&text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
            let (tune, option) = buffer(&scenario);
            assert_eq!((tune.as_str(), option.as_str()), expected);
        }
    }
}
