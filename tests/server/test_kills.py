"""Sessions play over both transports while somebody kills what runs for them; `benchmarks/faults.py` is the long form."""

import os
import re
import signal
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from autotest_env.client import AutotestEnv, AutoTestEnvClient
from autotest_env.errors import GraderError
from autotest_env.tasks.program import load_program

SUITES = (
    "",
    "from order_module import calculate_order_total\ndef test_it(): assert calculate_order_total([], 0, 0) == 0",
    load_program("order_total").oracle_suite,
)
SCORES = [0.0, 0.05, 1.0]


def below(pid):
    words = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")).split()
    return {int(word) for word in words} | {far for word in words for far in below(int(word))}


class Player(threading.Thread):
    """One session: episode after episode, each step sent until it is judged; what went wrong is in `problems`."""

    def __init__(self, url, over_http):
        super().__init__()
        self.client = AutoTestEnvClient(url, tries=1) if over_http else AutotestEnv(url).sync()
        self.stopping = threading.Event()
        self.problems, self.episodes, self.refusals = [], 0, 0

    def run(self):
        try:
            with self.client:
                while not self.stopping.is_set():
                    self.client.reset(task_id="unit_test_writer", seed=7)
                    scores = [self.submit(suite, number) for number, suite in enumerate(SUITES)]
                    self.problems += [f"wrong: {scores}"] if scores != SCORES else []
                    self.episodes += 1
        except Exception as error:  # noqa: BLE001  # whatever ends a session is what this looks for
            self.problems.append(f"lost: {error!r}")

    def submit(self, suite, number):
        while True:
            try:
                return self.client.step({"test_code": suite}).observation.score
            except (GraderError, RuntimeError) as error:
                if isinstance(error, RuntimeError) and not re.search(r"code: GRADER_(FAILED|BUSY)", str(error)):
                    raise
                self.refusals += 1
                state = self.client.state()
                if (state.step_count, state.attempts_left) != (number, 3 - number):
                    raise


@contextmanager
def playing(server):
    players = [Player(server.url, over_http) for over_http in (True, False) * 2]
    for player in players:
        player.start()
    yield players
    for player in players:
        player.stopping.set()
    for player in players:
        player.join(60)


def test_what_is_killed_costs_no_reward_and_no_episode(tmp_path, start_server):
    command = ["-m", "autotest_env.server.app", "--port", "0"]
    with start_server(command, tmp_path / "log", TMPDIR=str(tmp_path)) as server:
        time.sleep(0.5)
        standing = below(server.pid)
        with playing(server) as players:
            time.sleep(0.5)
            for spared in [*[standing] * 6, set(), set()]:
                for pid in below(server.pid) - spared:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.2 if spared else 1.0)
        assert [player.problems for player in players] == [[]] * 4
        assert all(player.episodes for player in players)
        idle = wait_for_idle(server.pid, len(standing))
        assert len(idle) == len(standing)
        assert not idle & standing
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def wait_for_idle(pid, count):
    for _ in range(100):
        if len(below(pid)) == count:
            break
        time.sleep(0.1)
    return below(pid)
