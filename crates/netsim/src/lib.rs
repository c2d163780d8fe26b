//! Deterministic discrete-event network, knows no protocol.
