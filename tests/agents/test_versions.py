"""The edits between two versions, and which of them a changelog tells of."""

import pytest

from autotest_env.agents.versions import announced, compare
from tests.agents.parking import CHANGELOG, NEW, OLD


def changes(old: str, new: str) -> list[tuple[str, str]]:
    """What is replaced by what, in code."""
    return [(old[edit.start : edit.end].strip(), edit.text.strip()) for edit in compare(old, new).behaviour]


def test_every_changed_condition_is_an_edit_of_its_own_and_words_are_none() -> None:
    assert changes(OLD, NEW) == [
        ("if not 2 <= len(plate) <= 8", "if not 1 <= len(plate) <= 8"),
        ("if len(self._cars) >= self._places:", "if len(self._cars) > self._places:"),
        ("if minutes <= 15:", "if minutes <= 20:"),
    ]
    assert len(compare(OLD, NEW).wording) == 1


def test_all_edits_together_make_the_new_version() -> None:
    versions = compare(OLD, NEW)
    assert versions.with_edits(*versions.wording, *versions.behaviour) == NEW
    assert versions.with_edits() == OLD


@pytest.mark.parametrize(
    ("old", "new", "edits"),
    [
        ("if a < 1 or b < 2:\n    c()\n", "if a < 3 or b < 4:\n    c()\n", 2),
        ("x = 1\ny = 2\n", "x = 3\ny = 4\n", 2),
        ("x = f(1, 2)\n", "x = f(3, 4)\n", 2),
        ("x = [\n    1,\n]\n", "x = (\n    1,\n)\n", 0),
        ("x = (\n    1\n)\n", "x = (\n    1\n    + 2\n)\n", 1),
        ("x = 1\n", "x = 1\ny = 2\n", 1),
        ("x = 1\ny = 2\n", "x = 1\n", 1),
        ("x = 1  # one\n", "x = 1  # the first\n", 0),
        ("x = 1\n", "x = 1\n", 0),
        ("x = 1\n" * 40, "x = 2\n" * 40, 1),
        ("x = 1\ny = 2\n" * 40, "x = 2\ny = 2\n" * 40, 0),
        ("x = 1\n" * 2500, "x = 2\n" * 2500, 1),
    ],
    ids="conditions lines arguments senseless block added removed comment same long many huge".split(),
)
def test_edits_are_as_fine_as_they_make_sense_alone(old: str, new: str, edits: int) -> None:
    assert len(compare(old, new).behaviour) == edits


@pytest.mark.parametrize(("old", "new"), [("def", "x = 1"), ("x = 1", "def")])
def test_what_does_not_parse_is_refused(old: str, new: str) -> None:
    with pytest.raises(SyntaxError):
        compare(old, new)


def told(old: str, new: str, changelog: str, **broken: int) -> str | None:
    """The new text of the announced edit; `broken` maps tests to the numbers of the edits that make them fail."""
    versions = compare(old, new)
    tests = {
        edit: [test for test, each in broken.items() if each == number]
        for number, edit in enumerate(versions.behaviour)
    }
    edit = announced(versions, changelog, tests)
    return edit and edit.text.strip()


def test_the_announced_edit_is_known_by_words_and_numbers() -> None:
    assert told(OLD, NEW, CHANGELOG) == "if minutes <= 20:"
    old, new = "LEAST_AGE = 18\nMOST_CARS = 3\n", "LEAST_AGE = 21\nMOST_CARS = 4\n"
    assert told(old, new, "Drivers have to be twenty-one.") == "LEAST_AGE = 21"
    assert told(old, new, "Four fit in now.") == "MOST_CARS = 4"
    assert told(old, new, "Young people have to wait longer.") == "LEAST_AGE = 21"


def test_the_announced_edit_is_known_by_the_tests_that_fail() -> None:
    old, new = "a = 1\nb = 2\n", "a = 3\nb = 5\n"
    assert told(old, new, "Longer names.", test_names=1, test_places=0) == "b = 5"
    assert told(old, new, "More places.", test_names=1, test_places=0) == "a = 3"


def test_the_announced_edit_is_known_by_the_docstring_beside_it() -> None:
    old = 'def f():\n    """Few."""\n    return 1\n\n\ndef g():\n    """Many."""\n    return 2\n'
    new = old.replace("Many", "Most").replace("return 1", "return 3").replace("return 2", "return 4")
    assert told(old, new, "") == "return 4"


def test_without_edits_none_is_announced() -> None:
    assert told(OLD, OLD, CHANGELOG) is None
