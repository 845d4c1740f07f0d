"""What the sandbox asks of Linux and Python 3.11 has no name for. A refusal is an OSError, and so is another system."""

import ctypes
import errno
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ABSENT = "" if sys.platform.startswith("linux") else f"{sys.platform} has no such layer, Linux has"
"""Why nothing of this is there, on another system."""

DETACH = 2
"""Flag of `unmount`: at once, also when something is still open there."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
_SIGKILL = 9


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


class _CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def count_cores() -> int:
    """Count the cores that this process may use, at least one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, cores or 1)


def hide_from_peers() -> None:
    """Close /proc/<pid>/{mem,environ,...} of this process to other processes of the same user, where there is Linux."""
    if not ABSENT:
        _prctl(_PR_SET_DUMPABLE, 0)


def die_with_parent() -> None:
    """Have the calling child killed when its parent dies, where there is Linux; once confined, it cannot undo it."""
    if not ABSENT:
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def gain_nothing() -> None:
    """Have no program that this process starts gain privileges, for good."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def filter_calls(bpf: bytes) -> None:
    """Put a seccomp filter program on the calling process, for good."""
    program = _FilterProgram(len(bpf) // 8, bpf)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program))


def drop_capabilities() -> None:
    """Give up every capability."""
    _check(_libc().capset(ctypes.byref(_CapHeader(_CAPABILITY_VERSION, 0)), (ctypes.c_uint32 * 6)()))


def unshare(flags: int) -> None:
    """Move the calling process, or with CLONE_NEWPID its next children, into new namespaces."""
    _check(_libc().unshare(flags))


def join(namespace: int, flag: int) -> None:
    """Move the calling process, or with CLONE_NEWPID its next children, into the namespace of a descriptor."""
    _check(_libc().setns(namespace, flag))


def mount(source: str | Path | None, target: Path, flags: int, kind: str | None = None, options: str = "") -> None:
    """Mount `source` at `target` as the MS_* bits of `flags` say."""
    names = [None if name is None else os.fsencode(name) for name in (source, target, kind)]
    _check(_libc().mount(*names, ctypes.c_ulong(flags), options.encode()))


def unmount(target: Path, flags: int) -> None:
    """Unmount what is mounted at `target`."""
    _check(_libc().umount2(os.fsencode(target), flags))


def folder_in_proc(pid: int) -> Path:
    """Find the folder of a process in a /proc that may number processes otherwise than this one does.

    Raises OSError where the kernel does not tell.
    """
    descriptor = os.pidfd_open(pid)
    try:
        text = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii")
    finally:
        os.close(descriptor)
    match = re.search(r"^Pid:\t([1-9]\d*)$", text, re.MULTILINE)
    if match is None:
        raise OSError(errno.ESRCH, "the process is not in /proc")
    return Path("/proc", match[1])


def try_in_child(attempt: Callable[[], None]) -> None:
    """Do in a child what cannot be undone. Raises the OSError that it raises there."""
    pid = os.fork()
    if pid == 0:
        number = errno.EIO
        try:
            attempt()
            number = 0
        except OSError as error:
            number = error.errno or number
        finally:
            os._exit(number)
    number = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if number:
        raise OSError(number, os.strerror(number))


def _prctl(option: int, value: int, argument: Any = 0) -> None:
    _check(_libc().prctl(option, value, argument, 0, 0))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@cache
def _libc() -> ctypes.CDLL:
    if ABSENT:
        raise OSError(errno.ENOSYS, ABSENT)
    return ctypes.CDLL(None, use_errno=True)
