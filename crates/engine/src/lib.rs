//! Sans-I/O multipath transport engines.
