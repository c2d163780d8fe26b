//! Detection of spurious retransmissions by timestamps: the Eifel detection (RFC 3522).
//!
//! The first acknowledgement that advances after a retransmission echoes the timestamp of the segment that
//! caused it. If that timestamp is older than the retransmission, the original had arrived. This is known a
//! round trip earlier than with a duplicate report, and needs only timestamps from the receiver.

use ropewalk_base::Time;

use super::{Report, SpuriousRule};

/// State of the detection.
#[derive(Clone, Copy, Debug, Default)]
enum Question {
    #[default]
    None,
    /// The window was reduced; the retransmission has not been sent yet.
    Asked,
    /// The retransmission was sent with this timestamp (RetransmitTS).
    Open { stamp: u64 },
}

/// State of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Eifel {
    question: Question,
}

impl Eifel {
    /// Records a reduction of the window (RFC 3522, 3.2, step 1).
    pub const fn on_reduction(&mut self) {
        self.question = Question::Asked;
    }

    /// Records a retransmission (step 2); only the first one after a reduction counts.
    pub fn on_retransmission(&mut self, now: Time) {
        if matches!(self.question, Question::Asked) {
            self.question = Question::Open { stamp: now.as_nanos() };
        }
    }

    /// Processes an acknowledgement that advanced and echoes `echo`, a value of this end's clock (steps 3 to
    /// 5). Returns true if the retransmission was spurious.
    pub fn on_advance(&mut self, echo: Option<u64>) -> bool {
        let Question::Open { stamp } = self.question else { return false };
        self.question = Question::None;
        echo.is_some_and(|echo| echo != 0 && echo < stamp)
    }
}

impl SpuriousRule for Eifel {
    fn on_reduction(&mut self, _now: Time) {
        self.on_reduction();
    }

    fn on_retransmission(&mut self, now: Time, _seq: u64) {
        self.on_retransmission(now);
    }

    fn on_ack(&mut self, _now: Time, report: &Report) -> bool {
        report.advanced && self.on_advance(report.echo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_older_than_the_retransmission_shows_that_the_original_arrived() {
        for (echo, spurious) in [
            (Some(999_999), true),
            (Some(1_000_000), false),
            (Some(2_000_000), false),
            (Some(0), false),
            (None, false),
        ] {
            let mut rule = Eifel::default();
            rule.on_reduction();
            assert!(!rule.on_advance(Some(1)), "nothing has been sent again");
            rule.on_retransmission(Time::from_millis(1));
            rule.on_retransmission(Time::from_millis(7));
            assert_eq!(rule.on_advance(echo), spurious, "{echo:?}");
            assert!(!rule.on_advance(Some(1)), "only the first that advances counts");
        }
    }
}
