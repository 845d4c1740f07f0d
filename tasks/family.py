"""What a task family is: seed in, task out; submission in, judgement out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from autotest_env.sandbox.suite import TestOutcome
from autotest_env.tasks.score import Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Everything of a task that the agent may see."""

    prompt: str
    module_name: str
    files: Mapping[str, str]
    existing_tests: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One seeded instance of a family. `secret` is the family's own and never leaves the server process."""

    id: str
    family: str
    seed: int
    shown: Shown
    secret: object = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTest:
    """One test on the shown code; `line` is a 1-based line of the suite and `source` its text."""

    name: str
    outcome: TestOutcome
    message: str = ""
    line: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Line coverage of the shown code as coverage.py counts it; `percent` in [0, 100]."""

    percent: float
    missing_lines: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What a step tells the agent. Counts only where a name would give the reference away."""

    status: str
    """`judged`, or the name of what was wrong with the suite, e.g. `syntax_error`."""
    message: str
    tests: tuple[ShownTest, ...] = ()
    false_alarms: int | None = None
    bugs_caught: int | None = None
    bugs_total: int | None = None
    checked_percent: float | None = None
    """Checked coverage in [0, 100]; None where it is not paid, or could not change the score."""
    coverage: Coverage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What judging one submission gave."""

    score: Score
    feedback: Feedback


class Family(Protocol):
    """A kind of task. One folder, and one line in the registry."""

    name: str
    version: int

    def generate(self, seed: int) -> Task:
        """Build the task of a seed (0 to 2**63 - 1): same seed, same bytes."""
        ...

    def oracle(self, task: Task) -> str:
        """Return the answer that earns exactly 1; secret."""
        ...

    def judge(self, task: Task, test_code: str) -> Judgement:
        """Run and score one submission. Raises GraderError when we fail; a bad suite scores 0."""
        ...

    def view_coverage(self, task: Task, test_code: str) -> Feedback:
        """Run a suite on the shown code only; nothing is scored."""
        ...
