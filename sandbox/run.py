"""Suites in, facts out: the pool of graders that the whole server shares.

A `Grading` is one submission's turn. Turns start in the order they were first asked for (`sandbox.turns`), as many at a
time as there are graders, and the runs of those turns share the graders one by one. A worker that dies is replaced and
its run made again once; then it is our failure and never the suite's.
"""

import logging
import marshal
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotest_env.errors import GraderError, GraderFailedError, SetupError
from autotest_env.sandbox.confine import OPTIONAL_LAYERS, Isolation
from autotest_env.sandbox.kernel import count_cores, hide_from_peers
from autotest_env.sandbox.report import read_compiled, read_result
from autotest_env.sandbox.suite import (
    IDLE_S,
    STEP_IDLE_S,
    STEP_OWN_S,
    STEP_WALL_S,
    CompiledSuite,
    Program,
    RefusedSuite,
    RunJob,
    SuiteResult,
)
from autotest_env.sandbox.turns import Turns
from autotest_env.sandbox.watch import Stop
from autotest_env.sandbox.worker import ChildEnd, Grader, Job, Worker

_log = logging.getLogger(__name__)

COMPILE_CPU_S = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """How many graders, how they are confined, how long a submission may wait and take."""

    graders: int = field(default_factory=count_cores)
    isolation: Isolation = Isolation.BEST_EFFORT
    waiting: int = 512
    """Most submissions that may wait for a turn."""
    queue_wall_s: float = 25.0
    step_own_s: float = STEP_OWN_S
    step_idle_s: float = STEP_IDLE_S
    step_wall_s: float = STEP_WALL_S


def compile_program(module: str, source: str) -> Program:
    """Compile trusted source as the module under test; the file it names exists nowhere."""
    return Program(module=module, code=marshal.dumps(compile(source, f"{module}.py", "exec", dont_inherit=True)))


class Grading:
    """One submission's turn at the graders; use it from one thread."""

    def __init__(self, sandbox: "Sandbox", options: SandboxOptions) -> None:
        self._sandbox = sandbox
        self._options = options
        self._deadline = time.monotonic() + options.step_wall_s
        self.calls: deque[_Call] = deque()
        self._used_s = self._idle_s = 0.0
        self._lock = threading.Lock()

    def compile(self, source: str) -> CompiledSuite | RefusedSuite:
        """Parse, rewrite and compile a suite in a confined child; nothing of it is run. Raises GraderError."""
        blobs = (source.encode("utf-8", "surrogatepass"),)
        return read_compiled(self._make([self._job({"kind": "compile"}, blobs, COMPILE_CPU_S)])[0])

    def run(self, jobs: Sequence[RunJob]) -> list[SuiteResult]:
        """Make runs, several at a time; results stand in the order of the jobs. Raises GraderError.

        When the submission's own time is used up, a run is not made: its end is WALL_LIMIT.
        """
        made = []
        for job in jobs:
            header = {"kind": "run", "module": job.program.module, "represent": job.represent, "cover": job.cover}
            made.append(self._job(header, (job.program.code, job.suite.code), job.cpu_s))
        return [read_result(end) for end in self._make(made)]

    @property
    def is_used_up(self) -> bool:
        """Whether the submission's own time has run out."""
        return self.left_s <= 0.0

    @property
    def left_s(self) -> float:
        """Own time that the submission's runs may still take."""
        return min(self._options.step_own_s - self._used_s, self._options.step_idle_s - self._idle_s)

    def use(self, end: ChildEnd) -> None:
        """Count a run's own time; called by the grader threads."""
        with self._lock:
            self._used_s += end.own_s
            self._idle_s += max(0.0, end.own_s - end.cpu_s)

    def _job(self, header: dict[str, Any], blobs: tuple[bytes, ...], cpu_s: float) -> Job:
        return Job(header=header, blobs=blobs, cpu_s=cpu_s, own_s=cpu_s + IDLE_S, deadline=self._deadline)

    def _make(self, jobs: Sequence[Job]) -> list[ChildEnd]:
        return self._sandbox.submit(self, [_Call(self, job) for job in jobs])


@dataclass(slots=True)
class _Call:
    """One job for any grader, and where its end will be found."""

    grading: Grading
    job: Job
    future: "Future[ChildEnd]" = field(default_factory=Future)

    def make(self, grader: Grader) -> ChildEnd:
        if self.grading.is_used_up:
            return ChildEnd(report=b"", stopped=Stop.WALL, status=0, cpu_s=0.0, own_s=0.0)
        end = grader.make(self.job)
        self.grading.use(end)
        return end


class Sandbox:
    """The graders of a server process: one fork server and one thread each."""

    def __init__(self, options: SandboxOptions) -> None:
        self._options = options
        self._lock = threading.Condition()
        self._turns = Turns(options.graders, options.waiting)
        self._ready: deque[Grading] = deque()
        self._threads: list[threading.Thread] = []
        self._closing = False
        self._folder = Path()
        self._started = 0
        self.layers: dict[str, str] = {}
        """Layer name to "on" or to why it is off, as proved by the fork servers."""

    def start(self) -> None:
        """Start the fork servers and wait for them. Raises SetupError."""
        hide_from_peers()
        self._folder = Path(tempfile.mkdtemp(prefix="autotest-"))
        graders: list[Grader] = []
        try:
            graders.extend(Grader(self._new_worker) for _ in range(self._options.graders))
            for grader in graders:
                grader.worker.wait_ready()
            self.layers = graders[0].worker.layers
            refuse_degraded(self.layers, self._options.isolation)
        except (SetupError, OSError) as error:
            for grader in graders:
                grader.worker.close()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise SetupError(str(error)) from error
        for number, grader in enumerate(graders):
            thread = threading.Thread(target=self._work, args=(grader,), name=f"grader-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Stop everything; waiting and running submissions get GraderFailedError."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        self._turns.close()
        for thread in self._threads:
            thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def open(self, key: Hashable = None) -> Iterator[Grading]:
        """Wait for a turn and hold it; with the key of one refused before, in the place it had.

        Raises GraderBusyError when the queue is full or too slow.
        """
        self._turns.wait(self._turns.ask(key), self._options.queue_wall_s)
        try:
            yield Grading(self, self._options)
        finally:
            self._turns.give_back()

    @property
    def waiting(self) -> int:
        """Submissions that wait for a turn now."""
        return self._turns.waiting

    def submit(self, grading: Grading, calls: Sequence["_Call"]) -> list[ChildEnd]:
        """Have the calls of a turn made and wait for all. Raises GraderError."""
        with self._lock:
            if self._closing:
                raise GraderFailedError("the server is stopping")
            grading.calls.extend(calls)
            if calls and grading not in self._ready:
                self._ready.append(grading)
            self._lock.notify_all()
        try:
            return [call.future.result() for call in calls]
        except GraderError:
            with self._lock:  # what is still queued serves nobody any more
                grading.calls.clear()
                if grading in self._ready:
                    self._ready.remove(grading)
            raise

    def _work(self, grader: Grader) -> None:
        """A grader thread: take calls fairly, one from each turn in rotation, until the sandbox closes."""
        while (call := self._next()) is not None:
            try:
                call.future.set_result(call.make(grader))
            except GraderError as error:
                call.future.set_exception(error)
            except Exception:  # noqa: BLE001 - border: a thread that died silently would hang every submission
                _log.exception("a run failed in the grader itself")
                call.future.set_exception(GraderFailedError("the grader failed; send it again later"))
        grader.worker.close()

    def _next(self) -> "_Call | None":
        with self._lock:
            while not self._ready and not self._closing:
                self._lock.wait()
            if self._closing:
                self._drop_waiting()
                return None
            grading = self._ready.popleft()
            call = grading.calls.popleft()
            if grading.calls:
                self._ready.append(grading)
            return call

    def _drop_waiting(self) -> None:
        while self._ready:
            for call in self._ready.popleft().calls:
                call.future.set_exception(GraderFailedError("the server is stopping"))

    def _new_worker(self) -> Worker:
        with self._lock:
            self._started += 1
            number = self._started
        return Worker(self._folder / f"w{number}")


def refuse_degraded(layers: Mapping[str, str], isolation: Isolation) -> None:
    """Log every needed layer that is off. Raises SetupError where isolation is required."""
    off = {name: state for name, state in layers.items() if state != "on" and name not in OPTIONAL_LAYERS}
    if off and isolation is Isolation.REQUIRED:
        listed = "; ".join(f"{name} is {state}" for name, state in off.items())
        raise SetupError(f"AUTOTEST_ISOLATION=required, but {listed}; best-effort runs without it")
    for name, state in off.items():
        _log.warning("isolation layer %s is %s", name, state)
    if off:
        _log.warning("suites run without these layers; AUTOTEST_ISOLATION=required refuses to start instead")
