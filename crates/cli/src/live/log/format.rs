//! Log lines in the format that journald reads.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Puts the priority in front of each line (sd-daemon(3)): journald stores it, and adds timestamps itself.
pub struct Journald<F>(pub F);

impl<S, N, F> FormatEvent<S, N> for Journald<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(writer, "<{}>", priority(*event.metadata().level()))?;
        self.0.format_event(context, writer, event)
    }
}

/// Priorities of syslog (RFC 5424, 6.2.1).
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

/// Whether stderr goes to journald. It passes the device and inode of stderr to its services.
pub fn is_journal() -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
        std::fs::metadata("/proc/self/fd/2")
            .is_ok_and(|stderr| stream == format!("{}:{}", stderr.dev(), stderr.ino()))
    }
    #[cfg(not(target_os = "linux"))]
    false
}
