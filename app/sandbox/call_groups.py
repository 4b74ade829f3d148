"""Every system call belongs to one group, which says what a filter answers and why.

A call is allowed when ordinary programs need it and something bounds what it costs the machine:
memory, processor time, disk. All others are refused. A number that is in no table is a call of a
newer kernel, or none: it does not exist for user code.
"""

import errno
from typing import Final, NamedTuple

_REFUSED, _MISSING, _UNSUPPORTED = errno.EPERM, errno.ENOSYS, errno.EINVAL
# The call returns 0 without being made.
_NOTHING_TO_DO = 0


class CallGroup(NamedTuple):
    """`error` is what the calls fail with, None for calls that are allowed. `reason` says why they
    are refused, or what bounds them.
    """

    reason: str
    names: str
    error: int | None = None
    # Without namespaces, allowed calls of some groups fail with this instead.
    error_without_namespaces: int | None = None

    def answer(self, *, namespaces: bool) -> int | None:
        if self.error is None and not namespaces:
            return self.error_without_namespaces
        return self.error


_ALLOWED: Final = {
    "files": CallGroup(
        "The tier decides which files exist and which are writable. The space in memory for files "
        "is bounded and counts as memory; cached names and pages can be reclaimed.",
        "read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 lseek close "
        "close_range copy_file_range fallocate ftruncate umask "
        "readlink readlinkat getdents getdents64 getcwd chdir fchdir "
        "access faccessat faccessat2 stat lstat fstat newfstatat statx statfs fstatfs "
        "getxattr lgetxattr fgetxattr getxattrat listxattr llistxattr flistxattr listxattrat "
        "file_getattr",
    ),
    "paths": CallGroup(
        "They open files and change folders. The tier decides which ones exist; a reader of "
        "foreign bytes without a folder has nothing to open.",
        "open openat openat2 creat truncate mkdir mkdirat rmdir unlink unlinkat rename renameat "
        "renameat2 link linkat symlink symlinkat",
    ),
    "file attributes": CallGroup(
        "With namespaces, only the run's own files can be changed, and their attributes take space "
        "of its scratch folder. Landlock lets the owner of any file change them.",
        "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat "
        "utimensat setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr "
        "removexattrat file_setattr",
        error_without_namespaces=_REFUSED,
    ),
    "descriptors": CallGroup(
        "RLIMIT_NOFILE bounds them in each process; the supervisor counts those of all processes "
        "as memory, with their buffers. `flock` locks are one for each open file.",
        "dup dup2 dup3 pipe pipe2 eventfd eventfd2 signalfd signalfd4 timerfd_create "
        "timerfd_settime timerfd_gettime epoll_create epoll_create1 epoll_ctl epoll_wait "
        "epoll_pwait epoll_pwait2 poll ppoll select pselect6 flock",
    ),
    "streams": CallGroup(
        "Only pairs of connected streams exist. Their buffers have the default size and count with "
        "their descriptors.",
        "sendto recvfrom recvmsg recvmmsg shutdown getsockname getpeername getsockopt",
    ),
    "memory": CallGroup(
        "RLIMIT_DATA and RLIMIT_STACK bound a process; the supervisor counts the resident memory, "
        "page tables and mappings of all processes.",
        "brk munmap mremap mprotect mincore pkey_alloc pkey_free pkey_mprotect mseal "
        "map_shadow_stack get_mempolicy",
    ),
    "processes": CallGroup(
        "RLIMIT_NPROC bounds processes and threads, RLIMIT_CPU and the timeout their time.",
        "exit exit_group wait4 waitid set_tid_address gettid getpid getppid getpgid getpgrp getsid "
        "restart_syscall arch_prctl getcpu rseq set_robust_list get_robust_list futex futex_waitv "
        "futex_wake futex_wait futex_requeue",
    ),
    "new processes": CallGroup(
        "They are bounded like processes. A reader of foreign bytes starts none.",
        "fork vfork execve execveat",
    ),
    "process groups": CallGroup(
        "With namespaces, all processes end with the first one. Else, a process that leaves its "
        "group is not killed with it.",
        "setpgid",
        error_without_namespaces=_REFUSED,
    ),
    "scheduling": CallGroup(
        "These read the class of a process and give up its turn; no call changes the class.",
        "sched_yield sched_getparam sched_getscheduler sched_getattr sched_getaffinity "
        "sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority "
        "ioprio_get",
    ),
    "signals": CallGroup(
        "They concern the calling process alone.",
        "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend "
        "sigaltstack pause",
    ),
    "sent signals": CallGroup(
        "They reach the run's own processes: by the namespace, else by the user id and Landlock. "
        "RLIMIT_SIGPENDING bounds those that wait. A reader of foreign bytes sends none.",
        "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo",
    ),
    "time": CallGroup(
        "RLIMIT_SIGPENDING bounds timers.",
        "time gettimeofday clock_gettime clock_getres nanosleep clock_nanosleep alarm getitimer "
        "setitimer timer_create timer_settime timer_gettime timer_getoverrun timer_delete times",
    ),
    "identity": CallGroup(
        "The kernel allows only the ids and the rights that the run has: none.",
        "getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid "
        "setregid setresuid setresgid setfsuid setfsgid setgroups capget capset",
    ),
    "limits and facts": CallGroup(
        "Limits can only be lowered; the rest returns facts about the machine and random bytes.",
        "getrlimit setrlimit getrusage uname sysinfo getrandom",
    ),
}

_DECIDED: Final = CallGroup(
    "Allowed or refused by their arguments; `seccomp.py` has the reason for each.",
    "clone mmap madvise prlimit64 prctl socketpair fcntl ioctl",
)

_NOT_ALLOWED: Final = {
    "network": CallGroup(
        "A run has no network. Pairs of streams stay allowed: event loops use them as pipes. Their "
        "options would enlarge buffers and attach filters.",
        "socket connect bind listen accept accept4 setsockopt",
        _REFUSED,
    ),
    "descriptors in flight": CallGroup(
        "A descriptor that is sent and not received is in no process's table, so nothing counts "
        "it.",
        "sendmsg sendmmsg",
        _REFUSED,
    ),
    "pages in flight": CallGroup(
        "A pipe or socket refers to a whole page for each byte, after the page's owner has freed "
        "it. Programs copy instead when these are not supported.",
        "splice vmsplice tee sendfile",
        _UNSUPPORTED,
    ),
    "work in the kernel": CallGroup(
        "The kernel does work that a filter does not see, in its own time and memory.",
        "io_uring_setup io_uring_enter io_uring_register io_setup io_destroy io_submit io_cancel "
        "io_getevents io_pgetevents bpf perf_event_open userfaultfd",
        _REFUSED,
    ),
    "rules and filters": CallGroup(
        "Rulesets and filters are kernel memory that no limit counts.",
        "landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp "
        "lsm_get_self_attr lsm_set_self_attr lsm_list_modules",
        _REFUSED,
    ),
    "watches": CallGroup(
        "A watch keeps a file's data in the kernel, and watches are counted for each user, not for "
        "a run.",
        "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch fanotify_init fanotify_mark",
        _REFUSED,
    ),
    "uncounted memory": CallGroup(
        "Memory that belongs to no process, or that cannot be reclaimed.",
        "memfd_create memfd_secret shmget shmat shmctl shmdt msgget msgsnd msgrcv msgctl semget "
        "semop semctl semtimedop mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify "
        "mq_getsetattr mlock mlock2 mlockall munlock munlockall remap_file_pages add_key "
        "request_key keyctl",
        _REFUSED,
    ),
    "time of the host": CallGroup(
        "They start input and output of the whole machine, or evict what others have cached.",
        "sync syncfs readahead fadvise64 cachestat",
        _REFUSED,
    ),
    "flushes": CallGroup(
        "What a run can write is in memory, so there is nothing to flush. For files that it can "
        "only read, the kernel would flush the disk.",
        "fsync fdatasync sync_file_range msync",
        _NOTHING_TO_DO,
    ),
    "barriers": CallGroup(
        "They interrupt all processors; programs do without where they do not exist.",
        "membarrier",
        _MISSING,
    ),
    "sessions": CallGroup(
        "Each session gets an equal share of the processor, whatever its processes' class is.",
        "setsid",
        _REFUSED,
    ),
    "priority": CallGroup(
        "A run keeps its class, and the priority of other processes of its user is not its own.",
        "setpriority ioprio_set sched_setparam sched_setscheduler sched_setattr sched_setaffinity",
        _REFUSED,
    ),
    "other processes": CallGroup(
        "They read and change other processes.",
        "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp "
        "pidfd_open pidfd_getfd pidfd_send_signal",
        _REFUSED,
    ),
    "new processes with unknown flags": CallGroup(
        "A filter cannot read the flags in memory; the C library uses `clone` instead.",
        "clone3",
        _MISSING,
    ),
    "mounts and namespaces": CallGroup(
        "They change what a run sees, or reach files without their names.",
        "unshare setns mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen "
        "fsconfig fsmount fspick mount_setattr statmount listmount name_to_handle_at "
        "open_by_handle_at mknod mknodat",
        _REFUSED,
    ),
    "machine": CallGroup(
        "They configure the machine.",
        "init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff "
        "acct syslog quotactl quotactl_fd settimeofday clock_settime clock_adjtime adjtimex "
        "sethostname setdomainname iopl ioperm personality vhangup modify_ldt set_mempolicy "
        "set_mempolicy_home_node migrate_pages move_pages mbind ustat sysfs",
        _REFUSED,
    ),
    "not in the kernel": CallGroup(
        "Numbers that today's kernels do not use, or answer the same way.",
        "uselib _sysctl create_module get_kernel_syms query_module nfsservctl getpmsg putpmsg "
        "afs_syscall tuxcall security vserver set_thread_area get_thread_area lookup_dcookie "
        "epoll_ctl_old epoll_wait_old",
        _MISSING,
    ),
}
DECIDED: Final = frozenset(_DECIDED.names.split())
GROUPS: Final = {**_ALLOWED, **_NOT_ALLOWED, "decided by arguments": _DECIDED}


def answers(*, namespaces: bool) -> dict[str, int | None]:
    """Returns the error of each call that is not decided by its arguments, None for allowed."""
    groups = (*_ALLOWED.values(), *_NOT_ALLOWED.values())
    return {
        name: group.answer(namespaces=namespaces)
        for group in groups
        for name in group.names.split()
    }


def reader_answers(*, opens: bool, writes: bool) -> dict[str, int | None]:
    """Returns the answers to a process that reads foreign bytes: it starts no process and sends no
    signal. `opens` is for one that has a folder, `writes` for one that writes there, whose flushes
    reach the disk.
    """
    refused = ["new processes", "sent signals", *([] if opens else ["paths"])]
    names = " ".join(["clone", "socketpair", *(_ALLOWED[group].names for group in refused)])
    flushes = dict.fromkeys(_NOT_ALLOWED["flushes"].names.split()) if writes else {}
    return answers(namespaces=False) | dict.fromkeys(names.split(), _REFUSED) | flushes
