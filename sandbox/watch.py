"""Watching a child from outside: how long it may run, and what it may pile up meanwhile.

A child's *own time* is wall time without the time it waited for a processor, so that a busy machine does not make a
suite late. Where the kernel does not tell (no /proc/<pid>/schedstat), own time is wall time.
"""

import errno
import os
import select
import socket
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from resource import struct_rusage

MAX_THREADS = 16
MAX_FILES = 5_000
MAX_BYTES = 64 << 20

_POLL_S = 0.05
_ASK_MS = 5
_NANO = 1e-9


class Stop(StrEnum):
    """Why a child was stopped."""

    NO = ""
    """It ended by itself."""
    CPU = "cpu"
    WALL = "wall"
    """Its own time was over."""
    THREADS = "threads"
    DISK = "disk"
    LATE = "late"
    """The turn was over although the child's own time was not: the machine is too busy."""
    GONE = "gone"
    """The server hung up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What one child may use; seconds."""

    cpu_s: float
    own_s: float
    late_s: float
    """Wall seconds after which nobody waits for it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a child that has been reaped used, and its wait status."""

    status: int
    cpu_s: float
    own_s: float
    peak_bytes: int
    """Most memory it held at a time."""

    @classmethod
    def of(cls, status: int, usage: struct_rusage, own_s: float) -> "Used":
        """Take it from what `wait4` tells."""
        cpu_s = usage.ru_utime + usage.ru_stime
        return cls(status=status, cpu_s=cpu_s, own_s=own_s, peak_bytes=usage.ru_maxrss << 10)


class Watch:
    """One child, from its fork until it is reaped."""

    def __init__(self, pid: int, folder: Path, allowance: Allowance, proc: Path) -> None:
        """Begin; `folder` is what it works in, `proc` what /proc tells of it."""
        self._pid = pid
        self._folder = folder
        self._allowance = allowance
        self._proc = proc
        self._started = time.monotonic()
        self._disk = os.statvfs(folder)
        self._cpu_clock = ((~pid) << 3) | 2  # the kernel's name for the CPU clock of a process

    def wait(self, control: socket.socket) -> Stop:
        """Wait for the child's end or for a reason to stop it; stopping it is the caller's."""
        descriptor = os.pidfd_open(self._pid)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(control, select.POLLIN | select.POLLHUP)
        try:
            while True:
                for ready, _ in poll.poll(max(1.0, min(self._left_s(), _POLL_S) * 1000)):
                    return self._end() if ready == descriptor else Stop.GONE
                stop = self._reason()
                if stop is not Stop.NO:
                    return stop
        finally:
            os.close(descriptor)

    def reap(self) -> Used:
        """Wait for the end of a child that has ended or was killed."""
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        own_s = self._own_s()  # /proc forgets it with the child
        _, status, usage = os.wait4(self._pid, 0)
        return Used.of(status, usage, own_s)

    def _end(self) -> Stop:
        return Stop.DISK if self._fills_disk() else Stop.NO  # it may fill the folder between two looks

    def _left_s(self) -> float:
        allowance = self._allowance
        cpu_left_s = allowance.cpu_s - self._cpu_s() + 0.001
        return min(cpu_left_s, allowance.own_s - self._own_s(), allowance.late_s - self._wall_s())

    def _reason(self) -> Stop:
        allowance = self._allowance
        reasons = {
            Stop.CPU: self._cpu_s() >= allowance.cpu_s,
            Stop.WALL: self._own_s() >= allowance.own_s,
            Stop.LATE: self._wall_s() >= allowance.late_s,
            Stop.THREADS: self._count_threads() > MAX_THREADS,
            Stop.DISK: self._fills_disk(),
        }
        return next((stop for stop, holds in reasons.items() if holds), Stop.NO)

    def _cpu_s(self) -> float:
        return time.clock_gettime(self._cpu_clock)

    def _count_threads(self) -> int:
        return len(list((self._proc / "task").iterdir()))

    def _own_s(self) -> float:
        return max(0.0, self._wall_s() - self._waited_s())

    def _wall_s(self) -> float:
        return time.monotonic() - self._started

    def _waited_s(self) -> float:
        try:
            return int((self._proc / "schedstat").read_text().split()[1]) * _NANO
        except (OSError, IndexError, ValueError):
            return 0.0

    def _fills_disk(self) -> bool:
        """Count the run's folder only when its file system has grown: others write there too."""
        now = os.statvfs(self._folder)
        grown = (self._disk.f_bfree - now.f_bfree) * now.f_frsize > MAX_BYTES or now.f_files == 0
        if not grown and self._disk.f_ffree - now.f_ffree <= MAX_FILES:
            return False
        return _is_over(self._folder)


class PlainWatch(Watch):
    """One child where the system is not Linux: its CPU time is known at its end, its threads are not counted."""

    _used: Used | None = None

    def wait(self, control: socket.socket) -> Stop:
        """Ask every few milliseconds; there is nothing to wait for both the child and the server with."""
        poll = select.poll()
        poll.register(control, select.POLLIN | select.POLLHUP)
        while True:
            if poll.poll(_ASK_MS):
                return Stop.GONE
            if self._is_reaped(os.WNOHANG):
                return self._end()
            stop = self._reason()
            if stop is not Stop.NO:
                return stop

    def reap(self) -> Used:
        """Wait for the end of a child that has ended or was killed."""
        while self._used is None:
            self._is_reaped(0)
        return self._used

    def _is_reaped(self, options: int) -> bool:
        pid, status, usage = os.wait4(self._pid, options)
        if pid:
            self._used = Used.of(status, usage, self._wall_s())
        return bool(pid)

    def _end(self) -> Stop:
        stop = super()._end()
        is_over = self._used is not None and self._used.cpu_s >= self._allowance.cpu_s
        return Stop.CPU if is_over else stop

    def _cpu_s(self) -> float:
        return 0.0

    def _count_threads(self) -> int:
        return 0


def _is_over(folder: Path) -> bool:
    """Whether a folder holds more than MAX_FILES entries or MAX_BYTES; stops counting at the first of them."""
    files = size = 0
    pending = [str(folder)]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError as error:  # gone or closed meanwhile, or nested beyond what a path can name
            if error.errno == errno.ENAMETOOLONG:
                return True
            continue
        for entry in entries:
            files += 1
            try:
                size += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
            except OSError:
                continue
        if files > MAX_FILES or size > MAX_BYTES:
            return True
    return False
