//! `[[source]]`: messages of several sizes on one association.

use ropewalk_base::{Duration, Time};

use super::builder::{Builder, tables};
use super::{Application, Transfer};
use crate::check::Checked;
use crate::error::ProblemKind;
use crate::keys::{Exclusive, INSTANT, Kind, LONGEST_DELAY, NS_PER_MS, Table, size, time};

table! {
    /// Messages of one size at regular times, on streams that no other source uses. With sources, nothing else is sent. The
    /// results show how long the messages of each source take from when they are due until they are read.
    pub struct Source {
        /// Name, unique among sources.
        name: String = Kind::Name.required().example("\"control\"");
        /// Size of each message. One larger than a chunk is fragmented.
        message: u64 = size(1, 1_000_000_000).is("100 B").example("\"1 MB\"");
        /// Time between two messages.
        every: Duration = time(NS_PER_MS, LONGEST_DELAY).is("20 ms").example("\"1 s\"");
        /// When the first message is due.
        start: Time = INSTANT.is("0 s").example("\"2 s\"");
        /// No message is due at this time or later; later than `start`.
        stop: Option<Time> = INSTANT.derived("the end of the run").example("\"30 s\"");
        /// Number of streams, which messages use in turn.
        streams: u16 = Kind::Integer { min: 1, max: 1_000 }.is("1").example("4");
        /// Priority of these streams with `sctp.stream_scheduler = "priority"` (the least is sent first), and weight with
        /// `"weighted-fair"`.
        value: u16 = Kind::Integer { min: 0, max: 65_535 }.is("0").example("9");
        /// Time after it is due from which a message is not sent any more, neither for the first time nor again (RFC 3758). One
        /// that was sent before may arrive one forward delay later.
        lifetime: Option<Duration> =
            time(NS_PER_MS, LONGEST_DELAY).derived("no limit").example("\"100 ms\"");
        /// Most retransmissions of each packet of a message, after which the message is given up (RFC 7496 Section 3.1).
        retransmissions: Option<u8> = Kind::Integer { min: 0, max: 254 }
            .derived("no limit").example("0");
        /// Messages are read as they arrive. Otherwise each waits for earlier ones of its stream until these have arrived, or
        /// until the receiver knows that they were given up.
        unordered: bool = Kind::Bool.is("false").example("true");
    }
}

pub(super) const SOURCE: Table = Table {
    // RFC 7496, 3: a message has one policy.
    exclusive: &[Exclusive { ways: &[&["lifetime"], &["retransmissions"]], required: false }],
    ..Table::new("[[source]]", Source::ABOUT, Source::KEYS)
};

impl Builder<'_> {
    /// Reads all of `[[source]]`.
    pub(crate) fn sources(&mut self, root: &Checked, transfer: &Transfer) -> Vec<Source> {
        let mut sources: Vec<Source> = Vec::new();
        for table in tables(root, "source") {
            let source = Source::read(self, table);
            self.later_than_start(table, source.start, source.stop);
            if sources.iter().any(|other| other.name == source.name) {
                let message =
                    format!("`{}`: the name \"{}\" is taken already", table.path, source.name);
                let help = "every source has a name of its own; give this one another";
                self.wrong(table, "name", ProblemKind::Duplicate, message, help);
            }
            let used: u32 = sources.iter().map(|other| u32::from(other.streams)).sum();
            if used + u32::from(source.streams) > u32::from(u16::MAX) {
                let message = format!("`{}`: all sources have more than 65535 streams", table.path);
                let help = "an association has no more streams in a direction";
                self.wrong(table, "streams", ProblemKind::OutOfRange, message, help);
            }
            sources.push(source);
        }
        if !sources.is_empty() {
            self.check_sources(root, transfer);
        }
        sources
    }

    /// Checks that nothing else says what the association sends.
    fn check_sources(&mut self, root: &Checked, transfer: &Transfer) {
        let table = root.table("transfer");
        if transfer.protocol.is_tcp() {
            let message = format!(
                "`transfer.protocol` = \"{}\" carries no messages: [[source]] needs SCTP",
                transfer.protocol
            );
            let help = "take \"cmt-sctp\", or leave it out";
            self.wrong(table, "protocol", ProblemKind::Conflict, message, help);
        }
        for (key, given) in [
            ("bytes", transfer.bytes.is_some()),
            ("application", transfer.application != Application::Bulk),
            ("message", transfer.message.is_some()),
            ("streams", transfer.streams > 1),
            ("unordered", transfer.unordered),
        ] {
            if given {
                let message = format!("`transfer.{key}` has no effect beside [[source]]");
                let help = "the sources say what is sent; leave it out";
                self.wrong(table, key, ProblemKind::Conflict, message, help);
            }
        }
        if let Some(flow) = tables(root, "flow").first() {
            let message = format!("`{}` has no effect beside [[source]]", flow.path);
            let help = "an association carries a tunnel or messages of sources, not both";
            self.wrong(flow, "name", ProblemKind::Conflict, message, help);
        }
        let world = root.table("world");
        if world.get::<u32>("associations") != 1 {
            let message = "`world.associations` is not 1: the sources use one".to_owned();
            self.wrong(world, "associations", ProblemKind::Conflict, message, "leave it out");
        }
    }
}
