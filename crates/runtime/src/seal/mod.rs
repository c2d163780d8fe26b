//! Sealed datagrams: who the peer is, and that nobody else reads or changes what is sent.
