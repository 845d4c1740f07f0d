"""The pytest file in a model's answer."""

import pytest

from autotest_env.agents.answers import extract_code

TESTS = """import pytest
from order_module import total


def test_one():
    assert total([1]) == 1
"""
FIXTURE = """import pytest


@pytest.fixture
def cart():
    return [1]
"""
WITH_CART = """from order_module import total


def test_two(cart):
    assert total(cart) == 1
"""


def fenced(code: str, language: str = "python", mark: str = "```") -> str:
    return f"{mark}{language}\n{code}{mark}\n"


@pytest.mark.parametrize(
    "answer",
    [
        TESTS,
        fenced(TESTS),
        fenced(TESTS, language=""),
        fenced(TESTS, language="py"),
        fenced(TESTS, mark="~~~"),
        fenced(TESTS, mark="````"),
        f"Here are the tests:\n\n{fenced(TESTS)}\nThey cover the documentation.",
        f"The file: {fenced(TESTS)}",
        f"```python\n{TESTS}",
        f"Sure!\n\n```python\n{TESTS}\n\ndef test_cut_off():\n    assert total(",
        f"Here are the tests, from the documentation:\n\n{TESTS}\nThese tests cover everything, I hope.",
        fenced(TESTS).replace("\n", "\r\n"),
        f"<think>\n{fenced('def test_draft(): pass')}\n</think>\n{fenced(TESTS)}",
        f"drafting {fenced('def test_draft(): pass')}</think>{fenced(TESTS)}",
        fenced("pytest -q\n", language="bash") + fenced(TESTS) + fenced("1 passed\n", language="text"),
        "1. The tests\n\n" + "".join(f"   {line}\n" for line in fenced(TESTS).splitlines()),
    ],
)
def test_the_file_is_found_whatever_stands_around_it(answer: str) -> None:
    assert extract_code(answer).strip() == TESTS.strip()


def test_a_restated_module_is_left_out() -> None:
    answer = fenced("def total(items):\n    return sum(items)\n") + fenced(TESTS)
    assert extract_code(answer) == TESTS


def test_of_two_versions_of_a_file_the_larger_is_taken() -> None:
    answer = fenced("def test_one():\n    pass\n") + fenced(TESTS)
    assert extract_code(answer) == TESTS


def test_blocks_that_complete_each_other_are_joined() -> None:
    code = extract_code(fenced(FIXTURE) + fenced(WITH_CART) + fenced(TESTS))
    assert [name for name in ("def cart", "def test_two", "def test_one") if name in code] == [
        "def cart",
        "def test_two",
        "def test_one",
    ]
    compile(code, "joined", "exec")


LABELS = "# FAILING_TESTS: test_old\n# CLASSIFICATION: test_old=regression\n"


@pytest.mark.parametrize(
    "answer",
    [
        fenced(LABELS + TESTS),
        f"{LABELS}{TESTS}",
        f"Here you are.\n\n{LABELS}{TESTS}",
        f"```python\n{LABELS}{TESTS}",
        f"The labels:\n{fenced(LABELS)}The tests:\n{fenced(TESTS)}",
    ],
    ids=["fenced", "bare", "prose", "unclosed", "apart"],
)
def test_comments_before_the_tests_are_kept(answer: str) -> None:
    code = extract_code(answer)
    assert code.startswith(LABELS)
    assert code.rstrip().endswith(TESTS.rstrip())


def test_an_example_without_tests_is_not_joined() -> None:
    assert extract_code(fenced("print(total([1]))\n") + fenced(TESTS)) == TESTS


@pytest.mark.parametrize("answer", [fenced("def test_one(:\n    assert\n"), "OK:\ndef test_one(:\n    assert\n"])
def test_invalid_python_is_returned_as_it_is(answer: str) -> None:
    assert extract_code(answer).rstrip() == "def test_one(:\n    assert"


@pytest.mark.parametrize(
    "answer", ["", "  \n", "I cannot do that.", "```python\n```", "<think>def test_x(): 0</think>"]
)
def test_an_answer_without_code_is_empty(answer: str) -> None:
    assert extract_code(answer) == ""


@pytest.mark.parametrize(
    "answer", ["(" * 100_000, "```python\n" + "[" * 50_000, "\x00def test_x(): 0", "a\n" * 100_000]
)
def test_hostile_answers_are_survived(answer: str) -> None:
    assert isinstance(extract_code(answer), str)
