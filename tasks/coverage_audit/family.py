"""coverage_audit: a class of which two or three methods are buggy, tests that check all of it (medium)."""

from autotest_env.tasks.coverage_audit import generate, rubric
from autotest_env.tasks.family import Task
from autotest_env.tasks.judging import Verdicts
from autotest_env.tasks.program_family import ProgramFamily
from autotest_env.tasks.score import Score


class CoverageAudit(ProgramFamily):
    """Paid for buggy methods caught and for statements whose effect is checked."""

    name = generate.NAME
    version = generate.VERSION
    classic = "inventory"

    def generate(self, seed: int) -> Task:
        """Build the task of a seed: same seed, same bytes."""
        return generate.generate(self._program, self._key, seed)

    def score(self, task: Task, verdicts: Verdicts | None, test_code: str) -> Score:  # noqa: ARG002  other families need all
        """Return the rubric's score."""
        return rubric.score(verdicts)
