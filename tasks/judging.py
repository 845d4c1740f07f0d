"""What the families have in common: from the facts of runs to valid and asserting tests, precision and credit.

Pure: no processes, no clock. The unit is the test function, all its parameter sets together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from autotest_env.sandbox.suite import FunctionId, RunEnd, SuiteResult, TestId, TestOutcome

MAX_USEFUL = 4
"""Asserting tests beyond this many do not raise precision: trivial tests pay for the wrong guesses of others."""

CREDIT_EXPONENT = 4
"""Credit is the share of noticed wrong versions to this power. Why: docs/decisions/cap-and-exponent.md."""

TIME_FACTOR = 5
"""Hanging on a variant notices it when it took this many times the CPU time of the slowest run on correct code."""

LEAST_HANG_CPU_S = 0.5
"""Below this, what a run costs is mostly the process itself."""

DISTRUSTED = (
    RunEnd.UNTRUSTED,
    RunEnd.GARBLED,
    RunEnd.PLUGINS,
    RunEnd.EXITED,
    RunEnd.STOPPED,
    RunEnd.THREADS_LEFT,
)
"""Ends that void a submission wherever they are seen, except on the null program, which may drive a suite anywhere."""

LIMITS = (
    RunEnd.CPU_LIMIT,
    RunEnd.WALL_LIMIT,
    RunEnd.OUT_OF_MEMORY,
    RunEnd.DISK_LIMIT,
    RunEnd.TOO_MANY_THREADS,
)
"""Ends that void a submission when they are seen on correct code: too costly is no false alarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BugRuns:
    """The runs of one bug: the bug in two renderings, and its siblings."""

    bug: str = field(repr=False)
    renderings: tuple[SuiteResult, ...]
    siblings: tuple[SuiteResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The facts of all runs of one submission; runs that could not change the score were not made."""

    shown: SuiteResult
    reference: tuple[SuiteResult, ...] = ()
    decoys: tuple[SuiteResult, ...] = ()
    null: SuiteResult | None = None
    bugs: tuple[BugRuns, ...] = ()
    bug_count: int = 0
    probes: tuple[SuiteResult, ...] = ()
    """On the reference with one statement perturbed each."""
    out_of_time: bool = False
    """The submission's own time ended before its runs did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What the facts say about the test functions and the bugs."""

    submitted: frozenset[FunctionId]
    valid: frozenset[FunctionId]
    asserting: frozenset[FunctionId]
    credits: tuple[float, ...]
    """One per bug of the task, in [0, 1]."""
    checked: float | None = None
    """Checked coverage: the share of the probes that asserting tests noticed, in [0, 1]; None without probes."""

    @property
    def useful(self) -> int:
        """U = min(asserting functions, 4)."""
        return min(len(self.asserting), MAX_USEFUL)

    @property
    def false_alarms(self) -> int:
        """F = functions submitted and not valid."""
        return len(self.submitted - self.valid)

    @property
    def precision(self) -> float:
        """U / (U + F), 0 when both are 0."""
        return self.useful / (self.useful + self.false_alarms) if self.useful else 0.0

    @property
    def mean_credit(self) -> float:
        """Mean over all bugs of the task."""
        return sum(self.credits) / len(self.credits) if self.credits else 0.0

    @property
    def caught(self) -> int:
        """Bugs with full credit."""
        return sum(credit == 1.0 for credit in self.credits)


def failure(evidence: Evidence) -> RunEnd | None:
    """Why the submission as a whole scores 0, if it does: a bad reference run, or a result that cannot be trusted."""
    if evidence.null is not None and {evidence.shown.end, evidence.null.end} == {RunEnd.CPU_LIMIT}:
        return RunEnd.CPU_LIMIT  # it loops whatever it is run against
    for result in evidence.reference[:1]:
        if result.end is not RunEnd.COMPLETED:
            return result.end
    if evidence.out_of_time:
        return RunEnd.WALL_LIMIT
    ends = [result.end for result in (*evidence.reference, *evidence.decoys) if result.end in (*DISTRUSTED, *LIMITS)]
    ends += [result.end for result in _variants(evidence) if result.end in DISTRUSTED]
    return ends[0] if ends else None


def judge(evidence: Evidence) -> Verdicts:
    """Derive validity, assertion and credit from the facts."""
    first = evidence.reference[0]
    submitted = functions_of(first)
    valid = submitted
    correct = (*evidence.reference, *evidence.decoys)
    for result in correct:
        valid &= passing(result, first)
    silent = passing(evidence.null, first) if evidence.null is not None else submitted
    asserting = (valid - silent) & _claiming(evidence, first)
    hang_cpu_s = max(LEAST_HANG_CPU_S, TIME_FACTOR * max(result.cpu_s for result in correct))
    credits = [credit(runs, first, asserting, hang_cpu_s) for runs in evidence.bugs]
    credits += [0.0] * (evidence.bug_count - len(credits))
    return Verdicts(
        submitted=submitted,
        valid=valid,
        asserting=asserting,
        credits=tuple(credits),
        checked=_checked(evidence.probes, first, asserting),
    )


def _variants(evidence: Evidence) -> Iterator[SuiteResult]:
    """Yield the runs on bugs, siblings and probes."""
    yield from chain(evidence.probes, *((*runs.renderings, *runs.siblings) for runs in evidence.bugs))


def _claiming(evidence: Evidence, first: SuiteResult) -> frozenset[FunctionId]:
    """Return the functions of which an assertion failed on a wrong program: a bare call that raises claims nothing."""
    null = () if evidence.null is None else (evidence.null,)
    wrong = chain(null, (evidence.shown,), _variants(evidence))
    return frozenset(chain.from_iterable(_asserted(result, first) for result in wrong))


def functions_of(result: SuiteResult) -> frozenset[FunctionId]:
    """Return the test functions that a run saw."""
    return frozenset(test.function for test in result.tests)


def passing(result: SuiteResult, first: SuiteResult) -> frozenset[FunctionId]:
    """Return the functions of the first reference run of which every test passed in this run; a missing id failed."""
    if result.end is not RunEnd.COMPLETED or _ids(result) - _ids(first):
        return frozenset()
    passed = {test.id for test in result.tests if test.outcome is TestOutcome.PASSED}
    return functions_of(first) - {test.function for test in first.tests if test.id not in passed}


def failing(result: SuiteResult, first: SuiteResult, hang_cpu_s: float = 0.0) -> frozenset[FunctionId]:
    """Return the functions that notice a wrong version: a test failed in its call, or was running at the CPU limit.

    A run in which other tests appear than on the reference, or which ended in any other way, notices nothing.
    """
    if result.end is RunEnd.CPU_LIMIT and result.cpu_s >= hang_cpu_s and 0 < result.started <= len(first.tests):
        return frozenset({first.tests[result.started - 1].function})
    if result.end is not RunEnd.COMPLETED or _ids(result) != _ids(first):
        return frozenset()
    return frozenset(test.function for test in result.tests if test.outcome is TestOutcome.FAILED)


def credit(runs: BugRuns, first: SuiteResult, asserting: frozenset[FunctionId], hang_cpu_s: float = 0.0) -> float:
    """Return the largest, over asserting tests, of (share of {bug, siblings} that this one test notices) ** 4.

    0 for tests that do not notice the bug itself in both renderings.
    """
    noticed = asserting
    for result in runs.renderings:
        noticed &= failing(result, first, hang_cpu_s)
    if len(runs.renderings) < 2 or not noticed:
        return 0.0
    siblings = [failing(result, first, hang_cpu_s) for result in runs.siblings]
    shares = [(1 + sum(test in sibling for sibling in siblings)) / (1 + len(siblings)) for test in noticed]
    return float(max(shares) ** CREDIT_EXPONENT)


def _checked(probes: tuple[SuiteResult, ...], first: SuiteResult, asserting: frozenset[FunctionId]) -> float | None:
    """Return the share of the probes on which an assertion of an asserting test failed, in the suite's own frames."""
    noticed = sum(bool(asserting & _asserted(result, first)) for result in probes)
    return noticed / len(probes) if probes else None


def _asserted(result: SuiteResult, first: SuiteResult) -> frozenset[FunctionId]:
    if result.end is not RunEnd.COMPLETED or _ids(result) != _ids(first):
        return frozenset()
    return frozenset(test.function for test in result.tests if test.asserted and test.outcome is TestOutcome.FAILED)


def _ids(result: SuiteResult) -> set[TestId]:
    return {test.id for test in result.tests}
