"""What a step tells the agent: its tests on the shown code, and counts of everything else."""

import re
from functools import lru_cache

from coverage.parser import PythonParser

from autotest_env.sandbox.suite import MAX_CASES, MAX_FUNCTIONS, RefusedSuite, RunEnd, SuiteResult, TestReport
from autotest_env.tasks.family import Coverage, Feedback, ShownTest
from autotest_env.tasks.judging import Verdicts

JUDGED = "judged"

_LINE_END = re.compile(r"\r\n|\r|\n")
"""What ends a line in Python source; str.splitlines knows more."""

_SENTENCES = {
    RunEnd.COLLECTION_ERROR: "The file could not be imported or collected.",
    RunEnd.NO_TESTS: "No test was found; name functions test_... and classes Test....",
    RunEnd.TOO_MANY_FUNCTIONS: f"More than {MAX_FUNCTIONS} test functions.",
    RunEnd.TOO_MANY_CASES: f"More than {MAX_CASES} test cases.",
    RunEnd.ASYNC_TESTS: "Async tests are not run; call asyncio.run(...) inside a plain test.",
    RunEnd.PLUGINS: "Registering plug-ins is not allowed: only the submitted file counts.",
    RunEnd.STOPPED: "The suite stopped the session (sys.exit, pytest.exit or KeyboardInterrupt).",
    RunEnd.EXITED: "The suite left its process before the tests were over.",
    RunEnd.CRASHED: "The suite crashed the process it ran in.",
    RunEnd.THREADS_LEFT: "Threads of the suite were still running at its end; join them.",
    RunEnd.TOO_MANY_THREADS: "The suite started more threads than a run may.",
    RunEnd.DISK_LIMIT: "The suite wrote more files, or more into them, than a run may.",
    RunEnd.CPU_LIMIT: "The suite used more CPU time than a run may.",
    RunEnd.WALL_LIMIT: "The suite took more time than a run or a submission may.",
    RunEnd.OUT_OF_MEMORY: "The suite used more memory than a run may.",
    RunEnd.UNTRUSTED: "The suite looked into the program's code or frames, or set a tracer: that is not testing.",
    RunEnd.GARBLED: "Something wrote over the report of the tests.",
}

_TOLD_BY_DETAIL = frozenset(
    {RunEnd.TOO_MANY_FUNCTIONS, RunEnd.TOO_MANY_CASES, RunEnd.STOPPED, RunEnd.CRASHED, RunEnd.UNTRUSTED}
)
"""Where a run's own detail says all that the sentence does, and more; elsewhere it says the same, or less."""


def refused(suite: RefusedSuite, bugs_total: int) -> Feedback:
    """Feedback on a suite that never ran."""
    quoted = f"\n    {suite.text}" if suite.text else ""
    return Feedback(status=suite.status.value, message=suite.message + quoted, bugs_total=bugs_total)


def failed(end: RunEnd, shown: SuiteResult, shown_source: str, suite: str, bugs_total: int) -> Feedback:
    """Feedback on a submission that scores 0 as a whole; details come from the run on the shown code alone."""
    return Feedback(
        status=end.value,
        message=_sentence(end, shown.detail if shown.end is end else ""),
        tests=shown_tests(shown, suite),
        bugs_total=bugs_total,
        coverage=coverage_of(shown, shown_source),
    )


def judged(verdicts: Verdicts, shown: SuiteResult, shown_source: str, suite: str) -> Feedback:
    """Feedback on a judged submission: how many false alarms and caught bugs, never which."""
    count = len(verdicts.submitted)
    message = f"{count} test function{'' if count == 1 else 's'} judged, {verdicts.useful} useful."
    if shown.end is not RunEnd.COMPLETED:
        message += f" On the shown code: {_sentence(shown.end, shown.detail)}"
    return Feedback(
        status=JUDGED,
        message=message,
        tests=shown_tests(shown, suite),
        false_alarms=verdicts.false_alarms,
        bugs_caught=verdicts.caught,
        bugs_total=len(verdicts.credits),
        checked_percent=None if verdicts.checked is None else round(100.0 * verdicts.checked, 1),
        coverage=coverage_of(shown, shown_source),
    )


def viewed(shown: SuiteResult, shown_source: str, suite: str) -> Feedback:
    """Feedback on a look at the shown code's coverage; nothing is scored."""
    complete = shown.end is RunEnd.COMPLETED
    return Feedback(
        status="viewed" if complete else shown.end.value,
        message="Coverage of the shown code." if complete else _sentence(shown.end, shown.detail),
        tests=shown_tests(shown, suite),
        coverage=coverage_of(shown, shown_source),
    )


def shown_tests(shown: SuiteResult, suite: str) -> tuple[ShownTest, ...]:
    """Each test on the shown code; source lines are added here, no run holds them."""
    lines = _LINE_END.split(suite)
    return tuple(_shown_test(test, lines) for test in shown.tests)


def coverage_of(shown: SuiteResult, source: str) -> Coverage | None:
    """Line coverage as coverage.py counts it; None when the run did not complete."""
    if shown.end is not RunEnd.COMPLETED:
        return None
    statements = _statements(source)
    missing = sorted(statements - shown.lines)
    percent = 100.0 * (len(statements) - len(missing)) / len(statements) if statements else 100.0
    return Coverage(percent=round(percent, 1), missing_lines=tuple(missing))


def _sentence(end: RunEnd, detail: str) -> str:
    if detail and end in _TOLD_BY_DETAIL:
        return f"{detail[0].upper()}{detail[1:]}."
    if detail and end is RunEnd.COLLECTION_ERROR:
        return f"{_SENTENCES[end].removesuffix('.')}: {detail}"
    return _SENTENCES[end]


def _shown_test(test: TestReport, lines: list[str]) -> ShownTest:
    known = test.line is not None and 0 < test.line <= len(lines)
    source = lines[test.line - 1].strip() if known and test.line is not None else ""
    return ShownTest(name=test.id, outcome=test.outcome, message=test.message, line=test.line, source=source)


@lru_cache(maxsize=256)
def _statements(source: str) -> frozenset[int]:
    parser = PythonParser(text=source)
    parser.parse_source()
    return frozenset(parser.statements)
