//! The integration tests of this crate in one program: each program links the whole crate, which takes longer than
//! compiling most of these files.

mod advise;
mod bench;
mod capture;
mod clock;
mod commands;
mod config;
mod doctor;
mod emulate;
mod files;
mod help;
mod iperf3_documents;
mod keygen;
mod marks;
mod measure;
mod mtu;
mod new_logs;
mod observe;
mod paths;
mod permissions;
#[cfg(target_os = "linux")]
mod preload;
mod proxy;
mod recv_access;
mod refusals;
mod robust;
mod secrets;
mod support;
mod sweep;
mod tournament;
mod transfer;
mod tune;
mod tunnel;
mod tunnel_config;
mod tunnel_hub;
mod tunnel_idle;
mod tunnel_links;
mod tunnel_load;
mod tunnel_names;
mod tunnel_reload;
mod tunnel_routes;
mod tunnel_silence;
mod tunnel_switch;
mod tunnel_undo;
mod tunnel_units;
mod validate;
