//! Loss models.

use super::Builder;
use crate::check::{Checked, FromValue, Item, Value};
use crate::error::ProblemKind;
use crate::tree::Span;
use crate::types::{Loss, numbered_lines};

/// Tolerance for the sum of a row of a Markov chain: enough for rounding, too small for mistakes.
const ROW_TOLERANCE: f64 = 1e-9;

impl Builder<'_> {
    pub(super) fn loss(&mut self, table: &Checked, key: &'static str) -> Loss {
        let (variant, entry) = match table.value(key) {
            Some(Value::Tagged(variant, entry)) => (*variant, entry),
            Some(Value::Number(rate)) => return bernoulli(*rate),
            other => unreachable!("{other:?} as loss"),
        };
        match variant {
            0 => bernoulli(entry.get("rate")),
            1 => Loss::GilbertElliott {
                p: entry.get("p"),
                r: entry.get("r"),
                good: entry.get("good"),
                bad: entry.get("bad"),
            },
            2 => self.markov(entry),
            3 => Loss::Round { rate: entry.get("rate") },
            _ => self.listed(entry),
        }
    }

    fn markov(&mut self, entry: &Checked) -> Loss {
        let loss = numbers::<f64>(entry.list("loss"));
        let rows = entry.list("transitions");
        let key = format!("{}.transitions", entry.path);
        let mut transitions = Vec::with_capacity(rows.len());
        for (i, item) in rows.iter().enumerate() {
            let Value::List(row) = &item.value else { unreachable!("rows are lists") };
            let row = numbers::<f64>(row);
            let sum: f64 = row.iter().sum();
            let trouble = if row.len() != rows.len() {
                Some(format!("row {i} of `{key}` has {} entries, not {}", row.len(), rows.len()))
            } else if (sum - 1.0).abs() > ROW_TOLERANCE {
                Some(format!("row {i} of `{key}` sums to {sum}, not to 1"))
            } else {
                None
            };
            if let Some(message) = trouble {
                let help = "a square of probabilities; each row says where one state goes";
                self.wrong_at(&item.span, &key, ProblemKind::Conflict, message, help);
            }
            transitions.push(row);
        }
        if loss.len() != rows.len() {
            let message = format!(
                "`{}.loss` has {} entries for {} states",
                entry.path,
                loss.len(),
                rows.len()
            );
            let help = "one loss probability for each row of `transitions`";
            self.wrong(entry, "loss", ProblemKind::Conflict, message, help);
        }
        Loss::Markov { transitions, loss }
    }

    /// Losses that are listed, in the scenario or in a file.
    fn listed(&mut self, entry: &Checked) -> Loss {
        if let Some(file) = entry.opt::<String>("file") {
            let losses = self.losses_of_file(entry, &file);
            return Loss::Trace { losses };
        }
        let items = entry.list("losses");
        let losses = numbers::<u64>(items);
        if let Some(at) = losses.windows(2).position(|pair| pair[1] <= pair[0]) {
            let span: &Span = &items[at + 1].span;
            let key = format!("{}.losses", entry.path);
            let message = format!("`{key}`: {} follows {}", losses[at + 1], losses[at]);
            let help = "packet numbers ascend";
            self.wrong_at(&span.clone(), &key, ProblemKind::Conflict, message, help);
        }
        Loss::Trace { losses }
    }

    fn losses_of_file(&mut self, entry: &Checked, file: &str) -> Vec<u64> {
        let Some(text) = self.read_file(entry, "file", file) else { return Vec::new() };
        let mut losses: Vec<u64> = Vec::new();
        for (line, content) in numbered_lines(&text) {
            match content.parse() {
                Ok(number) if losses.last().is_none_or(|last| number > *last) => {
                    losses.push(number)
                }
                Ok(number) => {
                    let reason = format!("{number} does not ascend");
                    self.bad_file(entry, "file", file, line, &reason);
                    break;
                }
                Err(_) => {
                    let reason = format!("`{content}` is not a packet number");
                    self.bad_file(entry, "file", file, line, &reason);
                    break;
                }
            }
        }
        losses
    }
}

/// A loss model with a rate of zero becomes [`Loss::None`].
fn bernoulli(rate: f64) -> Loss {
    if rate == 0.0 { Loss::None } else { Loss::Bernoulli { rate } }
}

fn numbers<T: FromValue>(items: &[Item]) -> Vec<T> {
    items.iter().map(|item| T::from_value(&item.value)).collect()
}
