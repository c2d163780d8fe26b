//! Memory and descriptors of the calling program.

use bytes::Bytes;
use libc::{c_int, c_void, iovec, sockaddr, socklen_t};

use crate::address;
use crate::errno::{Errno, Result};
use crate::real;
use crate::socket::MESSAGE_LIMIT;

/// Maximum number of elements of a vector (`IOV_MAX`).
const VECTOR_LIMIT: usize = 1024;
/// Maximum length of an address, bytes.
const ADDRESS_MAX: usize = size_of::<libc::sockaddr_storage>();

/// Checks that the program may read `length` bytes at `pointer`, as the kernel does before it copies a structure.
///
/// The kernel reads a new signal mask before it refuses an invalid way to apply it, so the call used here changes
/// nothing. It takes about 0.15 µs. Of a message's buffer, only the first byte is checked, because each of its pages
/// would need another call.
///
/// # Errors
/// `EFAULT`.
pub fn check(pointer: *const c_void, length: usize) -> Result<()> {
    const PAGE: usize = 4096;
    const MASK: usize = 8;
    if length == 0 {
        return Ok(());
    }
    if pointer.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    if cfg!(miri) {
        return Ok(());
    }
    let first = pointer.addr();
    let last = first.checked_add(length - 1).ok_or(Errno(libc::EFAULT))?;
    let before = Errno::last();
    for page in first / PAGE..=last / PAGE {
        let at = first.max(page * PAGE) & !(MASK - 1);
        // SAFETY: the kernel checks the address, and refuses the first argument.
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, -1, at, 0_usize, MASK) };
        if Errno::last() == Errno(libc::EFAULT) {
            return Err(Errno(libc::EFAULT));
        }
    }
    before.set();
    Ok(())
}

/// Checks the first of `length` bytes, if there are some and the pointer is not null.
fn check_first(pointer: *const c_void, length: usize) -> Result<()> {
    if pointer.is_null() { Ok(()) } else { check(pointer, length.min(1)) }
}

/// Checks the memory that [`give`] will write.
///
/// # Errors
/// `EFAULT`.
pub fn check_room(to: *const c_void, length: *const socklen_t) -> Result<()> {
    if to.is_null() || length.is_null() {
        return Ok(());
    }
    check(length.cast(), size_of::<socklen_t>())?;
    // SAFETY: it was checked.
    let room = unsafe { length.read_unaligned() } as usize;
    check(to, room.min(ADDRESS_MAX))
}

/// A copy of `length` bytes of the program's memory, to which a structure points.
///
/// # Errors
/// `EFAULT` if the pointer is wrong, `EINVAL` if the length is unusual.
pub fn bytes_at(pointer: usize, length: usize) -> Result<Vec<u8>> {
    if pointer == 0 {
        return Err(Errno(libc::EFAULT));
    }
    if length > 1 << 16 {
        return Err(Errno(libc::EINVAL));
    }
    let pointer = std::ptr::with_exposed_provenance::<u8>(pointer);
    check(pointer.cast(), length)?;
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

/// Bytes of a structure that the program passes.
///
/// # Errors
/// `EFAULT`.
///
/// # Safety
/// No other thread changes or unmaps them during the lifetime.
pub unsafe fn structure<'a>(pointer: *const c_void, length: usize) -> Result<&'a [u8]> {
    if !pointer.is_null() {
        check(pointer, length)?;
    }
    // SAFETY: they were checked.
    Ok(unsafe { bytes(pointer, length) })
}

/// A copy of a message that the program passes.
///
/// # Errors
/// `EMSGSIZE` if it is longer than any message. In that case no byte is read. `EFAULT`.
///
/// # Safety
/// As [`bytes`].
pub unsafe fn message(pointer: *const c_void, length: usize) -> Result<Bytes> {
    if length > MESSAGE_LIMIT {
        return Err(Errno(libc::EMSGSIZE));
    }
    check_first(pointer, length)?;
    // SAFETY: as the caller promises.
    Ok(Bytes::copy_from_slice(unsafe { bytes(pointer, length) }))
}

/// Buffers of the program into which a message is received.
///
/// They are pointers and not slices: two of them may overlap, their bytes may be uninitialised, and a program that
/// knows that messages are shorter may pass a length beyond the memory.
#[derive(Debug)]
pub struct Buffers {
    first: (*mut u8, usize),
    rest: Vec<(*mut u8, usize)>,
}

impl Buffers {
    /// One buffer.
    ///
    /// # Safety
    /// Unless `length` is 0, `pointer` is null or writable for as many bytes as are received, at most `length`.
    pub const unsafe fn one(pointer: *mut c_void, length: usize) -> Self {
        Self { first: (pointer.cast(), length), rest: Vec::new() }
    }

    /// The buffers of a vector.
    ///
    /// # Errors
    /// `EMSGSIZE`, `EFAULT`.
    ///
    /// # Safety
    /// `vector` points to `count` elements, whose buffers are as [`Buffers::one`] says.
    pub unsafe fn of_vector(vector: *const iovec, count: usize) -> Result<Self> {
        // SAFETY: as the caller promises.
        let elements = unsafe { elements(vector, count) }?;
        let rest = elements.iter().map(|e| (e.iov_base.cast(), e.iov_len)).collect();
        Ok(Self { first: (std::ptr::null_mut(), 0), rest })
    }

    /// Checks the first byte of each buffer.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn check(&self) -> Result<()> {
        let mut all = std::iter::once(&self.first).chain(&self.rest);
        all.try_for_each(|(pointer, length)| check_first(pointer.cast(), *length))
    }

    /// Copies as many bytes as fit, from the first buffer on. Returns their number.
    pub fn fill(&mut self, from: &[u8]) -> usize {
        let mut done = 0;
        for (pointer, length) in std::iter::once(&self.first).chain(&self.rest) {
            let most = if pointer.is_null() { 0 } else { (*length).min(from.len() - done) };
            // SAFETY: the creator of this value has promised that these bytes are writable. The source is not part
            // of the program's memory.
            unsafe { pointer.copy_from_nonoverlapping(from[done..].as_ptr(), most) };
            done += most;
        }
        done
    }
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
    check(vector.cast(), count * size_of::<iovec>())?;
    // SAFETY: as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(vector, count) })
}

/// A copy of the concatenated bytes of a vector.
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
    if length > MESSAGE_LIMIT {
        return Err(Errno(libc::EMSGSIZE));
    }
    let mut all = Vec::with_capacity(length);
    for element in elements {
        check_first(element.iov_base, element.iov_len)?;
        // SAFETY: as the caller promises.
        all.extend_from_slice(unsafe { bytes(element.iov_base, element.iov_len) });
    }
    Ok(all)
}

/// Writes as many bytes as fit to the program's buffer, and their full length to `length`.
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

/// Writes an address to the program's buffer, or a length of 0 for `None`.
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

/// The address that a program passes. `None` if it passes no address.
///
/// # Errors
/// As [`address::parse`]; `EFAULT`, `EINVAL`.
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
    let length = length as usize;
    if length > ADDRESS_MAX {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { structure(pointer.cast(), length) }?;
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

/// Restricts a socket of the kernel to an interface.
///
/// # Errors
/// As the kernel says.
pub fn bind_to_device(fd: c_int, name: &str) -> Result<()> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name.as_bytes())
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

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;
    use std::ptr::{NonNull, null, null_mut};

    use proptest::prelude::*;

    use super::*;

    /// Uninitialised memory of exactly this length, so that an access beyond it is a memory error.
    fn allocated(length: usize) -> Box<[MaybeUninit<u8>]> {
        Box::new_uninit_slice(length)
    }

    /// What was written to the beginning of a buffer.
    fn written(buffer: &[MaybeUninit<u8>], length: usize) -> &[u8] {
        // SAFETY: the caller knows that so many bytes were written.
        unsafe { std::slice::from_raw_parts(buffer[..length].as_ptr().cast(), length) }
    }

    const fn element(base: *mut c_void, length: usize) -> iovec {
        iovec { iov_base: base, iov_len: length }
    }

    proptest! {
        #[test]
        fn a_message_fills_the_buffers_of_a_vector_in_order(
            lengths in proptest::collection::vec(0..20_usize, 0..5),
            message in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let mut memory: Vec<_> = lengths.iter().map(|length| allocated(*length)).collect();
            let mut vector: Vec<iovec> =
                memory.iter_mut().map(|m| element(m.as_mut_ptr().cast(), m.len())).collect();
            // An element with a null pointer is empty.
            vector.insert(lengths.len() / 2, element(null_mut(), 5));
            // SAFETY: the elements point to memory of their lengths, or to none.
            let buffers = unsafe { Buffers::of_vector(vector.as_ptr(), vector.len()) };
            let done = buffers.expect("few elements").fill(&message);
            prop_assert_eq!(done, message.len().min(lengths.iter().sum()));
            let mut rest = &message[..done];
            for one in &memory {
                let (first, later) = rest.split_at(one.len().min(rest.len()));
                prop_assert_eq!(written(one, first.len()), first);
                rest = later;
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn the_bytes_of_a_vector_are_gathered_in_order(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..5),
        ) {
            let vector: Vec<iovec> = parts
                .iter()
                .map(|part| element(part.as_ptr().cast_mut().cast(), part.len()))
                .collect();
            // SAFETY: the elements point to bytes of their lengths.
            let all = unsafe { gathered(vector.as_ptr(), vector.len()) };
            prop_assert_eq!(all, Ok(parts.concat()));
        }

        #[test]
        fn what_is_given_is_cut_to_the_room(
            from in proptest::collection::vec(any::<u8>(), 0..40),
            room in 0..40_usize,
        ) {
            let mut memory = allocated(room);
            let mut length = room as socklen_t;
            // SAFETY: the memory has this length.
            unsafe { give(&from, memory.as_mut_ptr().cast(), &raw mut length) };
            prop_assert_eq!(length as usize, from.len());
            let kept = room.min(from.len());
            prop_assert_eq!(written(&memory, kept), &from[..kept]);
        }

        #[test]
        fn an_address_is_read_from_no_more_than_its_length(bytes in proptest::collection::vec(0..12_u8, 0..40)) {
            let exact = bytes.clone().into_boxed_slice();
            // SAFETY: the bytes are readable for their length.
            let read = unsafe { address(exact.as_ptr().cast(), exact.len() as socklen_t) };
            let expected = if bytes.is_empty() { Ok(None) } else { address::parse(&bytes).map(|(a, _)| Some(a)) };
            prop_assert_eq!(read, expected);
        }
    }

    /// Two pages. Only the first is readable.
    fn half_readable() -> *mut u8 {
        // SAFETY: new memory, which stays until the process ends.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let pages = libc::mmap(null_mut(), 8192, libc::PROT_READ, flags, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(pages.byte_add(4096), 4096, libc::PROT_NONE), 0);
            pages.cast()
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "there are no protected pages")]
    fn memory_is_readable_up_to_its_last_byte_and_no_further() {
        let pages = half_readable();
        let number = Errno(libc::ENOENT);
        for length in [1, 2, 7, 8, 9, 56, 4000] {
            for start in [0, 1, 4096 - length, 4097 - length, 4095, 4096, 5000] {
                number.set();
                let readable = start + length <= 4096;
                let checked = check(pages.wrapping_add(start).cast(), length);
                assert_eq!(checked.is_ok(), readable, "{length} bytes from {start}");
                assert!(!readable || Errno::last() == number, "errno has changed");
            }
        }
        let fault = Err(Errno(libc::EFAULT));
        assert_eq!(check(std::ptr::without_provenance(8), 8), fault);
        assert_eq!(check(std::ptr::without_provenance(usize::MAX - 3), 8), fault);
        assert_eq!(check(std::ptr::without_provenance(8), 0), Ok(()));
    }

    #[test]
    fn buffers_may_overlap() {
        let mut memory = allocated(6);
        let base = memory.as_mut_ptr();
        let vector = [element(base.cast(), 4), element(base.wrapping_add(2).cast(), 4)];
        // SAFETY: both elements are within the memory.
        let mut buffers = unsafe { Buffers::of_vector(vector.as_ptr(), 2) }.expect("two");
        assert_eq!(buffers.fill(b"abcdefgh"), 8);
        assert_eq!(written(&memory, 6), b"abefgh");
    }

    #[test]
    fn a_buffer_may_be_called_longer_than_it_is_if_messages_are_shorter() {
        let mut memory = allocated(3);
        // SAFETY: three bytes are received.
        let mut buffers = unsafe { Buffers::one(memory.as_mut_ptr().cast(), usize::MAX) };
        assert_eq!(buffers.fill(b"abc"), 3);
        assert_eq!(written(&memory, 3), b"abc");
    }

    #[test]
    fn what_cannot_be_a_message_is_refused_before_it_is_read() {
        let nowhere = NonNull::<u8>::dangling().as_ptr();
        for length in [MESSAGE_LIMIT + 1, isize::MAX as usize, usize::MAX] {
            // SAFETY: nothing is read, because no message has this length.
            let read = unsafe { message(nowhere.cast(), length) };
            assert_eq!(read, Err(Errno(libc::EMSGSIZE)), "{length}");
            let vector = [element(nowhere.cast(), length), element(nowhere.cast(), length)];
            // SAFETY: as above.
            let read = unsafe { gathered(vector.as_ptr(), 2) };
            assert_eq!(read, Err(Errno(libc::EMSGSIZE)), "{length}");
        }
        // SAFETY: the vector is not read.
        let long = unsafe { gathered(nowhere.cast(), VECTOR_LIMIT + 1) };
        assert_eq!(long, Err(Errno(libc::EMSGSIZE)));
    }

    #[test]
    fn null_pointers_are_nothing_or_an_error() {
        let mut length = 4;
        // SAFETY: null pointers are permitted.
        unsafe {
            assert_eq!(bytes(null(), 5), b"");
            assert_eq!(message(null(), 5).as_deref(), Ok(&b""[..]));
            assert_eq!(gathered(null(), 0), Ok(Vec::new()));
            assert_eq!(gathered(null(), 1), Err(Errno(libc::EFAULT)));
            assert_eq!(Buffers::one(null_mut(), 5).fill(b"abc"), 0);
            assert_eq!(address(null(), 16), Ok(None));
            give(b"abc", null_mut(), &raw mut length);
            give(b"abc", (&raw mut length).cast(), null_mut());
        }
        assert_eq!(length, 4);
        assert_eq!(bytes_at(0, 5), Err(Errno(libc::EFAULT)));
        assert_eq!(bytes_at(64, usize::MAX), Err(Errno(libc::EINVAL)));
        let here = *b"abc";
        assert_eq!(bytes_at(here.as_ptr().expose_provenance(), 3), Ok(here.to_vec()));
    }
}
