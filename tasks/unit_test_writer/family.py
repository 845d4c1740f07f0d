"""unit_test_writer: one module with three bugs, tests that catch them (easy)."""

from functools import cached_property

from autotest_env.sandbox.run import Sandbox
from autotest_env.sandbox.suite import MAX_SUITE_BYTES, CompileStatus, RefusedSuite, RunJob
from autotest_env.tasks import feedback
from autotest_env.tasks.family import Feedback, Judgement, Task
from autotest_env.tasks.judging import failure, judge
from autotest_env.tasks.program import ProgramSource, load_program
from autotest_env.tasks.seeds import secret_rng
from autotest_env.tasks.texts import Texts
from autotest_env.tasks.unit_test_writer import generate
from autotest_env.tasks.unit_test_writer.evidence import collect
from autotest_env.tasks.unit_test_writer.rubric import score

_CLASSIC_PROGRAM = "order_total"


class UnitTestWriter:
    """The family on one server; `secret` salts which bugs a seed picks and which renderings a suite meets."""

    name = generate.NAME
    version = generate.VERSION

    def __init__(self, sandbox: Sandbox, secret: bytes) -> None:
        self._sandbox = sandbox
        self._key = secret

    @cached_property
    def _program(self) -> ProgramSource:
        return load_program(_CLASSIC_PROGRAM)

    @cached_property
    def _texts(self) -> Texts:
        return Texts(self._program, self._key)

    def generate(self, seed: int) -> Task:
        """Build the task of a seed: same seed, same bytes."""
        return generate.generate(self._program, self._key, seed)

    def judge(self, task: Task, test_code: str) -> Judgement:
        """Run and score one submission. Raises GraderError when we fail; a bad suite scores 0."""
        secret = _secret(task)
        total = len(secret.bugs)
        if len(test_code.encode("utf-8", "surrogatepass")) > MAX_SUITE_BYTES:
            return Judgement(score=score(None), feedback=feedback.refused(_TOO_LARGE, total))
        with self._sandbox.open() as grading:
            suite = grading.compile(test_code)
            if isinstance(suite, RefusedSuite):
                return Judgement(score=score(None), feedback=feedback.refused(suite, total))
            rng = secret_rng(self._key, task.id, suite.digest)
            evidence = collect(secret, suite, grading, self._texts, rng)
        end = failure(evidence)
        if end is not None:
            told = feedback.failed(end, evidence.shown, secret.shown_source, test_code, total)
            return Judgement(score=score(None), feedback=told)
        verdicts = judge(evidence)
        told = feedback.judged(verdicts, evidence.shown, secret.shown_source, test_code)
        return Judgement(score=score(verdicts), feedback=told)

    def view_coverage(self, task: Task, test_code: str) -> Feedback:
        """Run a suite on the shown code only; nothing is scored."""
        secret = _secret(task)
        if len(test_code.encode("utf-8", "surrogatepass")) > MAX_SUITE_BYTES:
            return feedback.refused(_TOO_LARGE, len(secret.bugs))
        with self._sandbox.open() as grading:
            suite = grading.compile(test_code)
            if isinstance(suite, RefusedSuite):
                return feedback.refused(suite, len(secret.bugs))
            program = self._texts.plain(dict.fromkeys(secret.bugs, 1))
            (shown,) = grading.run([RunJob(program=program, suite=suite, represent=True, cover=True)])
        return feedback.viewed(shown, secret.shown_source, test_code)


_TOO_LARGE = RefusedSuite(
    status=CompileStatus.TOO_LARGE,
    message=f"the file is larger than {MAX_SUITE_BYTES >> 10} KiB; send fewer or shorter tests",
)


def _secret(task: Task) -> generate.Secret:
    if not isinstance(task.secret, generate.Secret):
        raise TypeError(f"not a task of {generate.NAME}")
    return task.secret
