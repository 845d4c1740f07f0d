"""One task being worked on: attempts, discount, best score, end. No transport, no clock, no file."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from autotest_env.errors import GraderBusyError
from autotest_env.tasks.family import Family, Feedback, Judgement, Task
from autotest_env.tasks.score import Score

MAX_ATTEMPTS = 5
DEFAULT_ATTEMPTS = 3
MAX_STEPS = 20
MAX_STEPS_AT_ONCE = 8
"""One step runs and the others wait, each in a thread that the server's other callers cannot use meanwhile."""
DISCOUNT = 0.9
"""Attempt k is worth DISCOUNT**(k-1) of its score: guessing by trial costs."""

_DIGITS = 9
"""Rewards are rounded as scores are, so that their sum is the best score and not a hair beside it."""


class Ended(StrEnum):
    """Why an episode ended."""

    SOLVED = "solved"
    ATTEMPTS = "attempts"
    STEPS = "steps"
    DONE = "done"


class ActionKind(StrEnum):
    """What a step does."""

    SUBMIT_TESTS = "submit_tests"
    VIEW_COVERAGE = "view_coverage"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one step gave; `score` is before the discount and None where nothing was judged."""

    reward: float
    attempts_left: int
    steps_left: int
    score: Score | None = None
    feedback: Feedback | None = None
    ended: Ended | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an episode is; everything in it is public."""

    episode_id: str
    task_id: str
    family: str
    seed: int
    step_count: int
    best_score: float
    attempts_left: int
    steps_left: int
    ended: Ended | None


class Episode:
    """An open or ended episode. Steps are serialised; `progress` never waits for a running step."""

    def __init__(self, episode_id: str, task: Task, family: Family, max_attempts: int = DEFAULT_ATTEMPTS) -> None:
        self._family = family
        self._task = task
        self._last_suite: str | None = None
        self._last_outcome: Outcome | None = None
        self._replies: dict[str, Outcome] = {}
        self._turn = threading.Lock()
        self._seats = threading.Semaphore(MAX_STEPS_AT_ONCE)
        self._progress = Progress(
            episode_id=episode_id,
            task_id=task.id,
            family=task.family,
            seed=task.seed,
            step_count=0,
            best_score=0.0,
            attempts_left=max_attempts,
            steps_left=MAX_STEPS,
            ended=None,
        )
        self._opening = self._progress
        self._attempt_worth = 1.0

    @property
    def task(self) -> Task:
        """The task; without its secret once the episode has ended."""
        return self._task

    @property
    def opening(self) -> Progress:
        """How far it was before the first step."""
        return self._opening

    @property
    def id(self) -> str:
        """The episode's id."""
        return self._progress.episode_id

    @property
    def progress(self) -> Progress:
        """A snapshot."""
        return self._progress

    def step(self, kind: ActionKind, test_code: str = "", request_id: str | None = None) -> Outcome:
        """Take one step, or return the stored outcome of the request id.

        A repeated request waits for the first one when that is still running. Raises GraderError when we fail: the
        step then never happened, and the same request id may be used again.
        """
        if not self._seats.acquire(blocking=False):
            raise GraderBusyError(f"{MAX_STEPS_AT_ONCE} steps of this episode are under way; wait for them")
        try:
            return self._step(kind, test_code, request_id)
        finally:
            self._seats.release()

    def _step(self, kind: ActionKind, test_code: str, request_id: str | None) -> Outcome:
        with self._turn:
            if request_id is not None and request_id in self._replies:
                return self._replies[request_id]
            if self._progress.ended is not None:
                return self._after_the_end(self._progress.ended)
            outcome = self._act(kind, test_code)
            self._last_outcome = outcome
            if request_id is not None:
                self._replies[request_id] = outcome
            return outcome

    def _act(self, kind: ActionKind, test_code: str) -> Outcome:
        acts: dict[ActionKind, Callable[[str], Outcome]] = {
            ActionKind.SUBMIT_TESTS: self._submit,
            ActionKind.VIEW_COVERAGE: self._view_coverage,
            ActionKind.DONE: self._finish,
        }
        return acts[kind](test_code)

    def _submit(self, test_code: str) -> Outcome:
        judgement = self._family.judge(self._task, test_code)
        self._last_suite = test_code
        before = self._progress
        discounted = round(judgement.score.total * self._attempt_worth, _DIGITS)
        self._attempt_worth *= DISCOUNT
        self._count_step(
            best_score=max(before.best_score, discounted),
            attempts_left=before.attempts_left - 1,
            ended=_end_of_attempt(judgement, before.attempts_left - 1),
        )
        return self._outcome(
            reward=max(0.0, round(discounted - before.best_score, _DIGITS)),
            score=judgement.score,
            feedback=judgement.feedback,
        )

    def _view_coverage(self, test_code: str) -> Outcome:
        suite = test_code or self._last_suite
        feedback = None if suite is None else self._family.view_coverage(self._task, suite)
        before = self._progress
        self._count_step(best_score=before.best_score, attempts_left=before.attempts_left, ended=None)
        error = "nothing was submitted yet; send test_code with view_coverage" if suite is None else None
        return self._outcome(feedback=feedback, error=error)

    def _finish(self, test_code: str) -> Outcome:
        before = self._progress
        self._count_step(best_score=before.best_score, attempts_left=before.attempts_left, ended=Ended.DONE)
        error = "done ends the episode; its test_code was not judged" if test_code else None
        return self._outcome(error=error)

    def _count_step(self, *, best_score: float, attempts_left: int, ended: Ended | None) -> None:
        before = self._progress
        steps_left = before.steps_left - 1
        if ended is None and steps_left == 0:
            ended = Ended.STEPS
        self._progress = replace(
            before,
            step_count=before.step_count + 1,
            best_score=best_score,
            attempts_left=attempts_left,
            steps_left=steps_left,
            ended=ended,
        )
        if ended is not None:
            self._task = replace(self._task, secret=None)
            self._last_suite = None

    def _outcome(
        self,
        *,
        reward: float = 0.0,
        score: Score | None = None,
        feedback: Feedback | None = None,
        error: str | None = None,
    ) -> Outcome:
        now = self._progress
        return Outcome(
            reward=reward,
            attempts_left=now.attempts_left,
            steps_left=now.steps_left,
            score=score,
            feedback=feedback,
            ended=now.ended,
            error=error,
        )

    def _after_the_end(self, ended: Ended) -> Outcome:
        assert self._last_outcome is not None
        text = f"the episode has ended ({ended}); this step was not judged, reset starts another episode"
        return replace(self._last_outcome, reward=0.0, error=text)


def _end_of_attempt(judgement: Judgement, attempts_left: int) -> Ended | None:
    if judgement.score.total == 1.0:
        return Ended.SOLVED
    return Ended.ATTEMPTS if attempts_left == 0 else None
