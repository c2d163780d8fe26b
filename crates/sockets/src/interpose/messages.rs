//! `sendmsg` and `recvmsg`, with control messages.

use std::sync::Arc;

use libc::{c_int, c_uint, mmsghdr, msghdr, ssize_t, timespec};

use super::transfer::send_message;
use super::{dispatch_cancellable, raw, returned_int};
use crate::abi::control::Controls;
use crate::abi::number::{self, control};
use crate::critical::uncancelled;
use crate::errno::{Errno, Result};
use crate::process::is_ours;
use crate::real;
use crate::socket::{Attempted, Delivered, Outgoing, Socket};

/// Size of `struct cmsghdr`, bytes, which is also the alignment of control messages times two.
const HEADER: usize = size_of::<libc::cmsghdr>();
const ALIGNMENT: usize = size_of::<usize>();
/// Maximum size of the control messages of one call, bytes, as in the kernel
/// (`net.core.optmem_max`).
const CONTROLS_LIMIT: usize = 128 << 10;

/// Reads control messages.
///
/// # Errors
/// `EINVAL` if one is longer than the rest.
fn read_controls(mut rest: &[u8]) -> Result<Controls> {
    let mut controls = Controls::default();
    while rest.len() >= HEADER {
        let invalid = Errno(libc::EINVAL);
        let length = rest.first_chunk().map(|bytes| usize::from_ne_bytes(*bytes)).ok_or(invalid)?;
        let number = |at: usize| -> Result<c_int> {
            let bytes = rest[at..].first_chunk().ok_or(invalid)?;
            Ok(c_int::from_ne_bytes(*bytes))
        };
        let (level, kind) = (number(ALIGNMENT)?, number(ALIGNMENT + 4)?);
        let data = rest.get(HEADER..length).ok_or(invalid)?;
        if level == number::SCTP {
            controls.take(kind, data)?;
        }
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
    }
    Ok(controls)
}

/// Appends a control message if it fits into `room` bytes. Returns whether it did.
fn append(controls: &mut Vec<u8>, room: usize, kind: c_int, data: &[u8]) -> bool {
    let length = HEADER + data.len();
    if controls.len() + length > room {
        return false;
    }
    controls.extend(length.to_ne_bytes());
    controls.extend(number::SCTP.to_ne_bytes());
    controls.extend(kind.to_ne_bytes());
    controls.extend(data);
    let padded = controls.len().next_multiple_of(ALIGNMENT).min(room);
    controls.resize(padded, 0);
    true
}

/// The control messages for a received message, and whether all fit into `room` bytes.
fn write_controls(delivered: &Delivered, room: usize) -> (Vec<u8>, bool) {
    let mut controls = Vec::new();
    let mut fit = true;
    if let Some(info) = delivered.info {
        if let Some((next, length)) = delivered.next {
            fit &= append(&mut controls, room, control::NXTINFO, &next.to_nxtinfo(length));
        }
        if delivered.wants_rcvinfo {
            fit &= append(&mut controls, room, control::RCVINFO, &info.to_rcvinfo());
        }
        if delivered.wants_sndrcv {
            fit &= append(&mut controls, room, control::SNDRCV, &info.to_sndrcv());
        }
    }
    (controls, fit)
}

/// # Safety
/// `message` is valid as for the C library's `sendmsg`.
unsafe fn send_one(socket: &Arc<Socket>, message: &msghdr, flags: c_int) -> Attempted<usize> {
    if message.msg_controllen > CONTROLS_LIMIT {
        return Err(Errno(libc::ENOBUFS).into());
    }
    // SAFETY: as the caller promises.
    let (bytes, to, controls) = unsafe {
        (
            raw::gathered(message.msg_iov, message.msg_iovlen)?,
            raw::address(message.msg_name.cast(), message.msg_namelen)?,
            raw::structure(message.msg_control, message.msg_controllen)?,
        )
    };
    let controls = read_controls(controls)?;
    send_message(socket, &Outgoing { bytes: bytes.into(), to, controls, flags })
}

/// # Safety
/// `message` is valid as for the C library's `recvmsg`.
unsafe fn receive_one(
    socket: &Arc<Socket>,
    message: &mut msghdr,
    flags: c_int,
) -> Attempted<usize> {
    // SAFETY: as the caller promises.
    let mut into = unsafe { raw::Buffers::of_vector(message.msg_iov, message.msg_iovlen) }?;
    raw::check_room(message.msg_name, &raw const message.msg_namelen)?;
    if !message.msg_control.is_null() {
        raw::check(message.msg_control, message.msg_controllen.min(CONTROLS_LIMIT))?;
    }
    let delivered = socket.receive(&mut into, flags)?;
    // SAFETY: as the caller promises.
    unsafe { describe(&delivered, message) };
    Ok(delivered.length)
}

/// Writes the information about a received message to the program's structure: the peer, control messages,
/// flags.
///
/// # Safety
/// `message` is valid as for the C library's `recvmsg`.
unsafe fn describe(delivered: &Delivered, message: &mut msghdr) {
    let room = if message.msg_control.is_null() { 0 } else { message.msg_controllen };
    let (controls, fit) = write_controls(delivered, room);
    // SAFETY: as the caller promises; what is written is no longer than the program's buffer.
    unsafe {
        raw::give_address(delivered.peer, message.msg_name.cast(), &raw mut message.msg_namelen);
        raw::Buffers::one(message.msg_control, controls.len()).fill(&controls);
    }
    message.msg_controllen = controls.len();
    message.msg_flags = delivered.flags | if fit { 0 } else { libc::MSG_CTRUNC };
}

/// Sends a message.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendmsg(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as the caller promises.
    dispatch_cancellable!(fd, unsafe { real::sendmsg(fd, message, flags) }, |socket| {
        raw::check(message.cast(), size_of::<msghdr>())?;
        // SAFETY: it was checked.
        unsafe { send_one(socket, &*message, flags) }
    })
}

/// Receives a message.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: as the caller promises.
    dispatch_cancellable!(fd, unsafe { real::recvmsg(fd, message, flags) }, |socket| {
        raw::check(message.cast(), size_of::<msghdr>())?;
        // SAFETY: it was checked.
        unsafe { receive_one(socket, &mut *message, flags) }
    })
}

/// Calls `work` with each message until it fails. Returns the number of successful calls.
///
/// # Safety
/// `messages` is null or points to `count` elements.
unsafe fn each(
    messages: *mut mmsghdr,
    count: c_uint,
    mut work: impl FnMut(&mut msghdr, bool) -> ssize_t,
) -> c_int {
    let mut done = 0;
    while done < count {
        let next = messages.wrapping_add(done as usize);
        if let Err(error) = raw::check(next.cast(), size_of::<mmsghdr>()) {
            error.set();
            break;
        }
        // SAFETY: it was checked.
        let message = unsafe { &mut *next };
        let length = work(&mut message.msg_hdr, done == 0);
        if length < 0 {
            break;
        }
        message.msg_len = length as c_uint;
        done += 1;
    }
    if done == 0 && count > 0 { -1 } else { done as c_int }
}

/// Sends several messages.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as the caller promises.
        return unsafe { real::sendmmsg(fd, messages, count, flags) };
    }
    // SAFETY: as the caller promises.
    unsafe { each(messages, count, |message, _| sendmsg(fd, message, flags)) }
}

/// Receives several messages. As in the kernel, the call waits for the first one, and the timeout does not apply
/// to it.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as the caller promises.
        return unsafe { real::recvmmsg(fd, messages, count, flags, timeout) };
    }
    if count == 0 {
        return returned_int(Ok(0_isize));
    }
    let later = flags & !libc::MSG_WAITFORONE | libc::MSG_DONTWAIT;
    // SAFETY: as the caller promises.
    unsafe {
        each(messages, count, |message, first| {
            match first {
                true => recvmsg(fd, message, flags),
                // A cancelled thread must not lose the first message.
                false => {
                    let message: *mut msghdr = message;
                    uncancelled(|| recvmsg(fd, message, later))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::abi::control::{ReceiveInfo, SendInfo};

    /// What a call with all information has received.
    fn delivered(flags: c_int) -> Delivered {
        let info = ReceiveInfo { stream: 3, ppid: 7, association: 5, ..ReceiveInfo::default() };
        Delivered {
            length: 0,
            peer: Some("[2001:db8::1]:5000".parse().expect("an address")),
            flags,
            info: Some(info),
            next: Some((info, 9)),
            wants_sndrcv: true,
            wants_rcvinfo: true,
        }
    }

    proptest! {
        #[test]
        fn no_control_messages_make_it_panic(bytes: Vec<u8>) {
            let _ = read_controls(&bytes);
        }

        #[test]
        fn what_is_appended_is_read_again(stream: u16, ppid: u32, value: u32) {
            let info = SendInfo { stream, ppid, ..SendInfo::default() };
            let reliability = [&0x10_u16.to_ne_bytes()[..], &[0; 2], &value.to_ne_bytes()].concat();
            let mut bytes = Vec::new();
            prop_assert!(append(&mut bytes, 200, control::SNDINFO, &info.to_sndinfo()));
            prop_assert!(append(&mut bytes, 200, control::PRINFO, &reliability));
            let room = bytes.len();
            prop_assert!(!append(&mut bytes, room, control::PRINFO, &reliability));
            let read = read_controls(&bytes);
            prop_assert_eq!(read.as_ref().map(|c| c.info), Ok(Some(info)));
            prop_assert_eq!(read.map(|c| c.reliability), Ok(Some((0x10, value))));
        }

        // The buffers are allocated with exactly this length, so that an access beyond them is a memory error.
        #[test]
        fn a_message_is_described_within_the_programs_buffers(
            room in 0..150_usize,
            name_room in 0..40_usize,
            has_controls: bool,
        ) {
            let mut controls = vec![0_u8; room].into_boxed_slice();
            let mut name = vec![0xaa_u8; name_room].into_boxed_slice();
            // SAFETY: all members of the structure may be zero.
            let mut message: msghdr = unsafe { std::mem::zeroed() };
            message.msg_name = name.as_mut_ptr().cast();
            message.msg_namelen = name_room as u32;
            message.msg_controllen = room;
            if has_controls {
                message.msg_control = controls.as_mut_ptr().cast();
            }
            // SAFETY: the structure points to buffers of the lengths that it states, or to none.
            unsafe { describe(&delivered(libc::MSG_EOR), &mut message) };
            let (expected, fit) = write_controls(&delivered(0), if has_controls { room } else { 0 });
            let truncated = message.msg_flags & libc::MSG_CTRUNC != 0;
            prop_assert_eq!((message.msg_controllen, truncated), (expected.len(), !fit));
            prop_assert!(message.msg_flags & libc::MSG_EOR != 0);
            prop_assert_eq!(&controls[..expected.len()], &expected[..]);
            prop_assert!(room < 150 || fit == has_controls);
            prop_assert_eq!(message.msg_namelen, 28);
            let family = (libc::AF_INET6 as u16).to_ne_bytes();
            prop_assert!(name_room < 2 || name[..2] == family);
            prop_assert!(name.iter().skip(28).all(|byte| *byte == 0xaa));
        }
    }

    #[test]
    fn several_messages_end_with_the_first_error() {
        // SAFETY: all members of the structure may be zero.
        let mut messages: [mmsghdr; 3] = unsafe { std::mem::zeroed() };
        let mut lengths = [5, -1, 7].into_iter();
        let work = |_: &mut msghdr, _| lengths.next().expect("no more than three");
        // SAFETY: the array has three elements.
        let done = unsafe { each(messages.as_mut_ptr(), 3, work) };
        assert_eq!((done, messages[0].msg_len, messages[2].msg_len), (1, 5, 0));
        // SAFETY: as above.
        assert_eq!(unsafe { each(messages.as_mut_ptr(), 3, |_, _| -1) }, -1);
        // SAFETY: a null pointer is permitted.
        assert_eq!(unsafe { each(std::ptr::null_mut(), 3, |_, _| 1) }, -1);
        assert_eq!(Errno::last(), Errno(libc::EFAULT));
    }
}
