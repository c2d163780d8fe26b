//! Named sets of settings.

use ropewalk_base::Duration;

use super::chihani::Quirks;
use super::config::{BufferSize, Config, PathConfig, ReceiveRules, Reinjection, SubflowAck};
use super::reordering::Reordering;
use crate::congestion::{CongestionFlavour, CongestionVariants};
use crate::path::{FailureLimits, RtoFormula, RtoLimits, RtoRule};
use crate::scheduler::{BlockingMitigation, DelaySource};
use crate::window::WindowManager;

/// A named set of settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preset {
    /// RFC 8684 with the defaults of current TCP stacks: selective acknowledgements, loss detection by
    /// time (RFC 8985), an initial window of ten segments (RFC 6928), acknowledgements delayed by at most
    /// 40 ms and a timeout of at least 200 ms. The minimum timeout is below that of RFC 6298, as in
    /// Linux.
    #[default]
    Rfc8684,
    /// TCP and Multipath TCP as in Linux 6.x. Each rule names its place in the kernel. See
    /// `docs/decisions/linux.md`.
    Linux6,
    /// The quirks of a public ns-3 model of Multipath TCP (Chihani and Collange, 2011), to repeat
    /// measurements made with it: acknowledgements wait for data level, and there is no flow control,
    /// reinjection or failover. See `docs/decisions/paper-presets.md`.
    Chihani2011,
}

impl Preset {
    pub(super) fn config(self, paths: Vec<PathConfig>, receive_buffer: u64) -> Config {
        match self {
            Self::Rfc8684 => Self::rfc8684(paths, receive_buffer),
            Self::Linux6 => Self::linux6(paths, receive_buffer),
            Self::Chihani2011 => Self::chihani2011(paths, receive_buffer),
        }
    }

    fn linux6(paths: Vec<PathConfig>, receive_buffer: u64) -> Config {
        let usual = Self::rfc8684(paths, receive_buffer);
        Config {
            // The kernel refuses data beyond the window itself; the window never exceeds the memory.
            receive_buffer: Some(2 * receive_buffer),
            receive_rules: ReceiveRules::Linux(BufferSize::Fixed(receive_buffer)),
            // tcp_wmem: the maximum send buffer of a subflow.
            send_buffer: 4 << 20,
            quick_acks: 16,
            congestion: "cubic",
            congestion_variants: CongestionVariants::LINUX,
            prr: true,
            // mptcp_sendmsg: a page fragment of 32 KiB less its header.
            fragment: Some(32_704),
            nagle: true,
            whole_packets: true,
            rto_rule: RtoRule { formula: RtoFormula::Linux, ..RtoRule::default() },
            ..usual
        }
    }

    fn chihani2011(paths: Vec<PathConfig>, receive_buffer: u64) -> Config {
        let usual = Self::rfc8684(paths, receive_buffer);
        Config {
            receive_buffer: None,
            // Data that is out of order at data level also stays in the sender's memory, which is
            // unlimited in the model.
            send_buffer: 1 << 25,
            subflow_ack: SubflowAck::DataGated,
            quirks: Some(Quirks::default()),
            congestion_flavour: CongestionFlavour::Chihani2011 { compensated: true },
            ack_every: 1,
            ack_delay: Duration::ZERO,
            timestamps: false,
            sack: false,
            reordering: Reordering::None,
            rto: RtoLimits {
                // Twice the model's first estimate of 1.5 s, which has no deviation.
                initial: Duration::from_millis(3000),
                min: Duration::from_millis(200),
                max: Duration::from_secs(3600),
            },
            rto_rule: RtoRule {
                smoothing: 10,
                deviation: 10,
                most_doubled: 64,
                formula: RtoFormula::Rfc6298,
            },
            reinjection: Reinjection::Never,
            delay_source: DelaySource::HalfRtt,
            ..usual
        }
    }

    fn rfc8684(paths: Vec<PathConfig>, receive_buffer: u64) -> Config {
        Config {
            paths,
            lower_header: 20,
            multipath: true,
            receive_buffer: Some(receive_buffer),
            receive_rules: ReceiveRules::Payload,
            send_buffer: receive_buffer.saturating_mul(4).max(1 << 16),
            subflow_ack: SubflowAck::Independent,
            quirks: None,
            ack_every: 2,
            ack_delay: Duration::from_millis(40),
            quick_acks: 0,
            timestamps: true,
            sack: true,
            reordering: Reordering::RackTlp,
            duplicate_threshold: 3,
            rto: RtoLimits {
                initial: Duration::from_secs(1),
                min: Duration::from_millis(200),
                max: Duration::from_secs(60),
            },
            rto_rule: RtoRule::default(),
            failure: FailureLimits { potentially_failed: 0, path_max_retrans: 5 },
            probe_interval: Duration::from_secs(2),
            max_retransmissions: 15,
            max_syn_retransmissions: 6,
            reinjection: Reinjection::OnTimeout,
            congestion: "newreno",
            congestion_flavour: CongestionFlavour::Published,
            congestion_variants: CongestionVariants::STANDARD,
            prr: false,
            fragment: None,
            nagle: false,
            whole_packets: false,
            pacing: None,
            initial_window: None,
            initial_ssthresh: None,
            delay_source: DelaySource::Timestamp,
            mitigation: BlockingMitigation::default(),
            window_manager: WindowManager::None,
            record_decisions: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_presets_have_the_timeout_of_the_rfc() {
        for (preset, formula) in
            [(Preset::Rfc8684, RtoFormula::Rfc6298), (Preset::Chihani2011, RtoFormula::Rfc6298)]
        {
            let config = Config::preset(preset, vec![PathConfig::default()], 1 << 16);
            assert_eq!(config.rto_rule.formula, formula, "{preset:?}");
        }
    }
}
