//! The state of TCP sockets, from the output of `ss` (iproute2).

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// The state of a TCP socket, or of a subflow of Multipath TCP. Values that `ss` leaves out are zero or none.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct SocketSample {
    /// Own address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Smoothed round trip, seconds.
    pub srtt_s: Option<f64>,
    /// Congestion window, segments.
    pub cwnd: u64,
    /// Largest segment, bytes.
    pub mss: u64,
    /// Data bytes sent so far, with retransmissions.
    pub bytes_sent: u64,
    /// Of these, retransmitted bytes.
    pub bytes_retrans: u64,
    /// Data bytes acknowledged so far.
    pub bytes_acked: u64,
    /// The peer's receive window, bytes.
    pub snd_wnd: u64,
}

/// Reads the lines of `ss -tinOH`. Lines that are not understood are left out.
pub fn parse_sockets(text: &str) -> Vec<SocketSample> {
    text.lines().filter_map(parse_socket).collect()
}

fn parse_socket(line: &str) -> Option<SocketSample> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut addresses =
        words.iter().enumerate().filter_map(|(at, word)| Some((at, address(word)?)));
    let ((_, local), (last, remote)) = (addresses.next()?, addresses.next()?);
    let rest = &words[last + 1..];
    let text = |key: &str| {
        rest.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix(':')).map(str::to_owned)
    };
    let number = |key: &str| text(key).and_then(|value| value.parse().ok()).unwrap_or(0);
    // `rtt:24.498/1.897` is in milliseconds.
    let rtt_ms = text("rtt").and_then(|both| both.split('/').next()?.parse::<f64>().ok());
    Some(SocketSample {
        local,
        remote,
        srtt_s: rtt_ms.map(|ms| ms * 1e-3),
        cwnd: number("cwnd"),
        mss: number("mss"),
        bytes_sent: number("bytes_sent"),
        bytes_retrans: number("bytes_retrans"),
        bytes_acked: number("bytes_acked"),
        snd_wnd: number("snd_wnd"),
    })
}

/// `10.77.2.1%wlan0:5001` or `[fe80::1]%wlan0:5001`.
fn address(word: &str) -> Option<SocketAddr> {
    let (host, port) = word.rsplit_once(':')?;
    let host = host.split('%').next()?.trim_matches(['[', ']']);
    Some(SocketAddr::new(host.parse::<IpAddr>().ok()?, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// iproute2 6.1 over a kernel 6.18: two subflows.
    const SEEN: &str = "\
0      2848       10.77.2.1%second:59137    10.77.1.2:5001 cubic wscale:0,10 rto:424 rtt:201.954/6.689 mss:1448 \
pmtu:1500 rcvmss:536 advmss:1448 cwnd:10 bytes_sent:28480 bytes_acked:25633 segs_out:22 segs_in:12 \
send 573596bps lastsnd:184 pacing_rate 1147184bps delivered:19 unacked:2 rcv_space:14480 snd_wnd:54112
0      0          10.77.1.1:39434  10.77.1.2:5001 cubic wscale:0,10 rto:248 rtt:44.943/1.206 mss:1448 cwnd:77 \
ssthresh:77 bytes_sent:1498048 bytes_retrans:2848 bytes_acked:1498049 snd_wnd:55536
Netid State Recv-Q Send-Q Local Address:Port Peer Address:PortProcess
";

    #[test]
    fn the_lines_of_ss_become_samples() {
        let found = parse_sockets(SEEN);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].local, "10.77.2.1:59137".parse().expect("valid"));
        assert_eq!(found[0].remote, "10.77.1.2:5001".parse().expect("valid"));
        let seen = &found[0];
        assert!((seen.srtt_s.expect("measured") - 0.201_954).abs() < 1e-9, "{seen:?}");
        assert_eq!((seen.cwnd, seen.mss), (10, 1448));
        assert_eq!((seen.bytes_sent, seen.bytes_retrans, seen.bytes_acked), (28_480, 0, 25_633));
        assert_eq!((found[1].bytes_retrans, found[1].snd_wnd), (2848, 55_536));
    }

    #[test]
    fn addresses_may_have_a_zone_and_brackets() {
        let zoned = address("[fe80::1]%wlan0:5001");
        assert_eq!(zoned, Some("[fe80::1]:5001".parse().expect("valid")));
        assert_eq!(address("rto:248"), None);
        assert!(parse_sockets("nonsense\n\n1.2.3.4:5\n").is_empty());
    }
}
