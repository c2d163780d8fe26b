//! The proxy, with real programs' connections at both sides: over a pair of queues, and over sealed
//! associations.

mod breaks;
mod hostile;
mod live;
mod programs;
mod quotas;
mod testbed;
