//! Control messages of `sendmsg` and `recvmsg` (RFC 6458, 5.3), and the structures that they share with options.

use std::net::IpAddr;

use super::number::{association, control, message};
use super::{Fields, Image};
use crate::errno::{Errno, Result};

/// Parameters of sending a message: the combination of `sctp_sndrcvinfo`, `sctp_sndinfo` and
/// `sctp_prinfo`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendInfo {
    /// The stream.
    pub stream: u16,
    /// Flags of [`message`].
    pub flags: u16,
    /// Payload protocol identifier, in the byte order of the program.
    pub ppid: u32,
    /// The program's own value for notifications.
    pub context: u32,
    /// Policy of partial reliability: [`message::PR_TTL`], [`message::PR_RTX`] or 0.
    pub policy: u16,
    /// Its value: milliseconds, or retransmissions.
    pub value: u32,
    /// The association.
    pub association: i32,
}

impl SendInfo {
    /// Parses `struct sctp_sndrcvinfo`. Its time to live selects partial reliability (RFC 6458,
    /// 5.3.2).
    ///
    /// # Errors
    /// `EINVAL` if it is too short.
    pub fn from_sndrcv(fields: Fields<'_>) -> Result<Self> {
        let flags = fields.u16(4)?;
        let value = fields.u32(16)?;
        let named = flags & message::PR_MASK;
        let policy = if named == 0 && value > 0 { message::PR_TTL } else { named };
        Ok(Self {
            stream: fields.u16(0)?,
            flags: flags & !message::PR_MASK,
            ppid: fields.u32(8)?,
            context: fields.u32(12)?,
            policy,
            value,
            association: fields.i32(28)?,
        })
    }

    /// Parses `struct sctp_sndinfo`.
    ///
    /// # Errors
    /// `EINVAL` if it is too short.
    pub fn from_sndinfo(fields: Fields<'_>) -> Result<Self> {
        let flags = fields.u16(2)?;
        Ok(Self {
            stream: fields.u16(0)?,
            flags: flags & !message::PR_MASK,
            ppid: fields.u32(4)?,
            context: fields.u32(8)?,
            policy: 0,
            value: 0,
            association: fields.i32(12)?,
        })
    }

    /// Encodes as `struct sctp_sndrcvinfo`.
    pub fn to_sndrcv(self) -> Vec<u8> {
        let Self { stream, flags, ppid, context, policy, value, association } = self;
        let ttl = if policy == message::PR_TTL { value } else { 0 };
        let info =
            ReceiveInfo { stream, flags, ppid, context, association, ..ReceiveInfo::default() };
        sndrcv_image(info, ttl)
    }

    /// Encodes as `struct sctp_sndinfo`.
    pub fn to_sndinfo(self) -> Vec<u8> {
        Image::new()
            .u16(self.stream)
            .u16(self.flags)
            .u32(self.ppid)
            .u32(self.context)
            .i32(self.association)
            .finish()
    }
}

/// Control information of a message.
#[derive(Clone, Debug, Default)]
pub struct Controls {
    /// How to send the message. `None` selects the defaults of the socket.
    pub info: Option<SendInfo>,
    /// Number of the shared key that authenticates the message (SCTP_AUTHINFO).
    pub key: Option<u16>,
    /// Policy and value of partial reliability.
    pub reliability: Option<(u16, u32)>,
    /// Number of outbound streams to request if the message opens an association.
    pub streams: Option<u16>,
    /// More addresses of the peer (`sctp_sendv`).
    pub addresses: Vec<IpAddr>,
}

impl Controls {
    /// Parses one control message of [`super::number::SCTP`].
    ///
    /// # Errors
    /// `EINVAL` if it is too short, or has unknown flags, a policy of partial reliability unknown to RFC 7496, or an
    /// unknown type, as in the kernel (`sctp_msghdr_parse`).
    pub fn take(&mut self, kind: i32, data: &[u8]) -> Result<()> {
        let fields = Fields(data);
        match kind {
            control::SNDRCV => {
                known_flags(fields.u16(4)?)?;
                self.info = Some(SendInfo::from_sndrcv(fields)?);
            }
            control::SNDINFO => {
                known_flags(fields.u16(2)?)?;
                self.info = Some(SendInfo::from_sndinfo(fields)?);
            }
            control::AUTHINFO => self.key = Some(fields.u16(0)?),
            control::PRINFO => {
                self.reliability = Some((known_policy(fields.u16(0)?)?, fields.u32(4)?));
            }
            control::INIT => self.streams = Some(fields.u16(0)?),
            control::DSTADDRV4 => {
                let octets: [u8; 4] = fields.u32(0)?.to_ne_bytes();
                self.addresses.push(IpAddr::from(octets));
            }
            control::DSTADDRV6 => {
                let mut octets = [0; 16];
                for (i, octet) in octets.iter_mut().enumerate() {
                    *octet = fields.u8(i)?;
                }
                self.addresses.push(IpAddr::from(octets));
            }
            _ => return Err(Errno(libc::EINVAL)),
        }
        Ok(())
    }
}

/// `struct sctp_sndrcvinfo`, which describes sent and received messages. `ttl`: lifetime, ms.
fn sndrcv_image(info: ReceiveInfo, ttl: u32) -> Vec<u8> {
    Image::new()
        .u16(info.stream)
        .u16(info.ssn)
        .u16(info.flags)
        .pad_to(8)
        .u32(info.ppid)
        .u32(info.context)
        .u32(ttl)
        .u32(info.tsn)
        .u32(info.cumulative_tsn)
        .i32(info.association)
        .finish()
}

/// Information about a received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiveInfo {
    /// The stream.
    pub stream: u16,
    /// Flags of [`message`].
    pub flags: u16,
    /// Payload protocol identifier, in the byte order of the program.
    pub ppid: u32,
    /// The value of the option `SCTP_CONTEXT`.
    pub context: u32,
    /// The association.
    pub association: i32,
    /// Stream sequence number.
    pub ssn: u16,
    /// TSN of one of its DATA chunks.
    pub tsn: u32,
    /// The cumulative TSN.
    pub cumulative_tsn: u32,
}

impl ReceiveInfo {
    /// Encodes as `struct sctp_sndrcvinfo`.
    pub fn to_sndrcv(self) -> Vec<u8> {
        sndrcv_image(self, 0)
    }

    /// Encodes as `struct sctp_rcvinfo`.
    pub fn to_rcvinfo(self) -> Vec<u8> {
        Image::new()
            .u16(self.stream)
            .u16(self.ssn)
            .u16(self.flags)
            .pad_to(8)
            .u32(self.ppid)
            .u32(self.tsn)
            .u32(self.cumulative_tsn)
            .u32(self.context)
            .i32(self.association)
            .finish()
    }

    /// Encodes as `struct sctp_nxtinfo` of a message of `length` bytes.
    pub fn to_nxtinfo(self, length: u32) -> Vec<u8> {
        Image::new()
            .u16(self.stream)
            .u16(self.flags)
            .u32(self.ppid)
            .u32(length)
            .i32(self.association)
            .finish()
    }
}

/// Checks a policy of partial reliability in `struct sctp_prinfo` or `struct sctp_default_prinfo`.
///
/// # Errors
/// `EINVAL` if RFC 7496 does not define it.
pub const fn known_policy(number: u16) -> Result<u16> {
    if number & !message::PR_MASK == 0 { Ok(number) } else { Err(Errno(libc::EINVAL)) }
}

/// Checks the flags of a message in `struct sctp_sndrcvinfo` or `struct sctp_sndinfo`.
///
/// # Errors
/// `EINVAL` if one of them is unknown.
const fn known_flags(flags: u16) -> Result<()> {
    if flags & !message::ALL == 0 { Ok(()) } else { Err(Errno(libc::EINVAL)) }
}

/// Whether an identifier names a single association.
pub const fn names_one(id: i32) -> bool {
    id > association::ALL
}
