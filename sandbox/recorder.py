"""The plug-in that watches a run: one record per test instead of pytest's reports."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Literal, cast

import pytest
from _pytest.runner import CallInfo

from autotest_env.sandbox.rewrite import SUITE_FILE
from autotest_env.sandbox.suite import MAX_CASES, MAX_MESSAGE_CHARS, RunEnd, TestOutcome

_MAX_PARAMETER_IDS = 20 * MAX_CASES
_Phase = Literal["setup", "call", "teardown"]
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
_FOLDER = re.compile(r"(?:/[\w.]+)*/autotest-\w*(?:/w\d+)?(?:/run)?")
_FLAWS = (TestOutcome.ERROR, TestOutcome.FAILED)


@dataclass(frozen=True, slots=True)
class Modules:
    """The two modules of a run: the suite and the program under test."""

    suite: ModuleType
    program: ModuleType


@dataclass(slots=True)
class Facts:
    """What a run has seen so far; turned into the header of its report."""

    end: RunEnd = RunEnd.COMPLETED
    detail: str = ""
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)


class EndRun(KeyboardInterrupt):
    """Stops the run with a named end; pytest lets a KeyboardInterrupt pass wherever it is raised."""

    def __init__(self, end: RunEnd, detail: str) -> None:
        super().__init__(end)
        self.end = end
        self.detail = detail


class Recorder:
    """Keeps the outcome of each test, and message and line where the run was asked for representations."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._represent = False
        self._parameter_ids = 0

    def begin(self, facts: Facts, modules: Modules, *, represent: bool) -> None:
        """Record one suite into `facts`."""
        self._facts = facts
        self._suite = modules.suite
        self._program = modules.program
        self._represent = represent

    def interrupt(self) -> None:
        """The run ended inside the test that was recorded last: that test did not pass."""
        if self._facts.tests:
            record = self._facts.tests[next(reversed(self._facts.tests))]
            record["outcome"] = TestOutcome.ERROR

    def pytest_runtest_makereport(self, item: pytest.Item, call: CallInfo[None]) -> pytest.TestReport:
        """Make a report without a traceback.

        Runs before pytest's own maker, but after unittest's hook (tryfirst), which hands over the failures of test
        cases, and inside the wrapper for xfail.
        """
        report = pytest.TestReport(item.id, item.location, {}, "passed", None, cast("_Phase", call.when))
        record = self._facts.tests.setdefault(_name(item), {"outcome": TestOutcome.PASSED})
        if call.excinfo is not None:
            error = call.excinfo.value
            if isinstance(error, SystemExit):
                raise error
            skipped = isinstance(error, pytest.skip.Exception)
            report.outcome = "skipped" if skipped else "failed"
            report.longrepr = (SUITE_FILE, 0, "skipped") if skipped else "failed"
            self._note(record, error)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst outcome of a test's phases and subtests."""
        record = self._facts.tests[report.nodeid.partition("::")[2]]
        if hasattr(report, "wasxfail"):
            outcome = TestOutcome.XFAILED if report.skipped else TestOutcome.XPASSED
        elif report.failed:
            outcome = TestOutcome.FAILED if report.when == "call" else TestOutcome.ERROR
        elif report.skipped:
            outcome = TestOutcome.SKIPPED
        else:
            return
        if record["outcome"] not in _FLAWS:
            record["outcome"] = outcome

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A part of the file that cannot be collected makes the whole file uncollectable."""
        if not report.passed:
            problem = f"pytest could not collect the file: {report.longrepr}"
            raise EndRun(RunEnd.COLLECTION_ERROR, steady(problem, self._folder))

    def pytest_make_parametrize_id(self) -> None:
        """Count parameter sets while they are made: a million of them must not be made first."""
        self._parameter_ids += 1
        if self._parameter_ids > _MAX_PARAMETER_IDS:
            raise EndRun(RunEnd.TOO_MANY_CASES, f"more than {MAX_CASES} test cases, at most {MAX_CASES} are allowed")

    def _note(self, record: dict[str, Any], error: BaseException) -> None:
        if "message" in record:
            return
        record["asserted"] = isinstance(error, AssertionError | pytest.fail.Exception) and self._is_from_suite(error)
        record["message"] = ""
        if self._represent:
            record["message"] = steady(f"{type(error).__name__}: {error}", self._folder)
            record["line"] = suite_line(error.__traceback__, self._suite)

    def _is_from_suite(self, error: BaseException) -> bool:
        """Whether the innermost frame that is the suite's or the program's is the suite's."""
        owner = None
        for frames in _links(error.__traceback__):
            if frames.tb_frame.f_globals is vars(self._suite):
                owner = self._suite
            elif frames.tb_frame.f_globals is vars(self._program):
                owner = self._program
        return owner is self._suite


def steady(text: str, folder: str) -> str:
    """Cap a message, take out what differs from run to run (memory addresses, the run's folder), escape surrogates."""
    text = text[: 2 * MAX_MESSAGE_CHARS].encode("utf-8", "backslashreplace").decode()
    return _ADDRESS.sub("0x...", _FOLDER.sub(".", text.replace(folder, ".")))[:MAX_MESSAGE_CHARS]


def _name(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[2]


def suite_line(trace: TracebackType | None, suite: ModuleType) -> int | None:
    """Return the 1-based line of the suite's innermost frame in a traceback."""
    lines = [link.tb_lineno for link in _links(trace) if link.tb_frame.f_globals is vars(suite)]
    return lines[-1] if lines else None


def _links(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next
