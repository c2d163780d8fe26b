//! Sockets, and the associations that share them.
