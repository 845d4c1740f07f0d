"""What is said about a suite that could not be judged."""

import pytest

from autotest_env.sandbox.suite import RunEnd, SuiteResult
from autotest_env.tasks.feedback import failed, viewed

SAID = {
    RunEnd.WALL_LIMIT: (
        "a run went over its wall time limit",
        "The suite took more time than a run or a submission may.",
    ),
    RunEnd.NO_TESTS: ("no test was found", "No test was found; name functions test_... and classes Test...."),
    RunEnd.TOO_MANY_CASES: ("201 test cases, at most 200 are allowed", "201 test cases, at most 200 are allowed."),
    RunEnd.STOPPED: ("the suite stopped the session: Exit", "The suite stopped the session: Exit."),
    RunEnd.COLLECTION_ERROR: (
        "line 1: ImportError: x",
        "The file could not be imported or collected: line 1: ImportError: x",
    ),
}


@pytest.mark.parametrize("end", SAID, ids=str)
def test_a_message_says_everything_once(end: RunEnd) -> None:
    detail, message = SAID[end]
    shown = SuiteResult(end=end, detail=detail)
    assert failed(end, shown, "", "", 3).message == message
    assert viewed(shown, "", "").message == message


@pytest.mark.parametrize("end", [end for end in RunEnd if end is not RunEnd.COMPLETED], ids=str)
def test_every_end_is_told_in_a_sentence_also_without_a_detail(end: RunEnd) -> None:
    message = failed(end, SuiteResult(end=end), "", "", 3).message
    assert message[0].isupper()
    assert message.endswith(".")


def test_the_detail_of_another_end_is_not_told() -> None:
    shown = SuiteResult(end=RunEnd.CRASHED, detail="the process running the tests died by SIGSEGV")
    assert failed(RunEnd.STOPPED, shown, "", "", 3).message.startswith("The suite stopped the session (")
