//! `getsockopt` and `setsockopt`.

use libc::{c_int, c_void, socklen_t};

use super::{dispatch, raw};
use crate::abi::Fields;
use crate::options;
use crate::real;

/// Maximum size of an option's value, bytes.
const OPTION_MAX: usize = 1 << 16;

/// Sets an option.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    let real = || unsafe { real::setsockopt(fd, level, name, value, length) };
    dispatch!(fd, real(), |socket| {
        // SAFETY: as the caller promises.
        let value = unsafe { raw::structure(value, length as usize) }?;
        options::set(socket, level, name, Fields(value)).map(|()| 0)
    })
}

/// Gets an option.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    let real = || unsafe { real::getsockopt(fd, level, name, value, length) };
    dispatch!(fd, real(), |socket| {
        raw::check(length.cast(), size_of::<socklen_t>())?;
        // SAFETY: it was checked.
        let room = (unsafe { *length } as usize).min(OPTION_MAX);
        // SAFETY: as the caller promises. A copy: the answer is written to the same place.
        let input = unsafe { raw::structure(value, room) }?.to_vec();
        let answer = options::get(socket, level, name, Fields(&input))?;
        let kept = answer.value.len().min(input.len());
        // SAFETY: as the caller promises; the length that is written is that of what fits.
        unsafe { raw::give(&answer.value[..kept], value, length) };
        answer.stop.map_or(Ok(0), Err)
    })
}
