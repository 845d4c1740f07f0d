"""The worked examples of the README, computed: from facts of runs through judging and rubric to the stated number."""

import re
from pathlib import Path

import pytest

from autotest_env.sandbox.suite import RunEnd, SuiteResult, TestOutcome, TestReport
from autotest_env.tasks.coverage_audit import rubric as coverage_audit
from autotest_env.tasks.judging import BugRuns, Evidence, Verdicts, judge
from autotest_env.tasks.registry import FAMILIES
from autotest_env.tasks.regression_audit import rubric as regression_audit
from autotest_env.tasks.regression_audit.answer import Label, parse_answer, triage
from autotest_env.tasks.unit_test_writer import rubric as unit_test_writer

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^total = .* = (0\.\d{6})$", README, flags=re.MULTILINE)

LABELS = {"test_login": "regression", "test_expiry": "regression", "test_length": "intentional_change"}
ANSWER = """\
# FAILING_TESTS: test_login, test_length, test_roles
# CLASSIFICATION: test_login=regression
# CLASSIFICATION: test_length=intentional_change
"""


def outcomes(tests: str, failing: str = "") -> SuiteResult:
    """Return a run of tests named by letters, in which some fail by an assertion."""
    return SuiteResult(
        end=RunEnd.COMPLETED,
        tests=tuple(
            TestReport(
                id=f"test_{letter}",
                outcome=TestOutcome.FAILED if letter in failing else TestOutcome.PASSED,
                asserted=letter in failing,
            )
            for letter in tests
        ),
    )


def verdicts(tests: str, bugs: list[tuple[str, str]], *, false_alarms: str = "", noticed: int = 0) -> Verdicts:
    """Judge a suite: per bug the test that notices it and who notices each sibling; `noticed` of 20 probes."""

    def run(failing: str) -> SuiteResult:
        return outcomes(tests, failing + false_alarms)

    runs = tuple(
        BugRuns(bug=letter, renderings=(run(letter),) * 2, siblings=tuple(run(each) for each in siblings))
        for letter, siblings in bugs
    )
    nothing = outcomes(tests, tests)
    probes = tuple(run("a" if number < noticed else "") for number in range(20))
    return judge(
        Evidence(
            reference=(run(""),) * 2,
            shown=nothing,
            decoys=(run(""),),
            null=nothing,
            bugs=runs,
            bug_count=len(bugs),
            probes=probes,
        )
    )


BUGS = [("a", "aaa"), ("b", "bbb"), ("c", "c--")]
"""Two bugs caught by exact tests, one noticed by a loose test that notices one of its siblings too."""


def test_each_family_has_an_example() -> None:
    assert len(EXAMPLES) == len(FAMILIES)


@pytest.mark.parametrize(("false_alarms", "where"), [("d", 0), ("", None)])
def test_the_example_of_unit_test_writer(false_alarms: str, where: int | None) -> None:
    total = unit_test_writer.score(verdicts("abcd"[: 3 + len(false_alarms)], BUGS, false_alarms=false_alarms)).total
    if where is not None:
        assert EXAMPLES[where] == f"{total:.6f}"
    else:
        assert f"Without the fourth test it would be {total:.6f}." in README


def test_the_example_of_coverage_audit() -> None:
    total = coverage_audit.score(verdicts("abc", BUGS, noticed=8)).total
    assert EXAMPLES[1] == f"{total:.6f}"


def test_the_example_of_regression_audit() -> None:
    known = {**{name: Label(label) for name, label in LABELS.items()}, "test_roles": Label.PASSES}
    value = triage(parse_answer(ANSWER), known)
    assert value == pytest.approx(0.25)
    total = regression_audit.score(verdicts("abc", [("a", "aaa"), ("c", "c--"), ("b", "bbb")]), value).total
    assert EXAMPLES[2] == f"{total:.6f}"
