//! The integration tests of this crate in one program: each program links all of the crate, which takes longer
//! than compiling most of these files.

mod adaptive;
mod bottleneck;
mod chihani2011;
mod contested;
mod custom_schedulers;
mod determinism;
mod ecn;
mod figures;
mod interleaving;
mod lifetimes;
mod link_uses;
mod linux;
mod losses_by_rounds;
mod markov;
mod pacing;
mod packets;
mod pinned;
mod rates;
mod ready;
mod ready_scenarios;
mod recovery;
mod reproduce;
mod response;
mod robust;
mod sources;
mod stuck;
mod tunnel;
mod useless_path;
mod wifi;
mod window_check;
