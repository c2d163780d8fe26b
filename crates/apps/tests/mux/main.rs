//! Byte streams over an association: the machine under random operations, and over a pair of queues.

mod random;
mod rules;
mod streams;
mod world;
