"""regression_audit: a new version with two regressions and one announced change; tell them apart by tests (hard)."""

from collections.abc import Mapping

from autotest_env.tasks.family import Task
from autotest_env.tasks.judging import Verdicts
from autotest_env.tasks.program_family import ProgramFamily
from autotest_env.tasks.regression_audit import generate, rubric
from autotest_env.tasks.regression_audit.answer import Label, parse_answer, triage
from autotest_env.tasks.regression_audit.generate import RegressionSecret
from autotest_env.tasks.score import Score


class RegressionAudit(ProgramFamily):
    """Paid for regressions caught, for the changed rule tested, and for telling which old test fails for which."""

    name = generate.NAME
    version = generate.VERSION
    classic = "auth"

    def generate(self, seed: int) -> Task:
        """Build the task of a seed: same seed, same bytes."""
        return generate.generate(self._program, self._key, seed)

    def score(self, task: Task, verdicts: Verdicts | None, test_code: str) -> Score:
        """Return the rubric's score; the labels are read from the suite's comments."""
        if verdicts is None:
            return rubric.score(None, 0.0)
        return rubric.score(verdicts, triage(parse_answer(test_code), self._labels(task)))

    def oracle(self, task: Task) -> str:
        """Return the answer that earns exactly 1: the right labels, and the oracle's tests of this task's version."""
        secret = self._secret(task)
        return generate.oracle(secret.program, secret.correct, self._labels(task))

    def remark(self, test_code: str) -> str:
        """Say what was read of the labels; not whether it is right."""
        answer = parse_answer(test_code)
        return f"Read: {len(answer.failing)} failing tests and {len(answer.labels)} labels."

    def _labels(self, task: Task) -> Mapping[str, Label]:
        secret = self._secret(task)
        if not isinstance(secret, RegressionSecret):
            raise TypeError(f"not a task of {self.name}")
        return secret.labels
