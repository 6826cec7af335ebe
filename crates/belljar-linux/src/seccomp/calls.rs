//! The catalogue of system calls: those that always go through, and those that are refused by name.
#![expect(non_upper_case_globals, reason = "the kernel's own names, spelled as the libc crate spells them")]

use libc::*;

// Newer than the constants of the `libc` crate.
const SYS_io_pgetevents: c_long = 333;
const SYS_cachestat: c_long = 451;
const SYS_map_shadow_stack: c_long = 453;
const SYS_futex_wake: c_long = 454;
const SYS_futex_wait: c_long = 455;
const SYS_futex_requeue: c_long = 456;

/// Always go through.
#[rustfmt::skip]
pub(super) const ALLOWED: &[c_long] = &[
    // Files and directories
    SYS_read, SYS_write, SYS_open, SYS_close, SYS_stat, SYS_fstat, SYS_lstat, SYS_lseek, SYS_pread64, SYS_pwrite64, SYS_readv,
    SYS_writev, SYS_access, SYS_sendfile, SYS_fcntl, SYS_flock, SYS_fsync, SYS_fdatasync, SYS_truncate, SYS_ftruncate, SYS_getdents,
    SYS_getdents64, SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_rename, SYS_mkdir, SYS_rmdir, SYS_creat, SYS_link, SYS_unlink, SYS_symlink,
    SYS_readlink, SYS_chmod, SYS_fchmod, SYS_chown, SYS_fchown, SYS_lchown, SYS_umask, SYS_utime, SYS_mknod, SYS_statfs, SYS_fstatfs,
    SYS_chroot, SYS_sync, SYS_syncfs, SYS_sync_file_range, SYS_readahead, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_getxattr,
    SYS_lgetxattr, SYS_fgetxattr, SYS_listxattr, SYS_llistxattr, SYS_flistxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr,
    SYS_fadvise64, SYS_utimes, SYS_openat, SYS_openat2, SYS_mkdirat, SYS_mknodat, SYS_fchownat, SYS_futimesat, SYS_newfstatat,
    SYS_unlinkat, SYS_renameat, SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_readlinkat, SYS_fchmodat, SYS_fchmodat2, SYS_faccessat,
    SYS_faccessat2, SYS_utimensat, SYS_fallocate, SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2, SYS_statx, SYS_copy_file_range,
    SYS_splice, SYS_tee, SYS_vmsplice, SYS_close_range, SYS_dup, SYS_dup2, SYS_dup3, SYS_pipe, SYS_pipe2, SYS_memfd_create,
    // Waiting and events
    SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_create, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_wait, SYS_epoll_pwait,
    SYS_epoll_pwait2, SYS_eventfd, SYS_eventfd2, SYS_signalfd, SYS_signalfd4, SYS_timerfd_create, SYS_timerfd_settime,
    SYS_timerfd_gettime, SYS_inotify_init, SYS_inotify_init1, SYS_inotify_add_watch, SYS_inotify_rm_watch, SYS_io_setup, SYS_io_destroy,
    SYS_io_getevents, SYS_io_pgetevents, SYS_io_submit, SYS_io_cancel,
    // Memory
    SYS_mmap, SYS_mprotect, SYS_munmap, SYS_brk, SYS_mremap, SYS_msync, SYS_mincore, SYS_madvise, SYS_mlock, SYS_mlock2, SYS_munlock,
    SYS_mlockall, SYS_munlockall, SYS_remap_file_pages, SYS_membarrier, SYS_pkey_mprotect, SYS_pkey_alloc, SYS_pkey_free,
    SYS_get_mempolicy, SYS_process_madvise, SYS_process_mrelease, SYS_cachestat, SYS_mseal, SYS_map_shadow_stack,
    // Processes and threads
    SYS_fork, SYS_vfork, SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid, SYS_kill, SYS_tkill, SYS_tgkill,
    SYS_getpid, SYS_gettid, SYS_getppid, SYS_getpgrp, SYS_getpgid, SYS_setpgid, SYS_getsid, SYS_setsid, SYS_set_tid_address,
    SYS_set_robust_list, SYS_get_robust_list, SYS_futex, SYS_futex_waitv, SYS_futex_wake, SYS_futex_wait, SYS_futex_requeue, SYS_rseq,
    SYS_arch_prctl, SYS_prctl, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_open, SYS_pidfd_send_signal,
    SYS_pidfd_getfd, SYS_restart_syscall, SYS_seccomp, SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self,
    // Signals
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo, SYS_rt_sigsuspend, SYS_sigaltstack, SYS_pause, SYS_alarm,
    // Scheduling and limits
    SYS_sched_yield, SYS_sched_setparam, SYS_sched_getparam, SYS_sched_setscheduler, SYS_sched_getscheduler,
    SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_sched_rr_get_interval, SYS_sched_setaffinity, SYS_sched_getaffinity,
    SYS_sched_setattr, SYS_sched_getattr, SYS_getpriority, SYS_setpriority, SYS_ioprio_set, SYS_ioprio_get, SYS_getrlimit,
    SYS_setrlimit, SYS_prlimit64, SYS_getrusage, SYS_times, SYS_getcpu,
    // Time
    SYS_gettimeofday, SYS_time, SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_getitimer, SYS_setitimer,
    SYS_timer_create, SYS_timer_settime, SYS_timer_gettime, SYS_timer_getoverrun, SYS_timer_delete,
    // Users
    SYS_getuid, SYS_getgid, SYS_geteuid, SYS_getegid, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_getgroups, SYS_setgroups,
    SYS_setresuid, SYS_getresuid, SYS_setresgid, SYS_getresgid, SYS_setfsuid, SYS_setfsgid, SYS_capget, SYS_capset,
    // Sockets, once made
    SYS_connect, SYS_accept, SYS_accept4, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown,
    SYS_bind, SYS_listen, SYS_getsockname, SYS_getpeername, SYS_setsockopt, SYS_getsockopt,
    // System V and POSIX messages, in the sandbox's own namespace
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_shmdt, SYS_semget, SYS_semop, SYS_semtimedop, SYS_semctl, SYS_msgget, SYS_msgsnd, SYS_msgrcv,
    SYS_msgctl, SYS_mq_open, SYS_mq_unlink, SYS_mq_timedsend, SYS_mq_timedreceive, SYS_mq_notify, SYS_mq_getsetattr,
    // The machine
    SYS_uname, SYS_sysinfo, SYS_getrandom,
];

/// Refused with "operation not permitted", because a program that tries should say so and not fall back.
#[rustfmt::skip]
pub(super) const REFUSED: &[c_long] = &[
    // Mounts and roots
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick,
    SYS_mount_setattr, SYS_swapon, SYS_swapoff, SYS_quotactl, SYS_quotactl_fd, SYS_open_by_handle_at, SYS_name_to_handle_at,
    // Namespaces and names
    SYS_setns, SYS_sethostname, SYS_setdomainname,
    // The kernel itself
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_reboot, SYS_syslog, SYS_bpf,
    SYS_perf_event_open, SYS_userfaultfd, SYS_fanotify_init, SYS_fanotify_mark, SYS_acct, SYS_kcmp, SYS_lookup_dcookie, SYS_vhangup,
    // Keys are not kept apart by namespaces
    SYS_add_key, SYS_request_key, SYS_keyctl,
    // Hardware and time
    SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
    // Where memory lies
    SYS_mbind, SYS_set_mempolicy, SYS_set_mempolicy_home_node, SYS_migrate_pages, SYS_move_pages,
];
