"""The three kinds of log lines, printed in the planned order of the episodes however many are played at once.

    [START] task=<family> env=autotest-env model=<name>
    [STEP] step=<n> action=<first 60 characters, one line> reward=<0.00> done=<true|false> error=<msg|null>
    [END] success=<true|false> steps=<n> score=<0.000> rewards=<r1,r2,...>

The episode at the head of the order is printed live, the others wait for their turn. `Journal.close` ends every open
episode and lets nothing through afterwards, so that an interrupted run leaves complete lines whatever its threads do.
"""

import json
import threading
import unicodedata
from dataclasses import dataclass, field
from typing import Any, TextIO

ENV_NAME = "autotest-env"
SUCCESS_SCORE = 0.5
"""Smallest score of a success."""

_ACTION_CHARS = 60
_ERROR_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step as it was sent and answered."""

    action_type: str
    test_code: str
    reward: float
    done: bool
    error: str | None = None
    score: float | None = None
    """Score of the submission before the discount."""
    reward_parts: tuple[dict[str, Any], ...] = ()
    feedback_text: str = ""


def one_line(text: str, limit: int) -> str:
    """Collapse whitespace, escape what is not printable, cut to `limit` characters."""
    collapsed = " ".join(text[: 40 * limit].split())
    return "".join(_printable(char) for char in collapsed[:limit])[:limit]


def _printable(char: str) -> str:
    if unicodedata.category(char)[0] == "C":
        return char.encode("unicode_escape").decode("ascii")
    return char


@dataclass(slots=True, kw_only=True)
class EpisodeLog:
    """The lines and the record of one planned episode; made by a Journal."""

    journal: "Journal" = field(repr=False)
    family: str
    seed: int
    task_id: str = ""
    messages: list[dict[str, str]] = field(default_factory=list)
    """What was said to a model and by it."""
    steps: list[StepRecord] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """Lines that wait for their turn."""
    error: str | None = None
    started: bool = False
    ended: bool = False

    @property
    def score(self) -> float:
        """Sum of the rewards: the best score of the episode."""
        return round(sum(step.reward for step in self.steps), 9)

    def start(self) -> None:
        """Log [START]; once."""
        with self.journal.lock:
            if not self.started:
                self.started = True
                model = one_line(self.journal.model, _ERROR_CHARS)
                self.journal.write(self, f"[START] task={self.family} env={ENV_NAME} model={model}")

    def step(self, step: StepRecord) -> None:
        """Log [STEP] for a step that was just made."""
        with self.journal.lock:
            if self.ended:
                return
            self.steps.append(step)
            self.error = self.error or step.error
            action = step.test_code if step.action_type == "submit_tests" else step.action_type
            error = "null" if step.error is None else one_line(step.error, _ERROR_CHARS)
            self.journal.write(
                self,
                f"[STEP] step={len(self.steps)} action={one_line(action, _ACTION_CHARS)} reward={step.reward:.2f} "
                f"done={'true' if step.done else 'false'} error={error}",
            )

    def end(self, error: str | None = None) -> None:
        """Log [END]; once."""
        with self.journal.lock:
            if self.ended:
                return
            self.ended = True
            self.error = self.error or error
            rewards = ",".join(f"{step.reward:.2f}" for step in self.steps)
            self.journal.write(
                self,
                f"[END] success={'true' if self.success else 'false'} steps={len(self.steps)} "
                f"score={self.score:.3f} rewards={rewards}",
            )

    @property
    def success(self) -> bool:
        """A score of at least 0.5, and no error."""
        return self.error is None and self.score >= SUCCESS_SCORE

    def as_json(self) -> str:
        """Render the episode as one line of JSON."""
        steps = [{name: getattr(step, name) for name in StepRecord.__slots__} for step in self.steps]
        record = {
            "task_id": self.task_id,
            "family": self.family,
            "seed": self.seed,
            "model": self.journal.model,
            "success": self.success,
            "score": self.score,
            "error": self.error,
            "steps": steps,
            "messages": list(self.messages),
        }
        return json.dumps(record)


class Journal:
    """All planned episodes of one command, in order."""

    def __init__(self, out: TextIO, model: str, records: TextIO | None = None) -> None:
        self.model = model
        self.lock = threading.RLock()
        self.broken = False
        """The lines cannot be written any more."""
        self._out = out
        self._records = records
        self._logs: list[EpisodeLog] = []
        self._head = 0
        self._closed = False

    def plan(self, family: str, seed: int) -> EpisodeLog:
        """Add an episode at the end of the order."""
        log = EpisodeLog(journal=self, family=family, seed=seed)
        self._logs.append(log)
        return log

    def close(self, error: str, *, unstarted: bool = False) -> None:
        """End every open episode with an error (`unstarted`: also those never begun); later lines are dropped.

        At least one [START] and [END] are printed, whenever this is called.
        """
        with self.lock:
            for number, log in enumerate(self._logs):
                if log.started or unstarted or number == 0:
                    log.start()
                    log.end(error)
            self._closed = True

    def write(self, log: EpisodeLog, line: str) -> None:
        """Queue a line of an episode and print whatever it is the turn of. The caller holds the lock."""
        if self._closed:
            return
        log.lines.append(line)
        try:
            self._print()
        except OSError:  # a closed pipe, a full disk
            self.broken = self._closed = True

    def _print(self) -> None:
        while self._head < len(self._logs):
            head = self._logs[self._head]
            for waiting in head.lines:
                self._out.write(waiting + "\n")
                self._out.flush()
            head.lines.clear()
            if not head.ended:
                return
            if self._records is not None:
                self._records.write(head.as_json() + "\n")
                self._records.flush()
            self._head += 1
