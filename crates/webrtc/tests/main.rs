//! Tests of the crate as its users see it.

mod channels;
mod hostile;
mod link;
mod random;
