//! The system calls that a server may make.
//!
//! There are two filters, and the kernel applies the stricter result:
//!
//! ```text
//!   call is dangerous (lists below)          -> EPERM
//!   call is on the list of needed calls      -> allowed
//!   any other, also those of future kernels  -> ENOSYS
//! ```
//!
//! A list of permitted calls also blocks unforeseen calls. Its usual cost is that a newer C library makes a
//! call that the list lacks. ENOSYS is the answer of an older kernel, so the library falls back to the call
//! that it used before, and the process continues. With EPERM or SIGSYS it would fail.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter_all_threads,
};

/// Calls that every server needs, with any arguments.
const NEEDED: &[libc::c_long] = &[
    // Descriptors.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_lseek,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_eventfd2,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    // Sockets; `socket` itself is below.
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
    // Memory; `mmap` and `mprotect` are below.
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_munlock,
    libc::SYS_membarrier,
    libc::SYS_msync,
    // Threads; `clone` is below.
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_restart_syscall,
    // Signals.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack,
    // Time, limits, random numbers.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getppid,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    // Reading files. Landlock restricts which ones.
    libc::SYS_openat,
    libc::SYS_statx,
    libc::SYS_newfstatat,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_statfs,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_fadvise64,
    // The second filter is installed after the first one.
    libc::SYS_seccomp,
];

/// Older forms of calls in [`NEEDED`], which some architectures still have.
#[cfg(target_arch = "x86_64")]
const NEEDED_LEGACY: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_getdents,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_create,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_eventfd,
    libc::SYS_time,
    libc::SYS_arch_prctl,
    libc::SYS_getrlimit,
];
#[cfg(not(target_arch = "x86_64"))]
const NEEDED_LEGACY: &[libc::c_long] = &[];

/// Calls that modify files.
const FILE_CHANGES: &[libc::c_long] = &[
    libc::SYS_openat2,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_syncfs,
    libc::SYS_flock,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_umask,
    libc::SYS_renameat,
];
#[cfg(target_arch = "x86_64")]
const FILE_CHANGES_LEGACY: &[libc::c_long] = &[
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_chmod,
    libc::SYS_creat,
];
#[cfg(not(target_arch = "x86_64"))]
const FILE_CHANGES_LEGACY: &[libc::c_long] = &[];

/// Calls that no server needs, but that attackers use.
const DANGEROUS: &[libc::c_long] = &[
    // Other programs and processes.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    // Privileges and namespaces.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_personality,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // File systems and devices.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_mknodat,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_memfd_create,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
];
#[cfg(target_arch = "x86_64")]
const DANGEROUS_LEGACY: &[libc::c_long] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_mknod,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
];
#[cfg(not(target_arch = "x86_64"))]
const DANGEROUS_LEGACY: &[libc::c_long] = &[];

/// Socket families: local pairs, IPv4 and IPv6, and netlink for the list of interfaces.
const SOCKET_FAMILIES: [libc::c_int; 4] =
    [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Permitted operations of `prctl`: names of threads and of memory, queries, and those for installing a filter.
const PRCTL_OPTIONS: [libc::c_int; 6] = [
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_SET_VMA,
    libc::PR_GET_DUMPABLE,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_GET_NO_NEW_PRIVS,
];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Installs the filters in all threads, and sets `no_new_privs`.
///
/// # Errors
/// The kernel refused a filter.
pub fn restrict(changes_files: bool) -> Result<String, String> {
    let build = || -> Result<[BpfProgram; 2], seccompiler::BackendError> {
        let refuse = |errno: libc::c_int| SeccompAction::Errno(errno.unsigned_abs());
        // Among actions of the same severity the newer filter decides, so the dangerous calls come last.
        let needed = program(needed(changes_files)?, refuse(libc::ENOSYS), SeccompAction::Allow)?;
        let dangerous =
            program(dangerous(changes_files)?, SeccompAction::Allow, refuse(libc::EPERM))?;
        Ok([needed, dangerous])
    };
    for program in build().map_err(|error| format!("seccomp filter: {error}"))? {
        apply_filter_all_threads(&program).map_err(|error| format!("seccomp: {error}"))?;
    }
    Ok("system calls restricted by seccomp, no new privileges, no core dumps".to_owned())
}

fn program(
    rules: Rules,
    otherwise: SeccompAction,
    on_match: SeccompAction,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, otherwise, on_match, arch)?.try_into()
}

fn needed(changes_files: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    let changes: [&[libc::c_long]; 2] =
        if changes_files { [FILE_CHANGES, FILE_CHANGES_LEGACY] } else { [&[], &[]] };
    for call in [NEEDED, NEEDED_LEGACY, changes[0], changes[1]].concat() {
        rules.insert(call, Vec::new());
    }
    let equal = |argument, value: u64| {
        SeccompRule::new(vec![SeccompCondition::new(argument, Len::Dword, Op::Eq, value)?])
    };
    let of_list = |list: &[libc::c_int]| -> Result<Vec<_>, _> {
        list.iter().map(|value| equal(0, u64::from(value.unsigned_abs()))).collect()
    };
    rules.insert(libc::SYS_socket, of_list(&SOCKET_FAMILIES)?);
    rules.insert(libc::SYS_prctl, of_list(&PRCTL_OPTIONS)?);
    // Threads, but no processes. `clone3` passes its flags by a pointer, which a filter cannot follow. If
    // `clone3` is missing, the C library uses `clone`.
    let thread = (libc::CLONE_THREAD | libc::CLONE_VM).unsigned_abs().into();
    let is_thread = SeccompCondition::new(0, Len::Qword, Op::MaskedEq(thread), thread)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_thread])?]);
    // Memory must not become executable.
    let executable = libc::PROT_EXEC.unsigned_abs().into();
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let data = SeccompCondition::new(2, Len::Dword, Op::MaskedEq(executable), 0)?;
        rules.insert(call, vec![SeccompRule::new(vec![data])?]);
    }
    // Only signals and limits of this process; `abort` sends a signal to its own thread.
    rules.insert(libc::SYS_tgkill, vec![equal(0, u64::from(std::process::id()))?]);
    rules.insert(libc::SYS_prlimit64, vec![equal(0, 0)?]);
    Ok(rules)
}

fn dangerous(changes_files: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    for call in [DANGEROUS, DANGEROUS_LEGACY].concat() {
        rules.insert(call, Vec::new());
    }
    if changes_files {
        return Ok(rules);
    }
    for call in [FILE_CHANGES, FILE_CHANGES_LEGACY].concat() {
        rules.insert(call, Vec::new());
    }
    rules.insert(libc::SYS_openat, opened_for_writing(2)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, opened_for_writing(1)?);
    Ok(rules)
}

/// Rules that match an `open` whose flags, in this argument, permit writing, creating or
/// truncating.
fn opened_for_writing(argument: u8) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let flags = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC];
    let rule = |flag: libc::c_int| {
        let flag = flag.unsigned_abs().into();
        SeccompRule::new(vec![SeccompCondition::new(
            argument,
            Len::Dword,
            Op::MaskedEq(flag),
            flag,
        )?])
    };
    flags.into_iter().map(rule).collect()
}
