//! The native half of the Python package `ropewalk`: runs, tables and closed forms.
//!
//! Only code that needs Rust is here. The Python half (`python/ropewalk`) is the public interface: it shapes
//! and documents arguments and gives defaults. Nothing here is public by itself.

mod advise;
mod compare;
mod custom_scheduler;
mod error;
mod models;
mod net;
mod optimise;
mod run;
mod scenario;
mod sweep;
mod table;
mod throughput;
mod tune;
mod vec_env;
mod view;
mod watch;
mod wifi;

/// The module `ropewalk._ropewalk`.
#[pyo3::pymodule]
mod _ropewalk {
    #[pymodule_export]
    use crate::advise::advise;
    #[pymodule_export]
    use crate::compare::{compare, predict, predict_slot, report_runs};
    #[pymodule_export]
    use crate::custom_scheduler::{CustomSchedulers, Wait};
    #[pymodule_export]
    use crate::models::{
        asymmetry, blocking_time_max_s, blocking_time_two_paths_s, flow_control_bound,
        packets_per_period, receive_buffer_min_bytes, receive_order,
    };
    #[pymodule_export]
    use crate::net::{
        Association, AssociationControl, Key, Listener, Message, Operation, net_connect,
        net_default_key, net_find_peer, net_listen,
    };
    #[pymodule_export]
    use crate::optimise::{allocate, heuristic, least_buffer};
    #[pymodule_export]
    use crate::run::{Delays, Run, run};
    #[pymodule_export]
    use crate::scenario::{Scenario, scheduler_names};
    #[pymodule_export]
    use crate::sweep::{Sweep, merge_sweeps, sweep_point};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::throughput::{loss_free, markov, markov_table, mathis, pftk, renewal};
    #[pymodule_export]
    use crate::vec_env::{VecEnv, scheduler_features};
    #[pymodule_export]
    use crate::view::{Path, SchedulerView, Sent};
    #[pymodule_export]
    use crate::wifi::bianchi;

    #[pymodule_export]
    use crate::tune::tune;

    /// Version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
