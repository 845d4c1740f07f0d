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

MAX_THREADS = 16
MAX_FILES = 5_000
MAX_BYTES = 64 << 20

_POLL_S = 0.05
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


class Watch:
    """One child, from its fork to its end."""

    def __init__(self, pid: int, folder: Path, allowance: Allowance) -> None:
        self._pid = pid
        self._folder = folder
        self._allowance = allowance
        self._threads = Path(f"/proc/{pid}/task")
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
                    return Stop.NO if ready == descriptor else Stop.GONE
                stop = self._reason()
                if stop is not Stop.NO:
                    return stop
        finally:
            os.close(descriptor)

    def own_s(self) -> float:
        """Own time so far; the child must not have been reaped yet."""
        return max(0.0, self._wall_s() - self._waited_s())

    def _left_s(self) -> float:
        allowance = self._allowance
        cpu_left_s = allowance.cpu_s - time.clock_gettime(self._cpu_clock) + 0.001
        return min(cpu_left_s, allowance.own_s - self.own_s(), allowance.late_s - self._wall_s())

    def _reason(self) -> Stop:
        allowance = self._allowance
        reasons = {
            Stop.CPU: time.clock_gettime(self._cpu_clock) >= allowance.cpu_s,
            Stop.WALL: self.own_s() >= allowance.own_s,
            Stop.LATE: self._wall_s() >= allowance.late_s,
            Stop.THREADS: len(list(self._threads.iterdir())) > MAX_THREADS,
            Stop.DISK: self._fills_disk(),
        }
        return next((stop for stop, holds in reasons.items() if holds), Stop.NO)

    def _wall_s(self) -> float:
        return time.monotonic() - self._started

    def _waited_s(self) -> float:
        try:
            return int(Path(f"/proc/{self._pid}/schedstat").read_text().split()[1]) * _NANO
        except (OSError, IndexError, ValueError):
            return 0.0

    def _fills_disk(self) -> bool:
        """Count the run's folder only when its file system has grown: others write there too."""
        now = os.statvfs(self._folder)
        grown = (self._disk.f_bfree - now.f_bfree) * now.f_frsize > MAX_BYTES or now.f_files == 0
        if not grown and self._disk.f_ffree - now.f_ffree <= MAX_FILES:
            return False
        return _is_over(self._folder)


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
