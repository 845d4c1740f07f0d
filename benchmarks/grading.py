"""What grading costs, beside the obvious grader: one ``python -m pytest`` process per text.

    python benchmarks/grading.py [--rounds N]

The same suites and texts go through three ways, interleaved in one run, because machines are shared and noisy: read
the ratios, not the absolute times. `engine` is a run in the sandbox with every layer on; `subprocess` writes both files
into a folder and starts pytest on it; `bare` forks this process, loads text and suite, and calls the test functions.
Then: a whole grade of the oracle suite, the server's start, and the memory of fork servers and idle sessions.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from types import ModuleType

from autotest_env.mutation.mutant import substitute
from autotest_env.sandbox.run import Sandbox, SandboxOptions, compile_program
from autotest_env.sandbox.suite import CompiledSuite, RunJob, TestOutcome
from autotest_env.tasks.program import ProgramSource, load_program
from autotest_env.tasks.registry import TaskRequest, Tasks

KEY = b"benchmark"
GRADE_SEEDS = range(20)
IDLE_SESSIONS = 250
Verdict = dict[str, bool]


@dataclass(frozen=True)
class Sample:
    """One run: what it cost and what it said (test name to passed)."""

    wall_s: float
    cpu_s: float
    verdict: Verdict


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often every text goes through every way")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        import pytest  # noqa: F401 - the suite needs it; loaded once, as in a fork server

        serve_bare_forks()
        return
    program = load_program("order_total")
    texts = [program.source] + [substitute(program.source, program.sites, {bug.id: 1}) for bug in program.bugs]
    box = Sandbox(SandboxOptions(graders=1))
    box.start()
    print("layers:", ", ".join(f"{name} {state}" for name, state in box.layers.items()))
    own_mb = sum(own_memory_mb(pid) for pid in worker_pids(os.getpid()))
    print(f"fork server: {own_mb:.1f} MB of its own")
    compare(box, program, texts, options.rounds)
    box.close()
    grade(program)
    serve()


def compare(box: Sandbox, program: ProgramSource, texts: list[str], rounds: int) -> None:
    """Run everything through the three ways in turn and print medians and ratios."""
    samples: dict[str, list[Sample]] = {"engine": [], "subprocess": [], "bare": []}
    with subprocess.Popen([sys.executable, __file__, "--bare"], stdin=PIPE, stdout=PIPE, text=True) as bare:
        for text in texts * rounds:
            made = {
                "engine": by_engine(box, program, text),
                "subprocess": by_subprocess(program, text),
                "bare": by_bare_fork(bare, program, text),
            }
            for name, sample in made.items():
                samples[name].append(sample)
            assert made["engine"].verdict == made["subprocess"].verdict, f"verdicts differ: {made}"
        bare.stdin.close()
    print(f"\n{len(texts)} texts x {rounds} rounds, oracle suite, verdicts of engine and subprocess equal:")
    for name, taken in samples.items():
        wall_ms = statistics.median(sample.wall_s for sample in taken) * 1000
        cpu_ms = statistics.median(sample.cpu_s for sample in taken) * 1000
        print(f"  {name:<10} median {wall_ms:7.1f} ms wall, {cpu_ms:7.1f} ms CPU a run")
    print(f"  engine is {ratio(samples, 'subprocess', 'engine'):.1f} x cheaper than a subprocess (CPU; target 15)")
    print(f"  engine costs {ratio(samples, 'engine', 'bare'):.1f} x the bare fork (CPU; target at most 5)")


def ratio(samples: dict[str, list[Sample]], above: str, below: str) -> float:
    """Return the median of the pairwise CPU ratios."""
    pairs = zip(samples[above], samples[below], strict=True)
    return statistics.median(left.cpu_s / right.cpu_s for left, right in pairs)


def by_engine(box: Sandbox, program: ProgramSource, text: str) -> Sample:
    """One run in the sandbox; the suite is compiled once per submission, so that is not timed here."""
    with box.open() as grading:
        suite = grading.compile(program.oracle_suite)
        assert isinstance(suite, CompiledSuite)
        started = time.perf_counter()
        (result,) = grading.run([RunJob(program=compile_program(program.module, text), suite=suite)])
        wall_s = time.perf_counter() - started
    return Sample(wall_s, result.cpu_s, {test.id: test.outcome is TestOutcome.PASSED for test in result.tests})


def by_subprocess(program: ProgramSource, text: str) -> Sample:
    """One pytest process on two files."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{program.module}.py").write_text(text)
        (Path(folder) / "test_suite.py").write_text(program.oracle_suite)
        before, started = children_cpu_s(), time.perf_counter()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rA",
            "-p",
            "no:cacheprovider",
            "--rootdir=.",
            "test_suite.py",
        ]
        lean = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # as a grader that knows what it costs would do
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=lean)
        wall_s, cpu_s = time.perf_counter() - started, children_cpu_s() - before
    lines = re.findall(r"^(PASSED|FAILED) test_suite\.py::(\S+)", done.stdout, re.MULTILINE)
    return Sample(wall_s, cpu_s, {name: word == "PASSED" for word, name in lines})


def by_bare_fork(bare: "subprocess.Popen[str]", program: ProgramSource, text: str) -> Sample:
    """Have a small process fork, load, call every test function: no pytest, no confinement, no verdict."""
    bare.stdin.write(json.dumps([program.module, text, program.oracle_suite]) + "\n")
    bare.stdin.flush()
    return Sample(*json.loads(bare.stdout.readline()), {})


def serve_bare_forks() -> None:
    """Answer each line of standard input with wall and CPU seconds of one bare fork."""
    for line in sys.stdin:
        before, started = children_cpu_s(), time.perf_counter()
        pid = os.fork()
        if pid == 0:
            try:
                call_bare(*json.loads(line))
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        print(json.dumps([time.perf_counter() - started, children_cpu_s() - before]), flush=True)


def call_bare(module_name: str, text: str, suite: str) -> None:
    """Load text and suite and call what needs no arguments."""
    module = ModuleType(module_name)
    exec(compile(text, "m.py", "exec"), vars(module))
    sys.modules[module_name] = module
    space: dict[str, object] = {}
    exec(compile(suite, "t.py", "exec"), space)
    for name, test in space.items():
        if name.startswith("test_") and callable(test) and not test.__code__.co_argcount:
            try:
                test()
            except AssertionError:
                continue


def grade(program: ProgramSource) -> None:
    """Judge the oracle suite on some seeds, twice: renderings are made in the first pass and kept."""
    box = Sandbox(SandboxOptions())
    box.start()
    tasks = Tasks(box, KEY)
    family = tasks.family("unit_test_writer")
    for name in ("first", "second"):
        times = []
        for seed in GRADE_SEEDS:
            task = tasks.generate(TaskRequest(seed=seed), 0)
            started = time.perf_counter()
            assert family.judge(task, program.oracle_suite).score.total == 1.0
            times.append(time.perf_counter() - started)
        median, most = statistics.median(times), max(times)
        print(f"whole grade, {name} pass: median {median:.3f} s, most {most:.3f} s (target 0.6 on 2 idle cores)")
    box.close()


def serve() -> None:
    """Start a server; print what its start cost and what idle sessions add."""
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "autotest_env.server.app", "--port", "0", "--ready-fd", str(write_end)]
    environment = {**os.environ, "AUTOTEST_SESSIONS": str(IDLE_SESSIONS + 10)}
    started = time.perf_counter()
    with subprocess.Popen(command, pass_fds=[write_end], env=environment, stderr=subprocess.DEVNULL) as process:
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            host, port = ready.readline().split()
        wall_s = time.perf_counter() - started
        family_pids = [process.pid, *worker_pids(process.pid)]
        cpu_s = sum(process_cpu_s(pid) for pid in family_pids)
        print(f"server start: {cpu_s:.1f} CPU seconds with its fork servers (target 8), {wall_s:.1f} s wall")
        before = own_memory_mb(process.pid)
        asyncio.run(hold_sessions(f"ws://{host}:{port}/ws", lambda: own_memory_mb(process.pid) - before))
        process.terminate()


async def hold_sessions(url: str, grown_mb: Callable[[], float]) -> None:
    """Open idle sessions, each reset once, and print what they cost together."""
    import websockets

    sockets = [await websockets.connect(url) for _ in range(IDLE_SESSIONS)]
    for seed, socket in enumerate(sockets):
        await socket.send(f'{{"type": "reset", "data": {{"seed": {seed}}}}}')
        await socket.recv()
    print(f"{IDLE_SESSIONS} idle WebSocket sessions: {grown_mb():.1f} MB (target 50)")
    for socket in sockets:
        await socket.close()


def worker_pids(parent: int) -> list[int]:
    """Process ids of everything below a process."""
    text = "".join(path.read_text() for path in Path(f"/proc/{parent}/task").glob("*/children"))
    return [pid for word in text.split() for pid in (int(word), *worker_pids(int(word)))]


def own_memory_mb(pid: int) -> float:
    """Private memory of a process, in MB."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(kib) for kib in re.findall(r"^Private_\w+:\s+(\d+) kB", rollup, re.MULTILINE)) / 1024


def process_cpu_s(pid: int) -> float:
    """CPU seconds a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_cpu_s() -> float:
    """CPU seconds of all children waited for so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
