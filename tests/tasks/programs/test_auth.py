"""The classic program with two versions: what is broken, what is changed, and what the old tests say of it."""

import itertools
import sys
import types
from collections.abc import Mapping
from functools import cache

import pytest

from autotest_env.mutation.mutant import substitute
from autotest_env.mutation.rendering import RENDERINGS, render
from autotest_env.tasks.program import load_program, run_witness

PROGRAM = load_program("auth")
REGRESSIONS = tuple(bug.id for bug in PROGRAM.bugs)
CHANGES = tuple(change.id for change in PROGRAM.changes)
PAIRS = tuple(itertools.combinations(REGRESSIONS, 2))


def _failing(suite: str, chosen: Mapping[str, int]) -> set[str]:
    """The tests of a suite that do not pass on version 1 with some alternatives."""
    module = types.ModuleType(PROGRAM.module)
    exec(_text(tuple(sorted(chosen.items()))), module.__dict__)
    assert PROGRAM.module not in sys.modules
    sys.modules[PROGRAM.module] = module
    try:
        tests: dict[str, object] = {}
        exec(_compiled(suite), tests)
    finally:
        del sys.modules[PROGRAM.module]
    return {name for name, test in tests.items() if name.startswith("test_") and not _passes(test)}


@cache
def _compiled(suite: str) -> types.CodeType:
    return compile(suite, "<suite>", "exec")


@cache
def _text(chosen: tuple[tuple[str, int], ...]) -> str:
    return substitute(PROGRAM.source, PROGRAM.sites, dict(chosen))


def _passes(test: object) -> bool:
    assert callable(test)
    try:
        test()
    except (Exception, pytest.fail.Exception):  # noqa: BLE001  whatever a program raises fails its test
        return False
    return True


def _test_of(place: str) -> str:
    return f"test_{place.replace('-', '_')}"


def _alternatives(place: str) -> range:
    return range(2 + len(PROGRAM.bug(place).siblings))


def test_the_pools_are_large_enough() -> None:
    assert len(REGRESSIONS) >= 6
    assert len(CHANGES) >= 3


@pytest.mark.parametrize("place", [*REGRESSIONS, *CHANGES])
def test_the_witness_tells_all_alternatives_apart(place: str) -> None:
    witness = PROGRAM.bug(place).witness
    outcomes = [run_witness(_text(((place, number),)), witness) for number in _alternatives(place)]
    assert len(set(outcomes)) == len(outcomes)
    raising = [any(outcome.startswith("raises") for outcome in lines) for lines in outcomes]
    assert raising[0] or sum(raising) <= 1


@pytest.mark.parametrize("place", [*REGRESSIONS, *CHANGES])
def test_alternatives_are_the_same_in_renderings_that_take_turns(place: str) -> None:
    witness = PROGRAM.bug(place).witness
    plain = [run_witness(_text(((place, number),)), witness) for number in _alternatives(place)]
    for rendering in range(RENDERINGS):
        number = rendering % len(plain)
        text = render(PROGRAM.source, PROGRAM.sites, {place: number}, rendering, b"key")
        assert run_witness(text, witness) == plain[number]


@pytest.mark.heavy
@pytest.mark.parametrize("place", [*REGRESSIONS, *CHANGES])
def test_alternatives_are_the_same_in_every_rendering(place: str) -> None:
    witness = PROGRAM.bug(place).witness
    for rendering, number in itertools.product(range(RENDERINGS), _alternatives(place)):
        text = render(PROGRAM.source, PROGRAM.sites, {place: number}, rendering, b"key")
        assert run_witness(text, witness) == run_witness(_text(((place, number),)), witness)


@pytest.mark.parametrize("regression", REGRESSIONS)
def test_one_oracle_test_notices_a_regression_and_its_siblings_whatever_was_changed(regression: str) -> None:
    for change in (None, *CHANGES):
        correct = {} if change is None else {change: 1}
        assert _test_of(regression) not in _failing(PROGRAM.oracle_suite, correct)
        for number in _alternatives(regression)[1:]:
            assert _test_of(regression) in _failing(PROGRAM.oracle_suite, {**correct, regression: number})


@pytest.mark.parametrize("change", CHANGES)
def test_the_oracles_test_of_a_change_wants_it_exactly(change: str) -> None:
    assert _test_of(change) not in _failing(PROGRAM.oracle_suite, {change: 1})
    for number in _alternatives(change):
        if number != 1:
            assert _test_of(change) in _failing(PROGRAM.oracle_suite, {change: number})


def test_the_existing_tests_pass_on_version_1_and_on_every_sibling_of_a_regression() -> None:
    assert _failing(PROGRAM.existing_tests, {}) == set()
    for regression in REGRESSIONS:
        for number in _alternatives(regression)[2:]:
            assert _failing(PROGRAM.existing_tests, {regression: number}) == set(), (regression, number)


@pytest.mark.parametrize("change", CHANGES)
def test_the_truth_is_what_the_existing_tests_say_of_every_version(change: str) -> None:
    """R is version 2 with the regressions repaired, G version 1 with the regressions."""
    fails = PROGRAM.measured.fails
    contradicting = fails[change]
    assert contradicting
    assert _failing(PROGRAM.existing_tests, {change: 1}) == contradicting  # R
    for pair in PAIRS:
        broken = fails[pair[0]] | fails[pair[1]]
        assert fails[pair[0]]
        assert broken.isdisjoint(contradicting)
        assert _failing(PROGRAM.existing_tests, dict.fromkeys(pair, 1)) == broken  # G
        assert _failing(PROGRAM.existing_tests, dict.fromkeys((change, *pair), 1)) == broken | contradicting


def test_the_documentation_of_version_2_states_the_new_rule() -> None:
    for change in PROGRAM.changes:
        assert change.documented
        for old, new in change.documented:
            assert PROGRAM.source.count(old) == 1
            assert new not in PROGRAM.source
