//! Streams of `stdio` on sockets. The C library's own functions would read and write the descriptor and bypass this
//! library.

use std::ffi::{c_char, c_int, c_long, c_void};

use libc::{FILE, size_t, ssize_t};

use super::transfer::{read, write};
use crate::process::is_ours;
use crate::real;

/// `cookie_io_functions_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Functions {
    read: extern "C-unwind" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: extern "C-unwind" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: Option<extern "C-unwind" fn(*mut c_void, *mut i64, c_int) -> c_int>,
    close: extern "C-unwind" fn(*mut c_void) -> c_int,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
}

/// The cookie is the descriptor.
fn descriptor(cookie: *mut c_void) -> c_int {
    cookie.addr() as c_long as c_int
}

extern "C-unwind" fn read_cookie(
    cookie: *mut c_void,
    buffer: *mut c_char,
    length: size_t,
) -> ssize_t {
    // SAFETY: the C library passes a buffer of this length.
    unsafe { read(descriptor(cookie), buffer.cast(), length) }
}

extern "C-unwind" fn write_cookie(
    cookie: *mut c_void,
    buffer: *const c_char,
    length: size_t,
) -> ssize_t {
    // SAFETY: the C library passes a buffer of this length.
    let written = unsafe { write(descriptor(cookie), buffer.cast(), length) };
    // `fopencookie` expects 0 for an error.
    written.max(0)
}

extern "C-unwind" fn close_cookie(cookie: *mut c_void) -> c_int {
    super::descriptors::close(descriptor(cookie))
}

/// Opens a stream on a descriptor.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    if !is_ours(fd) {
        // SAFETY: as the caller promises.
        return unsafe { real::fdopen(fd, mode) };
    }
    let functions =
        Functions { read: read_cookie, write: write_cookie, seek: None, close: close_cookie };
    let cookie = std::ptr::without_provenance_mut(fd as usize);
    // SAFETY: the mode is a string as the caller promises, and the functions take any cookie.
    unsafe { fopencookie(cookie, mode, functions) }
}
