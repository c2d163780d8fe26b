//! The functions of RFC 6458, 9, which programs for Linux find in `libsctp.so.1`. They also work on sockets of the
//! kernel, because they only use the other calls of this module.

use std::ffi::{c_int, c_uint, c_void};

use libc::{iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use super::control_buffer::ControlBuffer;
use super::messages::{recvmsg, sendmsg};
use super::options::{getsockopt, setsockopt};
use super::{raw, returned_int};
use crate::abi::control::SendInfo;
use crate::abi::number::{self, control, message, option};
use crate::abi::{Fields, Image};
use crate::address::{self, V4_LEN, V6_LEN};
use crate::critical::uncancelled;
use crate::errno::{Errno, Result};

/// Room for the addresses of one end, bytes.
const ADDRESSES_ROOM: usize = 4096;

/// Flags of `sctp_bindx`.
mod bindx {
    pub const ADD: i32 = 1;
    pub const REMOVE: i32 = 2;
}

/// Types of information of `sctp_sendv` and `sctp_recvv`.
mod information {
    use std::ffi::c_uint;

    pub const NONE: c_uint = 0;
    pub const SEND: c_uint = 1;
    pub const RELIABILITY: c_uint = 2;
    pub const AUTHENTICATION: c_uint = 3;
    pub const SEND_ALL: c_uint = 4;
    pub const RECEIVE: c_uint = 1;
    pub const NEXT: c_uint = 2;
    pub const RECEIVE_AND_NEXT: c_uint = 3;
}

/// Length of an address of a family, bytes. Negative if the family is unknown.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn sctp_getaddrlen(family: libc::sa_family_t) -> c_int {
    match c_int::from(family) {
        libc::AF_INET => V4_LEN as c_int,
        libc::AF_INET6 => V6_LEN as c_int,
        _ => -1,
    }
}

/// The bytes of `count` consecutive addresses.
///
/// # Safety
/// `addresses` points to them.
unsafe fn packed<'a>(addresses: *const sockaddr, count: c_int) -> Result<&'a [u8]> {
    if addresses.is_null() || count <= 0 {
        return Err(Errno(libc::EINVAL));
    }
    let mut length = 0;
    for _ in 0..count {
        // SAFETY: the caller promises another address here; its family tells its length.
        let family = unsafe { addresses.byte_add(length).cast::<u16>().read_unaligned() };
        let one = sctp_getaddrlen(family);
        length += usize::try_from(one).map_err(|_| Errno(libc::EINVAL))?;
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { raw::bytes(addresses.cast(), length) })
}

/// Adds or removes addresses of a socket.
///
/// # Safety
/// `addresses` points to `count` consecutive addresses.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_bindx(
    fd: c_int,
    addresses: *mut sockaddr,
    count: c_int,
    flags: c_int,
) -> c_int {
    let name = match flags {
        bindx::ADD => option::BINDX_ADD,
        bindx::REMOVE => option::BINDX_REM,
        _ => return returned_int(Err::<isize, _>(Errno(libc::EINVAL))),
    };
    // SAFETY: as the caller promises.
    match unsafe { packed(addresses, count) } {
        // SAFETY: the bytes are readable for their length.
        Ok(bytes) => unsafe {
            setsockopt(fd, number::SCTP, name, bytes.as_ptr().cast(), bytes.len() as socklen_t)
        },
        Err(error) => returned_int(Err::<isize, _>(error)),
    }
}

/// Opens an association to a peer with several addresses.
///
/// # Safety
/// `addresses` points to `count` consecutive addresses; `id` is null or valid.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_connectx(
    fd: c_int,
    addresses: *mut sockaddr,
    count: c_int,
    id: *mut i32,
) -> c_int {
    // SAFETY: as the caller promises.
    let bytes = match unsafe { packed(addresses, count) } {
        Ok(bytes) => bytes,
        Err(error) => return returned_int(Err::<isize, _>(error)),
    };
    // `struct sctp_getaddrs_old`.
    let mut value = [0_u8; 8 + size_of::<usize>()];
    value[4..8].copy_from_slice(&(bytes.len() as i32).to_ne_bytes());
    value[8..].copy_from_slice(&bytes.as_ptr().expose_provenance().to_ne_bytes());
    let mut length = value.len() as socklen_t;
    // SAFETY: the structure is writable for its length and points to the program's addresses.
    let done = unsafe {
        getsockopt(fd, number::SCTP, option::CONNECTX3, value.as_mut_ptr().cast(), &raw mut length)
    };
    if let (Ok(number), false) = (Fields(&value).i32(0), id.is_null()) {
        // SAFETY: as the caller promises.
        unsafe { id.write(number) };
    }
    done
}

/// # Safety
/// `addresses` is valid.
unsafe fn get_addresses(fd: c_int, id: i32, addresses: *mut *mut sockaddr, name: c_int) -> c_int {
    let mut value = Image::new().i32(id).u32(0).pad_to(ADDRESSES_ROOM).finish();
    let mut length = value.len() as socklen_t;
    // SAFETY: the buffer is writable for its length.
    let got =
        unsafe { getsockopt(fd, number::SCTP, name, value.as_mut_ptr().cast(), &raw mut length) };
    if got < 0 {
        return got;
    }
    let bytes = value.get(8..length as usize).unwrap_or_default();
    // SAFETY: allocates; the program frees it by `sctp_freepaddrs`.
    let copy = unsafe { libc::malloc(bytes.len().max(1)) };
    if copy.is_null() {
        return returned_int(Err::<isize, _>(Errno(libc::ENOMEM)));
    }
    // SAFETY: the copy has room for the bytes, and the caller's pointer is valid.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy.cast(), bytes.len());
        addresses.write(copy.cast());
    }
    Fields(&value).i32(4).unwrap_or(0)
}

/// All addresses of the peer, to be freed with `sctp_freepaddrs`. Returns their number.
///
/// # Safety
/// `addresses` is valid.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_getpaddrs(
    fd: c_int,
    id: i32,
    addresses: *mut *mut sockaddr,
) -> c_int {
    // SAFETY: as the caller promises.
    uncancelled(|| unsafe { get_addresses(fd, id, addresses, option::GET_PEER_ADDRS) })
}

/// All addresses of this end, to be freed with `sctp_freeladdrs`. Returns their number.
///
/// # Safety
/// `addresses` is valid.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_getladdrs(
    fd: c_int,
    id: i32,
    addresses: *mut *mut sockaddr,
) -> c_int {
    // SAFETY: as the caller promises.
    uncancelled(|| unsafe { get_addresses(fd, id, addresses, option::GET_LOCAL_ADDRS) })
}

/// Frees what `sctp_getpaddrs` has given.
///
/// # Safety
/// `addresses` is null or comes from there, and was not freed.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_freepaddrs(addresses: *mut sockaddr) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { libc::free(addresses.cast()) };
    0
}

/// Frees what `sctp_getladdrs` has given.
///
/// # Safety
/// As [`sctp_freepaddrs`].
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_freeladdrs(addresses: *mut sockaddr) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { sctp_freepaddrs(addresses) }
}

/// Gets an option of an association, whose identifier is the first member of the structure.
///
/// # Safety
/// `value` is readable and writable for `*length` bytes.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_opt_info(
    fd: c_int,
    id: i32,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    if value.is_null() || length.is_null() {
        return returned_int(Err::<isize, _>(Errno(libc::EINVAL)));
    }
    // SAFETY: as the caller promises.
    if unsafe { *length } < size_of::<i32>() as socklen_t {
        return returned_int(Err::<isize, _>(Errno(libc::EINVAL)));
    }
    let at = match name {
        option::INITMSG | option::NODELAY | option::AUTOCLOSE | option::EVENTS => None,
        option::DEFAULT_SEND_PARAM => Some(28),
        option::DEFAULT_SNDINFO => Some(12),
        // The structures of all other options begin with the identifier.
        _ => Some(0),
    };
    // SAFETY: as the caller promises.
    let room = unsafe { *length } as usize;
    if let Some(at) = at.filter(|at| at + size_of::<i32>() <= room) {
        // SAFETY: the identifier ends within the structure.
        unsafe { value.byte_add(at).cast::<i32>().write_unaligned(id) };
    }
    // SAFETY: as the caller promises.
    unsafe { getsockopt(fd, number::SCTP, name, value, length) }
}

/// Makes an association a socket of its own. Returns its descriptor.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn sctp_peeloff(fd: c_int, id: i32) -> c_int {
    uncancelled(|| peel(fd, option::PEELOFF, Image::new().i32(id).i32(0)))
}

/// The same with flags for the new descriptor.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn sctp_peeloff_flags(fd: c_int, id: i32, flags: c_uint) -> c_int {
    uncancelled(|| peel(fd, option::PEELOFF_FLAGS, Image::new().i32(id).i32(0).u32(flags)))
}

fn peel(fd: c_int, name: c_int, argument: Image) -> c_int {
    let mut value = argument.finish();
    let mut length = value.len() as socklen_t;
    // SAFETY: the structure is writable for its length.
    let done =
        unsafe { getsockopt(fd, number::SCTP, name, value.as_mut_ptr().cast(), &raw mut length) };
    if done < 0 { done } else { Fields(&value).i32(4).unwrap_or(-1) }
}

/// Sends buffers with control messages.
///
/// # Safety
/// As for `sendmsg`.
unsafe fn send_with(
    fd: c_int,
    vector: (*const iovec, usize),
    to: (*mut sockaddr, socklen_t),
    controls: &ControlBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: all members of the structure may be zero.
    let mut header: msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (vector.0.cast_mut(), vector.1);
    (header.msg_name, header.msg_namelen) = (to.0.cast(), to.1);
    header.msg_control = controls.bytes().as_ptr().cast_mut().cast();
    header.msg_controllen = controls.bytes().len();
    // SAFETY: as the caller promises; the control messages are only read.
    unsafe { sendmsg(fd, &raw const header, flags) as c_int }
}

/// Sends a message on a stream.
///
/// # Safety
/// `data` is readable for `length` bytes, and `to` is null or points to an address of `to_length` bytes.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_sendmsg(
    fd: c_int,
    data: *const c_void,
    length: size_t,
    to: *mut sockaddr,
    to_length: socklen_t,
    ppid: u32,
    flags: u32,
    stream: u16,
    time_to_live: u32,
    context: u32,
) -> c_int {
    let policy = if time_to_live > 0 { message::PR_TTL } else { 0 };
    let info = SendInfo {
        stream,
        flags: flags as u16,
        ppid,
        context,
        policy,
        value: time_to_live,
        association: 0,
    };
    let vector = iovec { iov_base: data.cast_mut(), iov_len: length };
    let controls = uncancelled(|| {
        let mut controls = ControlBuffer::NONE;
        controls.add(control::SNDRCV, &info.to_sndrcv());
        controls
    });
    // SAFETY: as the caller promises.
    unsafe { send_with(fd, (&raw const vector, 1), (to, to_length), &controls, 0) }
}

/// Sends a message as a `struct sctp_sndrcvinfo` says.
///
/// # Safety
/// `data` is readable for `length` bytes; `info` is null or points to the structure.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_send(
    fd: c_int,
    data: *const c_void,
    length: size_t,
    info: *const c_void,
    flags: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let info = unsafe { raw::bytes(info, 32) };
    let mut controls = ControlBuffer::NONE;
    if !info.is_empty() {
        controls.add(control::SNDRCV, info);
    }
    let vector = iovec { iov_base: data.cast_mut(), iov_len: length };
    // SAFETY: as the caller promises.
    unsafe { send_with(fd, (&raw const vector, 1), (std::ptr::null_mut(), 0), &controls, flags) }
}

/// Adds the control message of a typed structure, whose length is known.
fn one_information(info: &[u8], kind: c_int, length: usize, controls: &mut ControlBuffer) -> bool {
    info.len() == length && controls.add(kind, info)
}

/// Adds control messages for `struct sctp_sendv_spa`: flags, then the three structures. Returns whether it is as long as the
/// flags say.
fn all_information(info: &[u8], controls: &mut ControlBuffer) -> bool {
    let Ok(valid) = Fields(info).u32(0) else { return false };
    let parts = [
        (1, control::SNDINFO, 4..20),
        (2, control::PRINFO, 20..28),
        (4, control::AUTHINFO, 28..30),
    ];
    let mut given = parts.into_iter().filter(|(flag, ..)| valid & flag != 0);
    given.all(|(_, kind, range)| info.get(range).is_some_and(|part| controls.add(kind, part)))
}

/// Adds control messages for all addresses of a peer but the first. Returns the length of the first one.
fn more_addresses(all: &[u8], controls: &mut ControlBuffer) -> Result<socklen_t> {
    let all = address::parse_all(all)?;
    for other in &all[1..] {
        let image = address::image(*other);
        let added = match other.is_ipv4() {
            true => controls.add(control::DSTADDRV4, &image[4..8]),
            false => controls.add(control::DSTADDRV6, &image[8..24]),
        };
        if !added {
            return Err(Errno(libc::EINVAL));
        }
    }
    Ok(address::image(all[0]).len() as socklen_t)
}

/// Sends a message, and says by a typed structure how.
///
/// # Safety
/// The vector, the addresses and the structure are as RFC 6458, 9.12, says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_sendv(
    fd: c_int,
    vector: *const iovec,
    vector_count: c_int,
    addresses: *mut sockaddr,
    address_count: c_int,
    info: *mut c_void,
    info_length: socklen_t,
    info_type: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let info = unsafe { raw::bytes(info, info_length as usize) };
    let mut controls = ControlBuffer::NONE;
    let all = &mut controls;
    let known = match info_type {
        information::NONE => true,
        information::SEND => one_information(info, control::SNDINFO, 16, all),
        information::RELIABILITY => one_information(info, control::PRINFO, 8, all),
        information::AUTHENTICATION => one_information(info, control::AUTHINFO, 2, all),
        information::SEND_ALL => all_information(info, all),
        _ => false,
    };
    let count = usize::try_from(vector_count);
    let (true, Ok(count)) = (known, count) else {
        return returned_int(Err::<isize, _>(Errno(libc::EINVAL)));
    };
    let mut to = (std::ptr::null_mut(), 0);
    if !addresses.is_null() && address_count > 0 {
        // SAFETY: as the caller promises.
        let packed = unsafe { packed(addresses, address_count) };
        match packed.and_then(|all| more_addresses(all, &mut controls)) {
            Ok(length) => to = (addresses, length),
            Err(error) => return returned_int(Err::<isize, _>(error)),
        }
    }
    // SAFETY: as the caller promises.
    unsafe { send_with(fd, (vector, count), to, &controls, flags) }
}

/// What a call has received.
struct Got {
    length: ssize_t,
    controls: ControlBuffer,
    flags: c_int,
}

/// Receives into buffers.
///
/// # Safety
/// As for `recvmsg`.
unsafe fn receive_with(
    fd: c_int,
    vector: (*const iovec, usize),
    from: (*mut sockaddr, *mut socklen_t),
    flags: c_int,
) -> Got {
    let mut controls = ControlBuffer::NONE;
    // SAFETY: all members of the structure may be zero.
    let mut header: msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (vector.0.cast_mut(), vector.1);
    if !from.0.is_null() && !from.1.is_null() {
        // SAFETY: as the caller promises.
        (header.msg_name, header.msg_namelen) = (from.0.cast(), unsafe { *from.1 });
    }
    let room = controls.room();
    (header.msg_control, header.msg_controllen) = (room.as_mut_ptr().cast(), room.len());
    // SAFETY: as the caller promises; the control messages are writable for their length.
    let length = unsafe { recvmsg(fd, &raw mut header, flags) };
    if length >= 0 && !from.1.is_null() {
        // SAFETY: as the caller promises.
        unsafe { *from.1 = header.msg_namelen };
    }
    controls.set_length(header.msg_controllen);
    Got { length, controls, flags: header.msg_flags }
}

/// Receives a message with its `struct sctp_sndrcvinfo`.
///
/// # Safety
/// `data` is writable for `length` bytes; the other pointers are null or valid.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_recvmsg(
    fd: c_int,
    data: *mut c_void,
    length: size_t,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
    info: *mut c_void,
    flags: *mut c_int,
) -> c_int {
    let vector = iovec { iov_base: data, iov_len: length };
    // SAFETY: as the caller promises.
    let asked = unsafe { flags.as_ref() }.copied().unwrap_or(0);
    // SAFETY: as the caller promises.
    let got = unsafe { receive_with(fd, (&raw const vector, 1), (from, from_length), asked) };
    if got.length < 0 {
        return -1;
    }
    if let (Some(data), false) = (got.controls.find(control::SNDRCV), info.is_null()) {
        // SAFETY: as the caller promises; the structure has 32 bytes.
        unsafe { raw::Buffers::one(info, 32) }.fill(data);
    }
    if !flags.is_null() {
        // SAFETY: as the caller promises.
        unsafe { flags.write(got.flags) };
    }
    got.length as c_int
}

/// Receives a message with a typed structure.
///
/// # Safety
/// The vector is as RFC 6458, 9.13, says; the other pointers are null or valid.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sctp_recvv(
    fd: c_int,
    vector: *const iovec,
    vector_count: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
    info: *mut c_void,
    info_length: *mut socklen_t,
    info_type: *mut c_uint,
    flags: *mut c_int,
) -> c_int {
    let Ok(count) = usize::try_from(vector_count) else {
        return returned_int(Err::<isize, _>(Errno(libc::EINVAL)));
    };
    // SAFETY: as the caller promises.
    let asked = unsafe { flags.as_ref() }.copied().unwrap_or(0);
    // SAFETY: as the caller promises.
    let got = unsafe { receive_with(fd, (vector, count), (from, from_length), asked) };
    if got.length < 0 {
        return -1;
    }
    // SAFETY: as the caller promises.
    let room = unsafe { info_length.as_ref() }.filter(|_| !info.is_null());
    let room = room.copied().unwrap_or(0) as usize;
    let known = (got.controls.find(control::RCVINFO), got.controls.find(control::NXTINFO));
    // As in lksctp-tools, information without room is left out, that about this message first.
    let (this, next, kind) = match known {
        (Some(this), Some(next)) if room >= this.len() + next.len() => {
            (this, next, information::RECEIVE_AND_NEXT)
        }
        (_, Some(next)) if room >= next.len() => (next, &[][..], information::NEXT),
        (Some(this), None) if room >= this.len() => (this, &[][..], information::RECEIVE),
        _ => (&[][..], &[][..], information::NONE),
    };
    // SAFETY: as the caller promises.
    unsafe {
        if kind != information::NONE {
            raw::Buffers::one(info, this.len()).fill(this);
            raw::Buffers::one(info.byte_add(this.len()), next.len()).fill(next);
            *info_length = (this.len() + next.len()) as socklen_t;
        }
        if !info_type.is_null() {
            info_type.write(kind);
        }
        if !flags.is_null() {
            flags.write(got.flags);
        }
    }
    got.length as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_packed_one_after_the_other() {
        let all = ["192.0.2.1:7", "[2001:db8::1]:7", "192.0.2.2:7"];
        let all = all.map(|text| address::image(text.parse().expect("an address")));
        // The first byte makes the addresses unaligned, and nothing follows the last one.
        let bytes = [&[0][..], &all.concat()].concat().into_boxed_slice();
        let first = bytes[1..].as_ptr().cast();
        // SAFETY: three addresses are there.
        assert_eq!(unsafe { packed(first, 3) }, Ok(&bytes[1..]));
        // SAFETY: as above, and null and an unknown family are permitted.
        unsafe {
            assert_eq!(packed(first, 2), Ok(&bytes[1..45]));
            assert_eq!(packed(first, 0), Err(Errno(libc::EINVAL)));
            assert_eq!(packed(std::ptr::null(), 1), Err(Errno(libc::EINVAL)));
            assert_eq!(packed([9_u16].as_ptr().cast(), 1), Err(Errno(libc::EINVAL)));
        }
    }
}
