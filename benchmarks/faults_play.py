"""The sessions of `faults.py`: they play suites of known observations, and note what is not as it should be."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, product
from typing import Any

from faults_server import Server

from autotest_env.client import AutotestEnv, AutoTestEnvClient, UnreachableError
from autotest_env.errors import GraderError
from autotest_env.tasks.program import load_program

FAMILY = "unit_test_writer"
SEEDS = (0, 2, 6, 7)
PATIENCE_S = 60.0
"""A step that gets no judgement for so long has lost its episode."""
NAMED_CODES = ("GRADER_FAILED", "GRADER_BUSY", "CAPACITY_REACHED")
NAMED = re.compile(rf"\(code: ({'|'.join(NAMED_CODES)})\)")

ORACLE = load_program("order_total").oracle_suite
PARTIAL = """\
from order_module import calculate_order_total


def test_half_off_and_a_tenth_on_top():
    assert calculate_order_total([(10.0, 2)], 50, 10) == 11.0
"""
PADDING = "\n\ndef never_called(left, right):\n" + "    assert left + 1 == right\n" * 400
WRITING = """

def test_a_file_keeps_what_is_written(tmp_path):
    (tmp_path / "file").write_text("x" * 100_000)
    assert len((tmp_path / "file").read_text()) == 100_000
"""
PLAIN = ("", PARTIAL, ORACLE)
SLOW_TO_COMPILE = ("", PARTIAL + PADDING, ORACLE + PADDING)
WRITERS = ("", PARTIAL, ORACLE + WRITING)

Suites = tuple[str, ...]
Known = dict[tuple[int, str], str]
"""Seed and suite to the observation it gets, as JSON, when the three suites are played in their order."""


@dataclass
class Tally:
    """What the sessions of a case met, and what was left behind."""

    faults: int = 0
    judged: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    whole_s: float = 0.0
    """Longest time until all fork servers were back."""
    recovery_s: float = 0.0
    """Longest time from a step's first refusal to its answer."""
    broken: list[str] = field(default_factory=list)
    """What did not hold."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def judge(self, observation: str, expected: str) -> None:
        """Count a judged step; it must have got exactly what it always gets."""
        with self.lock:
            self.judged += 1
            if observation != expected:
                got, right = json.loads(observation), json.loads(expected)
                differing = {name: (got[name], right[name]) for name in got if got[name] != right[name]}
                self.broken.append(f"wrong: {got['task_id']} got, and should get, {differing}"[:1500])

    def refuse(self, code: str) -> None:
        """Count a refusal that asks to come again."""
        with self.lock:
            self.refused[code] += 1

    def settle(self, answer: dict[str, Any]) -> None:
        """Count the answer to a step with the oracle suite: judged, and rightly, or refused with a code."""
        if "error" in answer and answer["error"]["code"] in NAMED_CODES:
            self.refuse(answer["error"]["code"])
            return
        with self.lock:
            self.judged += 1
            if answer.get("observation", {}).get("score") != 1.0:
                self.broken.append(f"wrong: {json.dumps(answer)[:1000]}")

    def recover(self, since: float) -> None:
        """Note that a refused step got its answer."""
        with self.lock:
            self.recovery_s = max(self.recovery_s, time.monotonic() - since)

    def row(self, name: str) -> str:
        """Render the case as a row of the table, with what did not hold below it."""
        refused = ", ".join(f"{count} {code}" for code, count in sorted(self.refused.items())) or "none"
        figures = f"{self.faults:>6} {self.judged:>6} {self.whole_s:>8.2f} {self.recovery_s:>8.2f}"
        verdict = f"BROKEN ({len(self.broken)})" if self.broken else "held"
        return "\n".join([f"{name:<14}{figures}  {verdict:<12}{refused}", *(f"   {line}" for line in self.broken[:10])])


class Player(threading.Thread):
    """A session that plays episodes until it is told to stop, and notes what is not as it should be."""

    def __init__(self, number: int, url: str, suites: Suites, known: Known, tally: Tally) -> None:
        super().__init__(name=f"player {number}")
        self._number, self._url, self._suites, self._known, self._tally = number, url, suites, known, tally
        self._over_http = number % 2 == 0
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Play no further step."""
        self._stopping.set()

    def run(self) -> None:
        """Play; whatever ends a session before it is told to stop is a lost episode."""
        try:
            with self._client() as client:
                for seed in cycle(SEEDS[self._number % len(SEEDS) :] + SEEDS[: self._number % len(SEEDS)]):
                    patiently(partial(client.reset, task_id=FAMILY, seed=seed))
                    for number, suite in enumerate(self._suites):
                        if self._stopping.is_set():
                            return
                        self._tally.judge(self._step(client, number, suite), self._known[seed, suite])
        except Exception as error:  # noqa: BLE001  # border: what this program looks for, whatever it is
            self._tally.broken.append(f"lost: {self.name} by {type(error).__name__}: {error}")

    def _client(self) -> Any:
        if self._over_http:
            return AutoTestEnvClient(self._url, tries=1, timeout_s=PATIENCE_S)
        return AutotestEnv(self._url, message_timeout_s=PATIENCE_S).sync()

    def _step(self, client: Any, number: int, suite: str) -> str:
        """Send a step until it is judged; after each refusal the episode must stand as before."""
        action = {"test_code": suite}
        if self._over_http:  # one id for all tries: a step whose answer was lost is not judged twice
            action["request_id"] = f"step {number}"
        refused_at: float | None = None
        while True:
            try:
                observation: str = client.step(action).observation.model_dump_json()
            except Exception as error:  # OpenEnv's client raises RuntimeError of any text; what is no refusal goes on
                refused_at = refused_at or time.monotonic()
                code = code_of(error)
                if code is None or time.monotonic() - refused_at > PATIENCE_S:
                    raise
                self._tally.refuse(code)
                time.sleep(0.3)
                self._check_state(client, number, code)
                continue
            if refused_at is not None:
                self._tally.recover(refused_at)
            return observation

    def _check_state(self, client: Any, steps: int, code: str) -> None:
        state = patiently(client.state)
        if code != UnreachableError.code and (state.step_count, state.attempts_left) != (steps, 3 - steps):
            self._tally.broken.append(f"lost: after {code} in step {steps + 1} of {self.name} the state is {state}")


def code_of(error: Exception) -> str | None:
    """Return the code of a refusal that asks to come again, None for any other failure."""
    if isinstance(error, GraderError | UnreachableError):
        return error.code
    found = NAMED.search(str(error)) if isinstance(error, RuntimeError) else None
    return found and found[1]


def patiently(call: Callable[[], Any]) -> Any:
    """Call again as long as the answer is to come again."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except Exception as error:  # as above
            if code_of(error) is None or time.monotonic() > deadline:
                raise
            time.sleep(0.3)


@contextmanager
def playing(server: Server, suites: Suites, known: Known, tally: Tally, sessions: int) -> Iterator[None]:
    """Have sessions play during the block, and a little longer; at the end nothing may be left of them."""
    players = [Player(number, server.url, suites, known, tally) for number in range(sessions)]
    for player in players:
        player.start()
    time.sleep(2.0)
    yield
    time.sleep(2.0)
    for player in players:
        player.stop()
    for player in players:
        player.join(PATIENCE_S)
        if player.is_alive():
            tally.broken.append(f"lost: {player.name} waits for an answer for ever")
    tally.broken += server.left_over()


def play_undisturbed(url: str) -> Known:
    """Learn what every step gets when nothing is wrong; the scores of the first and the last suite are known."""
    known: Known = {}
    with AutoTestEnvClient(url) as client:
        for seed, suites in product(SEEDS, (PLAIN, SLOW_TO_COMPILE, WRITERS)):
            client.reset(task_id=FAMILY, seed=seed)
            observations = [client.step(test_code=suite).observation for suite in suites]
            empty, partly, best = (observation.score for observation in observations)
            assert (empty, best) == (0.0, 1.0), observations
            assert 0.0 < partly < 1.0, observations
            known |= {(seed, suite): seen.model_dump_json() for suite, seen in zip(suites, observations, strict=True)}
    return known
