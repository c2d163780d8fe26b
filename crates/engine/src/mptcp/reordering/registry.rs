//! The registry of methods against mistaking reordering for loss: one row each.
//!
//! A row yields the variant of [`Reordering`], its name, and the rule that detects spurious
//! retransmissions.

use ropewalk_base::Time;

use super::{DSack, DuplicatesOrTimestamps, Eifel, FRto, NoRule, Report, SpuriousRule, TcpDoor};

macro_rules! recoveries {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $rule:ident;)+) => {
        /// How a sender avoids mistaking reordering for loss.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Reordering {
            $($(#[doc = $doc])+ $variant,)+
        }

        /// The rule of one sender.
        #[derive(Clone, Debug)]
        pub enum SpuriousDetector {
            $($(#[doc = $doc])+ $variant($rule),)+
        }

        impl Reordering {
            /// All methods.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in scenarios.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The rule of an unused sender.
            pub(in crate::mptcp) fn detector(self) -> SpuriousDetector {
                match self {
                    $(Self::$variant => SpuriousDetector::$variant($rule::default()),)+
                }
            }

            /// Whether duplicate acknowledgements count as losses in the model of Chihani and Collange (2011).
            pub(in crate::mptcp) const fn duplicates_count_in_model(self) -> bool {
                match self {
                    $(Self::$variant => <$rule as SpuriousRule>::DUPLICATES_COUNT_IN_MODEL,)+
                }
            }
        }

        impl SpuriousRule for SpuriousDetector {
            fn on_reduction(&mut self, now: Time) {
                match self { $(Self::$variant(rule) => SpuriousRule::on_reduction(rule, now),)+ }
            }

            fn on_timeout(&mut self, now: Time, una: u64, next: u64) {
                match self {
                    $(Self::$variant(rule) => SpuriousRule::on_timeout(rule, now, una, next),)+
                }
            }

            fn on_retransmission(&mut self, now: Time, seq: u64) {
                match self {
                    $(Self::$variant(rule) => SpuriousRule::on_retransmission(rule, now, seq),)+
                }
            }

            fn on_ack(&mut self, now: Time, report: &Report) -> bool {
                match self { $(Self::$variant(rule) => SpuriousRule::on_ack(rule, now, report),)+ }
            }

            fn keeps_window(&self, now: Time) -> bool {
                match self { $(Self::$variant(rule) => SpuriousRule::keeps_window(rule, now),)+ }
            }

            fn holds_back(&self) -> bool {
                match self { $(Self::$variant(rule) => SpuriousRule::holds_back(rule),)+ }
            }

            fn on_nothing_new(&mut self) {
                match self { $(Self::$variant(rule) => SpuriousRule::on_nothing_new(rule),)+ }
            }
        }
    };
}

recoveries! {
    /// No detection: three duplicate acknowledgements, or three later selective ones, count as a loss
    /// (RFC 6582, RFC 6675).
    None = "none", NoRule;
    /// The same, and a reduction is undone once all retransmissions are reported as duplicates (RFC 3708).
    /// Needs selective acknowledgements.
    DSack = "d-sack", DSack;
    /// The same, and a reduction is undone when timestamps show that the original arrived (RFC 3522, RFC
    /// 4015). Needs timestamps.
    Eifel = "eifel", Eifel;
    /// The same, with numbered transmissions and acknowledgements: windows are kept or restored during
    /// reordering (TCP-DOOR; Wang and Zhang, 2002). 8 B per segment.
    TcpDoor = "tcp-door", TcpDoor;
    /// The same, and spurious timeouts are detected (RFC 5682).
    FRto = "f-rto", FRto;
    /// Losses are detected by time, with tail loss probes (RFC 8985). Spurious retransmissions are detected
    /// by duplicate reports or timestamps, whichever comes first.
    RackTlp = "rack-tlp", DuplicatesOrTimestamps;
}

/// The method of current stacks.
impl Default for Reordering {
    fn default() -> Self {
        Self::RackTlp
    }
}

/// No detection.
impl Default for SpuriousDetector {
    fn default() -> Self {
        Reordering::None.detector()
    }
}

impl Reordering {
    /// The method with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == name)
    }
}
