//! Numbers of `linux/sctp.h`. The names are those of RFC 6458, without their prefix.

/// Protocol number of SCTP, and the level of its options and control messages.
pub const SCTP: i32 = 132;

/// Flags of messages.
pub mod message {
    /// The end of the association, by the peer or by this end (`SCTP_EOF`, `MSG_FIN`).
    pub const EOF: u16 = 0x200;
    /// Unordered delivery.
    pub const UNORDERED: u16 = 1;
    /// Requests an immediate acknowledgement of the message (RFC 7053, `SCTP_SACK_IMMEDIATELY`).
    pub const SACK_IMMEDIATELY: u16 = 8;
    /// Abort the association. The message is the reason.
    pub const ABORT: u16 = 4;
    /// The message goes to all associations of the socket.
    pub const SENDALL: u16 = 0x40;
    /// The message goes to the address that is given with it (`SCTP_ADDR_OVER`), which has no effect here.
    pub const ADDRESS_OVER: u16 = 2;
    /// All flags that a program may set.
    pub const ALL: u16 =
        EOF | UNORDERED | SACK_IMMEDIATELY | ABORT | SENDALL | ADDRESS_OVER | PR_MASK;
    /// Bits of the policy of partial reliability.
    pub const PR_MASK: u16 = 0x30;
    /// Partial reliability by time to live, ms (RFC 7496).
    pub const PR_TTL: u16 = 0x10;
    /// Partial reliability by number of retransmissions.
    pub const PR_RTX: u16 = 0x20;
    /// Partial reliability by priority.
    pub const PR_PRIO: u16 = 0x30;
    /// All policies, in requests for counts.
    pub const PR_ALL: u16 = 0x80;
    /// Flag of `recvmsg`: the message is a notification.
    pub const MSG_NOTIFICATION: i32 = 0x8000;
}

/// Types of control messages.
pub mod control {
    /// `struct sctp_initmsg`.
    pub const INIT: i32 = 0;
    /// `struct sctp_sndrcvinfo`.
    pub const SNDRCV: i32 = 1;
    /// `struct sctp_sndinfo`.
    pub const SNDINFO: i32 = 2;
    /// `struct sctp_rcvinfo`.
    pub const RCVINFO: i32 = 3;
    /// `struct sctp_nxtinfo`.
    pub const NXTINFO: i32 = 4;
    /// `struct sctp_prinfo`.
    pub const PRINFO: i32 = 5;
    /// `struct sctp_authinfo`.
    pub const AUTHINFO: i32 = 6;
    /// `struct in_addr`.
    pub const DSTADDRV4: i32 = 7;
    /// `struct in6_addr`.
    pub const DSTADDRV6: i32 = 8;
}

/// Options of sockets.
pub mod option {
    pub const RTOINFO: i32 = 0;
    pub const ASSOCINFO: i32 = 1;
    pub const INITMSG: i32 = 2;
    pub const NODELAY: i32 = 3;
    pub const AUTOCLOSE: i32 = 4;
    pub const SET_PEER_PRIMARY_ADDR: i32 = 5;
    pub const PRIMARY_ADDR: i32 = 6;
    pub const ADAPTATION_LAYER: i32 = 7;
    pub const DISABLE_FRAGMENTS: i32 = 8;
    pub const PEER_ADDR_PARAMS: i32 = 9;
    pub const DEFAULT_SEND_PARAM: i32 = 10;
    pub const EVENTS: i32 = 11;
    pub const I_WANT_MAPPED_V4_ADDR: i32 = 12;
    pub const MAXSEG: i32 = 13;
    pub const STATUS: i32 = 14;
    pub const GET_PEER_ADDR_INFO: i32 = 15;
    pub const DELAYED_SACK: i32 = 16;
    pub const CONTEXT: i32 = 17;
    pub const FRAGMENT_INTERLEAVE: i32 = 18;
    pub const PARTIAL_DELIVERY_POINT: i32 = 19;
    pub const MAX_BURST: i32 = 20;
    pub const AUTH_CHUNK: i32 = 21;
    pub const HMAC_IDENT: i32 = 22;
    pub const AUTH_KEY: i32 = 23;
    pub const AUTH_ACTIVE_KEY: i32 = 24;
    pub const AUTH_DELETE_KEY: i32 = 25;
    pub const PEER_AUTH_CHUNKS: i32 = 26;
    pub const AUTH_DEACTIVATE_KEY: i32 = 35;
    pub const LOCAL_AUTH_CHUNKS: i32 = 27;
    pub const GET_ASSOC_NUMBER: i32 = 28;
    pub const GET_ASSOC_ID_LIST: i32 = 29;
    pub const AUTO_ASCONF: i32 = 30;
    pub const PEER_ADDR_THLDS: i32 = 31;
    pub const RECVRCVINFO: i32 = 32;
    pub const RECVNXTINFO: i32 = 33;
    pub const DEFAULT_SNDINFO: i32 = 34;
    pub const REUSE_PORT: i32 = 36;
    /// FreeBSD's number. Linux has neither the extension nor this number.
    pub const NRSACK_SUPPORTED: i32 = 0x30;
    pub const BINDX_ADD: i32 = 100;
    pub const BINDX_REM: i32 = 101;
    pub const PEELOFF: i32 = 102;
    pub const CONNECTX_OLD: i32 = 107;
    pub const GET_PEER_ADDRS: i32 = 108;
    pub const GET_LOCAL_ADDRS: i32 = 109;
    pub const CONNECTX: i32 = 110;
    pub const CONNECTX3: i32 = 111;
    pub const PR_SUPPORTED: i32 = 113;
    pub const DEFAULT_PRINFO: i32 = 114;
    pub const PR_ASSOC_STATUS: i32 = 115;
    pub const PR_STREAM_STATUS: i32 = 116;
    pub const RECONFIG_SUPPORTED: i32 = 117;
    pub const ENABLE_STREAM_RESET: i32 = 118;
    pub const RESET_STREAMS: i32 = 119;
    pub const RESET_ASSOC: i32 = 120;
    pub const ADD_STREAMS: i32 = 121;
    pub const PEELOFF_FLAGS: i32 = 122;
    pub const STREAM_SCHEDULER: i32 = 123;
    pub const STREAM_SCHEDULER_VALUE: i32 = 124;
    pub const INTERLEAVING_SUPPORTED: i32 = 125;
    pub const EVENT: i32 = 127;
    pub const ASCONF_SUPPORTED: i32 = 128;
    pub const AUTH_SUPPORTED: i32 = 129;
    pub const ECN_SUPPORTED: i32 = 130;
    pub const REMOTE_UDP_ENCAPS_PORT: i32 = 132;
}

/// Flags of stream reconfiguration (RFC 6525, 6).
pub mod reconfiguration {
    /// Bits of `SCTP_ENABLE_STREAM_RESET`.
    pub const ENABLE_STREAMS: u32 = 1;
    pub const ENABLE_ASSOCIATION: u32 = 2;
    pub const ENABLE_CHANGE: u32 = 4;
    /// Directions of `SCTP_RESET_STREAMS` and of its notification.
    pub const INCOMING: u16 = 1;
    pub const OUTGOING: u16 = 2;
    /// Outcomes in notifications.
    pub const DENIED: u16 = 4;
    pub const FAILED: u16 = 8;
}

/// Types of notifications, relative to `SCTP_SN_TYPE_BASE`.
pub mod notification {
    pub const DATA_IO: u16 = 0;
    pub const ASSOC_CHANGE: u16 = 1;
    pub const PEER_ADDR_CHANGE: u16 = 2;
    pub const SEND_FAILED: u16 = 3;
    pub const SHUTDOWN: u16 = 5;
    pub const PARTIAL_DELIVERY: u16 = 6;
    pub const ADAPTATION: u16 = 7;
    pub const AUTHENTICATION: u16 = 8;
    pub const SENDER_DRY: u16 = 9;
    pub const STREAM_RESET: u16 = 10;
    pub const ASSOC_RESET: u16 = 11;
    pub const STREAM_CHANGE: u16 = 12;
    pub const SEND_FAILED_EVENT: u16 = 13;
    /// Number of types.
    pub const COUNT: u16 = 14;
    /// `SCTP_SN_TYPE_BASE`.
    pub const BASE: u16 = 1 << 15;
}

/// Association identifiers that name no single association.
pub mod association {
    /// Future associations of a socket.
    pub const FUTURE: i32 = 0;
    /// Current associations of a socket.
    pub const CURRENT: i32 = 1;
    /// Current and future associations.
    pub const ALL: i32 = 2;
}
