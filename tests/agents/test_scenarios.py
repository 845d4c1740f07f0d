"""Scenarios from existing tests: the same steps, recorded, with knobs."""

from typing import Any

import pytest

from autotest_env.agents.scenarios import HELPERS, take_apart

HEAD = "import pytest\nLIMIT = 3\n\ndef double(x):\n    if x < 0:\n        raise ValueError(x)\n    return 2 * x\n\n"


def seen(test: str, **changed: object) -> list[Any]:
    """What the first scenario of a test sees with some knobs turned."""
    tests = take_apart(HEAD + test)
    scenario = tests.scenarios[0]
    namespace: dict[str, Any] = {}
    exec(f"{tests.prelude}\n\n{HELPERS}\n\n{scenario.code(scenario.knobs)}", namespace)
    return namespace["observed"](namespace[scenario.name], **changed)


def knobs(test: str) -> list[object]:
    return list(take_apart(HEAD + test).scenarios[0].knobs.values())


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("assert double(2) == 4", [4]),
        ("assert 4 == double(2) != 5", [4]),
        ("assert double(2) < double(3)", [4, 6]),
        ("assert not double(0)", [0]),
        ("assert double(2) == pytest.approx(4)", [4]),
        ("assert double(1) and double(2)", [4]),
        ("assert True", [True]),
        ("double(2)", [4]),
        ("x = double(2)\n    assert x in (4, 5)", [4]),
        ("with pytest.raises(ValueError):\n        double(-1)", ["ValueError"]),
        ("with pytest.raises(ValueError, match='1'):\n        double(1)", [2]),
        ("double(-1)\n    assert double(1) == 2", ["ValueError"]),
        ("for x in (1, -1):\n        if x > 0:\n            assert double(x)", [2]),
        ("assert {'a': (1, {2, 1})} == double(1)", [2]),
        ("assert [double, {1: 2}, (3, None), {5, 4}] == 1", [["function", {"1": 2}, [3, None], ["4", "5"]]]),
        ("pass", []),
        ("'''Documentation.'''", []),
    ],
)
def test_what_a_test_looks_at_is_seen(body: str, values: list[object]) -> None:
    assert seen(f"def test_it():\n    {body}\n") == values


def test_constants_and_repetitions_are_knobs() -> None:
    test = "def test_it():\n    x = [1, 'a', 2.5, True, None, f'{1}', LIMIT]\n    double(LIMIT)\n    assert double(4) == 8\n"
    assert knobs(test) == [1, "a", 2.5, 3, 1, 3, 1, 4]


def test_huge_constants_are_none() -> None:
    assert knobs(f"def test_it():\n    x = [10 ** 2, {10**400}, 1e999, -1e12, {'a' * 300!r}]\n") == [10, 2]


def test_turned_knobs_change_what_is_seen() -> None:
    test = "def test_it():\n    x = 1\n    assert double(x) == 2\n"
    assert seen(test) == [2]
    assert seen(test, number_1=5) == [10]
    assert seen(test, number_1=5, times_2=3) == [10, 10, 10]
    assert seen(test, times_2=0) == []


def test_only_the_asked_for_knobs_are_arguments() -> None:
    scenario = take_apart(HEAD + "def test_it():\n    double(1)\n    double(2)\n").scenarios[0]
    assert scenario.code({"number_4"}) == (
        "def steps_of_it_0(see, *, number_4=2):\n    see(double(1))\n    see(double(number_4))"
    )


def test_every_parameter_set_is_a_scenario() -> None:
    test = "@pytest.mark.parametrize(('x', 'y'), [(1, 2), (LIMIT, 6)])\ndef test_it(x, y):\n    assert double(x) == y\n"
    assert [each.name for each in take_apart(HEAD + test).scenarios] == ["steps_of_it_0", "steps_of_it_1"]
    assert seen(test, number_2=7) == [14]
    assert seen(test.replace("('x', 'y')", "'x, y'")) == [2]
    assert seen("@pytest.mark.parametrize('x', [1, 2])\ndef test_it(x):\n    double(x)\n") == [2]


@pytest.mark.parametrize(
    "test",
    [
        "def test_it(tmp_path):\n    assert tmp_path\n",
        "@pytest.mark.skip\ndef test_it():\n    assert 1\n",
        "@pytest.mark.parametrize('x', range(3))\ndef test_it(x):\n    assert x\n",
        "class TestIt:\n    def test_it(self):\n        assert 1\n",
        "def test_it():\n    see = 1\n",
        "def test_it():\n    number_1 = 1\n",
    ],
)
def test_tests_whose_steps_cannot_be_taken_over_have_no_scenario(test: str) -> None:
    assert take_apart(HEAD + test).scenarios == ()


def test_the_rest_of_the_file_is_kept() -> None:
    tests = take_apart(f'"""Tests."""\n{HEAD}def test_it():\n    pass\n')
    assert tests.prelude.startswith("import pytest\nLIMIT = 3\n\n\ndef double(x):")
    assert tests.tests == {"test_it": "def test_it():\n    pass"}
