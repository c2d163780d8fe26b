//! Memory and descriptors of the calling program.

use std::io::IoSliceMut;

use libc::{c_int, c_void, iovec, sockaddr, socklen_t};

use crate::address;
use crate::errno::{Errno, Result};
use crate::real;

/// Most elements of a vector (`IOV_MAX`).
const VECTOR_LIMIT: usize = 1024;

/// A copy of `length` bytes of the program's memory, to which a structure points.
///
/// # Errors
/// `EFAULT` if the pointer is null, `EINVAL` if the length is unusual.
pub fn bytes_at(pointer: usize, length: usize) -> Result<Vec<u8>> {
    if pointer == 0 {
        return Err(Errno(libc::EFAULT));
    }
    if length > 1 << 16 {
        return Err(Errno(libc::EINVAL));
    }
    let pointer = std::ptr::with_exposed_provenance::<u8>(pointer);
    // SAFETY: the program promises by the structure that these bytes are readable, as it would to the kernel.
    Ok(unsafe { bytes(pointer.cast(), length) }.to_vec())
}

/// Bytes that the program passes.
///
/// # Safety
/// Unless `length` is 0, `pointer` is null or readable for so many bytes during the lifetime.
pub unsafe fn bytes<'a>(pointer: *const c_void, length: usize) -> &'a [u8] {
    if pointer.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(pointer.cast(), length) }
}

/// A buffer that the program passes.
///
/// # Safety
/// Unless `length` is 0, `pointer` is null or writable for so many bytes during the lifetime, by nobody else.
pub unsafe fn buffer<'a>(pointer: *mut c_void, length: usize) -> &'a mut [u8] {
    if pointer.is_null() || length == 0 {
        return &mut [];
    }
    // SAFETY: as the caller promises. The bytes are only written, so it does not matter whether they are initialised.
    unsafe { std::slice::from_raw_parts_mut(pointer.cast(), length) }
}

/// The elements of a vector.
///
/// # Safety
/// `vector` points to `count` elements.
unsafe fn elements<'a>(vector: *const iovec, count: usize) -> Result<&'a [iovec]> {
    if count > VECTOR_LIMIT {
        return Err(Errno(libc::EMSGSIZE));
    }
    if count == 0 {
        return Ok(&[]);
    }
    if vector.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(vector, count) })
}

/// The buffers of a vector.
///
/// # Errors
/// `EMSGSIZE`, `EFAULT`.
///
/// # Safety
/// `vector` points to `count` elements, whose buffers are as [`buffer`] says.
pub unsafe fn buffers<'a>(vector: *const iovec, count: usize) -> Result<Vec<IoSliceMut<'a>>> {
    // SAFETY: as the caller promises.
    let elements = unsafe { elements(vector, count) }?;
    // SAFETY: as the caller promises.
    let slice = |e: &iovec| IoSliceMut::new(unsafe { buffer(e.iov_base, e.iov_len) });
    Ok(elements.iter().map(slice).collect())
}

/// A copy of the bytes of a vector, one element after the other.
///
/// # Errors
/// `EMSGSIZE`, `EFAULT`.
///
/// # Safety
/// `vector` points to `count` elements, whose buffers are as [`bytes`] says.
pub unsafe fn gathered(vector: *const iovec, count: usize) -> Result<Vec<u8>> {
    // SAFETY: as the caller promises.
    let elements = unsafe { elements(vector, count) }?;
    let length = elements.iter().fold(0_usize, |sum, e| sum.saturating_add(e.iov_len));
    let mut all = Vec::with_capacity(length.min(1 << 26));
    for element in elements {
        // SAFETY: as the caller promises.
        all.extend_from_slice(unsafe { bytes(element.iov_base, element.iov_len) });
    }
    Ok(all)
}

/// Writes bytes to the program's buffer, as many as fit, and their whole length to `length`.
///
/// # Safety
/// `length` is null or valid; `to` is null or writable for `*length` bytes.
pub unsafe fn give(from: &[u8], to: *mut c_void, length: *mut socklen_t) {
    if to.is_null() || length.is_null() {
        return;
    }
    // SAFETY: as the caller promises.
    unsafe {
        let room = from.len().min(*length as usize);
        std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast(), room);
        *length = from.len() as socklen_t;
    }
}

/// Writes an address to the program's buffer; with none, a length of 0.
///
/// # Safety
/// As [`give`].
pub unsafe fn give_address(
    address: Option<std::net::SocketAddr>,
    to: *mut sockaddr,
    length: *mut socklen_t,
) {
    let image = address.map(address::image).unwrap_or_default();
    // SAFETY: as the caller promises.
    unsafe { give(&image, to.cast(), length) }
}

/// The address that a program passes; none if there is none.
///
/// # Errors
/// As [`address::parse`].
///
/// # Safety
/// `pointer` is null or readable for `length` bytes.
pub unsafe fn address(
    pointer: *const sockaddr,
    length: socklen_t,
) -> Result<Option<std::net::SocketAddr>> {
    if pointer.is_null() || length == 0 {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { bytes(pointer.cast(), length as usize) };
    address::parse(bytes).map(|(address, _)| Some(address))
}

/// Sets an option of a descriptor of the kernel.
///
/// # Errors
/// As the kernel says.
pub fn set_option(fd: c_int, level: c_int, name: c_int, value: &[u8]) -> Result<()> {
    // SAFETY: the value is readable for its length.
    let set = unsafe {
        real::setsockopt(fd, level, name, value.as_ptr().cast(), value.len() as socklen_t)
    };
    if set < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// Gets an option of a descriptor of the kernel, at most `length` bytes.
///
/// # Errors
/// As the kernel says.
pub fn get_option(fd: c_int, level: c_int, name: c_int, length: usize) -> Result<Vec<u8>> {
    let mut value = vec![0_u8; length.min(1 << 12)];
    let mut filled = value.len() as socklen_t;
    // SAFETY: the value is writable for `filled` bytes.
    let got =
        unsafe { real::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut filled) };
    if got < 0 {
        return Err(Errno::last());
    }
    value.truncate(filled as usize);
    Ok(value)
}

/// Closes a descriptor of the kernel.
#[cfg(test)]
pub fn close(fd: c_int) {
    // SAFETY: a test closes what it has opened.
    unsafe { real::close(fd) };
}
