"""What a server carries: many sessions over WebSocket and HTTP, with and without time to think, and its memory.

    python benchmarks/sessions.py [--quick] [--sessions 1,16] [--transports ws,http] [--think 30,0] [--tasks NAME,NAME]
                                  [--write]

Each line of the table is a fresh server with its fork servers (`sessions_server.py`) and a load from another process
(`sessions_load.py`), all on the same processors. Every submission is the oracle's, which is the dearest to judge, and
every reward is checked. Latencies are what callers wait, with their pauses after a 503; `503` is the share of the
server's answers that were one. `lag` is how late the event loop was, at 100 beats a second; `own` the longest that it
computed in a lag: the rest is waiting for a processor or for the interpreter's lock. Memory is PSS of the server and of
its fork servers at the end. `--write` puts the table into docs/scaling.md.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import linear_regression, quantiles
from subprocess import PIPE

from sessions_load import Answer, Plan, Played
from sessions_server import Beat

from autotest_env.sandbox.run import Sandbox, SandboxOptions
from autotest_env.server.settings import PUBLIC_SECRET
from autotest_env.tasks.registry import DEFAULT_FAMILY, FAMILIES, TaskRequest, Tasks

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "scaling.md"
MARKS = ("<!-- table -->\n", "<!-- end of table -->\n")
COLUMNS = (
    *("tasks", "over", "sessions", "think s", "episodes/s", "reset ms p50 / p95 / p99", "step s p50 / p95 / p99"),
    *("503 %", "failed", "lag ms p99 / most / own", "server MB", "fork servers MB"),
)
REFUSED = Answer(task_id=DEFAULT_FAMILY, test_code="def broken(", reward=0.0)
HOLLOW = Answer(task_id=DEFAULT_FAMILY, test_code="def test_it():\n    assert True\n", reward=0.0)
TASKS_EACH = 40
"""Tasks of a family that are played in rotation."""
ALL = "all"
MEMORY_SESSIONS = 8
LONGEST_S = 1800.0
MEMORY_EVERY_S = 2.0


@dataclass(kw_only=True)
class Server:
    """A running server; `memory` holds (when, resident MB of the server and its fork servers)."""

    url: str
    pid: int
    fork_servers: list[int]
    memory: list[tuple[float, float]] = field(default_factory=list)
    beats: list[Beat] = field(default_factory=list)
    refused: int = 0

    def sample(self) -> None:
        """Note its memory: not PSS, which would fall whenever a run shares a fork server's pages."""
        self.memory.append((time.monotonic(), sum(memory_mb(pid, "Rss") for pid in (self.pid, *self.fork_servers))))


def main() -> None:
    """Measure, print, and write if asked."""
    options = parse()
    lines = [COLUMNS, ("---",) * len(COLUMNS)]
    print(*COLUMNS, sep=" | ", flush=True)
    for name, plan in plans(options):
        lines.append((name, *measure(plan)))
        print(*lines[-1], sep=" | ", flush=True)
    flat = [flatness(transport, options.episodes) for transport in options.transports if options.episodes]
    print(*flat, sep="\n")
    if options.write:
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        write("\n\n".join([conditions(), table, *flat]))


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = lambda text: [int(word) for word in text.split(",")]  # noqa: E731 - one place, one line
    words = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--quick", action="store_true", help="a look that takes about a minute")
    parser.add_argument("--sessions", type=numbers, default=[1, 16, 64, 128, 256])
    parser.add_argument("--transports", type=words, default=["ws", "http"])
    parser.add_argument("--think", type=numbers, default=[30, 0], help="seconds of thinking before each submission")
    parser.add_argument("--rounds", type=float, default=4, help="how often a session thinks")
    parser.add_argument("--seconds", type=float, default=60, help="how long a load without thinking lasts")
    parser.add_argument("--tasks", type=words, default=list(FAMILIES), help="families, in rotation")
    parser.add_argument("--episodes", type=int, default=2000, help="for the memory; 0 leaves it out")
    parser.add_argument("--write", action="store_true", help="put the table into docs/scaling.md")
    options = parser.parse_args()
    if options.quick:
        options.sessions, options.think, options.seconds, options.episodes = [16], [0], 3, 100
        options.tasks = [DEFAULT_FAMILY]
    return options


def plans(options: argparse.Namespace) -> Iterator[tuple[str, Plan]]:
    """Each family alone, then all of them together in every size."""
    known = {name: oracle_answers(name) for name in options.tasks}
    if len(known) > 1:
        for name, answers in known.items():
            yield name, Plan(transport="ws", sessions=1, think_s=0, seconds=options.seconds, answers=answers)
    mixed = [answer for answers in zip(*known.values(), strict=True) for answer in answers]
    name = ALL if len(known) > 1 else options.tasks[0]
    for transport in options.transports:
        for think_s in options.think:
            seconds = think_s * options.rounds or options.seconds
            for sessions in options.sessions:
                yield (
                    name,
                    Plan(transport=transport, sessions=sessions, think_s=think_s, seconds=seconds, answers=mixed),
                )


def oracle_answers(name: str) -> list[Answer]:
    """The answers that earn 1 on some tasks of a family."""
    tasks = Tasks(Sandbox(SandboxOptions()), PUBLIC_SECRET)  # not started: it judges nothing here
    answers = []
    for seed in range(TASKS_EACH):
        task = tasks.generate(TaskRequest(task_id=name, seed=seed), 0)
        answers.append(Answer(task_id=task.id, test_code=tasks.family(name).oracle(task), reward=1.0))
    return answers


def measure(plan: Plan) -> tuple[str, ...]:
    """Play a plan against a fresh server; return a line of the table."""
    with serving() as server:
        played = play(plan, server)
        server_mb = memory_mb(server.pid, "Pss")
        fork_servers_mb = sum(memory_mb(pid, "Pss") for pid in server.fork_servers)
    ended = max(played.finished, default=played.began)
    late = sorted(beat[1] * 1000 for beat in server.beats if played.began <= beat[0] <= ended)
    own = max(min(beat[1], beat[2]) * 1000 for beat in server.beats if played.began <= beat[0] <= ended)
    answers = server.refused + len(played.finished)
    failed = sum(played.faults.values()) + played.wrong
    for fault, number in played.faults.items():
        print(f"  {number} x {fault}", file=sys.stderr)
    return (
        plan.transport,
        str(plan.sessions),
        f"{plan.think_s:g}",
        f"{len(played.finished) / (ended - played.began):.2f}",
        shares(played.resets, 1000, 0),
        shares(played.steps, 1, 1),
        f"{100 * server.refused / max(1, answers):.0f}",
        f"{failed} of {failed + len(played.finished)}",
        f"{late[int(len(late) * 0.99)]:.0f} / {late[-1]:.0f} / {own:.0f}",
        f"{server_mb:.0f}",
        f"{fork_servers_mb:.0f}",
    )


def flatness(transport: str, episodes: int) -> str:
    """Play many cheap episodes, with an honest one among them, and fit a line to the server's memory."""
    answers = [each for honest in oracle_answers(DEFAULT_FAMILY) for each in (*[REFUSED] * 12, *[HOLLOW] * 3, honest)]
    plan = Plan(
        transport=transport, sessions=MEMORY_SESSIONS, think_s=0, seconds=LONGEST_S, episodes=episodes, answers=answers
    )
    with serving() as server:
        played = play(plan, server)
    finished = sorted(played.finished)
    points = [(sum(end <= when for end in finished), resident_mb) for when, resident_mb in server.memory]
    settled = [point for point in points if point[0] >= episodes / 4]
    slope, start = linear_regression(*zip(*settled, strict=True))
    return (
        f"Memory over {len(finished)} episodes ({transport}), resident after the first quarter: "
        f"{start + slope * episodes / 4:.0f} MB and {slope * 1000:+.1f} MB per 1,000 episodes; "
        f"{sum(played.faults.values()) + played.wrong} failed."
    )


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server; what it noted is there when it has stopped."""
    read_end, write_end = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        beats, log = Path(folder) / "beats", Path(folder) / "log"
        command = [sys.executable, HERE / "sessions_server.py", str(write_end), beats]
        environment = {**os.environ, "AUTOTEST_SESSIONS": "300"}
        with (
            log.open("w") as errors,
            subprocess.Popen(command, pass_fds=[write_end], env=environment, stderr=errors) as process,
        ):
            os.close(write_end)
            with os.fdopen(read_end) as ready:
                host, port = ready.readline().split()
            server = Server(url=f"http://{host}:{port}", pid=process.pid, fork_servers=descendants(process.pid))
            try:
                yield server
            finally:
                process.terminate()
        server.beats += [json.loads(line) for line in beats.read_text().splitlines()]
        server.refused = log.read_text().count("GRADER_BUSY")


def play(plan: Plan, server: Server) -> Played:
    """Play a plan from another process; the server's memory is noted every two seconds meanwhile."""
    text = json.dumps({**asdict(plan), "url": server.url})
    with subprocess.Popen([sys.executable, HERE / "sessions_load.py"], stdin=PIPE, stdout=PIPE, text=True) as load:
        load.stdin.write(text)
        load.stdin.close()
        load.stdin = None
        while True:
            try:
                said, _ = load.communicate(timeout=MEMORY_EVERY_S)
                return Played(**json.loads(said))
            except subprocess.TimeoutExpired:
                server.sample()


def shares(values: Sequence[float], scale: float, digits: int) -> str:
    """Format the 50th, 95th and 99th of a hundred."""
    if len(values) < 2:
        return "-"
    cuts = quantiles(values, n=100, method="inclusive")
    return " / ".join(f"{cuts[share - 1] * scale:.{digits}f}" for share in (50, 95, 99))


def descendants(parent: int) -> list[int]:
    """Process ids of a process's children and theirs."""
    text = "".join(path.read_text() for path in Path(f"/proc/{parent}/task").glob("*/children"))
    return [each for pid in map(int, text.split()) for each in (pid, *descendants(pid))]


def memory_mb(pid: int, kind: str) -> float:
    """Memory of a process: Rss is all that it has in memory, Pss counts what it shares by its share."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(kib) for kib in re.findall(rf"^{kind}:\s+(\d+) kB", text, re.MULTILINE)) / 1024


def conditions() -> str:
    """Say what it was measured on."""
    cores = len(os.sched_getaffinity(0))
    return f"Measured with Python {sys.version.split()[0]} on {cores} cores, which the load and the graders shared."


def write(text: str) -> None:
    """Put text between the marks of the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    _, after = rest.split(MARKS[1])
    PAGE.write_text(f"{before}{MARKS[0]}\n{text}\n\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
