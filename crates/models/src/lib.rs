//! Analytic models of multipath transport, pure functions of numbers.
