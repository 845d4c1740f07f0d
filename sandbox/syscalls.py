"""The system calls that a run is refused, as a filter program built by libseccomp.

Refusals are errors, not kills, so that a test can report them. What each is for stands in `sandbox.confine`.
"""

import errno
import tempfile
from importlib import import_module

_CLONE_THREAD = 0x00010000
_F_GETPIPE_SZ, _TCGETS, _TIOCSTI, _FIOCLEX = 1032, 0x5401, 0x5412, 0x5451
_PR_SET_PDEATHSIG = 1
_REFUSED = (
    "socket connect bind listen accept accept4 sendmsg sendmmsg "
    "fork vfork execve execveat "
    "truncate setrlimit timer_create memfd_create memfd_secret fallocate "
    "flock fadvise64 readahead mincore cachestat sync syncfs "
    "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_getfd pidfd_send_signal "
    "ptrace process_vm_readv process_vm_writev process_madvise kcmp "
    "mount umount2 pivot_root chroot unshare setns open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr "
    "io_uring_setup io_uring_enter io_uring_register add_key request_key keyctl bpf perf_event_open userfaultfd "
    "shmget shmat msgget semget mq_open mq_unlink name_to_handle_at open_by_handle_at "
    "inotify_init inotify_init1 inotify_add_watch fanotify_init "
    "setpriority ioprio_set sched_setaffinity sched_setscheduler sched_setparam sched_setattr "
    "init_module finit_module delete_module kexec_load reboot swapon swapoff acct quotactl syslog settimeofday "
    "setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid setsid setpgid"
).split()
_TIMES = "utime utimes futimesat utimensat".split()
_PRETENDED = "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat".split()
_NO_ATTRIBUTES = "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr".split()


def build_filter() -> bytes:
    """Return the filter as BPF. Raises ImportError, RuntimeError or OSError where libseccomp is missing."""
    seccomp = import_module("pyseccomp")
    rules = seccomp.SyscallFilter(seccomp.ALLOW)

    def refuse(names: list[str], number: int, *arguments: object) -> None:
        for name in names:
            if seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) >= 0:
                rules.add_rule(seccomp.ERRNO(number), name, *arguments)

    refuse(_REFUSED, errno.EPERM)
    refuse(_PRETENDED, 0)
    refuse(_TIMES, errno.EPERM)  # not pretended: Path.touch takes success for "the file exists"
    refuse(_NO_ATTRIBUTES, errno.EOPNOTSUPP)
    refuse(["clone3"], errno.ENOSYS)  # libc falls back to clone, whose flags can be seen
    refuse(["clone"], errno.EPERM, seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_THREAD, 0))
    refuse(["sendto"], errno.EPERM, seccomp.Arg(4, seccomp.NE, 0))
    refuse(["prlimit64"], errno.EPERM, seccomp.Arg(0, seccomp.NE, 0))
    refuse(["prlimit64"], errno.EPERM, seccomp.Arg(2, seccomp.NE, 0))
    refuse(["prctl"], errno.EPERM, seccomp.Arg(0, seccomp.EQ, _PR_SET_PDEATHSIG))
    for command in (*range(5, 40), *range(1024, 1030)):  # locks, leases, owners, notices: they reach other processes
        refuse(["fcntl"], errno.EPERM, seccomp.Arg(1, seccomp.EQ, command))
    refuse(["fcntl"], errno.EPERM, seccomp.Arg(1, seccomp.GT, _F_GETPIPE_SZ))
    refuse(["ioctl"], errno.EPERM, seccomp.Arg(1, seccomp.LT, _TCGETS))
    refuse(["ioctl"], errno.EPERM, seccomp.Arg(1, seccomp.EQ, _TIOCSTI))
    refuse(["ioctl"], errno.EPERM, seccomp.Arg(1, seccomp.GT, _FIOCLEX))
    refuse(["preadv2", "pwritev2"], errno.EPERM, seccomp.Arg(5, seccomp.NE, 0))
    for advice in (20, 21):  # MADV_COLD, MADV_PAGEOUT
        refuse(["madvise"], errno.EPERM, seccomp.Arg(2, seccomp.EQ, advice))
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()
