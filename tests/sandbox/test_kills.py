"""Children and fork servers that somebody kills: never the suite's fault, and nothing is left of them."""

import gc
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from autotest_env.errors import GraderFailedError
from autotest_env.sandbox.run import Grading, Sandbox, SandboxOptions
from autotest_env.sandbox.suite import CompiledSuite, Program, RunEnd, RunJob, SuiteResult
from autotest_env.sandbox.worker import ROOM_BYTES, ROOM_FILES, Worker

QUICK = "def test_it(): pass"
SLOW = "import time\ndef test_it(): time.sleep(1)"
HOG = "import time\ndef test_it():\n    kept = bytearray(b'x' * (300 << 20))\n    time.sleep(1)"
SLOW_TO_COMPILE = "def test_it(): pass\ndef unused(a, b):\n" + "    assert a + 1 == b\n" * 400


def below(pid: int) -> set[int]:
    words = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")).split()
    return {int(word) for word in words} | {far for word in words for far in below(int(word))}


class Victims:
    """A sandbox with one grader, and which processes stand below it while nothing runs."""

    def __init__(self) -> None:
        before = below(os.getpid())
        self.box = Sandbox(SandboxOptions(graders=1))
        self.box.start()
        time.sleep(0.3)
        self._others = before
        self.standing = below(os.getpid()) - before

    def children(self) -> set[int]:
        return below(os.getpid()) - self._others - self.standing


@pytest.fixture
def victims() -> Iterator[Victims]:
    made = Victims()
    yield made
    made.box.close()


def run(grading: Grading, program: Program, source: str) -> SuiteResult:
    suite = grading.compile(source)
    assert isinstance(suite, CompiledSuite)
    return grading.run([RunJob(program=program, suite=suite)])[0]


@contextmanager
def killing(victims: Victims, age_s: float) -> Iterator[None]:
    """Kill every child that gets so old, during the block."""
    done = threading.Event()

    def kill() -> None:
        born: dict[int, float] = {}
        while not done.wait(0.01):
            now = time.monotonic()
            born = {pid: born.get(pid, now) for pid in victims.children()}
            for pid, since in born.items():
                if now - since > age_s:
                    os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_run_that_is_killed_twice_is_our_failure(victims: Victims, program: Program) -> None:
    with victims.box.open() as grading, killing(victims, 0.5), pytest.raises(GraderFailedError, match="twice"):
        run(grading, program, SLOW)
    with victims.box.open() as grading:
        assert run(grading, program, QUICK).end is RunEnd.COMPLETED


def test_a_run_that_is_killed_twice_for_its_memory_is_the_suites(victims: Victims, program: Program) -> None:
    with victims.box.open() as grading, killing(victims, 0.8):
        assert run(grading, program, HOG).end is RunEnd.CRASHED


def test_a_compile_child_that_is_killed_twice_is_our_failure(victims: Victims) -> None:
    with victims.box.open() as grading, killing(victims, 0.05), pytest.raises(GraderFailedError, match="twice"):
        grading.compile(SLOW_TO_COMPILE)


def test_a_fork_server_is_replaced_when_thousands_of_descriptors_are_open(victims: Victims, program: Program) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    opened: list[int] = []
    try:
        while not opened or opened[-1] < 1024:
            opened.append(os.open(os.devnull, os.O_RDONLY))
        for pid in victims.standing:
            with suppress(ProcessLookupError):  # where there are two, the first takes the other with it
                os.kill(pid, signal.SIGKILL)
        with victims.box.open() as grading:
            assert run(grading, program, QUICK).end is RunEnd.COMPLETED
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_room_on_the_disk_is_what_the_file_system_says(tmp_path: Path) -> None:
    worker = Worker(tmp_path / "top" / "w1")
    worker.wait_ready()
    worker.layers["mount_namespace"] = "off: runs write to the disk"
    disk = os.statvfs(tmp_path)
    shares_free = disk.f_bavail * disk.f_frsize / ROOM_BYTES
    assert worker.has_room(0.5 * shares_free if shares_free < disk.f_favail / ROOM_FILES else 0.0)
    assert not worker.has_room(2.0 * shares_free)
    worker.layers["mount_namespace"] = "on"
    assert worker.has_room(2.0 * shares_free)
    worker.close()


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Leave so many descriptors that can be opened during the block."""
    gc.collect()  # what tests before this one forgot to close must not be closed meanwhile
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 200, hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for _ in range(count):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)


def test_a_run_without_a_free_descriptor_is_our_failure_and_costs_none(victims: Victims, program: Program) -> None:
    with victims.box.open() as grading:
        suite = grading.compile(QUICK)
        assert isinstance(suite, CompiledSuite)
        for count in range(4):
            with descriptors_left(count):
                with pytest.raises(GraderFailedError, match="no descriptor free"):
                    grading.run([RunJob(program=program, suite=suite)])
                again = [os.dup(0) for _ in range(count)]
                with pytest.raises(OSError, match="Too many"):
                    os.dup(0)
                for descriptor in again:
                    os.close(descriptor)
