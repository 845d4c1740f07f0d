"""How answers are read, and what telling failing tests apart is worth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotest_env.sandbox.suite import MAX_SUITE_BYTES
from autotest_env.tasks.regression_audit.answer import Answer, Label, parse_answer, triage

TRUTH = {
    "test_a": Label.REGRESSION,
    "test_b": Label.REGRESSION,
    "test_c": Label.INTENTIONAL_CHANGE,
    "test_d": Label.PASSES,
    "test_e": Label.PASSES,
}
RIGHT = """\
# FAILING_TESTS: test_a, test_b, test_c
# CLASSIFICATION: test_a=regression
# CLASSIFICATION: test_b=regression
# CLASSIFICATION: test_c=intentional_change
"""

READ_AS_A_AND_B = [
    "# FAILING_TESTS: test_a, test_b",
    "#FAILING_TESTS:test_a,test_b",
    "#\tFAILING_TESTS \t:\ttest_a\t,\ttest_b\t",
    "    # FAILING_TESTS: test_a, test_b",
    "# FAILING_TESTS: test_a, test_b,",
    "# FAILING_TESTS: ,test_a,, test_b, test_a",
    "# FAILING_TESTS: test_a\n# FAILING_TESTS: test_b",
    "def test_new():\n    pass\n\n\n# FAILING_TESTS: test_a, test_b\n",
    "# FAILING_TESTS: test_a, test_b\r\ndef test_new(): pass\r\n",
    "# FAILING_TESTS: test_a\r# FAILING_TESTS: test_b\rdef test_new(): pass\r",
    "\ufeff# FAILING_TESTS: test_a, test_b\n",
]

NOT_READ = [
    "",
    "# Failing_Tests: test_a",
    "# failing_tests: test_a",
    "# FAILING TESTS: test_a",
    "# FAILING_TESTS test_a",
    "# FAILING_TESTS:",
    "# FAILING_TESTS: , ,",
    "## FAILING_TESTS: test_a",
    "# so: FAILING_TESTS: test_a",
    "x = 1  # FAILING_TESTS: test_a",
    "x = '# FAILING_TESTS: test_a'",
    'x = """\n# FAILING_TESTS: test_a\n"""',
    'x = """\n# """  # FAILING_TESTS: test_a',
    "# what follows\rx = 1  # FAILING_TESTS: test_a",
    "FAILING_TESTS: test_a",
    "# CLASSIFICATION: test_a",
    "# CLASSIFICATION: =regression",
    "# Classification: test_a=regression",
    "# FAILING_TESTS: test_a\ndef test_it(:\n  '''",
    "# FAILING_TESTS: test_a\nx = (",
]


@pytest.mark.parametrize("text", READ_AS_A_AND_B)
def test_the_failing_tests_are_read(text: str) -> None:
    assert parse_answer(text) == Answer(failing=frozenset({"test_a", "test_b"}), labels={})


@pytest.mark.parametrize("text", NOT_READ)
def test_other_texts_are_no_answer(text: str) -> None:
    assert parse_answer(text) == Answer(failing=frozenset(), labels={})


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("# CLASSIFICATION: test_a=regression", Label.REGRESSION),
        ("#CLASSIFICATION:test_a \t=\t intentional_change ", Label.INTENTIONAL_CHANGE),
        ("# CLASSIFICATION: test_a=Regression", None),
        ("# CLASSIFICATION: test_a=passes", None),
        ("# CLASSIFICATION: test_a=regression, test_b=regression", None),
        ("# CLASSIFICATION: test_a==regression", None),
        ("# CLASSIFICATION: test_a=", None),
        ("# CLASSIFICATION: test_a=regression\n# CLASSIFICATION: test_a=regression", None),
        ("# CLASSIFICATION: test_a=regression\n# CLASSIFICATION: test_a=intentional_change", None),
        ("# CLASSIFICATION: test_a=regression\n# CLASSIFICATION: test_a=what", None),
    ],
)
def test_a_label_is_one_of_two_words_given_once(line: str, label: Label | None) -> None:
    answer = parse_answer(line)
    assert answer.failing == {"test_a"}
    assert answer.labels.get("test_a") is label


def worth(*lines: str) -> float:
    return triage(parse_answer("\n".join(lines)), TRUTH)


def test_the_right_answer_is_worth_1() -> None:
    assert worth(RIGHT) == 1.0


@pytest.mark.parametrize("label", ["regression", "intentional_change", "passes", ""])
def test_one_label_for_all_is_worth_nothing(label: str) -> None:
    lines = [f"# CLASSIFICATION: {name}={label}" for name in TRUTH]
    assert worth(*lines) == 0.0
    assert worth(*lines[:3]) == 0.0


def test_labels_without_a_list_say_that_the_tests_fail() -> None:
    assert worth(*RIGHT.splitlines()[1:]) == 1.0


def test_a_list_without_labels_is_worth_nothing() -> None:
    assert worth(RIGHT.splitlines()[0]) == 0.0


@pytest.mark.parametrize("name", ["test_d", "test_unknown", "TestA::test_a", "test_a[1]", "../../etc"])
@pytest.mark.parametrize("line", ["# FAILING_TESTS: {}", "# CLASSIFICATION: {}=regression"])
def test_what_does_not_fail_or_is_unknown_joins_the_failing_tests(name: str, line: str) -> None:
    assert worth(RIGHT, line.format(name)) == pytest.approx(3 / 4)


def test_a_missing_duplicate_or_wrong_label_is_wrong_for_that_test() -> None:
    lines = RIGHT.splitlines()
    half = 2 * (1 / 2 + 1) / 2 - 1
    assert worth(*lines[:2], lines[3]) == pytest.approx(half)
    assert worth(*lines, lines[2]) == pytest.approx(half)
    assert worth(*lines[:2], lines[2].replace("regression", "intentional_change"), lines[3]) == pytest.approx(half)


@given(
    st.lists(st.sampled_from([*TRUTH, "x"])),
    st.lists(st.tuples(st.sampled_from([*TRUTH, "x"]), st.sampled_from([*Label, "no"]))),
)
def test_triage_lies_between_0_and_1_and_is_1_for_the_truth_only(
    failing: list[str], labels: list[tuple[str, str]]
) -> None:
    lines = [f"# FAILING_TESTS: {', '.join(failing)}", *(f"# CLASSIFICATION: {name}={label}" for name, label in labels)]
    value = worth(*lines)
    assert 0.0 <= value <= 1.0
    assert (value == 1.0) is (parse_answer("\n".join(lines)) == parse_answer(RIGHT))


@given(
    st.text(alphabet="# FAILING_TESTS:CLASSIFICATION=,\n\r\t\f'\"\\()\x00\ud800\u2028test_a", max_size=80) | st.text()
)
def test_no_text_is_too_strange(text: str) -> None:
    assert 0.0 <= triage(parse_answer(text), TRUTH) <= 1.0


def test_a_long_answer_is_read_whole() -> None:
    names = [f"test_{number}" for number in range(4000)]
    assert len(parse_answer("# FAILING_TESTS: " + ",".join(names)).failing) == 4000


def test_an_answer_that_is_too_long_to_be_run_is_not_read() -> None:
    longest = RIGHT + "#" * (MAX_SUITE_BYTES - len(RIGHT))
    assert parse_answer(longest) == parse_answer(RIGHT)
    assert parse_answer(longest + "#") == Answer(failing=frozenset(), labels={})
