"""The embedded policy for a new version, on a module of our own: labels, and tests that catch finer wrong versions."""

import pytest

from autotest_env.agents.audit import write_audit
from autotest_env.agents.confined import Job, run_confined
from tests.agents.parking import CHANGELOG, EXISTING, MODULE, NEW, OLD, RIGHT

LABELS = """\
# FAILING_TESTS: test_a_full_park_takes_no_car, test_plates_are_checked, test_a_quarter_is_free_but_no_more
# CLASSIFICATION: test_a_full_park_takes_no_car=regression
# CLASSIFICATION: test_plates_are_checked=regression
# CLASSIFICATION: test_a_quarter_is_free_but_no_more=intentional_change
"""
WRONG = {
    "test_regression_1": [
        ("2 <= len(plate)", "1 <= len(plate)"),
        ("2 <= len(plate)", "3 <= len(plate)"),
        ("2 <= len(plate)", "0 <= len(plate)"),
    ],
    "test_regression_2": [
        (">= self._places", "> self._places"),
        (">= self._places", "+ 1 >= self._places"),
        (">= self._places", "> self._places + 1"),
    ],
    "test_intentional_change_3": [
        ("minutes <= 20", "minutes <= 15"),
        ("minutes <= 20", "minutes <= 19"),
        ("minutes <= 20", "minutes < 20"),
        ("minutes <= 20", "minutes <= 21"),
    ],
}


def passed(suite: str, *programs: str) -> list[dict[str, bool]]:
    return [answer.passed for answer in run_confined(Job(module=MODULE, programs=programs, tests=suite))]


@pytest.fixture(scope="module")
def suite() -> str:
    return write_audit(MODULE, OLD, NEW, EXISTING, CHANGELOG)


def test_every_failing_test_is_labelled_by_what_made_it_fail(suite: str) -> None:
    assert suite.startswith(LABELS)


def test_the_new_tests_pass_on_the_new_version_without_its_regressions(suite: str) -> None:
    assert passed(suite, RIGHT) == [dict.fromkeys(WRONG, True)]


def test_one_test_each_catches_an_error_and_finer_ones_of_its_kind(suite: str) -> None:
    for test, edits in WRONG.items():
        programs = [RIGHT.replace(*edit) for edit in edits]
        assert RIGHT not in programs
        assert [each[test] for each in passed(suite, *programs)] == [False] * len(edits)


def test_the_same_versions_give_the_same_suite(suite: str) -> None:
    assert write_audit(MODULE, OLD, NEW, EXISTING, CHANGELOG) == suite


def test_edits_that_make_no_sense_alone_are_told_apart_by_words() -> None:
    renamed = NEW.replace("_cars", "_inside")
    suite = write_audit(MODULE, OLD, renamed, EXISTING, CHANGELOG)
    assert suite.startswith(LABELS)
    (on_right,) = passed(suite, RIGHT)
    assert sum(on_right.values()) >= 2
    assert not any(passed(suite, renamed)[0][test] for test in on_right if "regression" in test)


def test_a_regression_whose_steps_cannot_be_varied_is_tested_as_it_was() -> None:
    existing = EXISTING.replace("def test_a_full_park_takes_no_car()", "def test_a_full_park_takes_no_car(request)")
    suite = write_audit(MODULE, OLD, NEW, existing, CHANGELOG)
    assert suite.startswith(LABELS)
    on_right, on_new = passed(suite, RIGHT, NEW)
    assert all(on_right.values())
    assert on_new["test_a_full_park_takes_no_car"] is False


def test_two_equal_versions_fail_nothing_and_are_tested_by_their_documentation() -> None:
    suite = write_audit(MODULE, OLD, OLD, EXISTING, CHANGELOG)
    assert suite.startswith("# FAILING_TESTS: \n")
    assert "def test_" in suite


def test_where_varied_steps_break_the_process_the_existing_tests_are_taken_over() -> None:
    guard = "\n\ndef drive(clock, minutes):\n    if minutes != 18:\n        os._exit(1)\n    clock.now += minutes\n\n\n"
    existing = EXISTING.replace("clock.now += 18", "drive(clock, 18)").replace("\n\nclass Clock", f"{guard}class Clock")
    suite = write_audit(MODULE, OLD, NEW, f"import os\n{existing}", CHANGELOG)
    assert suite.startswith(LABELS)
    assert passed(suite, RIGHT) == [{"test_a_full_park_takes_no_car": True, "test_plates_are_checked": True}]
