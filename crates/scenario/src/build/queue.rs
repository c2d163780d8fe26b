//! Queues: discipline, and the limit in packets or bytes.

use ropewalk_base::Rate;

use super::Builder;
use super::side::Surroundings;
use crate::check::{Checked, Value};
use crate::error::ProblemKind;
use crate::keys::LARGEST_QUEUE;
use crate::quantity::size_text;
use crate::types::{Discipline, Limit, Queue};

impl Builder<'_> {
    pub(super) fn queue(
        &mut self,
        table: &Checked,
        key: &'static str,
        rate: Rate,
        around: &Surroundings,
    ) -> Queue {
        let Some(Value::Tagged(variant, entry)) = table.value(key) else {
            let limit = self.limit(table, key, rate, around);
            return Queue { discipline: Discipline::DropTail, limit };
        };
        let limit = self.limit(entry, "limit", rate, around);
        let discipline = match variant {
            0 => Discipline::DropTail,
            1 => self.red(entry, limit),
            _ => Discipline::CoDel {
                target: entry.get("target"),
                interval: entry.get("interval"),
                ecn: entry.get("ecn"),
            },
        };
        Queue { discipline, limit }
    }

    fn red(&mut self, entry: &Checked, limit: Limit) -> Discipline {
        if limit == Limit::Unlimited {
            let message = format!(
                "`{}.limit` = \"unlimited\" leaves RED nothing to take shares of",
                entry.path
            );
            let help = "give it a limit, for example \"100 packets\"";
            self.wrong(entry, "limit", ProblemKind::Conflict, message, help);
        }
        let (min, max): (f64, f64) = (entry.get("min"), entry.get("max"));
        if min >= max {
            let key = if entry.place("min").is_some() { "min" } else { "max" };
            let message = format!("`{}`: `min` = {min} is not below `max` = {max}", entry.path);
            self.wrong(
                entry,
                key,
                ProblemKind::Conflict,
                message,
                "drops begin before they are many",
            );
        }
        Discipline::Red {
            min,
            max,
            probability: entry.get("probability"),
            weight: entry.get("weight"),
            ecn: entry.get("ecn"),
        }
    }

    /// The limit under `key`, with a bandwidth-delay product converted to bytes.
    fn limit(&mut self, table: &Checked, key: &str, rate: Rate, around: &Surroundings) -> Limit {
        let packet = u64::from(self.packet);
        let bytes = match table.value(key) {
            Some(Value::Packets(n)) => {
                return Limit::Packets(u32::try_from(*n).expect("limited to 32 bits"));
            }
            Some(Value::Bytes(bytes)) => *bytes,
            Some(Value::Bdp(times)) => match around.longest {
                Some(rtt) => {
                    ((rate.bytes_in(rtt) as f64 * times).round() as u64).min(LARGEST_QUEUE)
                }
                None => {
                    let message = format!(
                        "`{}.{key}` = {}: no path crosses this link, so it has no round trip",
                        table.path,
                        self.excerpt(table, key)
                    );
                    let help = "name the link in the `via` of a path, or give the limit in \
                                packets or bytes";
                    self.wrong(table, key, ProblemKind::Conflict, message, help);
                    return Limit::Unlimited;
                }
            },
            _ => return Limit::Unlimited,
        };
        if bytes < packet {
            let text = self.excerpt(table, key);
            let message = format!(
                "`{}.{key}` = {text} ({}) is smaller than one packet, {}",
                table.path,
                size_text(bytes),
                size_text(packet)
            );
            let help = format!("the nearest valid value is \"{}\"", size_text(packet));
            self.wrong(table, key, ProblemKind::OutOfRange, message, help);
        }
        Limit::Bytes(bytes)
    }
}
