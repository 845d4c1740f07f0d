"""The load of `sessions.py`, from a process of its own, so that its work does not delay the server it measures.

Reads a `Plan` as JSON from standard input and writes `Played` as JSON to standard output. Each session plays episodes
with the project's own clients, as a trainer would: reset, think, submit, until the time is over; what has begun is
played to its end. Times are monotonic seconds, which all processes of a machine share; latencies are what the caller
waits, tries that were answered 503 and the pauses between them included.
"""

import asyncio
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from autotest_env.client import AutotestEnv, AutoTestEnvClient

STARTS_PER_S = 50
SPREAD = 0.2
"""Thinking takes its time give or take this share, so that sessions do not march in step."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What to submit to which task, and the reward that it must earn."""

    task_id: str
    test_code: str
    reward: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to play: each episode takes the next answer, in rotation."""

    transport: str
    sessions: int
    think_s: float
    seconds: float
    answers: list[Answer]
    episodes: int | None = None
    """Stop after so many episodes in all, if that is sooner."""
    url: str = ""


@dataclass(kw_only=True)
class Played:
    """What became of it; `finished` holds when each episode ended, `faults` each failed one's error to its number."""

    began: float = 0.0
    resets: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    finished: list[float] = field(default_factory=list)
    wrong: int = 0
    faults: dict[str, int] = field(default_factory=dict)


class Script:
    """What the sessions have in common: who plays what next, and until when."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.played = Played(began=time.monotonic())
        self._next = 0
        self._lock = threading.Lock()

    def next_episode(self) -> int | None:
        """Number of the next episode; None when the play is over."""
        with self._lock:
            over = time.monotonic() >= self.played.began + self.plan.seconds
            if over or (self.plan.episodes is not None and self._next >= self.plan.episodes):
                return None
            self._next += 1
            return self._next - 1

    def answer(self, episode: int) -> Answer:
        """The answer of an episode."""
        return self.plan.answers[episode % len(self.plan.answers)]

    def thinking_s(self, episode: int) -> float:
        """How long an episode's answer takes to be thought of."""
        return self.plan.think_s * random.Random(episode).uniform(1 - SPREAD, 1 + SPREAD)

    def starting_s(self, session: int) -> float:
        """When a session starts: over one time of thinking, and not more than `STARTS_PER_S`."""
        return session * max(self.plan.think_s / self.plan.sessions, 1 / STARTS_PER_S)

    def keep(self, reset_s: float, step_s: float, *, right: bool) -> None:
        """Note an episode that was played to its end, and whether its reward was right."""
        with self._lock:
            self.played.resets.append(reset_s)
            self.played.steps.append(step_s)
            self.played.finished.append(time.monotonic())
            self.played.wrong += not right

    def fail(self, error: Exception) -> None:
        """Note an episode that was not."""
        name = f"{type(error).__name__}: {error}"[:120]
        with self._lock:
            self.played.faults[name] = self.played.faults.get(name, 0) + 1


def main() -> None:
    """Play a plan."""
    plan = json.load(sys.stdin)
    script = Script(Plan(**{**plan, "answers": [Answer(**answer) for answer in plan["answers"]]}))
    if script.plan.transport == "ws":
        asyncio.run(play_all(script))
    else:
        in_threads(script, play_over_http)
    json.dump(asdict(script.played), sys.stdout)


async def play_all(script: Script) -> None:
    """Play every session in one event loop."""
    await asyncio.gather(*(play_over_websocket(script, session) for session in range(script.plan.sessions)))


async def play_over_websocket(script: Script, session: int) -> None:
    """Play one session over WebSocket."""
    await asyncio.sleep(script.starting_s(session))
    async with AutotestEnv(base_url=script.plan.url) as env:
        while (episode := script.next_episode()) is not None:
            answer = script.answer(episode)
            try:
                began = time.monotonic()
                await env.reset(task_id=answer.task_id)
                reset_s = time.monotonic() - began
                await asyncio.sleep(script.thinking_s(episode))
                began = time.monotonic()
                result = await env.step({"test_code": answer.test_code})
                script.keep(reset_s, time.monotonic() - began, right=result.reward == answer.reward)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is counted and named in the table
                script.fail(error)


def in_threads(script: Script, play: Callable[[Script, int], None]) -> None:
    """Play every session in a thread of its own."""
    threads = [threading.Thread(target=play, args=(script, session)) for session in range(script.plan.sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def play_over_http(script: Script, session: int) -> None:
    """Play one session over HTTP."""
    time.sleep(script.starting_s(session))
    with AutoTestEnvClient(script.plan.url) as env:
        while (episode := script.next_episode()) is not None:
            answer = script.answer(episode)
            try:
                began = time.monotonic()
                env.reset(task_id=answer.task_id)
                reset_s = time.monotonic() - began
                time.sleep(script.thinking_s(episode))
                began = time.monotonic()
                result = env.step(test_code=answer.test_code)
                script.keep(reset_s, time.monotonic() - began, right=result.reward == answer.reward)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is counted and named in the table
                script.fail(error)


if __name__ == "__main__":
    main()
