"""The classic program of coverage_audit: a class whose methods can be buggy side by side."""

import itertools

import pytest

from autotest_env.mutation.rendering import catalogue, render
from autotest_env.tasks.coverage_audit.generate import bugs_by_method
from autotest_env.tasks.program import load_program, run_witness

PROGRAM = load_program("inventory")
METHODS = bugs_by_method(PROGRAM)
SESSION = (
    "stock = Inventory(3)",
    "stock.add_item('saw', 20.0, 4)",
    "stock.add_item('nail', 0.5, 3)",
    "stock.add_item('nail', 0.7, 5)",
    "stock.remove_item('nail', 2)",
    "stock.remove_item('saw')",
    "stock.apply_discount(10, 3)",
    "stock.calculate_total(20)",
    "stock.get_summary()",
)


def test_every_method_has_two_bugs_or_more_with_three_siblings_each():
    names = ("add_item", "remove_item", "calculate_total", "apply_discount", "get_summary")
    assert tuple(METHODS) == tuple(f"Inventory.{name}" for name in names)
    assert all(len(bugs) >= 2 for bugs in METHODS.values())
    assert all(len(bug.siblings) >= 3 for bug in PROGRAM.bugs)


@pytest.mark.parametrize("methods", tuple(itertools.combinations(METHODS, 3)))
def test_bugs_of_three_methods_together_still_run(methods):
    for bugs in itertools.product(*(METHODS[method] for method in methods)):
        outcomes = run_witness(PROGRAM.shown(tuple(bug.id for bug in bugs)), SESSION)
        assert len(outcomes) == len(SESSION) - 1
        assert not any(outcome.startswith("raises") for outcome in outcomes)
        assert outcomes != run_witness(PROGRAM.source, SESSION)


def test_no_place_needs_a_guard_in_chaff():
    for kind in catalogue():
        if kind.chaff:
            assert "lambda" not in render(PROGRAM.source, PROGRAM.sites, {}, kind.number, b"key")


def test_it_is_small_enough_to_be_shown_twice():
    assert 2 * len(PROGRAM.source.encode()) + len(PROGRAM.docs.encode()) < 14 << 10


@pytest.mark.parametrize("text", ["._", "match="])
def test_the_oracle_keeps_to_what_is_documented(text):
    assert text not in PROGRAM.oracle_suite
