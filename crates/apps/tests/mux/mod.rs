//! Byte streams over an association: the machine under random operations, and over a pair of queues.

mod pair;
mod random;
mod rules;
mod streams;
