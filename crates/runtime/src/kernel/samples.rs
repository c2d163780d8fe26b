//! The state of TCP sockets, from the output of `ss` (iproute2).

use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::unix_s;

/// The state of a TCP socket, or of a subflow of Multipath TCP. Counters that `ss` omits are zero, other values
/// `None`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct SocketSample {
    /// Own address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Smoothed round-trip time, seconds.
    pub srtt_s: Option<f64>,
    /// Round-trip time variation (RTTVAR), seconds.
    pub rttvar_s: Option<f64>,
    /// Minimum round-trip time of the last minutes, seconds.
    pub min_rtt_s: Option<f64>,
    /// Congestion window, segments.
    pub cwnd: u64,
    /// Slow-start threshold, segments. `None` before the first congestion event.
    pub ssthresh: Option<u64>,
    /// Maximum segment size, bytes.
    pub mss: u64,
    /// Segments in flight.
    pub unacked: u64,
    /// Data bytes sent so far, including retransmissions.
    pub bytes_sent: u64,
    /// Of these, retransmitted bytes.
    pub bytes_retrans: u64,
    /// Data bytes acknowledged so far.
    pub bytes_acked: u64,
    /// Data bytes received so far.
    pub bytes_received: u64,
    /// Segments retransmitted so far.
    pub retransmissions: u64,
    /// Latest sample of the delivery rate, bit/s.
    pub delivery_rate_bps: Option<f64>,
    /// Pacing rate, bit/s.
    pub pacing_rate_bps: Option<f64>,
    /// The peer's receive window, bytes.
    pub snd_wnd: u64,
    /// Bytes that the application reads per round trip, by which the kernel tunes the receive buffer.
    pub rcv_space: u64,
    /// Memory of the receive queue, bytes.
    pub receive_memory: u64,
    /// Limit of the memory of the receive queue, bytes.
    pub receive_buffer: u64,
    /// Memory of data that is written but not acknowledged, bytes.
    pub send_memory: u64,
    /// Limit of that memory, bytes.
    pub send_buffer: u64,
}

/// The state of all TCP sockets of a namespace at one time, with an entry for each subflow of Multipath TCP.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct SocketSamples {
    /// When, seconds since 1970.
    pub at_s: f64,
    /// The sockets.
    pub sockets: Vec<SocketSample>,
}

impl SocketSamples {
    /// The established sockets of this namespace now. `None` without `ss`, or without a socket.
    pub(super) fn now() -> Option<Self> {
        let at_s = unix_s();
        let words = ["-tinmOH", "state", "established"];
        let output = Command::new("ss").args(words).stderr(Stdio::null()).output().ok()?;
        let sockets = parse_sockets(&String::from_utf8_lossy(&output.stdout));
        (!sockets.is_empty()).then_some(Self { at_s, sockets })
    }
}

/// Reads the lines of `ss -tinmOH`. Lines that cannot be parsed are skipped.
pub fn parse_sockets(text: &str) -> Vec<SocketSample> {
    text.lines().filter_map(parse_socket).collect()
}

fn parse_socket(line: &str) -> Option<SocketSample> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut addresses =
        words.iter().enumerate().filter_map(|(at, word)| Some((at, address(word)?)));
    let ((_, local), (last, remote)) = (addresses.next()?, addresses.next()?);
    let values = Values { words: &words[last + 1..] };
    let rtt_ms = |part: usize| values.text("rtt")?.split('/').nth(part)?.parse::<f64>().ok();
    let memory = |key: &str| values.memory(key).unwrap_or(0);
    Some(SocketSample {
        local,
        remote,
        srtt_s: rtt_ms(0).map(|ms| ms * 1e-3),
        rttvar_s: rtt_ms(1).map(|ms| ms * 1e-3),
        min_rtt_s: values.number::<f64>("minrtt").map(|ms| ms * 1e-3),
        cwnd: values.count("cwnd"),
        ssthresh: values.number("ssthresh"),
        mss: values.count("mss"),
        unacked: values.count("unacked"),
        bytes_sent: values.count("bytes_sent"),
        bytes_retrans: values.count("bytes_retrans"),
        bytes_acked: values.count("bytes_acked"),
        bytes_received: values.count("bytes_received"),
        retransmissions: values
            .text("retrans")
            .and_then(|both| both.split('/').nth(1)?.parse().ok())
            .unwrap_or(0),
        delivery_rate_bps: values.rate("delivery_rate"),
        pacing_rate_bps: values.rate("pacing_rate"),
        snd_wnd: values.count("snd_wnd"),
        rcv_space: values.count("rcv_space"),
        receive_memory: memory("r"),
        receive_buffer: memory("rb"),
        send_memory: memory("w"),
        send_buffer: memory("tb"),
    })
}

/// The words after the addresses: `key:value`, `key value` for rates, and `skmem:(r0,rb131072,...)`.
struct Values<'a> {
    words: &'a [&'a str],
}

impl<'a> Values<'a> {
    fn text(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix(':'))
    }

    fn number<T: core::str::FromStr>(&self, key: &str) -> Option<T> {
        self.text(key)?.parse().ok()
    }

    fn count(&self, key: &str) -> u64 {
        self.number(key).unwrap_or(0)
    }

    /// `pacing_rate 3308352bps`.
    fn rate(&self, key: &str) -> Option<f64> {
        let at = self.words.iter().position(|word| *word == key)?;
        self.words.get(at + 1)?.strip_suffix("bps")?.parse().ok()
    }

    /// A number of `skmem:(r0,rb131072,t0,tb368640,f2304,w108288,o0,bl0,d0)`.
    fn memory(&self, key: &str) -> Option<u64> {
        let all = self.text("skmem")?.trim_matches(['(', ')']);
        all.split(',').find_map(|part| part.strip_prefix(key)?.parse().ok())
    }
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

    /// iproute2 6.1 over a kernel 6.18: two subflows at the sender, one with BBR, and one at the receiver.
    const SEEN: &str = "\
0      82496  10.77.2.1%slow:48659 10.77.1.2:5001 skmem:(r0,rb131072,t0,tb368640,f2304,w108288,o0,bl0,d0) cubic \
wscale:2,10 rto:608 rtt:336.138/67.529 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:80 ssthresh:80 \
bytes_sent:256548 bytes_acked:175429 segs_out:189 segs_in:77 data_segs_out:187 send 2756963bps lastsnd:112 \
lastrcv:2568 lastack:616 pacing_rate 3308352bps delivery_rate 973592bps delivered:131 busy:2368ms \
sndbuf_limited:1348ms(56.9%) unacked:57 rcv_space:14480 rcv_ssthresh:64088 notsent:1376 minrtt:200.694 \
snd_wnd:113376 tcp-ulp-mptcp flags:Jjec token:2edb44d4(id:0)/c08500f4(id:1) seq:99a1f78425420e01 sfseq:0
0      0           10.77.1.1:54930 10.77.1.2:5001 skmem:(r0,rb131072,t0,tb387072,f0,w0,o0,bl0,d0) bbr \
wscale:2,10 rto:236 rtt:34.429/10.465 mss:1448 cwnd:44 bytes_sent:1552904 bytes_retrans:66928 \
bytes_acked:1485977 bbr:(bw:9939864bps,mrtt:20.265,pacing_gain:1,cwnd_gain:2) send 14804264bps \
pacing_rate 9840464bps delivery_rate 4093920bps retrans:0/47 rcv_space:14480 minrtt:20.265 snd_wnd:151824
0      0      10.77.1.2:5001 10.77.2.1:48659 skmem:(r13824,rb262144,t0,tb69120,f2240,w0,o0,bl0,d0) bbr \
wscale:10,2 rto:600 rtt:200/100 ato:40 mss:1448 cwnd:10 bytes_received:175428 send 579200bps app_limited \
rcv_rtt:269.75 rcv_space:14480 rcv_ssthresh:161792 minrtt:200 rcv_ooopack:6 snd_wnd:64512
Netid State Recv-Q Send-Q Local Address:Port Peer Address:PortProcess
";

    #[test]
    fn the_lines_of_ss_become_samples() {
        let found = parse_sockets(SEEN);
        assert_eq!(found.len(), 3);
        let seen = &found[0];
        assert_eq!(seen.local, "10.77.2.1:48659".parse().expect("valid"));
        assert_eq!(seen.remote, "10.77.1.2:5001".parse().expect("valid"));
        let times =
            [seen.srtt_s, seen.rttvar_s, seen.min_rtt_s].map(|time| time.expect("measured"));
        for (time, ms) in times.into_iter().zip([336.138, 67.529, 200.694]) {
            assert!((time * 1e3 - ms).abs() < 1e-6, "{time} s, not {ms} ms");
        }
        assert_eq!((seen.cwnd, seen.ssthresh, seen.mss, seen.unacked), (80, Some(80), 1448, 57));
        assert_eq!((seen.bytes_sent, seen.bytes_retrans, seen.bytes_acked), (256_548, 0, 175_429));
        assert_eq!(
            (seen.pacing_rate_bps, seen.delivery_rate_bps),
            (Some(3_308_352.0), Some(973_592.0))
        );
        assert_eq!((seen.snd_wnd, seen.rcv_space), (113_376, 14_480));
        assert_eq!((seen.send_memory, seen.send_buffer), (108_288, 368_640));
        assert_eq!((seen.receive_memory, seen.receive_buffer), (0, 131_072));
    }

    #[test]
    fn what_ss_leaves_out_is_zero_or_unknown() {
        let found = parse_sockets(SEEN);
        let (bbr, receiver) = (&found[1], &found[2]);
        assert_eq!((bbr.ssthresh, bbr.unacked), (None, 0));
        assert_eq!((bbr.bytes_retrans, bbr.retransmissions), (66_928, 47));
        assert_eq!((receiver.bytes_received, receiver.bytes_sent), (175_428, 0));
        assert_eq!((receiver.receive_memory, receiver.receive_buffer), (13_824, 262_144));
        assert_eq!((receiver.delivery_rate_bps, receiver.pacing_rate_bps), (None, None));
    }

    #[test]
    fn addresses_may_have_a_zone_and_brackets() {
        let zoned = address("[fe80::1]%wlan0:5001");
        assert_eq!(zoned, Some("[fe80::1]:5001".parse().expect("valid")));
        assert_eq!(address("rto:248"), None);
        assert!(parse_sockets("nonsense\n\n1.2.3.4:5\n").is_empty());
    }
}
