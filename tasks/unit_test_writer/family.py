"""unit_test_writer: one module with three bugs, tests that catch them (easy)."""

from autotest_env.tasks.family import Task
from autotest_env.tasks.judging import Verdicts
from autotest_env.tasks.program_family import ProgramFamily
from autotest_env.tasks.score import Score
from autotest_env.tasks.unit_test_writer import generate, rubric


class UnitTestWriter(ProgramFamily):
    """Paid for bugs caught without false alarms."""

    name = generate.NAME
    version = generate.VERSION
    classic = "order_total"

    def generate(self, seed: int) -> Task:
        """Build the task of a seed: same seed, same bytes."""
        return generate.generate(self._program, self._key, seed)

    def score(self, task: Task, verdicts: Verdicts | None, test_code: str) -> Score:  # noqa: ARG002  other families need all
        """Return the rubric's score."""
        return rubric.score(verdicts)
