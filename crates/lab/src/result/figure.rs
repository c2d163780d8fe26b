//! Description of a figure: its unit, its meaning, and how it is shown.

/// Unit of a figure. It also determines the number format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Text.
    Text,
    /// A whole number as text, because it can exceed the exact range of JSON readers.
    WholeNumber,
    /// A number of things.
    Count,
    /// Bits per second.
    BitsPerSecond,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// A fraction, 1 for the whole.
    Ratio,
    /// A mean opinion score.
    Score,
}

impl Unit {
    /// Symbol in tables of the documentation.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::WholeNumber => "number as text",
            Self::Count => "count",
            Self::BitsPerSecond => "bit/s",
            Self::Bytes => "B",
            Self::Seconds => "s",
            Self::Ratio => "0 to 1",
            Self::Score => "1 to 5",
        }
    }

    /// Name of the number format in the report page.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Text | Self::WholeNumber => "text",
            Self::Count => "count",
            Self::BitsPerSecond => "rate",
            Self::Bytes => "bytes",
            Self::Seconds => "time",
            Self::Ratio => "ratio",
            Self::Score => "score",
        }
    }
}

/// Which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The higher one.
    High,
    /// The lower one.
    Low,
    /// Neither.
    Neither,
}

impl Better {
    /// The word for it; empty for neither.
    pub const fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Low => "low",
            Self::Neither => "",
        }
    }
}

/// Figures that are shown together. The order of the variants is the order in which all tables show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Identification of the run.
    Run,
    /// Goodput and its bound.
    Goodput,
    /// The receive buffer.
    ReceiveBuffer,
    /// Waiting time in the receive buffer.
    BlockingTime,
    /// Delay between the applications.
    Delay,
    /// Reordering.
    OutOfOrder,
    /// Retransmissions.
    Retransmissions,
    /// Delivered data.
    Delivery,
    /// Each path.
    Paths,
    /// Each direction.
    Directions,
    /// Each flow.
    Flows,
    /// Each association.
    Associations,
    /// Speed of the simulation.
    Engine,
}

impl Group {
    /// All groups in their order.
    pub const ALL: [Self; 13] = [
        Self::Run,
        Self::Goodput,
        Self::ReceiveBuffer,
        Self::BlockingTime,
        Self::Delay,
        Self::OutOfOrder,
        Self::Retransmissions,
        Self::Delivery,
        Self::Paths,
        Self::Directions,
        Self::Flows,
        Self::Associations,
        Self::Engine,
    ];

    /// Heading.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Run => "Run",
            Self::Goodput => "Goodput",
            Self::ReceiveBuffer => "Receive buffer",
            Self::BlockingTime => "Blocking time",
            Self::Delay => "Delay",
            Self::OutOfOrder => "Out of order",
            Self::Retransmissions => "Retransmissions",
            Self::Delivery => "Delivered",
            Self::Paths => "Paths",
            Self::Directions => "Directions",
            Self::Flows => "Flows",
            Self::Associations => "Associations",
            Self::Engine => "Engine",
        }
    }

    /// Properties that all figures of the group have in common, shown after them. Empty if there is
    /// nothing to add.
    pub const fn note(self) -> &'static str {
        match self {
            Self::BlockingTime => "from arrival to in-order delivery",
            Self::Delay => "from first transmission to in-order delivery",
            _ => "",
        }
    }
}

/// Whether a table has a figure as a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The table does not have it.
    Absent,
    /// Documents and files have it, the text on the terminal does not.
    Stored,
    /// Documents, files and the text on the terminal have it.
    Shown,
}

/// How a figure is shown.
#[derive(Clone, Copy, Debug)]
pub struct Show {
    /// Unit.
    pub unit: Unit,
    /// The group; figures of a nested part belong to the group of the part.
    pub group: Group,
    /// Name in lists and tables with much room.
    pub label: &'static str,
    /// Name in narrow tables. If empty, the label in lower case.
    pub heading: &'static str,
    /// Text with `{}` for the value, in a line with the other figures of the group. If empty, value and
    /// label.
    pub phrase: &'static str,
    /// Name of the column in flat tables. If empty, derived from the key.
    pub column: &'static str,
    /// Which value is better.
    pub better: Better,
    /// Whether comparisons have it.
    pub compare: Column,
    /// Whether sweeps have it.
    pub sweep: Column,
    /// Whether tournaments have it.
    pub tournament: Column,
}

impl Show {
    /// A figure that no table of several runs has.
    pub const fn new(unit: Unit, label: &'static str) -> Self {
        Self {
            unit,
            group: Group::Run,
            label,
            heading: "",
            phrase: "",
            column: "",
            better: Better::Neither,
            compare: Column::Absent,
            sweep: Column::Absent,
            tournament: Column::Absent,
        }
    }

    /// A part with figures of its own.
    pub const fn part(group: Group) -> Self {
        Self::new(Unit::Text, group.label()).of(group)
    }

    /// Sets the group.
    pub const fn of(self, group: Group) -> Self {
        Self { group, ..self }
    }

    /// Sets the name in narrow tables.
    pub const fn heading(self, heading: &'static str) -> Self {
        Self { heading, ..self }
    }

    /// Sets the text in a line with the other figures of the group.
    pub const fn phrase(self, phrase: &'static str) -> Self {
        Self { phrase, ..self }
    }

    /// Sets the name of the column in flat tables.
    pub const fn column(self, column: &'static str) -> Self {
        Self { column, ..self }
    }

    /// Sets that high values are good.
    pub const fn high(self) -> Self {
        Self { better: Better::High, ..self }
    }

    /// Sets that low values are good.
    pub const fn low(self) -> Self {
        Self { better: Better::Low, ..self }
    }

    /// Adds the figure to comparisons.
    pub const fn compare(self, compare: Column) -> Self {
        Self { compare, ..self }
    }

    /// Adds the figure to sweeps.
    pub const fn sweep(self, sweep: Column) -> Self {
        Self { sweep, ..self }
    }

    /// Adds the figure to tournaments.
    pub const fn tournament(self, tournament: Column) -> Self {
        Self { tournament, ..self }
    }
}

/// Type of a figure in the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// A number or null.
    NumberOrNull,
    /// A list of numbers.
    Numbers,
    /// A list of parts, each with figures of its own; the name of its type in Python.
    Parts(&'static str),
    /// A part with figures of its own; the name of its type.
    Part(&'static str),
}

/// A value of a result.
pub trait Value {
    /// Its type in the documents.
    const TYPE: Type;

    /// The value as a number, if it is one and known.
    fn number(&self) -> Option<f64> {
        None
    }
}

impl Value for String {
    const TYPE: Type = Type::Text;
}

impl Value for u64 {
    const TYPE: Type = Type::Whole;

    fn number(&self) -> Option<f64> {
        Some(*self as f64)
    }
}

impl Value for f64 {
    const TYPE: Type = Type::Number;

    fn number(&self) -> Option<f64> {
        Some(*self)
    }
}

impl Value for Option<f64> {
    const TYPE: Type = Type::NumberOrNull;

    fn number(&self) -> Option<f64> {
        *self
    }
}

impl Value for Vec<f64> {
    const TYPE: Type = Type::Numbers;
}

/// A figure of `R`: a run or a path.
#[derive(Debug)]
pub struct Figure<R> {
    /// Key in the document, with a dot between a part and its figure. For a figure that the document does not
    /// have, the name of its column.
    pub key: &'static str,
    /// Whether the document has it. Other figures are computed from those of the document.
    pub in_document: bool,
    /// Whether the document leaves it out if it is zero or empty.
    pub omitted_if_zero: bool,
    /// Type in the document.
    pub kind: Type,
    /// How it is shown.
    pub show: Show,
    /// Reads the figure, if it is a number and known.
    pub of: fn(&R) -> Option<f64>,
    pub(super) meaning: &'static str,
}

// Derived implementations would require `R` to have them.
impl<R> Clone for Figure<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Figure<R> {}

impl<R> Figure<R> {
    /// What it means.
    pub fn meaning(&self) -> &'static str {
        self.meaning.trim()
    }

    /// The figure as a JSON value; null if it is not a number or not known.
    pub fn value(&self, result: &R) -> serde_json::Value {
        match ((self.of)(result), self.kind) {
            (None, _) => serde_json::Value::Null,
            (Some(number), Type::Whole) => serde_json::Value::from(number as u64),
            (Some(number), _) => serde_json::Value::from(number),
        }
    }

    /// Whether it is a value, and no part with figures of its own.
    pub const fn is_value(&self) -> bool {
        !matches!(self.kind, Type::Part(_) | Type::Parts(_))
    }

    /// Name in narrow tables.
    pub fn heading(&self) -> String {
        match self.show.heading {
            "" => self.show.label.to_lowercase(),
            heading => heading.to_owned(),
        }
    }

    /// Text with `{}` for the value, in a line with the other figures of the group.
    pub fn phrase(&self) -> String {
        match self.show.phrase {
            "" => format!("{{}} {}", self.show.label.to_lowercase()),
            phrase => phrase.to_owned(),
        }
    }

    /// Name of the column in flat tables: the key with `_` for the dot, and the unit of the part at the end, as
    /// in `app_delay_p99_s`.
    pub fn column(&self) -> String {
        if !self.show.column.is_empty() {
            return self.show.column.to_owned();
        }
        match self.key.split_once('.') {
            None => self.key.to_owned(),
            Some((part, key)) => match part.strip_suffix("_s") {
                Some(part) => format!("{part}_{key}_s"),
                None => format!("{part}_{key}"),
            },
        }
    }
}
