"""One fork server as the server sees it: starts it, hands it one job at a time, notices when it dies."""

import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import autotest_env.errors
from autotest_env.errors import GraderBusyError, GraderFailedError, SetupError
from autotest_env.sandbox import folders, frames
from autotest_env.sandbox.watch import Stop

_log = logging.getLogger(__name__)

MAX_REPORT_BYTES = 2 << 20
MAX_JOB_BYTES = 8 << 20
HOG_BYTES = 256 << 20
"""Several times what a run needs: a child that was killed with less in memory was not killed for its memory."""
ROOM_BYTES, ROOM_FILES = 16 << 20, 500
"""What must be free on the disk before a run: bytes of the largest file it may write. Small containers have as much."""
RUN_FOLDER = "run"
STARTED = b"\n"
"""A child writes this when it starts on submitted text: a report missing after it is not our failure."""
UNREPORTED = 70
"""Exit status of a child that met an exception of our own code."""
PROGRESS = b"."
"""Written as each test starts: so that a run stopped in mid-test tells in which."""

_LAST_SHARE = 1 / 16
"""Of the room for a run; with less free after it, its writes may have failed."""
_NO_ROOM = "the server's disk is full, so that runs cannot write; send it again later"
_START_S = 60.0
_REPLACE_S = 10.0
_GRACE_S = 5.0
_FORBIDDEN = autotest_env.errors.__file__
"""A file no run may read; each fork server tries, to prove its confinement."""


class WorkerDiedError(Exception):
    """The fork server died, hung, or spoke nonsense while a job was with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one child is to do, and what it may use for it."""

    header: dict[str, Any] = field(repr=False)
    blobs: tuple[bytes, ...] = field(repr=False)
    cpu_s: float
    own_s: float
    """Wall seconds without the time the child waits for a processor."""
    deadline: float
    """Monotonic time after which nobody waits for it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """How a child ended, as its fork server saw it, and the bytes it left."""

    report: bytes = field(repr=False)
    stopped: Stop
    status: int
    """Wait status."""
    cpu_s: float
    own_s: float
    peak_bytes: int = 0
    """Most memory it held at a time."""

    @property
    def is_ours(self) -> bool:
        """Whether it ended before it came to anything submitted: that is our failure."""
        return not self.report and self.stopped is Stop.NO

    @property
    def is_killed(self) -> bool:
        """Whether somebody outside killed it: nobody inside may send signals, but memory may have run out."""
        killed = os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL
        return killed and self.stopped is Stop.NO

    @property
    def is_hog(self) -> bool:
        """Whether it held so much memory that running out of it is its own doing."""
        return self.peak_bytes >= HOG_BYTES


class Worker:
    """A running fork server. Not thread-safe: it belongs to one thread."""

    def __init__(self, folder: Path) -> None:
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700)
        self._folder = folder
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-s", "-P", "-B", "-m", "autotest_env.sandbox.forkserver", str(folder), _FORBIDDEN],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=_environment(folder / RUN_FOLDER),
                cwd=folder,
                start_new_session=True,
            )
        self._control = ours
        self._unread = b""
        self.layers: dict[str, str] = {}

    @property
    def pid(self) -> int:
        """Process id of the fork server."""
        return self._process.pid

    def wait_ready(self, within_s: float = _START_S) -> None:
        """Wait until the fork server has proved its layers. Raises SetupError."""
        try:
            self.layers = self._answer(time.monotonic() + within_s)["layers"]
        except WorkerDiedError as error:
            self.close()
            raise SetupError(f"a fork server did not start: {error}; its own words are on standard error") from error

    def has_room(self, share: float = 1.0) -> bool:
        """Whether this share of the room for a run is free, to those without privileges, where runs write to a disk."""
        if self.layers.get("mount_namespace") == "on":
            return True  # they write to memory of their own
        disk = os.statvfs(self._folder.parents[1])  # the folders of fork servers may vanish, and are made again
        free_files = disk.f_favail if disk.f_files else ROOM_FILES  # some file systems do not count them
        return disk.f_bavail * disk.f_frsize >= share * ROOM_BYTES and free_files >= share * ROOM_FILES

    def make(self, job: Job) -> ChildEnd:
        """Have one child do one job. Raises WorkerDiedError; the worker is then of no more use."""
        job_out, job_in, report_out, report_in = _two_pipes()
        late_s = max(0.0, job.deadline - time.monotonic())
        deadline = time.monotonic() + late_s + _GRACE_S
        try:
            try:
                request = json.dumps({"cpu_s": job.cpu_s, "own_s": job.own_s, "late_s": late_s}).encode()
                socket.send_fds(self._control, [request], [job_out, report_in])
            except OSError as error:
                raise WorkerDiedError("it does not take jobs") from error
            finally:
                os.close(job_out)
                os.close(report_in)
            report = _exchange(job_in, frames.pack(job.header, job.blobs), report_out, deadline)
        finally:
            os.close(report_out)
        answer = self._answer(deadline)
        return ChildEnd(report=report, **{**answer, "stopped": Stop(answer["stopped"])})

    def close(self) -> None:
        """Stop the fork server and whatever it runs, and remove its folder."""
        self._control.close()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        try:
            folders.remove(self._folder)  # where it died before it could do so itself
        except OSError as error:  # its orphan is still writing; the sandbox removes everything at its end
            _log.warning("a folder of a dead fork server is still in use: %s", error.strerror)

    def _answer(self, deadline: float) -> Any:
        poll = select.poll()  # select takes no descriptor above 1023, and a server with many callers has such
        poll.register(self._control, select.POLLIN)
        while b"\n" not in self._unread:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise WorkerDiedError("it does not answer")
            try:
                data = self._control.recv(1 << 16)
            except OSError as error:
                raise WorkerDiedError("its socket broke") from error
            if not data:
                raise WorkerDiedError("it is gone")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)


class Grader:
    """A worker that is replaced when it dies. Not thread-safe: it belongs to one thread."""

    def __init__(self, new_worker: Callable[[], Worker]) -> None:
        self._new_worker = new_worker
        self.worker = new_worker()

    def make(self, job: Job) -> ChildEnd:
        """Make one job, once more if we broke. Raises GraderBusyError when it is late, GraderFailedError otherwise."""
        for attempt in ("first", "last"):
            if time.monotonic() >= job.deadline:
                raise GraderBusyError("the graders are too busy to judge this in time; send it again later")
            if not self.worker.has_room():
                raise GraderFailedError(_NO_ROOM)
            try:
                end = self.worker.make(job)
            except WorkerDiedError as error:
                _log.warning("fork server %d died on the %s attempt: %s", self.worker.pid, attempt, error)
                self._replace()
                continue
            if end.stopped is Stop.LATE:
                raise GraderBusyError("the graders are too busy to judge this in time; send it again later")
            if end.stopped is not Stop.DISK and not self.worker.has_room(_LAST_SHARE):
                raise GraderFailedError(_NO_ROOM)  # others have filled the disk meanwhile, and the suite met that
            if not end.is_ours and not (end.is_killed and (attempt == "first" or not end.is_hog)):
                return end
            _log.warning("a child failed on the %s attempt, wait status %d", attempt, end.status)
        raise GraderFailedError("a run broke in the grader, twice; send it again later")

    def _replace(self) -> None:
        self.worker.close()
        try:
            self.worker = self._new_worker()
            self.worker.wait_ready(_REPLACE_S)
        except (SetupError, OSError) as error:
            raise GraderFailedError("a grader died and could not be replaced") from error


def _environment(run_folder: Path) -> dict[str, str]:
    """The whole environment of a run; nothing of the server's own passes."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(run_folder),
        "TMPDIR": str(run_folder),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
    }


def _two_pipes() -> tuple[int, int, int, int]:
    """Make both or none. Raises GraderFailedError where descriptors have run out."""
    made: list[int] = []
    try:
        made += os.pipe()
        made += os.pipe()
    except OSError as error:
        for descriptor in made:
            os.close(descriptor)
        raise GraderFailedError("the server has no descriptor free; send it again later") from error
    job_out, job_in, report_out, report_in = made
    return job_out, job_in, report_out, report_in


def _exchange(job_in: int, job: bytes, report_out: int, deadline: float) -> bytes:
    """Write the job and read the report at the same time; closes `job_in`. A report over the limit is cut."""
    os.set_blocking(job_in, False)
    left, parts, size, writing = memoryview(job), [], 0, True
    poll = select.poll()
    poll.register(report_out, select.POLLIN)
    poll.register(job_in, select.POLLOUT)
    try:
        while True:
            events = dict(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
            if not events:
                raise WorkerDiedError("a job did not end in time")
            if writing and job_in in events:
                left = left[_write(job_in, left) :]
                if not left:
                    poll.unregister(job_in)
                    os.close(job_in)
                    writing = False
            if report_out in events:
                chunk = os.read(report_out, 1 << 16)
                parts.append(chunk)
                size += len(chunk)
                if not chunk or size > MAX_REPORT_BYTES:
                    return b"".join(parts)
    finally:
        if writing:
            os.close(job_in)


def _write(descriptor: int, data: memoryview) -> int:
    """Write what fits; a reader that is gone takes everything, its end is reported elsewhere."""
    try:
        return os.write(descriptor, data)
    except BrokenPipeError:
        return len(data)
