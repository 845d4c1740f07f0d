"""The pool: dead workers are replaced, turns are fair and bounded, nothing is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autotest_env.errors import GraderBusyError, GraderFailedError
from autotest_env.sandbox.run import Sandbox, SandboxOptions
from autotest_env.sandbox.suite import CompiledSuite, Program, RunEnd, RunJob, SuiteResult

QUICK = "def test_it(): pass"
SLOW = "import time\ndef test_it(): time.sleep(1.5)"


@pytest.fixture
def box() -> Iterator[Sandbox]:
    """A sandbox with one grader, whose queue can be filled."""
    made = Sandbox(SandboxOptions(graders=1, waiting=2, queue_wall_s=1.0, step_own_s=4.0))
    made.start()
    yield made
    made.close()


def children(pid: int) -> list[int]:
    text = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(word) for word in text.split()]


def below(pid: int) -> list[int]:
    """Children, grandchildren and so on, the youngest generation last; a fork server may be two processes."""
    generation, found = [pid], []
    while generation := [child for parent in generation for child in children(parent)]:
        found += generation
    return found


def fork_servers() -> list[int]:
    return [pid for pid in children(os.getpid()) if b"sandbox.forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def grade(box: Sandbox, program: Program, source: str, count: int = 1) -> list[SuiteResult]:
    with box.open() as turn:
        suite = turn.compile(source)
        assert isinstance(suite, CompiledSuite)
        return turn.run([RunJob(program=program, suite=suite)] * count)


def kill_soon(find: "type[object] | object", delay_s: float) -> threading.Thread:
    def kill() -> None:
        time.sleep(delay_s)
        for pid in find():  # type: ignore[operator]
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def test_a_killed_fork_server_is_replaced_and_its_run_made_again(box: Sandbox, program: Program) -> None:
    before = set(fork_servers())
    killer = kill_soon(lambda: [pid for pid in fork_servers() if pid in before], 0.5)
    (result,) = grade(box, program, SLOW)
    killer.join()
    assert result.end is RunEnd.COMPLETED
    assert set(fork_servers()) != before


def test_either_process_of_a_fork_server_may_be_killed(box: Sandbox, program: Program) -> None:
    """Where there are PID namespaces there are two; elsewhere this kills a child."""
    standing = below(os.getpid())
    killer = kill_soon(lambda: [child for server in fork_servers() for child in children(server)][:1], 0.5)
    (result,) = grade(box, program, SLOW)
    killer.join()
    assert result.end is RunEnd.COMPLETED
    assert len(below(os.getpid())) == len(standing)


def test_a_killed_child_is_our_failure_and_made_again(box: Sandbox, program: Program) -> None:
    killer = kill_soon(lambda: [below(server)[-1] for server in fork_servers()], 0.7)
    (result,) = grade(box, program, SLOW)
    killer.join()
    assert result.end is RunEnd.COMPLETED


def test_a_run_that_breaks_twice_is_our_failure_and_not_the_suites(box: Sandbox, program: Program) -> None:
    broken = Program(module="adder", code=b"not code")
    with pytest.raises(GraderFailedError, match="twice"):
        grade(box, broken, QUICK)
    assert grade(box, program, QUICK)[0].end is RunEnd.COMPLETED


def test_a_submission_that_waits_too_long_is_told_to_come_back(box: Sandbox, program: Program) -> None:
    with ThreadPoolExecutor() as pool:
        first = pool.submit(grade, box, program, SLOW)
        time.sleep(0.3)
        with pytest.raises(GraderBusyError) as busy:
            grade(box, program, QUICK)
        assert busy.value.retry_after_s > 0
        assert first.result()[0].end is RunEnd.COMPLETED


def test_a_full_queue_refuses_at_once(box: Sandbox, program: Program) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(grade, box, program, SLOW)]
        time.sleep(0.3)
        waiting += [pool.submit(grade, box, program, QUICK) for _ in range(2)]
        time.sleep(0.2)
        started = time.monotonic()
        with pytest.raises(GraderBusyError, match="full"):
            grade(box, program, QUICK)
        assert time.monotonic() - started < 0.5
        for future in waiting[1:]:
            with pytest.raises(GraderBusyError):
                future.result()


def test_turns_start_in_the_order_they_were_asked_for(sandbox: Sandbox, program: Program) -> None:
    order: list[int] = []

    def turn(number: int) -> None:
        with sandbox.open():
            order.append(number)
            time.sleep(0.05)

    with ThreadPoolExecutor(20) as pool, sandbox.open(), sandbox.open():
        for number in range(10):
            pool.submit(turn, number)
            time.sleep(0.02)
        assert sandbox.waiting == 10
        assert order == []
    assert sorted(order) == list(range(10))
    assert all(abs(place - number) <= 1 for place, number in enumerate(order))  # two graders, so neighbours may swap


def test_a_submission_out_of_time_gets_no_more_runs(box: Sandbox, program: Program) -> None:
    ends = [result.end for result in grade(box, program, SLOW, count=5)]
    assert ends[:2] == [RunEnd.COMPLETED] * 2
    assert ends[3:] == [RunEnd.WALL_LIMIT] * 2


def test_a_submission_that_a_busy_machine_makes_late_is_our_failure(program: Program) -> None:
    box = Sandbox(SandboxOptions(graders=1, step_wall_s=1.0))
    box.start()
    with pytest.raises(GraderBusyError, match="too busy"):
        grade(box, program, SLOW, count=2)
    box.close()


def test_waiting_for_a_processor_does_not_make_a_suite_late(box: Sandbox, program: Program) -> None:
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        busy = "import time\ndef test_it():\n    end = time.process_time() + 1.2\n    while time.process_time() < end: pass"
        (result,) = grade(box, program, busy)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert result.end is RunEnd.COMPLETED
    assert 1.2 <= result.cpu_s < 2.0


def test_closing_ends_waiting_submissions_and_leaves_nothing(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(fork_servers())
    box = Sandbox(SandboxOptions(graders=1))
    box.start()
    assert len(list(tmp_path.iterdir())) == 1
    with ThreadPoolExecutor() as pool:
        running = pool.submit(grade, box, program, SLOW, 5)
        time.sleep(0.5)
        box.close()
        with pytest.raises(GraderFailedError):
            running.result()
    with pytest.raises(GraderFailedError):
        grade(box, program, QUICK)
    assert list(tmp_path.iterdir()) == []
    assert set(fork_servers()) == before


@pytest.mark.parametrize("delay_s", [0.5, 2.0])
def test_a_killed_server_leaves_no_process_and_no_folder(tmp_path: Path, delay_s: float) -> None:
    script = (
        "import time\nfrom autotest_env.sandbox.run import Sandbox, SandboxOptions\n"
        "Sandbox(SandboxOptions(graders=2)).start()\ntime.sleep(60)"
    )
    server = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "TMPDIR": str(tmp_path)})
    time.sleep(delay_s)
    workers = below(server.pid)
    server.kill()
    server.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (list(tmp_path.iterdir()) or any(map(is_alive, workers))):
        time.sleep(0.1)
    assert list(tmp_path.iterdir()) == []
    assert not any(map(is_alive, workers))


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").exists() and b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()
