//! The C library's own functions, which are hidden by this library's functions of the same names.

use std::ffi::c_char;
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    FILE, c_int, c_uint, c_ulong, c_void, iovec, mmsghdr, msghdr, off_t, off64_t, size_t, sockaddr,
    socklen_t, ssize_t, timespec,
};

/// A function of the next library in the search order.
struct Symbol(AtomicPtr<c_void>);

impl Symbol {
    const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Finds the function. `name` ends with a zero.
    fn find(&self, name: &'static str) -> *mut c_void {
        let found = self.look_up(name);
        assert!(!found.is_null(), "the C library has no {name}");
        found
    }

    /// The same, but null if the C library is older than the function.
    fn look_up(&self, name: &'static str) -> *mut c_void {
        let known = self.0.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name is a string that ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast::<c_char>()) };
        self.0.store(found, Ordering::Relaxed);
        found
    }
}

macro_rules! real {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        $(
            /// The C library's function of this name.
            ///
            /// # Safety
            /// As the C library says.
            pub unsafe fn $name($($arg: $ty),*) -> $ret {
                let found = symbols::$name.find(concat!(stringify!($name), "\0"));
                // SAFETY: the C library declares the function with this signature. Arguments that it declares as
                // variable are passed in the same registers by the calling conventions of Linux.
                let call = unsafe {
                    transmute::<*mut c_void, unsafe extern "C-unwind" fn($($ty),*) -> $ret>(found)
                };
                // SAFETY: the caller keeps the function's requirements.
                unsafe { call($($arg),*) }
            }
        )*

        #[expect(non_upper_case_globals, reason = "named after the functions")]
        mod symbols {
            use super::Symbol;

            $(pub static $name: Symbol = Symbol::new();)*
        }

        /// Finds all functions. Later calls then do not need the lock of the dynamic linker, which another thread
        /// may hold while the process forks.
        pub fn find_all() {
            $(symbols::$name.look_up(concat!(stringify!($name), "\0"));)*
        }
    };
}

real! {
    _exit(status: c_int) -> !;
    accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
    bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    close(fd: c_int) -> c_int;
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    daemon(stay: c_int, keep: c_int) -> c_int;
    dup(fd: c_int) -> c_int;
    dup2(fd: c_int, to: c_int) -> c_int;
    dup3(fd: c_int, to: c_int, flags: c_int) -> c_int;
    fcntl(fd: c_int, command: c_int, argument: c_ulong) -> c_int;
    fcntl64(fd: c_int, command: c_int, argument: c_ulong) -> c_int;
    fdopen(fd: c_int, mode: *const c_char) -> *mut FILE;
    getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int;
    ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
    read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t;
    readv(fd: c_int, vector: *const iovec, count: c_int) -> ssize_t;
    recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t;
    recvfrom(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int, address: *mut sockaddr, address_length: *mut socklen_t) -> ssize_t;
    recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int;
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t;
    sendfile(out: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    sendfile64(out: c_int, from: c_int, offset: *mut off64_t, count: size_t) -> ssize_t;
    sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    sendto(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int, address: *const sockaddr, address_length: socklen_t) -> ssize_t;
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t) -> c_int;
    shutdown(fd: c_int, how: c_int) -> c_int;
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t;
    writev(fd: c_int, vector: *const iovec, count: c_int) -> ssize_t;
}
