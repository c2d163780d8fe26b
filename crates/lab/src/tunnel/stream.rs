//! One end of an inner TCP connection: a session of the engine with one subflow.

use ropewalk_base::{PathId, Seed, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::mptcp::{Config, Preset, Segment, Session};
use ropewalk_engine::path::PathConfig;
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions};
use ropewalk_scenario as file;

use super::inner_packet::segment_bytes;

/// Maximum receive buffer of Linux (tcp_rmem): 6 MB.
const RECEIVE_BUFFER: u64 = 6 << 20;
/// Bytes per write of the application.
const PIECE: u32 = 16 << 10;

/// Settings of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamPlan {
    /// Its congestion control.
    pub congestion: file::Congestion,
    /// Start time, and time at which the application stops writing.
    pub times: (Time, Option<Time>),
    /// Maximum size of an IP packet.
    pub mtu: u32,
    /// Bytes of headers beyond those of TCP.
    pub over: u32,
}

/// One end.
#[derive(Clone, Debug)]
pub(super) struct StreamEnd {
    session: Session,
    over: u32,
    /// The application writes without limit until this time. `None` for the end that only reads.
    writes_until: Option<Time>,
    segment: Segment,
}

impl StreamEnd {
    /// The end that opens the connection and sends.
    pub fn sender(plan: &StreamPlan, seed: Seed) -> Self {
        let (start, stop) = plan.times;
        let session = Session::start_later(config(plan), scheduler(), seed, start);
        let writes_until = Some(stop.unwrap_or(Time::FAR_FUTURE));
        Self { session, over: plan.over, writes_until, segment: Segment::default() }
    }

    /// The end that receives.
    pub fn receiver(plan: &StreamPlan, seed: Seed) -> Self {
        let session = Session::listen(config(plan), scheduler(), seed);
        Self { session, over: plan.over, writes_until: None, segment: Segment::default() }
    }

    /// Bytes of headers beyond those of TCP.
    pub const fn over(&self) -> u32 {
        self.over
    }

    /// Processes a segment.
    pub fn receive(&mut self, now: Time, mut segment: Segment) {
        self.session.handle_in_place(now, PathId(0), &mut segment);
    }

    /// Handles expired timers, and lets the application read and write. Passes on each segment that is sent, with
    /// the size of its packet. Returns the bytes read.
    pub fn drain(&mut self, now: Time, out: &mut impl FnMut(Segment, u32)) -> u32 {
        if self.session.next_deadline().is_some_and(|at| at <= now) {
            self.session.handle_timeout(now);
        }
        let mut read = 0;
        while let Some(payload) = self.session.read() {
            read += payload.len();
        }
        if self.writes_until.is_some_and(|until| now < until) {
            self.write();
        }
        while self.session.poll_transmit_into(now, &mut self.segment).is_some() {
            let bytes = segment_bytes(&self.segment, self.over);
            out(self.segment.clone(), bytes);
        }
        while self.session.poll_event().is_some() {}
        read
    }

    fn write(&mut self) {
        while self.session.send_room() > 0 {
            if self.session.send(Payload::Length(PIECE)).is_err() {
                return;
            }
        }
    }

    /// Time of the next call of [`Self::drain`].
    pub fn deadline(&self) -> Option<Time> {
        self.session.next_deadline()
    }
}

fn scheduler() -> Scheduler {
    Scheduler::from_name("min-rtt", &SchedulerOptions::default()).expect("the engine has it")
}

fn config(plan: &StreamPlan) -> Config {
    let path = PathConfig { mtu: plan.mtu - plan.over, ..PathConfig::default() };
    let mut config = Config::preset(Preset::Linux6, vec![path], RECEIVE_BUFFER);
    config.multipath = false;
    // Scenario and engine use the same names; a test checks that.
    config.use_congestion(plan.congestion.as_str()).expect("the engine knows it");
    config
}
