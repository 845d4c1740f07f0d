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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import autotest_env.errors
from autotest_env.errors import GraderFailedError, SetupError
from autotest_env.sandbox import folders, frames

_log = logging.getLogger(__name__)

MAX_REPORT_BYTES = 2 << 20
RUN_FOLDER = "run"
STARTED = b"\n"
"""A child writes this when it starts on submitted text: a report missing after it is not our failure."""
PROGRESS = b"."
"""Written as each test starts: so that a run stopped in mid-test tells in which."""

_START_S = 60.0
_GRACE_S = 10.0
_FORBIDDEN = autotest_env.errors.__file__
"""A file no run may read; each fork server tries, to prove its confinement."""


class WorkerDiedError(Exception):
    """The fork server died, hung, or spoke nonsense while a job was with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """How a child ended, as its fork server saw it, and the bytes it left."""

    report: bytes
    stopped: str
    """"cpu" or "wall" when the fork server had to stop it, else empty."""
    status: int
    """Wait status."""
    cpu_s: float
    wall_s: float

    @property
    def is_ours(self) -> bool:
        """Whether it ended for reasons that no submission has in its power: made again once, then our failure."""
        if self.stopped:
            return False
        if os.WIFSIGNALED(self.status):  # nobody inside may send signals: this one came from the machine
            return os.WTERMSIG(self.status) == signal.SIGKILL or not self.report
        return not self.report


class Worker:
    """A running fork server. Not thread-safe: it belongs to one thread."""

    def __init__(self, folder: Path) -> None:
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

    def wait_ready(self) -> None:
        """Wait until the fork server has proved its layers. Raises SetupError."""
        try:
            self.layers = self._answer(time.monotonic() + _START_S)["layers"]
        except WorkerDiedError as error:
            self.close()
            raise SetupError(f"a fork server did not start: {error}; its own words are on standard error") from error

    def make(self, header: dict[str, Any], blobs: Sequence[bytes], *, cpu_s: float, wall_s: float) -> ChildEnd:
        """Have one child do one job. Raises WorkerDiedError; the worker is then of no more use."""
        job_out, job_in = os.pipe()
        report_out, report_in = os.pipe()
        deadline = time.monotonic() + wall_s + _GRACE_S
        try:
            try:
                request = json.dumps({"cpu_s": cpu_s, "wall_s": wall_s}).encode()
                socket.send_fds(self._control, [request], [job_out, report_in])
            except OSError as error:
                raise WorkerDiedError("it does not take jobs") from error
            finally:
                os.close(job_out)
                os.close(report_in)
            report = _exchange(job_in, frames.pack(header, blobs), report_out, deadline)
        finally:
            os.close(report_out)
        answer = self._answer(deadline)
        return ChildEnd(report=report, **answer)

    def close(self) -> None:
        """Stop the fork server and whatever it runs, and remove its folder."""
        self._control.close()
        try:
            self._process.wait(_GRACE_S / 2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        folders.remove(self._folder)  # where it died before it could do so itself

    def _answer(self, deadline: float) -> Any:
        while b"\n" not in self._unread:
            if not select.select([self._control], [], [], max(0.0, deadline - time.monotonic()))[0]:
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

    def make(self, header: dict[str, Any], blobs: Sequence[bytes], *, cpu_s: float, wall_s: float) -> ChildEnd:
        """Make one job, once more if we broke. Raises GraderFailedError when that breaks too."""
        for attempt in ("first", "last"):
            try:
                end = self.worker.make(header, blobs, cpu_s=cpu_s, wall_s=wall_s)
            except WorkerDiedError as error:
                _log.warning("fork server %d died on the %s attempt: %s", self.worker.pid, attempt, error)
                self._replace()
            else:
                if not end.is_ours:
                    return end
                _log.warning("a child failed on the %s attempt, wait status %d", attempt, end.status)
        raise GraderFailedError("a run broke in the grader, twice; send it again later")

    def _replace(self) -> None:
        self.worker.close()
        self.worker = self._new_worker()
        try:
            self.worker.wait_ready()
        except SetupError as error:
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
