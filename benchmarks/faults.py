"""What faults cost: sessions play while parts of a real server are killed, starved or left alone.

    python benchmarks/faults.py [--cases NAME,...] [--sessions N] [--seconds S]

Half of the sessions play over WebSocket with `AutotestEnv`, half over HTTP with `AutoTestEnvClient`. They play episodes
of three suites whose observations are known from an undisturbed play: an empty one (score 0), one that finds some bugs,
and the oracle suite (score 1). Whatever is done to the server meanwhile, a step gets exactly the known observation, or
a refusal with a code: then the episode stands as before, and the same step sent again gets the known observation. At
the end no process, file, descriptor or session is left behind. The exit status is 1 where any of this did not hold, or
a case could not be made here: a full disk needs root, to mount a small file system; it is filled twice, once for runs
that have a file system of their own in memory and once, as `no namespaces`, for runs that write to it.

Of each case the table has the faults made, the steps judged, the longest time until all fork servers were back and a
step was judged (for SIGTERM: until the server had ended), the longest time from a step's first refusal to its answer,
whether all promises held, and the refusals by code.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, cycle
from pathlib import Path

import requests
from faults_callers import (
    ask,
    half_open,
    leave_over_http,
    leave_over_websocket,
    open_session,
    silent_session,
    step_over_http,
    step_over_websocket,
)
from faults_play import (
    PATIENCE_S,
    PLAIN,
    SLOW_TO_COMPILE,
    WRITERS,
    Known,
    Suites,
    Tally,
    patiently,
    play_undisturbed,
    playing,
)
from faults_server import WITH_FEW_DESCRIPTORS, WITHOUT_NAMESPACES, Server, cpu_s, settled
from websockets.exceptions import WebSocketException

COMPILING_CPU_S = 0.1
"""A child that has used so much is compiling: the padded suite takes three times as long, a run a fifth."""
SILENCE_S = 45.0
"""Longer than the 20 s between two pings and the 20 s in which they must be answered."""
DISK_MB = 192
DESCRIPTORS = 80
HEAD = f"{'case':<14}{'faults':>6} {'judged':>6} {'whole s':>8} {'again s':>8}  {'promises':<12}refused"


@dataclass(frozen=True)
class Stage:
    """What every case works with."""

    known: Known
    sessions: int
    seconds: float
    tally: Tally
    folder: Path

    @contextmanager
    def serving(self, suites: Suites = PLAIN, *prelude: str, **environment: str) -> Iterator[Server]:
        """Serve during the block while sessions play; then nothing may be left of the server."""
        with Server(self.folder, *prelude, **environment) as server:
            with playing(server, suites, self.known, self.tally, self.sessions):
                yield server
            self.tally.broken += server.stop()


def kill_runs(stage: Stage) -> None:
    """Kill one child after the other; nearly all of them are runs."""
    with stage.serving() as server:
        _keep_killing(stage, lambda: random.sample(server.children(), k=min(1, len(server.children()))), 0.5)


def kill_compilers(stage: Stage) -> None:
    """Kill children that compile a suite."""
    with stage.serving(SLOW_TO_COMPILE) as server:
        _keep_killing(stage, lambda: [pid for pid in server.children() if cpu_s(pid) > COMPILING_CPU_S][:1], 0.5)


def kill_every_child(stage: Stage) -> None:
    """Kill every child that is seen, so that the second try of a run dies as the first did."""
    with stage.serving() as server:
        _keep_killing(stage, server.children, 0.05)


def kill_fork_servers(stage: Stage) -> None:
    """Kill one fork server after the other."""
    with stage.serving() as server:
        _keep_killing(stage, lambda: [random.choice(server.fork_servers())], 1.0, server)


def kill_all(stage: Stage) -> None:
    """Kill all processes below the server at once."""
    with stage.serving() as server:
        _keep_killing(stage, lambda: [*server.fork_servers(), *server.children()], 2.0, server)


def _keep_killing(stage: Stage, find: Callable[[], list[int]], pause_s: float, whole: Server | None = None) -> None:
    """Kill what is found, time and again; with a server, wait each time until its fork servers are back and judge."""
    end = time.monotonic() + stage.seconds
    while time.monotonic() < end:
        pids = find()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        stage.tally.faults += len(pids)
        if whole is not None:
            started, judged = time.monotonic(), stage.tally.judged
            stage.tally.broken += settled(partial(whole.missing, pids), PATIENCE_S, 0.02)
            settled(lambda judged=judged: ["nothing judged"] if stage.tally.judged == judged else [], PATIENCE_S, 0.02)
            stage.tally.whole_s = max(stage.tally.whole_s, time.monotonic() - started)
        time.sleep(pause_s if pids else 0.005)


def stop_in_mid_grade(stage: Stage) -> None:
    """End servers with SIGTERM while steps are judged: each step is answered, and the server ends."""
    for delay_s in (0.2, 1.0, 3.0):
        ready = threading.Barrier(stage.sessions + 1)
        ways = cycle((step_over_http, step_over_websocket))
        with Server(stage.folder) as server, ThreadPoolExecutor(stage.sessions) as pool:
            answers = [pool.submit(next(ways), server, ready) for _ in range(stage.sessions)]
            ready.wait(PATIENCE_S)
            time.sleep(delay_s)
            started = time.monotonic()
            stage.tally.broken += server.stop()
            stage.tally.whole_s = max(stage.tally.whole_s, time.monotonic() - started)
        stage.tally.faults += 1
        for answer in answers:
            try:
                stage.tally.settle(answer.result())
            except (OSError, requests.RequestException, WebSocketException) as error:
                stage.tally.broken.append(f"lost: a step got {type(error).__name__} when the server stopped")


def leave_in_mid_step(stage: Stage) -> None:
    """Break connections while steps are judged, and hold others that say nothing more."""
    spare = 6
    with stage.serving(AUTOTEST_SESSIONS=str(stage.sessions + spare)) as server, ExitStack() as silent:
        for _ in range(8):
            silent.enter_context(half_open(server, b""))
            silent.enter_context(half_open(server, b"POST /step HTTP/1.1\r\nContent-Length: 99\r\n\r\n{"))
            silent.enter_context(silent_session(server))
        gone = []
        for _ in range(2 * spare):
            patiently(partial(leave_over_websocket, server))
            gone.append(leave_over_http(server))
        stage.tally.faults += 24 + 4 * spare
        for step in gone:
            answer = patiently(partial(ask, server, step))
            stage.tally.settle(answer)
            if answer.get("reward") != 1.0:
                stage.tally.broken.append(f"lost: a step whose caller left, asked for again, got {answer}")
        time.sleep(SILENCE_S)  # the silent sessions have not answered a ping for so long
        with ExitStack() as sessions:
            for _ in range(spare):
                patiently(lambda: sessions.enter_context(open_session(server)))


def fill_the_disk(stage: Stage, *prelude: str) -> None:
    """Leave no byte, and then no inode, where the server works, for a while each. Needs root."""
    stage.folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,nr_inodes=5000", "none", str(stage.folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        stage.tally.broken.append(f"not made: no file system can be mounted here ({done.stderr.strip()})")
        return
    try:
        with stage.serving(WRITERS, *prelude):
            for fill in (fill_with_bytes, fill_with_files):
                with fill(stage.folder / "filling"):
                    time.sleep(stage.seconds)
                stage.tally.faults += 1
                time.sleep(stage.seconds / 2)
    finally:
        subprocess.run(["umount", str(stage.folder)], check=True)


@contextmanager
def fill_with_bytes(path: Path) -> Iterator[None]:
    """Take the last byte of the file system during the block."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    yield
    path.unlink()


@contextmanager
def fill_with_files(path: Path) -> Iterator[None]:
    """Take the last inode of the file system during the block."""
    path.mkdir()
    with suppress(OSError):
        for number in count():
            (path / str(number)).touch()
    yield
    shutil.rmtree(path)


def exhaust_descriptors(stage: Stage) -> None:
    """Open more connections than the server has descriptors for."""
    with stage.serving(PLAIN, WITH_FEW_DESCRIPTORS, str(DESCRIPTORS)) as server, ExitStack() as connections:
        for _ in range(2 * DESCRIPTORS):
            connections.enter_context(half_open(server, b""))
        stage.tally.faults += 1
        time.sleep(stage.seconds)


CASES: dict[str, Callable[[Stage], None]] = {
    "run child": kill_runs,
    "compile child": kill_compilers,
    "every child": kill_every_child,
    "fork server": kill_fork_servers,
    "all at once": kill_all,
    "SIGTERM": stop_in_mid_grade,
    "clients gone": leave_in_mid_step,
    "full disk": fill_the_disk,
    "no namespaces": lambda stage: fill_the_disk(stage, WITHOUT_NAMESPACES),
    "descriptors": exhaust_descriptors,
}


def main() -> int:
    """Make the cases and print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES), help=f"some of: {', '.join(CASES)}")
    parser.add_argument("--sessions", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each case goes on")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="faults-") as top:
        with Server(Path(top, "learning")) as server:
            known = play_undisturbed(server.url)
        print(HEAD)
        failed = False
        for name in options.cases.split(","):
            tally = Tally()
            CASES[name](Stage(known, options.sessions, options.seconds, tally, Path(top, name)))
            print(tally.row(name))
            failed = failed or bool(tally.broken)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
