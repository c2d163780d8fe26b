//! Named sets of knobs.

use ropewalk_base::Duration;

use super::config::{Config, PathConfig, Reinjection, Reordering, SubflowAck};
use crate::path::{FailureLimits, RtoLimits};
use crate::scheduler::DelaySource;
use crate::window::WindowManager;

/// A named set of knobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preset {
    /// RFC 8684 with what today's stacks run beneath it: selective acknowledgements, losses found by
    /// time (RFC 8985), an initial window of ten segments (RFC 6928), acknowledgements held back for
    /// at most 40 ms and a timeout of at least 200 ms (both below what RFC 9293 and RFC 6298 ask,
    /// as in Linux).
    #[default]
    Rfc8684,
}

impl Preset {
    pub(super) fn config(self, paths: Vec<PathConfig>, receive_buffer: u64) -> Config {
        match self {
            Self::Rfc8684 => Self::rfc8684(paths, receive_buffer),
        }
    }

    fn rfc8684(paths: Vec<PathConfig>, receive_buffer: u64) -> Config {
        Config {
            paths,
            lower_header: 20,
            multipath: true,
            receive_buffer: Some(receive_buffer),
            send_buffer: receive_buffer.saturating_mul(4).max(1 << 16),
            subflow_ack: SubflowAck::Independent,
            ack_every: 2,
            ack_delay: Duration::from_millis(40),
            timestamps: true,
            sack: true,
            reordering: Reordering::RackTlp,
            duplicate_threshold: 3,
            rto: RtoLimits {
                initial: Duration::from_secs(1),
                min: Duration::from_millis(200),
                max: Duration::from_secs(60),
            },
            failure: FailureLimits { potentially_failed: 0, path_max_retrans: 5 },
            probe_interval: Duration::from_secs(2),
            max_retransmissions: 15,
            max_syn_retransmissions: 6,
            reinjection: Reinjection::OnTimeout,
            initial_window: None,
            initial_ssthresh: None,
            delay_source: DelaySource::Timestamp,
            guard: true,
            window_manager: WindowManager::None,
            record_decisions: false,
        }
    }
}
