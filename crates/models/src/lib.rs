//! Analytic models of multipath transport, as pure functions of numbers.
//!
//! Nothing here keeps state, reads a clock or draws a random number: the same arguments give the
//! same result. Quantities are in SI units, which their names state (`rate_bps`, `rtt_s`,
//! `packet_bytes`); sizes are bytes on the wire, headers included.
//!
//! | question | function | source |
//! | --- | --- | --- |
//! | how long can a packet wait for in-order delivery? | [`blocking_time_max_s`] | Kuhn et al. 2014, Eq 2 |
//! | how large must the buffer be so that it never blocks? | [`receive_buffer_min_bytes`] | Kuhn et al. 2014, Eq 3 |
//! | how unequal are two paths? | [`asymmetry`] | Kuhn et al., DAPS slides, 2013 |
//! | what can flow control let through at most? | [`flow_control_bound`] | Little 1961 |
//! | which packets go on which path so that they arrive in order? | [`order`] | Sarwar et al. 2013, Alg 1, 2 |
//! | what does that gain, packet by packet? | [`slot`] | Sarwar et al. 2013, Tables I, II |
//! | what does a path with loss deliver through a window? | [`markov`] | Wallace and Shami 2014, Section 4.3 |
//! | the same in closed form? | [`renewal`] | Wallace and Shami 2014, Section 4.4 |
//! | and by the formulas that everyone knows? | [`reference_formulas`] | Padhye et al. 2000, Mathis et al. 1997 |
//! | which mean window has a flow that loses every n-th packet? | [`response`] | Mathis et al. 1997, RFC 9438 |
//! | what do stations of 802.11 carry that contend for one channel? | [`bianchi`] | Bianchi 2000; Wu et al. 2002 |
//! | and one alone? | [`wifi`] | IEEE 802.11-2012 |
//! | which window should each path have? | [`optimise`] | Wallace and Shami 2014, Section 5.2 |

pub mod bianchi;
pub mod blocking;
pub mod bound;
pub mod lossy;
pub mod markov;
pub mod number;
pub mod optimise;
pub mod order;
pub mod path;
pub mod period;
pub mod reference_formulas;
pub mod renewal;
pub mod response;
pub mod slot;
pub mod wifi;

pub use blocking::{
    asymmetry, blocking_time_max_s, blocking_time_two_paths_s, receive_buffer_min_bytes,
};
pub use bound::{BoundInput, FlowControlBound, PathShare, flow_control_bound};
pub use lossy::{LossyPath, loss_free_pps, window_packets};
pub use markov::LossModel;
pub use number::{OutOfRange, PathsError};
pub use order::{OrderError, PacketRange, receive_order, sequence_lists};
pub use path::PathNumbers;
pub use period::{PacketsPerPeriod, Period, PeriodError, delay_ticks, packets_per_period, period};
