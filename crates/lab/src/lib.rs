//! Puts engine into network: runs, sweeps, compares, records, reports.
