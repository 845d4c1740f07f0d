"""What every family does with a submission, whatever it pays for: compile, run, judge, tell."""

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from autotest_env.sandbox.run import Sandbox
from autotest_env.sandbox.suite import MAX_SUITE_BYTES, CompileStatus, RefusedSuite, RunJob
from autotest_env.tasks import feedback
from autotest_env.tasks.evidence import collect
from autotest_env.tasks.family import Feedback, Judgement, Task
from autotest_env.tasks.judged import Secret
from autotest_env.tasks.judging import Verdicts, failure, judge
from autotest_env.tasks.program import ProgramSource, load_program
from autotest_env.tasks.score import Score
from autotest_env.tasks.seeds import secret_rng
from autotest_env.tasks.texts import Texts

_TOO_LARGE = RefusedSuite(
    status=CompileStatus.TOO_LARGE,
    message=f"the file is larger than {MAX_SUITE_BYTES >> 10} KiB; send fewer or shorter tests",
)


class ProgramFamily(ABC):
    """A family on one server; `secret` salts which bugs a seed picks and which renderings a suite meets."""

    name: ClassVar[str]
    version: ClassVar[int]
    classic: ClassVar[str]
    """Name of the default program."""

    def __init__(self, sandbox: Sandbox, secret: bytes) -> None:
        self._sandbox = sandbox
        self._key = secret

    @cached_property
    def _program(self) -> ProgramSource:
        return load_program(self.classic)

    @cached_property
    def _texts(self) -> Texts:
        return Texts(self._program, self._key)

    @abstractmethod
    def generate(self, seed: int) -> Task:
        """Build the task of a seed: same seed, same bytes."""

    @abstractmethod
    def score(self, task: Task, verdicts: Verdicts | None, test_code: str) -> Score:
        """Score a judged submission; None is one that failed as a whole and scores 0."""

    def oracle(self, task: Task) -> str:
        """Return the answer that earns exactly 1."""
        return self._secret(task).program.oracle_suite

    def remark(self, test_code: str) -> str:  # noqa: ARG002  of the families that have one
        """Return a sentence for the feedback on a judged submission, or nothing."""
        return ""

    def judge(self, task: Task, test_code: str) -> Judgement:
        """Run and score one submission. Raises GraderError when we fail; a bad suite scores 0."""
        secret = self._secret(task)
        total = len(secret.bugs)
        worthless = self.score(task, None, test_code)
        if _is_too_large(test_code):
            return Judgement(score=worthless, feedback=feedback.refused(_TOO_LARGE, total))
        with self._sandbox.open(hash((task.id, test_code))) as grading:
            suite = grading.compile(test_code)
            if isinstance(suite, RefusedSuite):
                return Judgement(score=worthless, feedback=feedback.refused(suite, total))
            rng = secret_rng(self._key, task.id, suite.digest)
            evidence = collect(secret, suite, grading, self._texts, rng)
        end = failure(evidence)
        if end is not None:
            told = feedback.failed(end, evidence.shown, secret.shown_source, test_code, total)
            return Judgement(score=worthless, feedback=told)
        verdicts = judge(evidence)
        told = feedback.judged(verdicts, evidence.shown, secret.shown_source, test_code)
        told = replace(told, message=f"{told.message} {self.remark(test_code)}".strip())
        return Judgement(score=self.score(task, verdicts, test_code), feedback=told)

    def view_coverage(self, task: Task, test_code: str) -> Feedback:
        """Run a suite on the shown code only; nothing is scored."""
        secret = self._secret(task)
        if _is_too_large(test_code):
            return feedback.refused(_TOO_LARGE, len(secret.bugs))
        with self._sandbox.open(hash((task.id, test_code))) as grading:
            suite = grading.compile(test_code)
            if isinstance(suite, RefusedSuite):
                return feedback.refused(suite, len(secret.bugs))
            program = self._texts.as_written(secret.shown_source)
            (shown,) = grading.run([RunJob(program=program, suite=suite, represent=True, cover=True)])
        return feedback.viewed(shown, secret.shown_source, test_code)

    def _secret(self, task: Task) -> Secret:
        if task.family != self.name or not isinstance(task.secret, Secret):
            raise TypeError(f"not a task of {self.name}")
        return task.secret


def _is_too_large(test_code: str) -> bool:
    return len(test_code.encode("utf-8", "surrogatepass")) > MAX_SUITE_BYTES
